"""The rules that all built-in kinds share: the shape of the JSON, static defaults, and increments of
`metadata.generation`.

A kind with rules of its own subclasses `BuiltinStrategy` and overrides the short hooks `default`, `complete`,
`allocate`, `check` and `check_update`; it never repeats the rules of this class. Hooks get whole objects, already
shaped, and report in kube-apiserver's words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hortus.apiserver.builtin.cells import Printer
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.apiserver.resources.failures import cannot_decode
from hortus.kube.objects import Object, Resource
from hortus.schema.builtin import ShapeError, Shapes

Hook = Callable[[Object], None]
_WRITABLE = ("annotations", "finalizers", "labels", "ownerReferences")
KEPT_BY_STATUS: Mapping[str, tuple[str, ...]] = {
    "admission.ValidatingAdmissionPolicy": _WRITABLE,
    "apiregistration.APIService": _WRITABLE,
    "apps.Deployment": ("labels",),
    "core.Pod": ("ownerReferences",),
    "storage.VolumeAttachment": _WRITABLE,
}
"""Metadata, by type, that a write of the status does not change; other built-in kinds accept it."""


class BuiltinStrategy:
    """Implements resources.Strategy for one kind of the description."""

    def __init__(self, resource: Resource, type_name: str, shapes: Shapes, printers: Mapping[str, Printer]) -> None:
        self.resource = resource
        self.type_name = type_name
        self._shapes = shapes
        self._printers = printers

    # Hooks that a kind overrides.

    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        """Fills in defaults that depend on other fields; `old` is None on create."""

    def complete(self, obj: Object, context: WriteContext) -> None:
        """Fills in the fields of a new object that its creator does not own (ResourceDefinition.complete)."""

    def allocate(self, obj: Object, old: Object | None) -> None:
        """Allocates values such as addresses (ResourceDefinition.allocate); `old` is None on create."""

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        """The problems of an object, new or changed."""
        return []

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        """The problems of changes to immutable fields."""
        return []

    # Entry points of the server.

    def read_for_status(self, obj: Object) -> None:
        """Reads a whole body as Go's decoder does, although only its status is written."""
        self._shape(obj, "")

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        self._shape(obj, "")
        self.default(obj, None, context)

    def prepare_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        self._shape(obj, context.subresource)
        if context.subresource != "status":
            self.default(obj, old, context)
            return
        for field in KEPT_BY_STATUS.get(self.type_name, ()):
            if field in old["metadata"]:
                obj["metadata"][field] = old["metadata"][field]
            else:
                obj["metadata"].pop(field, None)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        return self.check(obj, context)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        if context.subresource == "status":
            return []
        return [*self.check(obj, context), *self.check_update(obj, old, context)]

    def check_delete(self, obj: Object, context: WriteContext) -> None:
        return None

    def generation_changed(self, obj: Object, old: Object) -> bool:
        """Reports whether anything but metadata and status differs; always so for a new object."""
        keys = (obj.keys() | old.keys()) - {"apiVersion", "kind", "metadata", "status"}
        return not old or any(obj.get(key) != old.get(key) for key in keys)

    def cells(self, obj: Object, now: float) -> Mapping[str, Any]:
        return {word: printer(obj, now) for word, printer in self._printers.items()}

    def _shape(self, obj: Object, subresource: str) -> None:
        try:
            if subresource == "status":
                self._shapes.shape_field(obj, self.type_name, "status")
            else:
                self._shapes.shape(obj, self.type_name)
        except ShapeError as error:
            raise cannot_decode(self.resource, str(error)) from None
