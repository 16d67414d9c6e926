"""Random objects that the schema of a kind allows, made of words that a test chooses.

A word is used where the name of a field asks for its sort, so that objects name what an attacker would name: roles,
other namespaces, Secrets, addresses. Rules in CEL are not read: an API server refuses what breaks one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from hortus.kube.objects import Object

_SHARE: Final = 0.4
"""Part of the fields that are not required, and are set all the same."""
_DEPTH: Final = 7
"""Levels below which only what is required is made."""
_MORE: Final = 2
"""Items of a list beyond those that it needs."""


class Impossible(Exception):
    """No word fits a field that is required."""


class SpecGenerator:
    """Values for structural schemas."""

    def __init__(self, words: Mapping[str, Sequence[str]], random: Random) -> None:
        """`words` are the choices for text, by a pattern that is searched in the path of the field, as in
        `secret.name`; in lower case, the first that is found counts. The pattern `` has those for any field."""
        self._words = [(re.compile(pattern), tuple(choices)) for pattern, choices in words.items()]
        self._random = random

    def make(self, schema: Object, path: str = "") -> Any:
        """A value. Raises Impossible."""
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        if schema.get("x-kubernetes-int-or-string"):
            return self._number(schema)
        match schema.get("type"):
            case "object":
                return self._object(schema, path)
            case "array":
                return self._array(schema, path)
            case "boolean":
                return self._random.random() < 0.5
            case "integer" | "number":
                return self._number(schema)
            case "string":
                return self._text(schema, path)
            case _:
                return {}

    def _object(self, schema: Object, path: str) -> Object:
        required = frozenset(schema.get("required", ()))
        deep = path.count(".") >= _DEPTH
        found: Object = {}
        for name, field in schema.get("properties", {}).items():
            if name not in required and (deep or self._random.random() > _SHARE):
                continue
            try:
                found[name] = self.make(field, f"{path}.{name.lower()}" if path else name.lower())
            except Impossible:
                if name in required:
                    raise
        of_all = schema.get("additionalProperties")
        if isinstance(of_all, Mapping) and not deep:
            for key in self._some(self._choices(f"{path}.key")):
                found[key] = self.make(dict(of_all), f"{path}.{key.lower()}")
        return found

    def _array(self, schema: Object, path: str) -> list[Any]:
        least = schema.get("minItems", 0)
        count = self._random.randint(least, min(least + _MORE, schema.get("maxItems", least + _MORE)))
        items = [self.make(schema.get("items", {}), path) for _ in range(count)]
        if schema.get("x-kubernetes-list-type") in ("set", "map"):
            keys = schema.get("x-kubernetes-list-map-keys")
            given = {str(item if keys is None else [item.get(key) for key in keys]): item for item in items}
            items = list(given.values())
        if len(items) < least:
            raise Impossible(path)
        return items

    def _number(self, schema: Object) -> int:
        least = int(schema.get("minimum", 0)) + bool(schema.get("exclusiveMinimum"))
        return self._random.randint(least, int(min(schema.get("maximum", least + 10), least + 10)))

    def _text(self, schema: Object, path: str) -> str:
        if schema.get("format") == "date-time":
            return "2026-01-01T00:00:00Z"
        pattern = re.compile(schema["pattern"]) if "pattern" in schema else None
        least, most = schema.get("minLength", 0), schema.get("maxLength", 1 << 20)
        fitting = [
            word
            for word in self._choices(path)
            if least <= len(word) <= most and (pattern is None or pattern.search(word))
        ]
        if not fitting:
            raise Impossible(path)
        return self._random.choice(fitting)

    def _choices(self, path: str) -> Sequence[str]:
        special = next((choices for pattern, choices in self._words if pattern.pattern and pattern.search(path)), ())
        general = next((choices for pattern, choices in self._words if not pattern.pattern), ())
        return (*special, *special, *general) if self._random.random() < 0.5 else special or general

    def _some(self, words: Sequence[str]) -> Sequence[str]:
        return self._random.sample(words, min(len(words), self._random.randint(0, _MORE))) if words else ()
