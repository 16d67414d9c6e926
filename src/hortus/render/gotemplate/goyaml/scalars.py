"""The meaning of a plain scalar for yaml.v2 and yaml.v3 (YAML 1.1 with Go's number literals)."""

from __future__ import annotations

import calendar
import re
from typing import Any, Final

from hortus.render.gotemplate.numbers import INT64_MAX, INT64_MIN, UINT64_MAX, parse_float, parse_integer

NOT_TEXT: Final = object()
_YES = ("true", "True", "TRUE")
_NO = ("false", "False", "FALSE")
_OLD_YES = ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON")
_OLD_NO = ("n", "N", "no", "No", "NO", "off", "Off", "OFF")
OLD_BOOLEANS: Final = frozenset(_OLD_YES + _OLD_NO)
_COMMON: dict[str, Any] = {
    **dict.fromkeys(_YES, True),
    **dict.fromkeys(_NO, False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
_WORDS_2: dict[str, Any] = {**_COMMON, **dict.fromkeys(_OLD_YES, True), **dict.fromkeys(_OLD_NO, False)}
_FIRST = frozenset("+-0123456789yYnNtTfFoO~.")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[Tt](\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)"
    r"|[ ](\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d+)?)?",
    re.ASCII,
)


def is_timestamp(text: str) -> bool:
    """True when Go reads a time in one of the forms that YAML allows."""
    found = _TIMESTAMP.fullmatch(text)
    if not found:
        return False
    year, month, day = int(found[1]), int(found[2]), int(found[3])
    if not 1 <= month <= 12 or not 1 <= day <= _days(year, month):
        return False
    clock = [int(part) for part in found.groups()[3:] if part is not None]
    return not clock or (clock[0] < 24 and clock[1] < 60 and clock[2] < 60)


def _days(year: int, month: int) -> int:
    return 29 if month == 2 and year == 0 else calendar.monthrange(max(year, 1), month)[1]


def is_base_60(text: str) -> bool:
    return bool(_BASE_60.fullmatch(text))


def resolve(text: str, *, version: int = 2) -> Any:
    """The value of a plain scalar that is no text; NOT_TEXT stands for text. A timestamp is text that needs quotes."""
    if text and text[0] not in _FIRST:
        return NOT_TEXT
    words = _WORDS_2 if version == 2 else _COMMON
    if text in words:
        return words[text]
    first = text[0]
    if first == ".":
        value = parse_float(text)
        return NOT_TEXT if value is None else value
    if first in "+-0123456789":
        return _number(text, version)
    return NOT_TEXT


def _number(text: str, version: int) -> Any:
    plain = text.replace("_", "")
    whole = parse_integer(plain)
    if whole is not None and (INT64_MIN <= whole <= INT64_MAX or (0 <= whole <= UINT64_MAX and plain[0] not in "+-")):
        return whole
    if _FLOAT.fullmatch(plain):
        value = parse_float(plain)
        if value is not None:
            return value
    return _based(plain, version)


def _based(plain: str, version: int) -> Any:
    for prefix, base, since in (("0b", 2, 2), ("0o", 8, 3)):
        sign, digits = (-1, plain[1:]) if plain.startswith("-") else (1, plain)
        if version >= since and digits.startswith(prefix):
            try:
                return sign * int(digits[2:], base)
            except ValueError:
                return NOT_TEXT
    return NOT_TEXT


def is_plain_text(text: str, *, version: int = 2) -> bool:
    """True when the text, written plain, is read back as the same text."""
    if resolve(text, version=version) is not NOT_TEXT:
        return False
    if text[:1].isdigit() and is_timestamp(text):
        return False
    if text[:1] in ("+", "-") or text[:1].isdigit():
        return not is_base_60(text)
    return version == 2 or text not in OLD_BOOLEANS
