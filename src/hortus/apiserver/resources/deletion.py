"""DELETE: of one object or of a collection, with preconditions, propagation and finalizers.

An object without finalizers is removed at once. One with finalizers is marked with a deletionTimestamp and removed by
the write that removes its last finalizer (writing.store_update). The propagation policy for dependents is written into
the object as a finalizer too (`foregroundDeletion`, `orphan`), and carried out by the garbage collector (KEP: garbage
collection, API Concepts "Cascading deletion").
"""

from __future__ import annotations

import orjson

from hortus.apiserver.resources.context import OperationContext, review_of, write_context
from hortus.apiserver.resources.definition import WriteContext
from hortus.apiserver.resources.failures import not_found
from hortus.apiserver.resources.kind import Kind, with_revision
from hortus.apiserver.resources.scope import DeleteOptions, Preconditions, RequestScope, WriteResult
from hortus.apiserver.resources.versions import presented_record, read, stored_value
from hortus.apiserver.resources.writing import is_finalized
from hortus.apiserver.store.backend import Mismatch, StoredRecord
from hortus.kube.errors import Conflict
from hortus.kube.objects import Object, format_time

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_PROPAGATION = {"Foreground": FOREGROUND, "Orphan": ORPHAN}


async def delete(ctx: OperationContext, scope: RequestScope, options: DeleteOptions) -> WriteResult:
    """Deletes or marks one object. Raises NotFound, Conflict (a precondition), and errors of the kind's strategy."""
    record = await read(ctx, scope)
    while True:
        if record is None:
            raise not_found(scope.kind, scope.name)
        try:
            return await _delete_state(ctx, scope, record, options)
        except Mismatch as mismatch:
            record = await presented_record(scope.kind, scope.cluster, mismatch.current)


async def _delete_state(
    ctx: OperationContext, scope: RequestScope, record: StoredRecord, options: DeleteOptions
) -> WriteResult:
    kind, now = scope.kind, ctx.clock.now()
    old = with_revision(kind.decode(record.value), record)
    _check(kind, old, options.preconditions)
    context = write_context(scope, now, dry_run=options.dry_run)
    kind.definition.strategy.check_delete(old, context)
    for admission in ctx.admission:
        await admission.admit(scope, "DELETE", None, old, dry_run=options.dry_run)
    review = await review_of(ctx, scope, "DELETE", options)
    if review is not None:
        await review.mutate(None, old)
        await review.validate(None, old)
    obj = _marked(kind, old, options, context)
    if options.dry_run:
        return _outcome(kind, _ended(kind, obj, now) if is_finalized(obj) else obj, gone=is_finalized(obj))
    if is_finalized(obj):
        final = obj if obj["metadata"].get("finalizers") else old
        revision = await ctx.storage.delete(record, await stored_value(kind, scope.cluster, final))
        obj["metadata"]["resourceVersion"] = str(revision)
        return _outcome(kind, _ended(kind, obj, now), gone=True)
    if obj != old:
        value = await stored_value(kind, scope.cluster, obj)
        obj = with_revision(obj, await ctx.storage.put(record.key, value, replaced=record))
    return _outcome(kind, obj, gone=False)


def _ended(kind: Kind, obj: Object, now: float) -> Object:
    """The answer for a deleted object; the deletion time of a pod is the end of its grace period."""
    if kind.suffix != "core/pods" or "deletionTimestamp" in obj["metadata"]:
        return obj
    metadata = {**obj["metadata"], "deletionTimestamp": format_time(now), "deletionGracePeriodSeconds": 0}
    if "generation" in metadata:
        metadata["generation"] += 1
    return {**obj, "metadata": metadata}


def _marked(kind: Kind, old: Object, options: DeleteOptions, context: WriteContext) -> Object:
    """The object while it waits for its finalizers."""
    obj = {**old, "metadata": dict(old["metadata"])}
    metadata = obj["metadata"]
    finalizers = _finalizers(list(metadata.get("finalizers", ())), options.propagation)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if kind.definition.end is not None and "deletionTimestamp" not in metadata:
        kind.definition.end(obj, context)
    if "deletionTimestamp" not in metadata and not is_finalized(obj):
        metadata["deletionTimestamp"] = format_time(context.now)
        if kind.definition.end is None:
            # kube-apiserver deletes kinds with a deletion of their own without a grace period.
            metadata["deletionGracePeriodSeconds"] = 0
            if metadata.get("generation"):
                metadata["generation"] += 1
    return obj


def _finalizers(present: list[str], propagation: str) -> list[str]:
    if not propagation:
        return present
    kept = [name for name in present if name not in (FOREGROUND, ORPHAN)]
    wanted = _PROPAGATION.get(propagation)
    return [*kept, wanted] if wanted else kept


def _check(kind: Kind, old: Object, preconditions: Preconditions) -> None:
    metadata = old["metadata"]
    name, uid, version = metadata["name"], metadata.get("uid", ""), metadata["resourceVersion"]
    if preconditions.uid is not None and preconditions.uid != uid:
        raise _unlike(
            kind,
            name,
            f"the UID in the precondition ({preconditions.uid}) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated",
        )
    if preconditions.resource_version and preconditions.resource_version != version:
        raise _unlike(
            kind,
            name,
            f"the ResourceVersion in the precondition ({preconditions.resource_version}) does not match the "
            f"ResourceVersion in record ({version}). The object might have been modified",
        )


def _unlike(kind: Kind, name: str, why: str) -> Conflict:
    """A precondition that does not hold; its message names the kind, unlike other conflicts."""
    details = {"name": name, "group": kind.resource.group, "kind": kind.resource.kind}
    message = f'Operation cannot be fulfilled on {kind.group_kind} "{name}": {why}'
    return Conflict(message, details={key: value for key, value in details.items() if value})


def _outcome(kind: Kind, obj: Object, *, gone: bool) -> WriteResult:
    if not gone or kind.definition.shows_deleted:
        return WriteResult(orjson.dumps(obj), 200, (), obj)
    metadata, resource = obj["metadata"], kind.resource
    details = {"name": metadata["name"], "group": resource.group, "kind": resource.plural, "uid": metadata.get("uid")}
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }
    return WriteResult(orjson.dumps(status), 200, (), None)
