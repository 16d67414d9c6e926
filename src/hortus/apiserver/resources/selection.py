"""Selection of the objects of a list or watch: label and field selectors, with cheap checks on the stored bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from hortus.apiserver.resources.kind import Kind
from hortus.kube.errors import BadRequest
from hortus.kube.objects import Object
from hortus.kube.selectors import FieldSelector, LabelSelector, Operator

_ALWAYS = ("metadata.name", "metadata.namespace")


class ObjectSelection:
    """Both selectors of one request. `selection_of` returns None when everything is selected."""

    def __init__(
        self, labels: LabelSelector | None, fields: FieldSelector | None, readers: Mapping[str, Callable[[Object], str]]
    ) -> None:
        """`readers` has a reader for each path in `fields`."""
        self._labels = labels
        self._fields = fields
        self._needles = _needles(labels)
        self._readers = readers

    def may_show(self, value: bytes) -> bool:
        """False when the stored bytes already rule the object out, without decoding them."""
        return all(needle in value for needle in self._needles)

    def shows(self, obj: Object) -> bool:
        if self._labels is not None and not self._labels.matches(obj["metadata"].get("labels") or {}):
            return False
        if self._fields is None:
            return True
        return self._fields.matches({path: read(obj) for path, read in self._readers.items()})


def _needles(labels: LabelSelector | None) -> list[bytes]:
    """`"key":"value"` of each equality: the compact JSON of the store must contain it."""
    if labels is None:
        return []
    return [
        orjson.dumps({part.key: part.values[0]})[1:-1]
        for part in labels.requirements
        if part.operator is Operator.IN and len(part.values) == 1
    ]


def selection_of(kind: Kind, labels: str, fields: str) -> ObjectSelection | None:
    """Parse both selectors. Raises BadRequest, also for a field that this kind cannot be selected by."""
    if not labels and not fields:
        return None
    supported = (*_ALWAYS, *kind.definition.field_selectors)
    try:
        label_selector = LabelSelector.parse(labels) if labels else None
        field_selector = FieldSelector.parse(fields) if fields else None
    except ValueError as error:
        raise BadRequest(str(error)) from None
    used = sorted(field_selector.fields) if field_selector is not None else []
    for path in used:
        if path not in supported:
            raise BadRequest(_unknown_field(kind, path, supported))
    own = kind.definition.field_values
    readers = {path: own.get(path) or partial(_text, path.split(".")) for path in used}
    return ObjectSelection(label_selector, field_selector, readers)


def _unknown_field(kind: Kind, path: str, supported: Sequence[str]) -> str:
    if kind.custom:
        return f"field label not supported: {path}"
    if len(supported) == len(_ALWAYS):
        known = ", ".join(f'"{each}"' for each in supported)
        return f'"{path}" is not a known field selector: only {known}'
    return f"field label not supported: {path}"


def _text(steps: Sequence[str], obj: Any) -> str:
    """The field as selectors compare it: scalars as text, absent as empty."""
    value = obj
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
