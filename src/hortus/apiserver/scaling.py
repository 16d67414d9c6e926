"""Reading and writing an object's replicas as a Scale: GET, PUT, and PATCH in its four forms.

The body is read as a Scale, by the rules of any built-in kind; then the object's replicas are written like any change
of it. Server-side apply happens between Scales, so that conflicts name the fields of one; the ownership of
`spec.replicas` is carried over from the object's managedFields and back (k8s.io/apimachinery, package managedfields,
ScaleHandler).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from hortus.apiserver.builtin.catalogue import CatalogueEntry, definition
from hortus.apiserver.http import media_type_of
from hortus.apiserver.representation import sent_object
from hortus.apiserver.resources import fields, metadata, patching
from hortus.apiserver.resources.context import OperationContext, write_context
from hortus.apiserver.resources.definition import FieldProblem
from hortus.apiserver.resources.failures import (
    CannotDecode,
    conflict,
    invalid,
    not_found,
    unreadable_patch,
)
from hortus.apiserver.resources.kind import Kind, as_bytes, with_revision
from hortus.apiserver.resources.preparing import check_uid, read_object
from hortus.apiserver.resources.scaling import has_replicas, scale_of
from hortus.apiserver.resources.scope import RequestScope, WriteOptions, WriteResult
from hortus.apiserver.resources.subresources import SCALE
from hortus.apiserver.resources.versions import read
from hortus.apiserver.resources.writing import store_update
from hortus.apiserver.store.backend import Mismatch, StoredRecord
from hortus.kube.errors import BadRequest, InternalError
from hortus.kube.objects import Object, Resource

_TRIES = 10
_REPLICAS: Object = {"f:spec": {"f:replicas": {}}}


@functools.cache
def scale_kind() -> Kind:
    """Scale as a kind of its own, so that it is read, applied and encoded as one."""
    resource = Resource(SCALE.group, SCALE.version, "scales", SCALE.kind, namespaced=True)
    return Kind(definition(CatalogueEntry(resource, "autoscaling.Scale", {}, ())))


def shown(kind: Kind, obj: Object) -> bytes:
    """The Scale of an object, as an answer. Raises InternalError for a custom resource without replicas."""
    path = (kind.definition.scale or {})["specReplicasPath"]
    if kind.custom and not has_replicas(kind, obj):
        why = f'the spec replicas field "{path}" does not exist'
        raise InternalError(f"Internal error occurred: {why}", details={"causes": [{"message": why}]})
    return scale_kind().typed(scale_of(kind, obj))


async def put(
    ctx: OperationContext, scope: RequestScope, body: bytes, content_type: str, options: WriteOptions
) -> WriteResult:
    """Raises NotFound, Conflict, Invalid, BadRequest."""
    sent = sent_object(body, content_type, SCALE)
    warnings = _read(ctx, scope, sent, options)
    _check_names(scope, sent)

    def change(obj: Object) -> Object:
        check_uid(scope.kind, scope, sent, obj["metadata"].get("uid", ""))
        return _scaled(scope, sent, obj)

    return await _modified(ctx, scope, change, options, warnings)


async def patch(
    ctx: OperationContext, scope: RequestScope, body: bytes, content_type: str, options: WriteOptions
) -> WriteResult:
    """Raises UnsupportedMediaType, NotFound, Conflict, Invalid, BadRequest."""
    media = media_type_of(content_type)
    if media == patching.APPLY:
        return await _apply(ctx, scope, body, options)
    patching.check_unforced(options)
    kind = scope.kind if scope.kind.custom else scale_kind()
    step = patching.change_of(kind, body, media)
    own = options._replace(noticed=patching.noticed_in(body, media, options))
    warnings: list[str] = []

    def change(obj: Object) -> Object:
        wanted = step(scale_of(scope.kind, obj))
        whole = as_bytes(wanted).decode()
        try:
            warnings[:] = _read(ctx, scope, wanted, own)
        except CannotDecode as error:
            raise unreadable_patch(whole, error.why) from None
        _check_names(scope, wanted)
        return _scaled(scope, wanted, obj)

    return await _modified(ctx, scope, change, options, warnings)


async def _modified(
    ctx: OperationContext,
    scope: RequestScope,
    change: Callable[[Object], Object],
    options: WriteOptions,
    warnings: Sequence[str],
) -> WriteResult:
    outcome = await patching.modify(ctx, scope, change, options._replace(validation="Ignore"))
    return outcome._replace(warnings=[*warnings, *outcome.warnings])


def _read(ctx: OperationContext, scope: RequestScope, scale: Object, options: WriteOptions) -> list[str]:
    """Makes the body a well-typed Scale; returns the warnings. Raises BadRequest."""
    kind = scale_kind()
    warnings = read_object(kind, scale, options)
    context = write_context(scope, ctx.clock.now(), dry_run=options.dry_run)
    kind.definition.strategy.prepare_create(scale, context)
    return warnings


def _check_names(scope: RequestScope, scale: Object) -> None:
    given = scale["metadata"]
    name = given.get("name", "")
    if not name:
        raise metadata.nameless(scope.name)
    if name != scope.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({scope.name})")
    metadata.check_namespace(given, scope.namespace)


def _scaled(scope: RequestScope, scale: Object, obj: Object) -> Object:
    """`obj` with the replicas of a Scale. Raises Conflict, Invalid."""
    version = metadata.check_resource_version(scope.kind, scope.name, scale["metadata"])
    if version and str(version) != obj["metadata"]["resourceVersion"]:
        raise conflict(scope.kind, scope.name)
    replicas = scale["spec"].get("replicas", 0)
    if replicas < 0:
        raise _negative(scope, replicas)
    return _with(obj, _steps(scope.kind), replicas)


def _negative(scope: RequestScope, replicas: int) -> Exception:
    if scope.kind.custom:
        path = (scope.kind.definition.scale or {})["specReplicasPath"]
        problem = FieldProblem(path, f"Invalid value: {replicas}: should be a non-negative integer")
        return invalid(scope.kind, scope.name, [problem])
    problem = FieldProblem("spec.replicas", f"Invalid value: {replicas}: must be greater than or equal to 0")
    return invalid(scale_kind(), scope.name, [problem])


async def _apply(ctx: OperationContext, scope: RequestScope, body: bytes, options: WriteOptions) -> WriteResult:
    """Server-side apply of a Scale. Raises Conflict naming the other owners, unless forced."""
    patching.check_manager(options)
    applied = patching.read_intent(body, scale_kind().resource)
    if (applied.get("metadata") or {}).get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    applied.setdefault("metadata", {}).setdefault("name", scope.name)
    _check_names(scope, applied)
    intent = scope._replace(kind=scale_kind())
    for _ in range(_TRIES):
        record = await read(ctx, scope)
        if record is None:
            raise not_found(scope.kind, scope.name)
        try:
            return await _apply_over(ctx, scope, intent, record, applied, options)
        except Mismatch:
            continue
    raise conflict(scope.kind, scope.name)


async def _apply_over(
    ctx: OperationContext,
    scope: RequestScope,
    intent: RequestScope,
    record: StoredRecord,
    applied: Object,
    options: WriteOptions,
) -> WriteResult:
    kind = scope.kind
    old = with_revision(kind.decode(record.value), record)
    live, steps = scale_of(kind, old), _steps(kind)
    entries = old["metadata"].get("managedFields", [])
    live["metadata"]["managedFields"] = _of_scale(entries, steps)
    result = fields.applied_to(intent, live, applied, options, ctx.clock.now())
    if result is live:
        return WriteResult(kind.shown(record.value), 200, (), old)
    obj = _scaled(scope, result, old)
    owned = _of_object(entries, result["metadata"].get("managedFields", []), steps, kind.resource.api_version)
    obj = {**obj, "metadata": {**obj["metadata"], "managedFields": owned}}
    return await store_update(ctx, scope, record, obj, options, applied=True)


def _steps(kind: Kind) -> list[str]:
    return (kind.definition.scale or {})["specReplicasPath"].strip(".").split(".")


def _of_scale(entries: Sequence[Object], steps: list[str]) -> list[Object]:
    """The owners of an object's replicas, as owners of the replicas of its Scale."""
    return [
        {**entry, "apiVersion": SCALE.api_version, "fieldsV1": _REPLICAS}
        for entry in entries
        if _holds(entry.get("fieldsV1"), steps)
    ]


