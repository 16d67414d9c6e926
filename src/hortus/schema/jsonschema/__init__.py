"""JSON Schema, draft 4 to 2020-12, as charts and modules contain it: validation alone; nothing is fetched.

A schema is compiled once to closures over the value and its path. What is not supported (`unevaluatedProperties`,
`$dynamicRef`, references to other documents) is refused by name at compile time, never ignored. Recursion is bounded by
depth and the whole validation by a number of steps.
"""

from __future__ import annotations

from typing import Any

from hortus.schema.jsonschema.compiler import Compiler
from hortus.schema.jsonschema.violations import Check, JsonSchemaError, ValidationState, Violation

_MOST_PROBLEMS = 10_000
"""Most violations that are reported; Helm reports all."""


class JsonSchema:
    """A compiled schema."""

    def __init__(self, check: Check) -> None:
        self._check = check

    @classmethod
    def compile(cls, document: Any) -> JsonSchema:
        """A schema from its document (dict or boolean). Raises JsonSchemaError."""
        try:
            return cls(Compiler(document).schema(document, ""))
        except RecursionError:
            raise JsonSchemaError("the schema is nested too deeply") from None

    def validate(self, value: Any) -> list[Violation]:
        """The violations of the value, none when it fits. Raises JsonSchemaError when the validation takes too long."""
        found = self._check(value, "", ValidationState())
        if len(found) == 1 and found[0].is_group:
            found = list(found[0].causes)
        return found[:_MOST_PROBLEMS]


__all__ = ["JsonSchema", "JsonSchemaError"]
