"""PATCH: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge, and server-side apply (KEP-555).

A patch is a function from the present object to the wanted one. When another writer was first, it is applied again to
the new state; only a patch that names a resourceVersion itself answers Conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import orjson

from hortus.apiserver.http import (
    decode_patch,
    decode_value,
    duplicate_fields,
    go_kind,
    head_problems,
    media_type_of,
    with_whole_numbers,
)
from hortus.apiserver.resources import fields, metadata
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.failures import (
    CannotDecode,
    bad_value,
    conflict,
    forbidden_field,
    invalid,
    invalid_options,
    not_found,
    required,
    unreadable_patch,
)
from hortus.apiserver.resources.kind import Kind, as_bytes, with_revision
from hortus.apiserver.resources.preparing import read_object
from hortus.apiserver.resources.scope import RequestScope, WriteOptions, WriteResult
from hortus.apiserver.resources.versions import presented_record, read
from hortus.apiserver.resources.writing import create, store_update
from hortus.apiserver.store.backend import Mismatch, StoredRecord
from hortus.kube import patches
from hortus.kube.errors import AlreadyExists, BadRequest, Invalid, UnsupportedMediaType
from hortus.kube.objects import Object, Resource
from hortus.schema.merge import MergeError, strategic_merge

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_PATCHES = (JSON_PATCH, MERGE_PATCH, APPLY)
_STEP = frozenset({"op", "from", "path", "value"})
_MAP = "map[string]interface {}"
_LARGE = 64 * 1024
"""Bytes from which a patch is merged in a thread: ten thousand operations may each move a whole list."""
_TRIES = 10
"""Lost races before a patch fails; each means that another writer made progress."""

Change = Callable[[Object], Object]
"""From the stored object, which it may modify, to the wanted one."""


async def patch(
    ctx: OperationContext, scope: RequestScope, body: bytes, media_type: str, options: WriteOptions
) -> WriteResult:
    """Executes a PATCH request. Raises UnsupportedMediaType, Invalid, Conflict, NotFound, BadRequest."""
    media = media_type_of(media_type)
    if media == APPLY:
        check_manager(options)
        return await apply(ctx, scope, read_intent(body, scope.kind.resource), options)
    check_unforced(options)
    change = change_of(scope.kind, body, media)
    options = options._replace(noticed=noticed_in(body, media, options))
    return await modify(ctx, scope, change, options, large=len(body) >= _LARGE)


def check_unforced(options: WriteOptions) -> None:
    """Raises Invalid for `force` with a patch other than apply."""
    if options.force:
        problem = forbidden_field("force", "may not be specified for non-apply patch")
        raise invalid_options("PatchOptions", [problem])


def check_manager(options: WriteOptions) -> None:
    """Raises Invalid for an apply without a field manager."""
    if options.manager == "":
        raise invalid_options("PatchOptions", [required("fieldManager", "is required for apply patch")])


def read_intent(body: bytes, resource: Resource) -> Object:
    """The object of an apply, which must name its type. Raises BadRequest."""
    try:
        found = decode_value(body, "application/yaml", resource.kind)
    except BadRequest as error:
        _, _, why = error.message.partition("couldn't get version/kind; ")
        raise BadRequest(f"error decoding YAML: {why}") from None
    found = {} if found is None else found
    if not isinstance(found, dict):
        why = f"json: cannot unmarshal {go_kind(found)} into Go value of type {_MAP}"
        raise BadRequest(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    given = found.get("apiVersion") or "", found.get("kind") or ""
    if given != (resource.api_version, resource.kind):
        group, _, version = str(given[0]).rpartition("/")
        raise BadRequest(f"invalid object type: {group}/{version}, Kind={given[1]}")
    return found


def change_of(kind: Kind, body: bytes, media: str) -> Change:
    """The change that the body of a PATCH (other than apply) means. Raises UnsupportedMediaType, BadRequest."""
    if media == JSON_PATCH:
        operations = _operations(decode_patch(body, "error decoding patch: "))
        return lambda obj: _patched(lambda: patches.apply_json_patch(obj, operations))
    if media == MERGE_PATCH:
        document = decode_patch(body, "error decoding patch: ")
        if document is None:
            raise BadRequest("Invalid JSON Patch")
        _check_map(document, "error decoding patch: ")
        return lambda obj: _patched(lambda: patches.apply_merge_patch(obj, document))
    if media == STRATEGIC and not kind.custom:
        partial = with_whole_numbers(decode_patch(body, ""))
        partial = {} if partial is None else partial
        _check_map(partial, "")
        return lambda obj: _patched(lambda: strategic_merge(obj, partial, kind.merge))
    if not kind.custom:
        raise UnsupportedMediaType("415: Unsupported Media Type", details={})
    raise UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(_PATCHES)}"
    )


def noticed_in(body: bytes, media: str, options: WriteOptions) -> Sequence[str]:
    """Problems that strict decoding finds in the text of a patch: duplicate fields, and unknown ones in steps."""
    if options.validation == "Ignore":
        return ()
    document = orjson.loads(body)
    repeated = duplicate_fields(body, document)
    if media != JSON_PATCH:
        return [f'duplicate field "{path}"' for path in repeated]
    found = [f'json patch duplicate field "{path}"' for path in repeated]
    for place, step in enumerate(document or ()):
        found += [f'json patch unknown field "[{place}].{key}"' for key in step or () if key not in _STEP]
    return found


def _check_map(document: Any, prefix: str) -> None:
    if not isinstance(document, dict):
        raise BadRequest(f"{prefix}json: cannot unmarshal {go_kind(document)} into Go value of type {_MAP}")


def _operations(found: Any) -> list[Any]:
    """The operations of a JSON patch. Raises BadRequest for wrong types."""
    wrong = ""
    if found is None:
        return []
    if not isinstance(found, list):
        wrong = f"{go_kind(found)} into Go value of type []handlers.jsonPatchOp"
    for step in found if not wrong else ():
        if not isinstance(step, dict | None):
            wrong = wrong or f"{go_kind(step)} into Go value of type handlers.jsonPatchOp"
            continue
        for field, value in (step or {}).items():
            if field in ("op", "from", "path") and not isinstance(value, str | None):
                wrong = wrong or f"{go_kind(value)} into Go struct field jsonPatchOp.{field} of type string"
    if wrong:
        raise BadRequest(f"error decoding patch: json: cannot unmarshal {wrong}")
    return list(found)


def _patched(step: Callable[[], Any]) -> Object:
    try:
        result = step()
    except patches.PatchError:
        raise Invalid("the server rejected our request due to an error in our request", details={}) from None
    except MergeError as error:
        raise fields.merge_failed(error) from None
    for problem in head_problems(result):
        raise unreadable_patch(orjson.dumps(result).decode(), problem)
    found: Object = result
    return found


async def modify(
    ctx: OperationContext, scope: RequestScope, change: Change, options: WriteOptions, *, large: bool = False
) -> WriteResult:
    """Reads, changes and writes, and starts again when another writer was first. Raises NotFound, Conflict, what
    `change` raises; a `large` change is made in a thread."""
    record = await read(ctx, scope)
    for _ in range(_TRIES):
        if record is None:
            raise not_found(scope.kind, scope.name)
        present = with_revision(scope.kind.decode(record.value), record)
        obj = await ctx.pace(scope).aside(partial(change, present)) if large else change(present)
        shown = as_bytes(obj).decode() if options.validation == "Strict" else ""
        try:
            return await _modified(ctx, scope, record, obj, options)
        except CannotDecode as error:
            raise unreadable_patch(shown or as_bytes(obj).decode(), error.why) from None
        except Mismatch as mismatch:
            record = await presented_record(scope.kind, scope.cluster, mismatch.current)
    raise conflict(scope.kind, scope.name)


async def _modified(
    ctx: OperationContext, scope: RequestScope, record: StoredRecord, obj: Object, options: WriteOptions
) -> WriteResult:
    kind, resource = scope.kind, scope.kind.resource
    if kind.custom and obj.get("apiVersion") != resource.api_version and obj.get("kind") == resource.kind:
        problem = bad_value("apiVersion", obj.get("apiVersion") or "", f"must be {resource.api_version}")
        raise invalid(kind, scope.name, [problem])
    warnings = read_object(kind, obj, options)
    _check_names(scope, obj)
    believed = metadata.check_resource_version(kind, scope.name, obj["metadata"])
    if believed and believed != record.revision:
        raise conflict(kind, scope.name)
    _check_same(kind, scope, obj, record)
    return await store_update(ctx, scope, record, obj, options, warnings)


def _check_same(kind: Kind, scope: RequestScope, obj: Object, record: StoredRecord) -> None:
    """Refuses a patch that changes the uid; in a PUT the uid is a precondition instead."""
    uid = obj["metadata"].get("uid")
    if uid and b'"uid":"%s"' % uid.encode() not in record.value:
        raise _other_uid(kind, scope.name, uid)


def _other_uid(kind: Kind, name: str, uid: str) -> Invalid:
    problem = bad_value("metadata.uid", uid, "field is immutable")
    return invalid(kind, name, [problem, problem] if metadata.is_kubernetes(kind) else [problem])


def _check_names(scope: RequestScope, obj: Object) -> None:
    name = obj["metadata"].get("name", "")
    if not name:
        raise metadata.nameless(scope.name)
    if name != scope.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({scope.name})")
    if scope.kind.resource.namespaced:
        metadata.check_namespace(obj["metadata"], scope.namespace)


async def apply(ctx: OperationContext, scope: RequestScope, applied: Object, options: WriteOptions) -> WriteResult:
    """Server-side apply of a whole intent. Raises Conflict naming the other owners, unless forced."""
    check_manager(options)
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
                return await _apply_new(ctx, scope, orjson.loads(intent), options)
            if believed and believed != record.revision:
                raise conflict(kind, scope.name)
            return await _apply_over(ctx, scope, record, orjson.loads(intent), options)
        except (Mismatch, AlreadyExists):
            continue
    raise conflict(kind, scope.name)


async def _apply_new(ctx: OperationContext, scope: RequestScope, applied: Object, options: WriteOptions) -> WriteResult:
    if scope.subresource:
        raise not_found(scope.kind, scope.name)
    uid = applied["metadata"].get("uid")
    if uid:
        raise _other_uid(scope.kind, scope.name, uid)
    if ctx.creation is not None:
        await ctx.creation.check_create(scope)
    applied["metadata"].pop("resourceVersion", None)
    obj = fields.applied_to(scope, None, applied, options, ctx.clock.now())
    return await create(ctx, scope, obj, options._replace(validation="Ignore"), applied=True)


async def _apply_over(
    ctx: OperationContext, scope: RequestScope, record: StoredRecord, applied: Object, options: WriteOptions
) -> WriteResult:
    _check_same(scope.kind, scope, applied, record)
    old = with_revision(scope.kind.decode(record.value), record)
    obj = fields.applied_to(scope, old, applied, options, ctx.clock.now())
    if obj is old and (ctx.reviewer is None or not ctx.reviewer.awake(scope.cluster)):
        return WriteResult(scope.kind.shown(record.value), 200, (), old)
    # A map whose last key an apply removes is left as null, which ObjectMeta reads as absent.
    obj["metadata"] = {key: value for key, value in obj["metadata"].items() if value is not None}
    obj["metadata"]["resourceVersion"] = str(record.revision)
    return await store_update(ctx, scope, record, obj, options, applied=True)
