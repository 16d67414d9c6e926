"""A compiled structural schema: the constraints of one version of a kind.

The API server runs, on each write: `prune`, `default`, then `validate`; all three work on decoded JSON and change it in
place where they change it at all. Compiling is slow (some milliseconds for a large CRD) and done once per schema;
validating a small object takes some microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.schema import defaulting, problems, pruning
from hortus.schema.correlation import NOTHING
from hortus.schema.embedded import check_embedded
from hortus.schema.lists import check_lists
from hortus.schema.nodes import SchemaNode, compile_node
from hortus.schema.problems import BLOCKING, NO_PATH, FieldError
from hortus.schema.quick import predicate
from hortus.schema.rules import TIME_BUDGET_NS, check_rules

_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


class Structural:
    """One schema, ready to prune, default and validate objects."""

    __slots__ = ("_node", "schema")

    def __init__(self, schema: Mapping[str, Any], node: SchemaNode) -> None:
        self.schema = schema
        """The OpenAPI v3 schema this was compiled from, with its descriptions."""
        self._node = node

    @classmethod
    def compile(cls, openapi_v3_schema: Mapping[str, Any], *, native: bool = False) -> Structural:
        """Compile `openapi_v3_schema`; raises SchemaError when it is malformed.

        `check_structural` checks that it is structural in the sense of a CRD. With `native` it describes a Go struct of
        a built-in kind: a null means absent (also for `required`), `int32` has its range, and neither formats nor
        duplicates in lists are checked, since such kinds have rules of their own for those.
        """
        return cls(openapi_v3_schema, compile_node(openapi_v3_schema, native=native))

    @property
    def node(self) -> SchemaNode:
        """The root of the compiled nodes, for other walks over the same schema."""
        return self._node

    def prune(self, obj: dict[str, Any]) -> list[str]:
        """Drop unknown fields in place; the paths that were dropped, sorted, as `spec.shoot.colour`."""
        return pruning.prune(obj, self._node)

    def default(self, obj: dict[str, Any]) -> None:
        """Fill in defaults in place, after dropping nulls of fields that are not nullable.

        Nulls of a built-in kind stay: Go reads one in a map of strings as an empty text.
        """
        if self._node.native:
            defaulting.fill(obj, self._node)
        else:
            defaulting.default(obj, self._node)

    def validate(
        self,
        obj: dict[str, Any],
        old: dict[str, Any] | None = None,
        *,
        forgiven: list[FieldError] | None = None,
        patience: float = TIME_BUDGET_NS / 1e9,
    ) -> list[FieldError]:
        """Every problem of `obj`; with `old`, those that `obj` shares with it unchanged are tolerated (KEP-4008).

        Tolerated CEL rules are appended to `forgiven`, so that the writer can be warned.

        CEL rules run only on an object that is well typed and complete, because they rely on that. Raises Overdue when
        they take more than `patience` seconds of processor time and the budget is larger.
        """
        node = self._node
        found: list[FieldError] = []
        good = predicate(node)(obj)
        if not good:
            node.check(obj, "", found)
            if found and old is not None:
                found = []
                node.check(obj, "", found, old)
        if node.has_embedded_below:
            check_embedded(obj, node, "", found)
        if node.has_list_rules_below and not good:
            self._check_lists(obj, old, found)
        if node.has_rules_below:
            self._check_rules(obj, old, found, forgiven, patience)
        return _distinct(found) if len(found) > 1 else found

    def _check_lists(self, obj: dict[str, Any], old: dict[str, Any] | None, found: list[FieldError]) -> None:
        """Reports duplicates unless the old object had some; it could not be repaired step by step otherwise."""
        before: list[FieldError] = []
        if old is not None:
            check_lists(old, self._node, "", before)
        if not before:
            check_lists(obj, self._node, "", found)

    def _check_rules(
        self,
        obj: dict[str, Any],
        old: dict[str, Any] | None,
        found: list[FieldError],
        forgiven: list[FieldError] | None,
        patience: float,
    ) -> None:
        if any(problem.reason in BLOCKING for problem in found):
            found.append(problems.invalid(NO_PATH, None, _NOT_CHECKED))
            return
        check_rules(obj, self._node, found, NOTHING if old is None else old, forgiven=forgiven, patience=patience)


def _distinct(found: list[FieldError]) -> list[FieldError]:
    return list(dict.fromkeys(found))
