"""PATCH: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge, and server-side apply (KEP-555).

A patch is a function from the object as it is to the object as it should be. When another writer comes between, it is
applied again to what is there then; only a patch that names a resourceVersion itself answers Conflict.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import orjson

from hortus.apiserver.http import decode_object, decode_value
from hortus.apiserver.resources import fields, metadata
from hortus.apiserver.resources.context import Context
from hortus.apiserver.resources.definition import FieldProblem
from hortus.apiserver.resources.failures import (
    conflict,
    forbidden_field,
    invalid_object,
    invalid_options,
    not_found,
    required,
)
from hortus.apiserver.resources.kind import Kind, as_bytes, with_revision
from hortus.apiserver.resources.scope import Outcome, Scope, WriteOptions
from hortus.apiserver.resources.versions import presented_record, read
from hortus.apiserver.resources.writing import create, read_object, store_update
from hortus.apiserver.store.backend import Mismatch, Record
from hortus.kube import patches
from hortus.kube.errors import AlreadyExists, BadRequest, Invalid, UnsupportedMediaType
from hortus.kube.objects import Object
from hortus.schema.merge import MergeError, strategic_merge

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_PATCHES = (JSON_PATCH, MERGE_PATCH, APPLY)
_TRIES = 10
"""Lost races before a patch gives up; each means that another writer made progress."""

T = TypeVar("T")
Change = Callable[[Object], Object]
"""From the stored object, which it may use up, to the wanted one."""


async def patch(ctx: Context, scope: Scope, body: bytes, media_type: str, options: WriteOptions) -> Outcome:
    """Carry out a PATCH request. Raises UnsupportedMediaType, Invalid, Conflict, NotFound, BadRequest."""
    media = media_type.partition(";")[0].strip().lower()
    if media == APPLY:
        return await apply(ctx, scope, decode_object(body, "application/yaml", scope.kind.resource.kind), options)
    if options.force:
        problem = forbidden_field("force", "may not be specified for non-apply patch")
        raise invalid_options("PatchOptions", [problem])
    return await modify(ctx, scope, change_of(scope.kind, body, media_type), options)


def change_of(kind: Kind, body: bytes, media_type: str) -> Change:
    """What the body of a PATCH (other than apply) does. Raises UnsupportedMediaType, BadRequest."""
    media = media_type.partition(";")[0].strip().lower()
    name = kind.resource.kind
    if media == JSON_PATCH:
        operations = _decoded(lambda: decode_value(body, "application/json", name))
        return lambda obj: _patched(lambda: patches.apply_json_patch(obj, operations))
    if media == MERGE_PATCH:
        document = _decoded(lambda: decode_object(body, "application/json", name))
        return lambda obj: _patched(lambda: patches.apply_merge_patch(obj, document))
    if media == STRATEGIC and not kind.custom:
        document = decode_object(body, "application/json", name)
        return lambda obj: _patched(lambda: strategic_merge(obj, document, kind.merge))
    if not kind.custom:
        raise UnsupportedMediaType("415: Unsupported Media Type", details={})
    raise UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(_PATCHES)}"
    )


def _decoded(decode: Callable[[], T]) -> T:
    try:
        return decode()
    except BadRequest as error:
        _, _, why = error.message.partition("json parse error: ")
        if why.startswith("unexpected end of data"):
            why = "unexpected end of JSON input"
        raise BadRequest(f"error decoding patch: {why}") if why else error from None


def _patched(step: Callable[[], Any]) -> Object:
    try:
        result = step()
    except patches.PatchError:
        raise Invalid("the server rejected our request due to an error in our request", details={}) from None
    except MergeError as error:
        raise fields.merge_failed(error) from None
    if not isinstance(result, dict):
        raise BadRequest("the patch leaves no object")
    return result


async def modify(ctx: Context, scope: Scope, change: Change, options: WriteOptions) -> Outcome:
    """Read, change and write, again when another writer was first. Raises NotFound, Conflict, what `change` raises."""
    record = await read(ctx, scope)
    for _ in range(_TRIES):
        if record is None:
            raise not_found(scope.kind, scope.name)
        obj = change(with_revision(scope.kind.decode(record.value), record))
        warnings = _read_patched(scope, obj, options)
        _check_names(scope, obj)
        believed = metadata.check_resource_version(scope.kind, scope.name, obj["metadata"])
        if believed != record.revision:
            raise conflict(scope.kind, scope.name)
        try:
            return await store_update(ctx, scope, record, obj, options, warnings)
        except Mismatch as mismatch:
            record = await presented_record(scope.kind, scope.cluster, mismatch.current)
    raise conflict(scope.kind, scope.name)


def _read_patched(scope: Scope, obj: Object, options: WriteOptions) -> list[str]:
    """`read_object`; what strict validation finds is an invalid patch, unlike in a body that is sent whole."""
    shown = as_bytes(obj).decode() if options.validation == "Strict" else ""
    try:
        return read_object(scope.kind, obj, options)
    except BadRequest as error:
        _, found, why = error.message.partition("strict decoding error: ")
        if not found:
            raise
        problem = FieldProblem("patch", f"Invalid value: {as_bytes(shown).decode()}: {found}{why}")
        raise invalid_object("", "", "", "", [problem]) from None


def _check_names(scope: Scope, obj: Object) -> None:
    name = obj["metadata"].get("name", "")
    if name != scope.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({scope.name})")
    if scope.kind.resource.namespaced:
        metadata.check_namespace(obj["metadata"], scope.namespace)


async def apply(ctx: Context, scope: Scope, applied: Object, options: WriteOptions) -> Outcome:
    """Server-side apply of a whole intent. Raises Conflict naming the other owners, unless forced."""
    if options.manager == "":
        raise invalid_options("PatchOptions", [required("fieldManager", "is required for apply patch")])
    kind = scope.kind
    read_object(kind, applied, options, prune=False)
    if applied["metadata"].get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    applied["metadata"].setdefault("name", scope.name)
    _check_names(scope, applied)
    believed = metadata.check_resource_version(kind, scope.name, applied["metadata"])
    intent = as_bytes(applied)
    for _ in range(_TRIES):
        record = await read(ctx, scope)
        try:
            if record is None:
                return await _apply_new(ctx, scope, orjson.loads(intent), options, believed)
            if believed and believed != record.revision:
                raise conflict(kind, scope.name)
            return await _apply_over(ctx, scope, record, orjson.loads(intent), options)
        except (Mismatch, AlreadyExists):
            continue
    raise conflict(kind, scope.name)


async def _apply_new(ctx: Context, scope: Scope, applied: Object, options: WriteOptions, believed: int) -> Outcome:
    if scope.subresource or applied["metadata"].get("uid"):
        raise not_found(scope.kind, scope.name)
    if believed:
        raise conflict(scope.kind, scope.name)
    if ctx.creation is not None:
        await ctx.creation.check_create(scope)
    obj = fields.applied_to(scope, None, applied, options, ctx.clock.now())
    return await create(ctx, scope, obj, options._replace(validation="Ignore"), applied=True)


async def _apply_over(ctx: Context, scope: Scope, record: Record, applied: Object, options: WriteOptions) -> Outcome:
    old = with_revision(scope.kind.decode(record.value), record)
    obj = fields.applied_to(scope, old, applied, options, ctx.clock.now())
    if obj is old and (ctx.reviewer is None or not ctx.reviewer.awake(scope.cluster)):
        return Outcome(scope.kind.shown(record.value), 200, (), old)
    # A map whose last key an apply gives up is left as null, which ObjectMeta reads as nothing.
    obj["metadata"] = {key: value for key, value in obj["metadata"].items() if value is not None}
    obj["metadata"]["resourceVersion"] = str(record.revision)
    return await store_update(ctx, scope, record, obj, options, applied=True)
