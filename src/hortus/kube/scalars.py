"""Canonical text of the scalars with a form of their own: quantities, times and durations.

A kube-apiserver stores `1000m` as `1` and `2024-01-01T01:00:00+01:00` as `2024-01-01T00:00:00Z`; clients that compare
applied objects with stored ones rely on that. An invalid scalar is a ScalarError with Go's message.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from hortus.kube import durations
from hortus.kube.durations import DurationError
from hortus.kube.quantities import Quantity, QuantityError

_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
)
_MICRO_FORM = re.compile(r".{19}[.,][0-9]{6}(?:Z|[+-].*)")
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_LAYOUT = "2006-01-02T15:04:05Z07:00"
_QUANTITY_FORM = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"


class ScalarError(ValueError):
    """A value that Go could not decode. The text is Go's and follows `cannot be handled as a ...: `."""


@functools.lru_cache(maxsize=4096)
def quantity(text: str) -> Quantity:
    """The amount of a text. Raises ScalarError."""
    try:
        return Quantity.parse(text.strip())
    except QuantityError:
        raise ScalarError(f"quantities must match the regular expression '{_QUANTITY_FORM}'") from None


def canonical_quantity(text: str) -> str:
    """The text an API server answers with, such as `500m` for `0.5`."""
    return str(quantity(text))


def _moment(text: str) -> datetime:
    try:
        if _RFC3339.fullmatch(text) is None:
            raise ValueError(text)
        return datetime.fromisoformat(text.replace(",", ".")).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ScalarError(f'parsing time "{text}" as "{_LAYOUT}": cannot parse "{text}" as "2006"') from None


def canonical_time(text: str) -> str:
    """RFC 3339 in UTC with whole seconds."""
    return _moment(text).isoformat(timespec="seconds").replace("+00:00", "Z")


def canonical_micro_time(text: str) -> str:
    """RFC 3339 in UTC with six decimals; fewer or more are refused, as Go refuses them."""
    if _MICRO_FORM.fullmatch(text) is None:
        raise ScalarError(f'parsing time "{text}" as "{_MICRO_LAYOUT}": cannot parse "{text[19:]}" as ".000000"')
    return _moment(text).isoformat(timespec="microseconds").replace("+00:00", "Z")


def canonical_duration(text: str) -> str:
    """A Go duration as Go prints it: `90m` becomes `1h30m0s`."""
    try:
        return durations.format(durations.parse(text))
    except DurationError as error:
        raise ScalarError(f"time: {str(error).rpartition(': ')[0]}") from None


CANONICAL: Mapping[str, Callable[[str], str]] = {
    "quantity": canonical_quantity,
    "time": canonical_time,
    "microtime": canonical_micro_time,
    "duration": canonical_duration,
}
"""The readers by the words of `hortus.schema.builtin`."""
