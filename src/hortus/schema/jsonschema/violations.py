"""What a validation finds, and what it may cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

DEEPEST = 200
"""Levels of a schema, and of a value with the schemas it is compared with."""
MOST_STEPS = 2_000_000


class JsonSchemaError(ValueError):
    """A schema that cannot be used; the message names the place and the keyword."""


class Violation(msgspec.Struct, frozen=True):
    """One value that breaks the schema; `path` as a JSON pointer, empty for the whole."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"at '{self.path}': {self.message}"


class State:
    """One validation: what was found and what it has cost."""

    __slots__ = ("depth", "steps")

    def __init__(self) -> None:
        self.steps = 0
        self.depth = 0


Check = Callable[[Any, str, State], list[Violation]]
"""Compare a value at a path."""


def anything(_value: Any, _path: str, _state: State) -> list[Violation]:
    return []
