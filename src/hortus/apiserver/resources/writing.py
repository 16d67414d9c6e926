"""Create and update: from the sent object to bytes in the store.

Every write runs the same phases in kube-apiserver's order: type and metadata are read, unknown fields dropped, defaults
set, the kind's strategy prepares, field ownership is recorded, webhooks may change the object (it is then read and
prepared again; their fields have no owner), schema and strategy validate, admission reviews, and the store checks the
revision. PUT, every sort of patch, apply, status, scale and the server's own controllers all end in `store_update`, so
no path skips a rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import orjson

from hortus.apiserver.http import go_kind, with_whole_numbers
from hortus.apiserver.remarks import remarks
from hortus.apiserver.resources import fields, metadata
from hortus.apiserver.resources.context import OperationContext, WriteReview, review_of, write_context
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.apiserver.resources.failures import (
    already_exists,
    bad_value,
    cannot_decode,
    conflict,
    invalid,
    invalid_object,
    not_found,
)
from hortus.apiserver.resources.kind import Kind, as_bytes, with_revision
from hortus.apiserver.resources.scaling import scale_problems
from hortus.apiserver.resources.scope import RequestScope, WriteOptions, WriteResult
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
from hortus.schema import FieldError, Overdue
from hortus.schema.merge import unchanged

_QUIET = WriteOptions()
_PATIENCE = 0.01
"""Seconds of CEL rules on the loop; longer ones start again in a thread."""
_NOBODY = {"apiVersion": "", "kind": "", "name": "", "uid": ""}
"""An owner reference as Go reads it: missing fields are empty, which `metadata.problems` refuses."""


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
    _prepare_create(kind, obj, context)
    if not applied:
        fields.record(kind, None, obj, scope, options.manager, now)
    _complete(kind, obj, context)
    review = await review_of(ctx, scope, "CREATE", options)
    if review is not None and await review.mutate(obj, None):
        read_object(kind, obj, _QUIET)
        _prepare_create(kind, obj, context)
        _complete(kind, obj, context)
    _check(kind, scope, [*await _problems(ctx, scope, obj, None), *kind.definition.strategy.validate(obj, context)])
    await _admit(ctx, scope, "CREATE", obj, None, options, review)
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
    _check(kind, scope, [*found, *kind.definition.strategy.validate(obj, context)])
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
    obj = _isolated(kind, scope.subresource, obj, old)
    check_uid(kind, scope, obj, old["metadata"].get("uid", ""))
    metadata.carry_over(kind, obj, old)
    context = write_context(scope, now, dry_run=options.dry_run)
    _prepare_update(kind, obj, old, context)
    if not applied:
        fields.record(kind, old, obj, scope, options.manager, now)
    _allocate(kind, obj, old, scope.subresource)
    review = await review_of(ctx, scope, "UPDATE", options)
    if review is not None and await review.mutate(obj, old):
        obj = _reread(kind, scope.subresource, obj, old)
        _prepare_update(kind, obj, old, context)
        _allocate(kind, obj, old, scope.subresource)
    obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    if unchanged(old, obj):
        if review is not None:
            await review.validate(obj, old)
        return WriteResult(kind.shown(record.value), 200, warnings, old)
    _check(
        kind,
        scope,
        [
            *await _problems(ctx, scope, obj, old),
            *metadata.update_problems(kind, obj, old),
            *kind.definition.strategy.validate_update(obj, old, context),
        ],
    )
    await _admit(ctx, scope, "UPDATE", obj, old, options, review)
    value = await stored_value(kind, scope.cluster, obj)
    if options.dry_run:
        return WriteResult(shown_written(kind, value.at(record.revision), obj), 200, warnings, obj)
    if "deletionTimestamp" in obj["metadata"] and is_finalized(obj):
        # The last update is not stored: watchers see the stored object, the writer the updated one.
        await ctx.storage.delete(record, await stored_value(kind, scope.cluster, old))
        return WriteResult(shown_written(kind, value.at(record.revision), obj), 200, warnings, obj)
    written = await ctx.storage.put(record.key, value, replaced=record)
    return WriteResult(shown_written(kind, written.value, obj), 200, warnings, with_revision(obj, written))


def _reread(kind: Kind, subresource: str, obj: Object, old: Object) -> Object:
    """Reads the object after webhooks changed it; parts that this endpoint does not write keep their stored values."""
    read_object(kind, obj, _QUIET)
    obj = _isolated(kind, subresource, obj, old)
    metadata.carry_over(kind, obj, old)
    return obj


def is_finalized(obj: Object) -> bool:
    """Reports whether an object in deletion has neither finalizers nor a grace period left."""
    if obj["metadata"].get("finalizers") or obj["metadata"].get("deletionGracePeriodSeconds"):
        return False
    held = obj.get("kind") == "Namespace" and obj.get("apiVersion") == "v1" and obj.get("spec", {}).get("finalizers")
    return not held


def read_object(kind: Kind, obj: Object, options: WriteOptions, *, prune: bool = True) -> list[str]:
    """Checks types and drops unknown fields; returns the warnings. Raises BadRequest."""
    metadata.check_type(kind, obj)
    unknown = metadata.read_metadata(kind, obj)
    if kind.custom:
        for part, value in obj.items():
            if part != "metadata":
                obj[part] = with_whole_numbers(value)
    if prune and kind.definition.prune:
        unknown += kind.structural.prune(obj)
    owners = metadata.without_repeated_owners(obj)
    if options.validation == "Ignore" or not (unknown or options.noticed):
        return owners
    texts = list(options.noticed)
    texts += [f'unknown field "{path}"' for path in unknown]
    if options.validation == "Strict":
        raise cannot_decode(kind.resource, f"strict decoding error: {', '.join(texts)}")
    return [*texts, *owners]


def _prepare_create(kind: Kind, obj: Object, context: WriteContext) -> None:
    definition = kind.definition
    if definition.status and not definition.status_on_create:
        status, resource = obj.pop("status", None), kind.resource
        if not kind.custom and not isinstance(status, dict | None):
            place = f"{resource.kind}.status of type {resource.version}.{resource.kind}Status"
            raise cannot_decode(resource, f"json: cannot unmarshal {go_kind(status)} into Go struct field {place}")
    kind.structural.default(obj)
    definition.strategy.prepare_create(obj, context)
    if definition.generation and definition.strategy.generation_changed(obj, {}):
        obj["metadata"]["generation"] = 1


def _complete(kind: Kind, obj: Object, context: WriteContext) -> None:
    if kind.definition.complete is not None:
        kind.definition.complete(obj, context)
    if kind.definition.allocate is not None:
        kind.definition.allocate(obj, None)


def _allocate(kind: Kind, obj: Object, old: Object, subresource: str) -> None:
    if kind.definition.allocate is not None and not subresource:
        kind.definition.allocate(obj, old)


def _prepare_update(kind: Kind, obj: Object, old: Object, context: WriteContext) -> None:
    strategy = kind.definition.strategy
    kind.structural.default(obj)
    strategy.prepare_update(obj, old, context)
    if kind.definition.generation and strategy.generation_changed(obj, old):
        obj["metadata"]["generation"] = int(old["metadata"].get("generation", 0)) + 1


def _isolated(kind: Kind, subresource: str, obj: Object, old: Object) -> Object:
    """The parts of the object that this endpoint may write: the main one all but the status, `status` the status alone.

    Built-in kinds accept metadata on `status` too, custom resources do not (KEP-95, CRD subresources).
    """
    if not kind.definition.status or subresource == "binding":
        return obj
    if subresource not in ("status", "approval"):
        status = old.get("status")
    else:
        status, sent = obj.get("status"), obj["metadata"]
        meta = dict(old["metadata"]) if kind.custom else dict(sent)
        for field in ("managedFields", "resourceVersion", "uid"):
            if field in sent:
                meta[field] = sent[field]
            elif field == "managedFields":
                meta.pop(field, None)
        obj = {**old, "metadata": meta}
    if status is None:
        obj.pop("status", None)
    else:
        obj["status"] = status
    return obj


def check_uid(kind: Kind, scope: RequestScope, obj: Object, stored: str) -> None:
    """Raises Conflict when the writer means an object of another uid than `stored`."""
    uid = obj["metadata"].get("uid", "")
    if uid and uid != stored:
        resource = kind.resource
        place = "/".join(filter(None, (resource.group if kind.custom else "", resource.plural, scope.namespace)))
        raise conflict(
            kind,
            scope.name,
            f"StorageError: invalid object, Code: 4, Key: /registry/{place}/{scope.name}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}",
        )


async def _problems(ctx: OperationContext, scope: RequestScope, obj: Object, old: Object | None) -> list[FieldProblem]:
    kind = scope.kind
    found = metadata.problems(kind, obj)
    forgiven: list[FieldError] = []
    whole = partial(kind.structural.validate, _unread(kind, obj), old, forgiven=forgiven)
    try:
        errors = whole(patience=_PATIENCE)
    except Overdue:
        forgiven.clear()
        errors = await ctx.pace(scope).aside(whole)
    typed = [FieldProblem(*error) for error in errors]
    for each in dict.fromkeys(forgiven):
        remarks().warn(str(each))
    if kind.custom and scope.subresource == "status":
        typed = [_below_status(each) for each in typed]
    return [*found, *typed, *scale_problems(kind, obj, scope.subresource)]


def _below_status(problem: FieldProblem) -> FieldProblem:
    """A custom resource's status is validated alone, so that paths start there."""
    start = f"{problem.path} in body"
    if not problem.path.startswith("status") or start not in problem.message:
        return problem
    return problem._replace(message=problem.message.replace(start, f"{problem.path[len('status.') :]} in body"))


