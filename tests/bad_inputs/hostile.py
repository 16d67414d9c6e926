"""Values that nobody expects in a field, and the places of a document to put them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Place = tuple[str | int, ...]

TEXTS: tuple[str, ...] = (
    "",
    " ",
    "\x00",
    "a\nb",
    "\x1b[2J",
    "\u202eevil",
    "\u00e9",
    "\u0661\u0662",
    "\u00b2",
    "\U0001f4a3",
    "-1",
    "--all",
    "NaN",
    "1e999",
    "9" * 5_000,
    "v" + "9" * 5_000,
    "a" * 3_000,
    "../../etc/passwd",
    "$(id) `id` ${x} {{ . }} %s",
    '"; } accept; {',
    "fe80::%eth0/64",
    "10.0.0.0/99",
    "http://[",
    "https://a:99999",
    "https://a:b@c.example.org",
    "https://\u00e9\uff0eexample.org:\u0661",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:60Z",
    "5m5",
    "P1D",
    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
    "[" * 300,
    "*",
    "(((((((((((a+)+)+)+)+)+)+)+)+)+)+)$",
)
"""Texts that some parser reads otherwise than another one, or not at all."""


def nested(depth: int) -> Any:
    value: Any = "end"
    for _ in range(depth):
        value = {"a": [value]}
    return value


VALUES: tuple[Any, ...] = (
    *TEXTS,
    None,
    True,
    0,
    -1,
    1 << 63,
    -(1 << 70),
    1e308,
    0.1,
    [],
    [None],
    [[]],
    ["a", "a"],
    {},
    {"": ""},
    {"\x00": 1},
    {"a/b~c.d[0]": {"": None}},
    {"name": {"name": ["name"]}},
    nested(450),
    10**400,
)


def places(document: Any, here: Place = ()) -> Iterator[Place]:
    """Yields the path of each value in a document, that of the document first."""
    yield here
    if isinstance(document, dict):
        for name, value in document.items():
            yield from places(value, (*here, name))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from places(value, (*here, index))


def changed(document: Any, place: Place, value: Any) -> Any:
    """A copy with another value at a place."""
    if not place:
        return value
    found = copy.deepcopy(document)
    inner = found
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return found
