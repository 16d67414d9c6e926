"""Who owns which field: managedFields on every write, by schema.merge."""

from __future__ import annotations

from hortus.apiserver.resources.interim import apply_merge_patch
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.scope import Scope, WriteOptions
from hortus.kube.objects import Object


def record(kind: Kind, old: Object | None, obj: Object, scope: Scope, manager: str, now: float) -> None:
    obj["metadata"].pop("managedFields", None)


def applied_to(scope: Scope, old: Object | None, applied: Object, options: WriteOptions, now: float) -> Object:
    merged: Object = apply_merge_patch(old or {}, applied)
    return merged
