"""Ownership of fields: metadata.managedFields of every write, and server-side apply (KEP-555), with schema.merge."""

from __future__ import annotations

from typing import Any

from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.scope import RequestScope, WriteOptions
from hortus.kube.errors import ApiError, Conflict
from hortus.kube.objects import Object
from hortus.schema.merge import ApplyConflict, FieldSet, MergeError, apply, update

_STATUS: FieldSet = {"f:status": {}}
_ALL_BUT_STATUS: FieldSet = {"f:spec": {}}
_ALL_BUT_STATUS_OF_DEPLOYMENTS: FieldSet = {"f:spec": {}, "f:metadata": {"f:labels": {}}}
_ALL_BUT_STATUS_OF_CUSTOM: FieldSet = {"f:spec": {}, "f:metadata": {}}


def record(kind: Kind, old: Object | None, obj: Object, scope: RequestScope, manager: str, now: float) -> None:
    """Records in `obj` that `manager` owns the difference from `old` (None: everything)."""
    if scope.kind.suffix == "core/pods" and scope.subresource == "binding" and old is not None:
        obj["metadata"]["managedFields"] = old["metadata"].get("managedFields", [])  # the assigned node has no owner
        return
    entries = update(
        old,
        obj,
        manager=manager,
        api_version=kind.resource.api_version,
        now=now,
        schema=kind.merge,
        subresource=scope.subresource,
        reset_fields=_reset_fields(kind, scope.subresource),
    )
    if entries:
        obj["metadata"]["managedFields"] = (
            [_untimed(each) for each in entries] if scope.subresource == "scale" else entries
        )
    else:
        obj["metadata"].pop("managedFields", None)


def _untimed(entry: Object) -> Object:
    """kube-apiserver converts ownership to that of a Scale and back, which loses the times."""
    if entry.get("subresource") != "scale":
        return entry
    return {key: value for key, value in entry.items() if key != "time"}


def applied_to(scope: RequestScope, old: Object | None, applied: Object, options: WriteOptions, now: float) -> Object:
    """`old` (None: nothing yet) after this apply; `old` itself when nothing changed. Raises Conflict, ApiError."""
    kind = scope.kind
    try:
        return apply(
            old,
            applied,
            manager=options.manager,
            api_version=kind.resource.api_version,
            now=now,
            schema=kind.merge,
            force=options.force,
            subresource=scope.subresource,
            reset_fields=_reset_fields(kind, scope.subresource),
        )
    except ApplyConflict as conflict:
        raise Conflict(conflict.message, details={"causes": conflict.causes()}) from None
    except MergeError as error:
        raise merge_failed(error) from None


def merge_failed(error: MergeError) -> ApiError:
    reasons: dict[int, Any] = {400: "BadRequest", 422: "Invalid"}
    return ApiError(error.message, code=error.code, reason=reasons.get(error.code, ""))


def _reset_fields(kind: Kind, subresource: str) -> FieldSet | None:
    """The fields that this endpoint ignores, so that its writes do not own them."""
    own = kind.definition.ignored
    if own and subresource in own:
        return own[subresource]
    if not kind.definition.status:
        return None
    if subresource != "status":
        return _STATUS
    if kind.suffix == "apps/deployments":
        return _ALL_BUT_STATUS_OF_DEPLOYMENTS
    return _ALL_BUT_STATUS_OF_CUSTOM if kind.custom else _ALL_BUT_STATUS
