"""Kubernetes quantities: `100m`, `1.5Gi`, `12e6`. Exact numbers, their order, and their canonical text.

Meaning and texts are those of k8s.io/apimachinery/pkg/api/resource: at most nine decimal places (rounded away from
zero), canonical texts without fractions in the largest suffix that needs none. A text that Go would keep as it is
(`1500m`, but also `05`) is kept. There are three differences from Go. Texts without any digit are refused (`Mi` is 0 in
Go, `Pi` an error). Exponents beyond 400 are refused, since `1e1000000` is a megabyte of digits. `1000000000000G` is
printed as `1000E`, where Go, which has no suffix for 10^21, prints `1`.
"""

from __future__ import annotations

import enum
import functools
import re
from fractions import Fraction
from typing import Self

_FORM = re.compile(r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent: suffix for suffix, exponent in _BINARY.items()}
_NANO = 10**9
_LARGEST_BINARY = 2**63 - 1
_LARGEST_EXPONENT = 400
_LONGEST = 400
"""Characters."""


class QuantityError(ValueError):
    """A text that is no quantity."""


class Notation(enum.Enum):
    """The preferred notation of a quantity."""

    DECIMAL_EXPONENT = "DecimalExponent"
    BINARY = "BinarySI"
    DECIMAL = "DecimalSI"


@functools.total_ordering
class Quantity:
    """An exact amount. Compares by amount; `str()` is the text an API server answers with."""

    __slots__ = ("_text", "amount", "format")

    def __init__(self, amount: Fraction | int, form: Notation = Notation.DECIMAL, *, text: str = "") -> None:
        self.amount = Fraction(amount)
        """In whole units, a multiple of a billionth."""
        self.format = form
        self._text = text

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads a quantity's text. Raises QuantityError."""
        found = _FORM.fullmatch(text) if len(text) <= _LONGEST else None
        if found is None or not (found[2] or found[4]):
            raise QuantityError(
                f"{text[:100]!r} is not a quantity: write a number with a suffix such as m, k, M, G, Ki, Mi, Gi or none"
            )
        sign, whole, fraction, suffix = found[1], found[2].lstrip("0"), found[4] or "", found[5] or ""
        form, scale, exponent = _suffix(suffix, text)
        digits = int(whole + fraction or "0")
        amount = Fraction(digits, 10 ** len(fraction)) * scale
        if form is Notation.BINARY and amount > _LARGEST_BINARY:
            amount = Fraction(_LARGEST_BINARY)
        amount = Fraction(-((-amount * _NANO) // 1), _NANO)
        if form is Notation.BINARY and 0 < amount < 1:
            form = Notation.DECIMAL
        kept = text if _kept(whole, fraction, form, exponent, digits) else ""
        return cls(-amount if sign == "-" else amount, form, text=kept)

    def __str__(self) -> str:
        return self._text or self.canonical()

    def canonical(self) -> str:
        """The shortest whole number with a suffix; `0` for nothing."""
        if not self.amount:
            return "0"
        form = self.format
        if form is Notation.BINARY and (abs(self.amount) < 1024 or self.amount.denominator != 1):
            form = Notation.DECIMAL
        if form is Notation.BINARY:
            return _binary(self.amount.numerator)
        if form is Notation.DECIMAL:
            mantissa, exponent = _thousands(self.amount, largest=18)
            return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"
        mantissa, exponent = _thousands(self.amount)
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)

    def value(self) -> int:
        """Whole units, rounded up."""
        return -int(-self.amount // 1)

    def milli_value(self) -> int:
        """Thousandths, rounded up."""
        return -int(-self.amount * 1000 // 1)

    def __float__(self) -> float:
        return float(self.amount)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.amount + other.amount, self.format if self.amount else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.amount - other.amount, self.format if self.amount else other.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.amount, self.format)

    def __bool__(self) -> bool:
        return bool(self.amount)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.amount == other.amount

    def __lt__(self, other: Quantity) -> bool:
        return self.amount < other.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


def _suffix(suffix: str, text: str) -> tuple[Notation, Fraction, int]:
    """Format, factor and exponent (of ten or two) of a suffix."""
    if suffix in _DECIMAL:
        exponent = _DECIMAL[suffix]
        return Notation.DECIMAL, Fraction(10) ** exponent, exponent
    if suffix in _BINARY:
        return Notation.BINARY, Fraction(2 ** _BINARY[suffix]), _BINARY[suffix]
    exponent = int(suffix[1:])
    if abs(exponent) > _LARGEST_EXPONENT:
        raise QuantityError(f"{text[:100]!r} has an exponent beyond {_LARGEST_EXPONENT}")
    return Notation.DECIMAL_EXPONENT, Fraction(10) ** exponent, exponent


def _kept(whole: str, fraction: str, form: Notation, exponent: int, digits: int) -> bool:
    """Reports whether Go's fast path treats the text as canonical and keeps it."""
    if form is Notation.BINARY:
        return not fraction and 15 - len(whole or "0") - exponent * 3 // 10 - 1 >= 0 and digits & 7 != 0
    shifted = (whole or "0") + fraction
    scale = exponent - len(fraction)
    return (
        18 - len(shifted) >= 0 and scale >= -9 and scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"
    )


def _binary(value: int) -> str:
    exponent = 0
    while value % 1024 == 0 and exponent < 60:
        value //= 1024
        exponent += 10
    return f"{value}{_BINARY_SUFFIX.get(exponent, '')}"


def _thousands(amount: Fraction, *, largest: int = 3 * _LARGEST_EXPONENT) -> tuple[int, int]:
    """The whole number and the exponent, the largest possible multiple of three, that make `amount`."""
    mantissa, exponent = int(amount * _NANO), -9
    while exponent < largest and mantissa % 1000 == 0:
        mantissa //= 1000
        exponent += 3
    return mantissa, exponent
