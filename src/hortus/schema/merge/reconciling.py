"""Brings the sets of managers in line with a schema that has changed since they were written.

Where a list or map has become atomic, each owner of a part owns the whole. Semantics: structured-merge-diff,
typed.ReconcileFieldSetWithSchema.
"""

from __future__ import annotations

from hortus.schema.merge.elements import SELF
from hortus.schema.merge.fieldset import FieldSet
from hortus.schema.merge.types import UNTYPED, MergeType


def reconcile(fields: FieldSet, root: MergeType) -> FieldSet:
    """The set with everything below an atomic place folded into that place; `fields` itself without any change."""
    return fields if root.atomic_map else _below(fields, root)


def _below(fields: FieldSet, kind: MergeType) -> FieldSet:
    if kind.is_map:
        return fields if _open_ended(kind) else _map(fields, kind)
    return _list(fields, kind) if kind.is_list and not kind.scalar else fields


def _open_ended(kind: MergeType) -> bool:
    """Reports whether the map has undeclared content, to which a schema cannot apply."""
    element = kind.element
    if kind.fields is not None or element is None:
        return False
    return element is not UNTYPED and element.scalar == "untyped"


def _map(fields: FieldSet, kind: MergeType) -> FieldSet:
    result = None
    for key, below in fields.items():
        if not below or key == SELF:
            continue
        inner = kind.field(key[2:]) if key.startswith("f:") else kind.element
        if inner is None:
            continue
        folded = _node(below, inner)
        if folded is not below:
            result = dict(fields) if result is None else result
            result[key] = folded
    return fields if result is None else result


def _list(fields: FieldSet, kind: MergeType) -> FieldSet:
    result = None
    for key, below in fields.items():
        if not below or key == SELF:
            continue
        folded = _node(below, kind.items)
        if folded is not below:
            result = dict(fields) if result is None else result
            result[key] = folded
    return fields if result is None else result


def _node(below: FieldSet, kind: MergeType) -> FieldSet:
    if kind.is_map:
        if _open_ended(kind):
            return below
        return {} if kind.atomic_map else _map(below, kind)
    if kind.is_list and not kind.scalar:
        return {} if kind.list_type == "atomic" else _list(below, kind)
    return below
