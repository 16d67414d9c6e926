"""Conversion of objects between the versions of a kind.

Built-in kinds and CRDs without a webhook convert where they are decoded. A conversion webhook takes a call over the
network, so objects pass through this module after every read from the store and before every write; for all other kinds
that costs a look at one attribute. After it, an object's bytes are those of the requested version.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.kind import Kind, as_bytes, revision_in
from hortus.apiserver.resources.scope import RequestScope
from hortus.apiserver.store.backend import Commit, RecordPage, StoredRecord, Value
from hortus.kube.objects import Object


async def read(ctx: OperationContext, scope: RequestScope, *, fresh: bool = True) -> StoredRecord | None:
    """The stored object of a request, in the request's version."""
    return await presented_record(scope.kind, scope.cluster, await ctx.storage.get(scope.key, fresh=fresh))


async def presented_record(kind: Kind, cluster: str, record: StoredRecord | None) -> StoredRecord | None:
    if record is None or kind.converter is None:
        return record
    return (await presented(kind, cluster, [record]))[0]


async def presented(kind: Kind, cluster: str, records: Sequence[StoredRecord]) -> Sequence[StoredRecord]:
    """The records with their objects in the version of `kind`. Raises InternalError when a webhook fails."""
    converter = kind.converter
    if converter is None:
        return records
    foreign = [place for place, record in enumerate(records) if not record.value.startswith(kind.type_head)]
    if not foreign:
        return records
    values = await converter.presented(cluster, [records[place].value for place in foreign], kind)
    found = list(records)
    for place, value in zip(foreign, values, strict=True):
        found[place] = msgspec.structs.replace(records[place], value=value)
    return found


async def presented_page(kind: Kind, cluster: str, page: RecordPage) -> RecordPage:
    if kind.converter is None:
        return page
    return page._replace(records=await presented(kind, cluster, page.records))


async def presented_changes(kind: Kind, cluster: str, changes: Sequence[Commit]) -> Sequence[Commit]:
    """Changes in the version of a watcher. Raises InternalError when a webhook fails."""
    if kind.converter is None:
        return changes
    return [await _presented_change(kind, cluster, change) for change in changes]


async def _presented_change(kind: Kind, cluster: str, change: Commit) -> Commit:
    final = change.final
    if final is not None:
        [shown] = await presented(kind, cluster, [StoredRecord("", "", final, change.revision)])
        final = shown.value
    return msgspec.structs.replace(
        change,
        record=await presented_record(kind, cluster, change.record),
        replaced=await presented_record(kind, cluster, change.replaced),
        final=final,
    )


async def stored_value(kind: Kind, cluster: str, obj: Object) -> Value:
    """The bytes to store an object of `kind` as. Raises InternalError when a webhook fails."""
    if kind.converter is not None and kind.storage_version != kind.resource.version:
        [obj] = await kind.converter.convert(cluster, [obj], kind.storage_api_version)
    return kind.encode(obj)


def shown_written(kind: Kind, value: bytes, obj: Object) -> bytes:
    """The object just stored as `value`, in the writer's version, which is that of `obj`."""
    if kind.converter is None or value.startswith(kind.type_head):
        return kind.shown(value)
    return kind.typed(obj, revision_in(value))


def shown_unwritten(kind: Kind, value: Value, obj: Object) -> bytes:
    """The object of a dry run."""
    return kind.without_revision(value) if kind.converter is None else as_bytes(obj)


async def shown_as(kind: Kind, own: Kind, cluster: str, obj: Object | None) -> Object | None:
    """`obj`, of version `own`, in version `kind`; both are versions of one resource. Never changes `obj`."""
    if obj is None or kind is own or obj.get("kind") != own.resource.kind:
        return obj
    if own.converter is not None:
        return (await own.converter.convert(cluster, [obj], kind.resource.api_version))[0]
    return kind.reshaped(obj, own)
