"""Random documents that a CRD's schema admits, grafted onto an example that works.

A document from nothing rarely gets beyond the first rule that the schema cannot say; a graft replaces parts of a good
one, so that all else lets it through. The same seed gives the same documents.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any

from hortus.kube.objects import Object

TEXTS = (
    *(
        "",
        " ",
        "a",
        "abc",
        "-",
        "_",
        ".",
        "..",
        "a/b",
        "/",
        "true",
        "null",
        "0",
        "1",
        "-1",
        "1.31",
        "1.32.1",
        "é",
        "\u202e",
    ),
    *("10.250.0.0/16", "10.250.0.0", "0.0.0.0/0", "::/0", "fd00::/64", "10.250.1.1/16", "203.0.113.0/24", "1/2/3"),
    *(
        "https://a.example.org",
        "https://[",
        "http://",
        "50Gi",
        "1e9",
        "1h",
        "eu-central-1a",
        "eu-central-1",
        "cpu-worker-0",
    ),
    *("%", "100%", "NoSchedule", "zone", "production", "2024-01-01T00:00:00Z", "YQ==", "*", "x" * 300),
)
NUMBERS = (-1, 0, 1, 2, 3, 63, 2**31 - 1, -(2**31), 2**53, 2**63 - 1)
_DEPTH = 3


class Documents:
    """The document of one seed."""

    def __init__(self, schema: Mapping[str, Any], seed: int) -> None:
        self._schema = schema
        self._random = Random(seed)

    def graft(self, good: Object, *, below: str = "spec") -> Object:
        """`good` with one to three of its parts below a field replaced by others that their schema admits."""
        made = copy.deepcopy(good)
        for _ in range(self._random.randint(1, 3)):
            places = list(_places(self._schema["properties"][below], made, below))
            parent, name, schema = self._random.choice(places)
            parent[name] = self.value(schema)
        return made

    def value(self, schema: Mapping[str, Any], depth: int = 0) -> Any:
        """Any value that a structural schema admits, but for its rules."""
        choice = self._random
        if "enum" in schema:
            return choice.choice(schema["enum"])
        if schema.get("nullable") and choice.random() < 0.1:
            return None
        if schema.get("x-kubernetes-int-or-string"):
            return choice.choice(TEXTS + NUMBERS)
        match schema.get("type"):
            case "string":
                return choice.choice(TEXTS)
            case "integer":
                return choice.choice(NUMBERS)
            case "number":
                return choice.choice((*NUMBERS, 0.5, -2.25))
            case "boolean":
                return choice.random() < 0.5
            case "array":
                return [self.value(schema["items"], depth + 1) for _ in range(choice.randint(0, 3))]
            case "object":
                return self._object(schema, depth)
            case _:
                return self.anything()

    def anything(self, depth: int = 0) -> Any:
        """Any JSON value."""
        choice = self._random
        if depth < _DEPTH and choice.random() < 0.5:
            some = [self.anything(depth + 1) for _ in range(choice.randint(0, 3))]
            names = ("enabled", "config", "upstream", "name", "zones", "networks", "volume", "a")
            return some if choice.random() < 0.5 else {choice.choice(names): value for value in some}
        return choice.choice((*TEXTS, *NUMBERS, 0.5, True, False))

    def _object(self, schema: Mapping[str, Any], depth: int) -> Object:
        choice, made = self._random, {}
        required = schema.get("required") or ()
        for name, inner in (schema.get("properties") or {}).items():
            if name in required or choice.random() < (0.5 if depth < _DEPTH else 0.2):
                made[name] = self.value(inner, depth + 1)
        if inner := schema.get("additionalProperties"):
            made |= {choice.choice(TEXTS) or "a": self.value(inner, depth + 1) for _ in range(choice.randint(0, 2))}
        if schema.get("x-kubernetes-preserve-unknown-fields") and choice.random() < 0.7:
            more = self.anything()
            made |= more if isinstance(more, dict) else {"a": more}
        return made


def _places(schema: Mapping[str, Any], parent: Any, name: Any) -> Iterator[tuple[Any, Any, Mapping[str, Any]]]:
    """Each place below `parent[name]`, with its schema; places that are still free too."""
    yield parent, name, schema
    here = parent[name] if isinstance(parent, list) else parent.get(name)
    if isinstance(here, dict):
        for field, inner in (schema.get("properties") or {}).items():
            if field in here:
                yield from _places(inner, here, field)
            else:
                yield here, field, inner
    elif isinstance(here, list) and "items" in schema:
        for index in range(len(here)):
            yield from _places(schema["items"], here, index)


def unforeseen(logs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Reports of the engine about reconciles that ended by an unmapped error."""
    return [repr(entry["exc_info"]) for entry in logs if entry["event"] == "reconcile failed unexpectedly"]
