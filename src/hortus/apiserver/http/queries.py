"""Query parameters, as leniently as Go converts them: the first value counts; `watch=1` and `watch=yes` are true."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

from hortus.kube.errors import BadRequest

Query = Mapping[str, str]
_NONE: Query = {}


def parse_query(raw: str) -> Query:
    """The parameters of an undecoded query string. Raises BadRequest for one that cannot be read."""
    if not raw:
        return _NONE
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError as error:
        raise BadRequest(f"the query cannot be read: {error}") from None
    query: dict[str, str] = {}
    for key, value in pairs:
        query.setdefault(key, value)
    return query


def flag(query: Query, name: str) -> bool:
    value = query.get(name)
    return value is not None and value.lower() not in ("false", "0")


def whole_number(query: Query, name: str) -> int | None:
    """The parameter as a 64-bit integer, None when absent or empty. Raises BadRequest."""
    text = query.get(name)
    if not text:
        return None
    try:
        number = int(text)
    except ValueError:
        number = 1 << 63
    if not -(1 << 63) <= number < 1 << 63 or not text.lstrip("+-").isdigit():
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return number


def seconds(query: Query, name: str) -> float | None:
    number = whole_number(query, name)
    return None if number is None else float(number)
