"""Create and update: from the sent object to bytes in the store.

Every write runs the same phases in kube-apiserver's order: type and metadata are read, unknown fields dropped, defaults
set, the kind's strategy prepares, field ownership is recorded, webhooks may change the object (it is then read and
prepared again; their fields have no owner), schema and strategy validate, admission reviews, and the store checks the
revision. PUT, every sort of patch, apply, status, scale and the server's own controllers all end in `store_update`, so
no path skips a rule.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from hortus.apiserver.resources import fields, metadata
from hortus.apiserver.resources.context import OperationContext, review_of, write_context
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.apiserver.resources.failures import (
    already_exists,
    bad_value,
    conflict,
    invalid_object,
    not_found,
)
from hortus.apiserver.resources.kind import Kind, as_bytes, with_revision
from hortus.apiserver.resources.preparing import (
    QUIET,
    allocate,
    check_uid,
    complete,
    isolated,
    mutate,
    prepare_create,
    prepare_update,
    read_again,
    read_object,
)
from hortus.apiserver.resources.scope import RequestScope, WriteOptions, WriteResult
from hortus.apiserver.resources.validating import admit, check, problems_of
from hortus.apiserver.resources.versions import (
    presented_record,
    read,
    shown_unwritten,
    shown_written,
    stored_value,
)
from hortus.apiserver.store.backend import Mismatch, StoredRecord
from hortus.kube.errors import ApiError, BadRequest
from hortus.kube.objects import Object
from hortus.schema.merge import unchanged


async def create(
    ctx: OperationContext, scope: RequestScope, obj: Object, options: WriteOptions, *, applied: bool = False
) -> WriteResult:
    """Store a new object. Raises AlreadyExists, Invalid, BadRequest, NotFound and Forbidden for its namespace."""
    kind, now = scope.kind, ctx.clock.now()
    warnings = read_object(kind, obj, options)
    revision = obj["metadata"].pop("resourceVersion", "")
    if not options.dry_run and metadata.names_revision(revision):
        raise ApiError("resourceVersion should not be set on objects to be created", code=500, reason="")
    if kind.resource.namespaced:
        metadata.check_namespace(obj["metadata"], scope.namespace)
        # A refusal names the client's value: the name, or the prefix of a generated one.
        sent = obj["metadata"].get("name") or obj["metadata"].get("generateName", "")
        await ctx.namespaces.check(scope._replace(name=sent))
    if kind.definition.answer is not None:
        context = write_context(scope, now, dry_run=options.dry_run)
        return await _answered(scope, obj, warnings, options.manager, context)
    generated = not obj["metadata"].get("name")
    metadata.begin(kind, obj, scope.namespace, now)
    scope = scope._replace(name=obj["metadata"].get("name", ""), unnamed=not scope.name)
    context = write_context(scope, now, dry_run=options.dry_run)
    prepare_create(kind, obj, context)
    if not applied:
        fields.record(kind, None, obj, scope, options.manager, now)
    complete(kind, obj, context)
    await mutate(kind, obj, None, context)
    review = await review_of(ctx, scope, "CREATE", options)
    if review is not None and await review.mutate(obj, None):
        read_object(kind, obj, QUIET)
        prepare_create(kind, obj, context)
        complete(kind, obj, context)
        await mutate(kind, obj, None, context)
    check(kind, scope, [*await problems_of(ctx, scope, obj, None), *kind.definition.strategy.validate(obj, context)])
    await admit(ctx, scope, "CREATE", obj, None, options, review)
    outcome = await _store_create(ctx, scope, obj, options, warnings, generated=generated)
    if not options.dry_run or not revision:
        return outcome
    # Only the store refuses a revision, which a dry run does not reach.
    obj["metadata"]["resourceVersion"] = revision
    return outcome._replace(body=as_bytes(obj))


async def _answered(
    scope: RequestScope, obj: Object, warnings: Sequence[str], manager: str, context: WriteContext
) -> WriteResult:
    """Answers a kind that is never stored: the body is returned with its status."""
    kind = scope.kind
    assert kind.definition.answer is not None
    kind.structural.default(obj)
    kind.definition.strategy.prepare_create(obj, context)
    obj.pop("status", None)  # Go clients send an empty one, which is not valid as an answer
    found = [FieldProblem(*error) for error in kind.structural.validate(obj)]
    check(kind, scope, [*found, *kind.definition.strategy.validate(obj, context)])
    fields.record(kind, None, obj, scope, manager, context.now)
    answer = await kind.definition.answer(obj, context)
    return WriteResult(as_bytes(answer), 201, warnings, answer)


async def _store_create(
    ctx: OperationContext,
    scope: RequestScope,
    obj: Object,
    options: WriteOptions,
    warnings: Sequence[str],
    *,
    generated: bool,
) -> WriteResult:
    kind = scope.kind
    value = await stored_value(kind, scope.cluster, obj)
    if options.dry_run:
        found = await ctx.storage.get(scope.key)
        if found is not None:
            raise _taken(kind, scope.name, found)
        return WriteResult(shown_unwritten(kind, value, obj), 201, warnings, obj)
    try:
        record = await ctx.storage.put(scope.key, value, replaced=None)
    except Mismatch as mismatch:
        error = _taken(kind, scope.name, mismatch.current)
        if generated:
            # The client did not choose this name and may retry to get another one.
            error.retry_after = 1
        raise error from None
    return WriteResult(shown_written(kind, record.value, obj), 201, warnings, with_revision(obj, record))


def _taken(kind: Kind, name: str, record: StoredRecord | None) -> ApiError:
    error = already_exists(kind, name)
    if record is not None and "deletionTimestamp" in orjson.loads(record.value)["metadata"]:
        error.message = f"object is being deleted: {error.message}"
    return error


async def replace(ctx: OperationContext, scope: RequestScope, obj: Object, options: WriteOptions) -> WriteResult:
    """PUT. Raises NotFound, Conflict, Invalid, BadRequest."""
    kind = scope.kind
    warnings = read_object(kind, obj, options)
    name = obj["metadata"].get("name", "")
    if name != scope.name:
        if name:
            raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({scope.name})")
        raise metadata.nameless(scope.name)
    if kind.resource.namespaced:
        metadata.check_namespace(obj["metadata"], scope.namespace)
    record = await read(ctx, scope)
    if record is None:
        if kind.definition.create_on_update and not scope.subresource:
            if ctx.creation is not None:
                await ctx.creation.check_create(scope)
            check_uid(kind, scope, obj, "")
            if not options.dry_run:
                obj["metadata"].pop("resourceVersion", None)
            return await create(ctx, scope, obj, options._replace(validation="Ignore"))
        raise not_found(kind, scope.name)
    believed = metadata.check_resource_version(kind, scope.name, obj["metadata"])
    if not believed and not kind.definition.unconditional_update:
        problem = bad_value("metadata.resourceVersion", 0, "must be specified for an update")
        resource = kind.resource
        # Named by the plural, unlike other problems: kube-apiserver finds this one in its store, which knows no kinds.
        raise invalid_object(kind.group_resource, resource.group, resource.plural, scope.name, [problem])
    while True:
        if believed and believed != record.revision:
            raise conflict(kind, scope.name)
        attempt = dict(obj, metadata=dict(obj["metadata"]))
        try:
            return await store_update(ctx, scope, record, attempt, options, warnings)
        except Mismatch as mismatch:
            current = await presented_record(kind, scope.cluster, mismatch.current)
            if current is None:
                raise not_found(kind, scope.name) from None
            record = current


async def store_update(
    ctx: OperationContext,
    scope: RequestScope,
    record: StoredRecord,
    obj: Object,
    options: WriteOptions,
    warnings: Sequence[str] = (),
    *,
    applied: bool = False,
) -> WriteResult:
    """Writes `obj` over `record` when the rules allow it; writes nothing when nothing changed.

    `applied` means that server-side apply has set field ownership. Raises store.Mismatch when another writer was first:
    the caller decides about a retry.
    """
    kind, now = scope.kind, ctx.clock.now()
    old = with_revision(kind.decode(record.value), record)
    if scope.subresource == "status" and kind.definition.read_for_status is not None:
        kind.definition.read_for_status(obj)
    obj = isolated(kind, scope.subresource, obj, old)
    check_uid(kind, scope, obj, old["metadata"].get("uid", ""))
    metadata.carry_over(kind, obj, old)
    context = write_context(scope, now, dry_run=options.dry_run)
    prepare_update(kind, obj, old, context)
    if not applied:
        fields.record(kind, old, obj, scope, options.manager, now)
    allocate(kind, obj, old, scope.subresource)
    await mutate(kind, obj, old, context)
    review = await review_of(ctx, scope, "UPDATE", options)
    if review is not None and await review.mutate(obj, old):
        obj = read_again(kind, scope.subresource, obj, old)
        prepare_update(kind, obj, old, context)
        allocate(kind, obj, old, scope.subresource)
        await mutate(kind, obj, old, context)
    obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    if unchanged(old, obj):
        if review is not None:
            await review.validate(obj, old)
        return WriteResult(kind.shown(record.value), 200, warnings, old)
    check(
        kind,
        scope,
        [
            *await problems_of(ctx, scope, obj, old),
            *metadata.update_problems(kind, obj, old),
            *kind.definition.strategy.validate_update(obj, old, context),
        ],
    )
    await admit(ctx, scope, "UPDATE", obj, old, options, review)
    return await _store_update(ctx, scope, record, old, obj, options, warnings)


async def _store_update(
    ctx: OperationContext,
    scope: RequestScope,
    record: StoredRecord,
    old: Object,
    obj: Object,
    options: WriteOptions,
    warnings: Sequence[str],
) -> WriteResult:
    kind = scope.kind
    value = await stored_value(kind, scope.cluster, obj)
    if options.dry_run:
        return WriteResult(shown_written(kind, value.at(record.revision), obj), 200, warnings, obj)
    if "deletionTimestamp" in obj["metadata"] and is_finalized(obj):
        # The last update is not stored: watchers see the stored object, the writer the updated one.
        await ctx.storage.delete(record, await stored_value(kind, scope.cluster, old))
        return WriteResult(shown_written(kind, value.at(record.revision), obj), 200, warnings, obj)
    written = await ctx.storage.put(record.key, value, replaced=record)
    return WriteResult(shown_written(kind, written.value, obj), 200, warnings, with_revision(obj, written))


def is_finalized(obj: Object) -> bool:
    """Reports whether an object in deletion has neither finalizers nor a grace period left."""
    if obj["metadata"].get("finalizers") or obj["metadata"].get("deletionGracePeriodSeconds"):
        return False
    held = obj.get("kind") == "Namespace" and obj.get("apiVersion") == "v1" and obj.get("spec", {}).get("finalizers")
    return not held
