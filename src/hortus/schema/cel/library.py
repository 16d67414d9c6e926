"""The functions that Kubernetes adds to CEL, in Python.

Quantities, URLs, addresses, networks, versions and name formats are maps with one marked key here, because the library
accepts no foreign types; their equality and member functions behave as documented
(kubernetes.io/docs/reference/using-api/cel).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

from hortus.schema import formats, names
from hortus.schema.cel.addresses import ADDRESSES
from hortus.schema.cel.amounts import AMOUNTS
from hortus.schema.cel.binding import CelFunction, Overload, find_all
from hortus.schema.cel.tagged import Tagged, body, parses

# Lists


def _is_sorted(items: list[Any]) -> bool:
    return all(before <= after for before, after in pairwise(items))


def _extreme(choose: Callable[[list[Any]], Any], name: str, items: list[Any]) -> Any:
    if not items:
        raise ValueError(f"{name} called on empty list")
    return choose(items)


def _index_of(items: list[Any], wanted: Any) -> int:
    return next((place for place, item in enumerate(items) if _equal(item, wanted)), -1)


def _last_index_of(items: list[Any], wanted: Any) -> int:
    return next((place for place in range(len(items) - 1, -1, -1) if _equal(items[place], wanted)), -1)


def _equal(left: Any, right: Any) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


_LISTS = (
    CelFunction("isSorted", (Overload(("list",), "bool", _is_sorted),)),
    CelFunction("sum", (Overload(("list",), "any", lambda items: sum(items)),)),
    CelFunction("min", (Overload(("list",), "any", partial(_extreme, min, "min")),)),
    CelFunction("max", (Overload(("list",), "any", partial(_extreme, max, "max")),)),
    CelFunction("indexOf", (Overload(("list", "any"), "int", _index_of),)),
    CelFunction("lastIndexOf", (Overload(("list", "any"), "int", _last_index_of),)),
)

# Regular expressions


def _find(text: str, pattern: str) -> str:
    return next(iter(find_all(pattern, text, 1)), "")


_REGEX = (
    CelFunction("find", (Overload(("string", "string"), "string", _find),)),
    CelFunction(
        "findAll",
        (
            Overload(("string", "string"), "strings", lambda text, pattern: find_all(pattern, text)),
            Overload(("string", "string", "int"), "strings", lambda text, pattern, n: find_all(pattern, text, n)),
        ),
    ),
)

# URLs


def _url(text: str) -> Tagged:
    uri = formats.check_for("uri")
    if uri is None or not uri(text):
        raise ValueError(f"URL parse error during conversion from string: parse {text!r}: invalid URI for request")
    return {"@url": text}


def _split(value: Tagged) -> Any:
    return urlsplit(body(value, "@url"))


def _host(value: Tagged) -> str:
    netloc: str = _split(value).netloc
    return netloc.rpartition("@")[2]


def _port(value: Tagged) -> str:
    port = _split(value).port
    return "" if port is None else str(port)


def _query(value: Tagged) -> dict[str, list[str]]:
    return parse_qs(_split(value).query, keep_blank_values=True)


_URLS = (
    CelFunction("url", (Overload(("string",), "map", _url, member=False),)),
    CelFunction("isURL", (Overload(("string",), "bool", parses(_url), member=False),)),
    CelFunction("getScheme", (Overload(("map",), "string", lambda value: _split(value).scheme),)),
    CelFunction("getHost", (Overload(("map",), "string", _host),)),
    CelFunction("getHostname", (Overload(("map",), "string", lambda value: _split(value).hostname or ""),)),
    CelFunction("getPort", (Overload(("map",), "string", _port),)),
    CelFunction("getEscapedPath", (Overload(("map",), "string", lambda value: _split(value).path),)),
    CelFunction("getQuery", (Overload(("map",), "map", _query),)),
)

# Name formats


def _by_format(name: str) -> Callable[[str], str]:
    holds = formats.check_for(name)
    return lambda text: "" if holds is None or holds(text) else f"invalid {name}"


def _prefix(check: Callable[[str], str]) -> Callable[[str], str]:
    """A name that something will be appended to may end in a dash."""
    return lambda text: check(text.removesuffix("-") + "a" if text.endswith("-") else text)


_FORMATS: Mapping[str, Callable[[str], str]] = {
    "dns1123Label": names.dns1123_label,
    "dns1123Subdomain": names.dns1123_subdomain,
    "dns1035Label": names.dns1035_label,
    "qualifiedName": names.qualified_name,
    "dns1123LabelPrefix": _prefix(names.dns1123_label),
    "dns1123SubdomainPrefix": _prefix(names.dns1123_subdomain),
    "dns1035LabelPrefix": _prefix(names.dns1035_label),
    "labelValue": names.label_value,
    "uri": _by_format("uri"),
    "uuid": _by_format("uuid"),
    "byte": _by_format("byte"),
    "date": _by_format("date"),
    "datetime": _by_format("datetime"),
}


def _named(name: str) -> Tagged:
    return {"@optional": [{"@format": name}] if name in _FORMATS else []}


def _checked(value: Tagged, text: str) -> Tagged:
    complaint = _FORMATS[body(value, "@format")](text)
    return {"@optional": [[complaint]] if complaint else []}


def _value(value: Tagged) -> Any:
    held = body(value, "@optional")
    if not held:
        raise ValueError("optional.none() dereference")
    return held[0]


def _format_of(name: str) -> CelFunction:
    return CelFunction(f"format.{name}", (Overload((), "map", lambda: {"@format": name}, member=False),))


_NAMES = (
    *map(_format_of, _FORMATS),
    CelFunction("format.named", (Overload(("string",), "map", _named, member=False),)),
    CelFunction("validate", (Overload(("map", "string"), "map", _checked),)),
    CelFunction("hasValue", (Overload(("map",), "bool", lambda value: bool(body(value, "@optional"))),)),
    CelFunction("value", (Overload(("map",), "any", _value),)),
    CelFunction(
        "orValue",
        (Overload(("map", "any"), "any", lambda value, other: next(iter(body(value, "@optional")), other)),),
    ),
)

KUBERNETES: tuple[CelFunction, ...] = (*_LISTS, *_REGEX, *_URLS, *AMOUNTS, *ADDRESSES, *_NAMES)
"""Every function of Kubernetes' libraries but the authorizer's, which belongs to authorization."""
