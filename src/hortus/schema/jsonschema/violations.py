"""The result and the cost of a validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from hortus.schema.quoting import quote

DEEPEST = 200
"""Levels of a schema, and of a value with the schemas it is compared with."""
MOST_STEPS = 2_000_000


class JsonSchemaError(ValueError):
    """A schema that cannot be used; the message names the place and the keyword."""


class Violation(msgspec.Struct, frozen=True):
    """One value that breaks the schema, worded as by Helm's validator; `path` is a JSON pointer, empty for all."""

    path: str
    message: str
    causes: tuple[Violation, ...] = ()
    is_group: bool = False
    """True if it only groups several violations of one schema."""

    def __str__(self) -> str:
        return "\n".join(self._lines(""))

    def _lines(self, indent: str) -> Iterator[str]:
        yield f"{indent}at {quoted(self.path)}: {self.message}"
        for cause in self.causes:
            first, *others = cause._lines(indent + "  ")
            yield f"{indent}  - {first.strip()}"
            yield from others


def grouped(found: list[Violation], path: str) -> list[Violation]:
    """Groups the violations of one schema into one."""
    return found if len(found) < 2 else [Violation(path, "validation failed", tuple(found), is_group=True)]


def quoted(text: str) -> str:
    """The text in single quotes, escaped as by Go."""
    return quote(text, mark="'")


def listed(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))


class ValidationState:
    """The state of one validation: its violations and its cost so far."""

    __slots__ = ("depth", "steps")

    def __init__(self) -> None:
        self.steps = 0
        self.depth = 0


Check = Callable[[Any, str, ValidationState], list[Violation]]
"""Compares a value at a path."""


def anything(_value: Any, _path: str, _state: ValidationState) -> list[Violation]:
    return []
