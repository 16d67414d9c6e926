"""Numbers as objects of the Kubernetes API hold them, written by Go's encoding/json and read back, and in texts.

Truth values in texts, as Go's strconv reads them, are here too.
"""

from __future__ import annotations

import re
from decimal import Decimal

_DIGITS = re.compile(r"[0-9]{1,18}")
"""An int64 holds them all; Python refuses to read thousands."""
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_EXACT = 1 << 53
"""Below it every whole float64 is written with its own digits; above, with the shortest that identify it."""


def decimal(text: str) -> int | None:
    """The number that a text writes in ASCII digits; None for any other text, and for one beyond 18 digits."""
    return int(text) if _DIGITS.fullmatch(text) else None


_TRUTHS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def boolean(text: str) -> bool | None:
    """The truth value that Go's strconv.ParseBool reads in a text; None for any other text."""
    return _TRUTHS.get(text)


def stored(value: float) -> int | float:
    """A number as an API object holds it: a whole one that an int64 can hold is an int, every other one a float.

    Go writes the float64 2.0 as `2` and 1.00065e+09 as `1000650000`, which a reader takes for integers; and an integer
    beyond int64 is read as a float64. Raises OverflowError for an integer beyond float64.
    """
    if isinstance(value, int):
        return value if _INT64_MIN <= value <= _INT64_MAX else float(value)
    if not value.is_integer():
        return value
    if abs(value) < _EXACT:
        return int(value)
    whole = int(Decimal(repr(value)))
    return whole if _INT64_MIN <= whole <= _INT64_MAX else value
