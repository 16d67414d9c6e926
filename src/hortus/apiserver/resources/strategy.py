"""The base of strategies: one without rules of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.objects import Object


class PlainStrategy:
    """No rules beyond the schema; the generation grows with any change outside metadata and status."""

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        return None

    def prepare_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        return None

    def validate(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        return []

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        return []

    def check_delete(self, obj: Object, context: WriteContext) -> None:
        return None

    def generation_changed(self, obj: Object, old: Object) -> bool:
        ignored = ("metadata", "status", "apiVersion", "kind")
        return not old or any(obj.get(key) != old.get(key) for key in {**obj, **old} if key not in ignored)

    def cells(self, obj: Object, now: float) -> Mapping[str, Any]:
        return {}
