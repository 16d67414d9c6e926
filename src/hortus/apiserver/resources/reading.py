"""GET and LIST. Lists join stored bytes; an object is decoded only for a selector or a conversion.

resourceVersion and limit follow "Kubernetes API Concepts", "Semantics for get and list": an exact revision gives that
snapshot or 410, "0" the state known to this server, also while its store is unreachable, any other the newest state,
and a page's token keeps the snapshot of the first page.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson

from hortus.apiserver.http.queries import Query, whole_number
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.continuation import Position, expired, position_of, token_of
from hortus.apiserver.resources.definition import FieldProblem
from hortus.apiserver.resources.failures import forbidden_field, invalid_options, not_found
from hortus.apiserver.resources.joined import Joined
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.scope import RequestScope
from hortus.apiserver.resources.selection import ObjectSelection, selection_of
from hortus.apiserver.resources.versions import presented_page, read
from hortus.apiserver.store.backend import RecordPage, RevisionCompacted, RevisionInFuture, StoredRecord
from hortus.kube.errors import BadRequest, Expired, Timeout

LIST_TAIL = b"]}\n"
_BATCH = 500
"""Records read at a time when a selector and a limit are given together."""


class Listing(NamedTuple):
    """Part of a collection in one snapshot, as bytes in the requested version."""

    values: list[bytes]
    revision: int
    continuation: str = ""
    remaining: int | None = None
    joined: Joined | None = None
    """Set instead of `values`, where the caller accepts that."""

    def meta(self) -> dict[str, object]:
        """The ListMeta."""
        meta: dict[str, object] = {"resourceVersion": str(self.revision)}
        if self.continuation:
            meta["continue"] = self.continuation
            if self.remaining is not None:
                meta["remainingItemCount"] = self.remaining
        return meta


async def get(ctx: OperationContext, scope: RequestScope, query: Query) -> bytes:
    """The object as bytes. Raises NotFound; Timeout for a resourceVersion in the future."""
    if "resourceVersion" in query:
        await check_not_future(ctx, revision_in(query))
    record = await read(ctx, scope, fresh=not any_age(query))
    if record is None:
        raise not_found(scope.kind, scope.name)
    return scope.kind.shown(record.value)


async def collect(ctx: OperationContext, scope: RequestScope, query: Query, *, joined: bool = False) -> Listing:
    """The collection that `scope` and `query` name, with its items `joined` where they are cached.

    Raises BadRequest, Expired, Timeout, Invalid.
    """
    selection = selection_of(scope.kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    limit = max(whole_number(query, "limit") or 0, 0)
    whole_number(query, "timeoutSeconds")
    position = await _start(ctx, query)
    prefix = f"{scope.namespace}/" if scope.namespace else ""
    try:
        if selection is None:
            page = await _page(ctx, scope, prefix, position, limit, fresh=not any_age(query))
            items = ctx.lists.of(scope.kind, scope.bucket, prefix, page) if joined else None
            if items is not None:
                return Listing([], page.revision, joined=items)
            return _listing(scope.kind, page, await _all_shown(ctx, scope, page), prefix)
        return await _selected(ctx, scope, selection, prefix, position, limit, fresh=not any_age(query))
    except RevisionCompacted:
        if query.get("continue"):
            raise expired(position.after) from None
        raise Expired("The resourceVersion for the provided list is too old.") from None
    except RevisionInFuture:
        raise too_large(position.revision, ctx.storage.revision) from None


async def _all_shown(ctx: OperationContext, scope: RequestScope, page: RecordPage) -> list[bytes]:
    if not scope.kind.upgrade:
        return [scope.kind.shown(record.value) for record in page.records]
    found, pace = [], ctx.pace(scope)
    for record in page.records:
        if pace.due:
            await pace.turn()
        found.append(scope.kind.shown(record.value))
    return found


async def _page(
    ctx: OperationContext, scope: RequestScope, prefix: str, position: Position, limit: int, *, fresh: bool
) -> RecordPage:
    after = prefix + position.after if position.after else ""
    page = await ctx.storage.list(
        scope.bucket, prefix=prefix, after=after, limit=limit, revision=max(position.revision, 0), fresh=fresh
    )
    return await presented_page(scope.kind, scope.cluster, page)


def _listing(kind: Kind, page: RecordPage, values: list[bytes], prefix: str) -> Listing:
    if not page.remaining:
        return Listing(values, page.revision)
    token = token_of(Position(page.revision, page.records[-1].name[len(prefix) :]))
    return Listing(values, page.revision, token, page.remaining)


async def _selected(
    ctx: OperationContext,
    scope: RequestScope,
    selection: ObjectSelection,
    prefix: str,
    position: Position,
    limit: int,
    *,
    fresh: bool,
) -> Listing:
    found: list[bytes] = []
    pace = ctx.pace(scope)
    while True:
        page = await _page(ctx, scope, prefix, position, _BATCH if limit else 0, fresh=fresh)
        for record in page.records:
            if pace.due:
                await pace.turn()
            value = _shown_if(scope.kind, record, selection)
            if value is None:
                continue
            found.append(value)
            if limit and len(found) == limit:
                last = record is page.records[-1] and not page.remaining
                token = "" if last else token_of(Position(page.revision, record.name[len(prefix) :]))
                return Listing(found, page.revision, token)
        if not page.remaining:
            return Listing(found, page.revision)
        position = Position(page.revision, page.records[-1].name[len(prefix) :])


def _shown_if(kind: Kind, record: StoredRecord, selection: ObjectSelection) -> bytes | None:
    if not selection.may_show(record.value):
        return None
    if kind.upgrade:
        obj = kind.decode(record.value)
        return orjson.dumps(obj) if selection.shows(obj) else None
    shown = kind.shown(record.value)
    return shown if selection.shows(orjson.loads(shown)) else None


async def _start(ctx: OperationContext, query: Query) -> Position:
    """The start of the page and its snapshot; revision 0 is the newest."""
    match, token = query.get("resourceVersionMatch", ""), query.get("continue", "")
    revision = revision_in(query)
    _check_match(match, query, revision, token)
    if token:
        return position_of(token)
    if match == "Exact":
        return Position(revision, "")
    await check_not_future(ctx, revision)
    return Position(0, "")


def _check_match(match: str, query: Query, revision: int, token: str) -> None:
    problems: list[FieldProblem] = []
    path = "resourceVersionMatch"
    if token and revision:
        raise BadRequest("specifying resource version is not allowed when using continue")
    if match and token:
        problems.append(forbidden_field(path, "resourceVersionMatch is forbidden when continue is provided"))
    if match and not query.get("resourceVersion") and query.get("sendInitialEvents") is None:
        problems.append(forbidden_field(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match not in ("", "Exact", "NotOlderThan"):
        problems.append(
            FieldProblem(
                path,
                f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""',
                "FieldValueNotSupported",
            )
        )
    if match == "Exact" and query.get("resourceVersion") == "0":
        problems.append(forbidden_field(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if problems:
        raise invalid_options("ListOptions", problems)


def revision_in(query: Query) -> int:
    """The resourceVersion parameter, 0 when absent or "0". Raises BadRequest."""
    text = query.get("resourceVersion", "")
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise BadRequest(
            f'invalid resource version: resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": '
            "invalid syntax"
        )
    return int(text)


def any_age(query: Query) -> bool:
    """Reports whether the client accepts the state known to this server, however old ("API Concepts":
    resourceVersion="0")."""
    return query.get("resourceVersion") == "0" and not query.get("continue")


async def check_not_future(ctx: OperationContext, revision: int) -> None:
    """Raises Timeout for a revision that no server on this store has written yet."""
    if revision > ctx.storage.revision:
        current = await ctx.storage.backend.sync()
        if revision > current:
            raise too_large(revision, current)


def too_large(revision: int, current: int) -> Timeout:
    message = f"Timeout: Too large resource version: {revision}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return Timeout(message, details={"causes": [cause]}, retry_after=1)


def list_head(kind: Kind, listing: Listing) -> bytes:
    """A List object up to its items."""
    resource, meta = kind.resource, listing.meta()
    if kind.custom:
        meta.setdefault("continue", "")
    return b'{"kind":%s,"apiVersion":%s,"metadata":%s,"items":[' % (
        orjson.dumps(kind.definition.list_kind),
        orjson.dumps(resource.api_version),
        orjson.dumps(meta),
    )


def list_body(kind: Kind, listing: Listing) -> bytes:
    """A List object around values that are already encoded."""
    items = kind.items(listing.values) if listing.joined is None else listing.joined.items
    return b"".join((list_head(kind, listing), items, LIST_TAIL))