def _of_object(
    entries: Sequence[Object], scale_entries: Sequence[Object], steps: list[str], api_version: str
) -> list[Object]:
    """The object's managedFields after the Scale's have become `scale_entries`."""
    fresh = {_identity(entry): entry for entry in scale_entries if _holds(entry.get("fieldsV1"), ["spec", "replicas"])}
    found: list[Object] = []
    for entry in entries:
        if not _holds(entry.get("fieldsV1"), steps):
            found.append(entry)
        elif _identity({**entry, "apiVersion": SCALE.api_version}) in fresh:
            found.append(entry)
            del fresh[_identity({**entry, "apiVersion": SCALE.api_version})]
        elif left := _without(entry["fieldsV1"], steps):
            found.append({**entry, "fieldsV1": left})
    own: Object = {}
    for step in reversed(steps):
        own = {f"f:{step}": own}
    for entry in fresh.values():
        untimed = {key: value for key, value in entry.items() if key != "time"}
        found.append({**untimed, "apiVersion": api_version, "fieldsV1": own})
    return found


def _identity(entry: Object) -> tuple[Any, ...]:
    version = entry.get("apiVersion") if entry.get("operation") == "Update" else ""
    return entry.get("manager"), entry.get("operation"), version, entry.get("subresource", "")


def _holds(owned: Any, steps: list[str]) -> bool:
    for step in steps:
        owned = owned.get(f"f:{step}") if isinstance(owned, dict) else None
    return owned is not None


def _without(owned: Object, steps: list[str]) -> Object:
    """The fields without the one at `steps`, and without parents that are empty then."""
    key = f"f:{steps[0]}"
    below = _without(owned[key], steps[1:]) if len(steps) > 1 else {}
    rest = {name: value for name, value in owned.items() if name != key}
    return {**rest, key: below} if below else rest


def _with(obj: Object, steps: list[str], value: Any) -> Object:
    if len(steps) == 1:
        return {**obj, steps[0]: value}
    inner = obj.get(steps[0])
    return {**obj, steps[0]: _with(inner if isinstance(inner, dict) else {}, steps[1:], value)}