def _unread(kind: Kind, obj: Object) -> Object:
    """The parts of a built-in kind that its schema still has to validate: `read_metadata` checks all of ObjectMeta but
    the owners.

    Walking the managedFields of a small object costs more than all the rest of it.
    """
    if kind.custom:
        return obj
    owners = [{**_NOBODY, **owner} for owner in obj["metadata"].get("ownerReferences", ())]
    return {**obj, "metadata": {"ownerReferences": owners} if owners else {}}


def _check(kind: Kind, scope: RequestScope, found: list[FieldProblem]) -> None:
    if found:
        # Where the schema misses a value and the strategy explains why, the explanation suffices.
        explained = {p.path for p in found if p.reason == "FieldValueRequired" and p.message != "Required value"}
        found = [p for p in found if p.message != "Required value" or p.path not in explained]
        raise invalid(kind, scope.name, found)


async def _admit(
    ctx: OperationContext,
    scope: RequestScope,
    operation: str,
    obj: Object,
    old: Object | None,
    options: WriteOptions,
    review: WriteReview | None,
) -> None:
    touched = False
    for admission in ctx.admission:
        touched |= await admission.admit(scope, operation, obj, old, dry_run=options.dry_run)
    if touched:
        _check(scope.kind, scope, await _problems(ctx, scope, obj, old))
    if review is not None:
        await review.validate(obj, old)
