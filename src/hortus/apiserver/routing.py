"""Routing: from an authenticated and authorized request to the operation that answers it."""

from __future__ import annotations

import asyncio

import orjson
from aiohttp import web

from hortus.apiserver import scaling
from hortus.apiserver.aggregation import Aggregation
from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.builtin import check_body
from hortus.apiserver.connection import Connection, taken
from hortus.apiserver.documents import Documents
from hortus.apiserver.http import (
    Reply,
    RequestInfo,
    duplicate_fields,
    kindless,
    media_type_of,
    read_body,
)
from hortus.apiserver.http.queries import Query
from hortus.apiserver.http.replies import json_reply
from hortus.apiserver.metrics import ServerMetrics
from hortus.apiserver.namespaces import NAMESPACES
from hortus.apiserver.options import delete_options, write_options
from hortus.apiserver.pods import ACTIONS, DONE_STATUS, PROXY, PodNetwork, bind, proxied
from hortus.apiserver.remarks import REMARKS
from hortus.apiserver.representation import event_encoder, list_reply, negotiated, object_reply, sent_object
from hortus.apiserver.resources import deletion, patching, reading, watching, writing
from hortus.apiserver.resources.context import OperationContext, review_of, write_context
from hortus.apiserver.resources.definition import SubresourceHandler
from hortus.apiserver.resources.failures import method_not_supported, no_such_resource, not_allowed, not_found
from hortus.apiserver.resources.kind import Kind, with_revision
from hortus.apiserver.resources.scope import RequestScope, WriteOptions
from hortus.apiserver.resources.subresources import BODIES, STATUS_VERBS, WRITTEN
from hortus.apiserver.resources.versions import read
from hortus.apiserver.store.backend import StoreWatch
from hortus.kube.errors import BadRequest, MethodNotAllowed, NotFound
from hortus.kube.objects import GroupVersionKind, Object

_UNSENT_LIMIT = 64 * 1024
"""Bytes in the socket's buffer from which the server waits for a watcher."""


_WITH_DUPLICATES = frozenset({"", "application/json"})
"""Media types in which duplicate keys are not an error of the parser."""


def _not_written(kind: Kind, verb: str) -> MethodNotAllowed:
    """Refuses methods on a subresource that can only be read, patched and replaced."""
    return method_not_supported(kind, verb) if kind.custom else not_allowed()


class Router:
    def __init__(
        self, ctx: OperationContext, documents: Documents, metrics: ServerMetrics, aggregation: Aggregation
    ) -> None:
        self._ctx = ctx
        self._documents = documents
        self._aggregation = aggregation
        self._metrics = metrics
        self._lines = watching.SharedLines()
        self._watches: set[StoreWatch] = set()
        self.pods: PodNetwork | None = None

    async def end_watches(self) -> None:
        """Ends every open watch as if its time were over."""
        for watch in list(self._watches):
            await watch.aclose()
        await self._aggregation.end_streams()

    async def answer(
        self, request: web.BaseRequest, info: RequestInfo, query: Query, user: UserInfo
    ) -> Reply | web.StreamResponse:
        """Executes a request. Raises ApiError."""
        remote = self._aggregation.serving(info)
        if remote is not None:
            return await self._aggregation.pass_on(request, info, remote, user)
        if not info.resource:
            return await self._documents.answer(request, info, user)
        kind = await self._ctx.registry.find(info.cluster, info.group, info.version, info.resource)
        if kind is None or not _is_at_home(kind, info):
            raise no_such_resource()
        namespace = info.namespace if kind.resource.namespaced else ""
        scope = RequestScope(info.cluster, kind, user, namespace, info.name, info.subresource)
        if info.subresource:
            return await self._answer_subresource(request, scope, info, query)
        verb = info.verb
        if kind.definition.answer is not None and info.name:
            raise no_such_resource()
        if verb not in kind.definition.verbs or info.method == "HEAD":
            raise not_allowed()
        if verb == "get":
            return await self._shown(request, scope, await reading.get(self._ctx, scope, query), query)
        if verb == "list":
            return await self._list(request, scope, query)
        if verb == "watch":
            if info.method != "GET":
                raise not_allowed()
            return await self._watch(request, scope, query)
        unnamed = not info.name and verb in ("update", "patch")
        if unnamed and kind.custom and namespace:
            raise BadRequest("name must be provided")
        if unnamed or (info.name and verb == "create") or (kind.resource.namespaced and not namespace):
            raise not_allowed()
        if kind.suffix == "core/bindings":
            return await self._bind(request, scope, query)
        return await self._write(request, scope, info, query)

    async def _write(self, request: web.BaseRequest, scope: RequestScope, info: RequestInfo, query: Query) -> Reply:
        verb, headers, ctx = info.verb, request.headers, self._ctx
        body = await read_body(request)
        content_type = headers.get("Content-Type", "")
        if verb == "delete":
            outcome = await deletion.delete(ctx, scope, delete_options(query, body, content_type))
        elif verb == "deletecollection":
            return await self._delete_collection(request, scope, query, body)
        elif verb == "patch":
            options = write_options(query, headers.get("User-Agent", ""), kind="PatchOptions")
            if content_type.startswith(patching.APPLY):
                options = options._replace(manager=query.get("fieldManager", ""))
            outcome = await patching.patch(ctx, scope, body, content_type, options)
        else:
            kind = "CreateOptions" if verb == "create" else "UpdateOptions"
            options = write_options(query, headers.get("User-Agent", ""), kind=kind)
            obj, noticed = _sent_object(scope.kind, body, content_type, options)
            operation = writing.create if verb == "create" else writing.replace
            outcome = await operation(ctx, scope, obj, options._replace(noticed=noticed) if noticed else options)
        wanted = negotiated(headers.get("Accept", ""), scope.kind)
        return await object_reply(
            wanted,
            scope.kind,
            outcome.body,
            query,
            ctx.clock.now(),
            ctx.pace(scope),
            code=outcome.code,
            warnings=tuple(outcome.warnings),
        )

    async def _answer_subresource(
        self, request: web.BaseRequest, scope: RequestScope, info: RequestInfo, query: Query
    ) -> Reply:
        definition = scope.kind.definition
        handler = definition.subresources.get(scope.subresource)
        if handler is not None:
            if info.verb != "create":
                raise not_allowed()
            return await self._custom_subresource(request, scope, handler, query)
        if scope.kind.suffix == "core/pods" and scope.subresource in ACTIONS:
            if info.verb != "create":
                raise not_allowed()
            return await self._act(request, scope, query)
        if scope.kind.suffix == "core/pods" and scope.subresource == PROXY:
            if info.method != "GET":
                raise not_allowed()
            raw = request._message.path.partition("?")[2]
            return await proxied(self._ctx, scope, self.pods, f"{info.page}?{raw}" if raw else info.page)
        if scope.subresource == "scale" and definition.scale is not None:
            return await self._scale(request, scope, info, query)
        resource = definition.resource
        further = definition.written.get(scope.subresource)
        allowed = further or WRITTEN.get((resource.group, resource.plural, scope.subresource))
        if allowed is None:
            if scope.subresource != "status" or not definition.status:
                raise not_found(scope.kind, scope.name) if scope.kind.custom else no_such_resource()
            allowed = STATUS_VERBS
        if info.verb not in allowed:
            raise _not_written(scope.kind, info.verb)
        if info.verb == "get":
            return await self._shown(request, scope, await reading.get(self._ctx, scope, query), query)
        return await self._write(request, scope, info, query)

    async def _scale(self, request: web.BaseRequest, scope: RequestScope, info: RequestInfo, query: Query) -> Reply:
        """The replicas of an object: read, put and patched as a Scale."""
        kind, headers = scope.kind, request.headers
        if info.verb == "get":
            value = await reading.get(self._ctx, scope, query)
            shown = scaling.shown(kind, orjson.loads(value))
            return await self._shown(request, scope._replace(kind=scaling.scale_kind()), shown, query)
        if info.verb not in ("patch", "update"):
            raise _not_written(scope.kind, info.verb)
        body, content_type = await read_body(request), headers.get("Content-Type", "")
        options = write_options(query, headers.get("User-Agent", ""), kind="UpdateOptions")
        if info.verb == "patch":
            if content_type.startswith(patching.APPLY):
                options = options._replace(manager=query.get("fieldManager", ""))
            outcome = await scaling.patch(self._ctx, scope, body, content_type, options)
        else:
            outcome = await scaling.put(self._ctx, scope, body, content_type, options)
        wanted = negotiated(headers.get("Accept", ""), scaling.scale_kind())
        value = scaling.shown(kind, orjson.loads(outcome.body))
        warnings = tuple(outcome.warnings)
        now, pace = self._ctx.clock.now(), self._ctx.pace(scope)
        return await object_reply(wanted, scaling.scale_kind(), value, query, now, pace, warnings=warnings)

    async def _custom_subresource(
        self,
        request: web.BaseRequest,
        scope: RequestScope,
        handler: SubresourceHandler,
        query: Query,
    ) -> Reply:
        record = await read(self._ctx, scope)
        if record is None:
            raise not_found(scope.kind, scope.name)
        body = await read_body(request)
        content_type, expected = request.headers.get("Content-Type", ""), scope.kind.resource.gvk
        sent = sent_object(body, content_type, expected) if body else {}
        described = BODIES.get((scope.kind.resource.plural, scope.subresource))
        if described is not None:
            check_body(sent, described)
        obj = with_revision(scope.kind.decode(record.value), record)
        await self._judge(
            scope, sent, write_options(query, request.headers.get("User-Agent", ""), kind="CreateOptions")
        )
        context = write_context(scope, self._ctx.clock.now(), dry_run=False)
        return json_reply(await handler(obj, sent, context), code=201)

    async def _act(self, request: web.BaseRequest, scope: RequestScope, query: Query) -> Reply:
        """Executes an action on a pod: `eviction` or `binding`."""
        headers = request.headers
        options = write_options(query, headers.get("User-Agent", ""), kind="CreateOptions")
        expected = BODIES["pods", scope.subresource]
        sent = sent_object(await read_body(request), headers.get("Content-Type", ""), expected)
        _check_body_type(expected, sent)
        check_body(sent, expected)
        await self._judge(scope, sent, options)
        await ACTIONS[scope.subresource](self._ctx, scope, sent, options)
        return json_reply(DONE_STATUS, code=201)

    async def _bind(self, request: web.BaseRequest, scope: RequestScope, query: Query) -> Reply:
        """POST of a Binding to the collection `bindings`, which names its pod itself."""
        pods = await self._ctx.registry.find(scope.cluster, "", "v1", "pods")
        headers, body = request.headers, await read_body(request)
        sent = sent_object(body, headers.get("Content-Type", ""), scope.kind.resource.gvk)
        check_body(sent, scope.kind.resource.gvk)
        name = (sent.get("metadata") or {}).get("name")
        if pods is None or not isinstance(name, str) or not name:
            raise BadRequest("metadata.name: the name of the pod is required")
        options = write_options(query, headers.get("User-Agent", ""), kind="CreateOptions")
        await self._judge(scope._replace(name=name), sent, options)
        pod = RequestScope(scope.cluster, pods, scope.user, scope.namespace, name, "binding")
        await bind(self._ctx, pod, sent, options)
        return json_reply(DONE_STATUS, code=201)

    async def _judge(self, scope: RequestScope, sent: Object, options: WriteOptions) -> None:
        """Reviews the body of an action by admission."""
        review = await review_of(self._ctx, scope, "CREATE", options)
        if review is not None:
            await review.mutate(sent, None)
            await review.validate(sent, None)

    async def _list(self, request: web.BaseRequest, scope: RequestScope, query: Query) -> Reply:
        wanted = negotiated(request.headers.get("Accept", ""), scope.kind, listing=True)
        listing = await reading.collect(self._ctx, scope, query, joined=not wanted.transform)
        return await list_reply(wanted, scope.kind, listing, query, self._ctx.clock.now(), self._ctx.pace(scope))

    async def _delete_collection(
        self, request: web.BaseRequest, scope: RequestScope, query: Query, body: bytes
    ) -> Reply:
        options = delete_options(query, body, request.headers.get("Content-Type", ""))
        listing = await reading.collect(self._ctx, scope, query)
        for value in listing.values:
            metadata = orjson.loads(value)["metadata"]
            target = scope._replace(namespace=metadata.get("namespace", ""), name=metadata["name"])
            try:
                await deletion.delete(self._ctx, target, options)
            except NotFound:
                continue
        return Reply(reading.list_body(scope.kind, listing))

    async def _watch(self, request: web.BaseRequest, scope: RequestScope, query: Query) -> web.StreamResponse:
        wanted = negotiated(request.headers.get("Accept", ""), scope.kind, listing=True)
        options = await watching.watch_options(self._ctx, scope, query)
        encoder = event_encoder(wanted, scope.kind, self._lines, query, self._ctx.clock.now())
        response = web.StreamResponse(
            headers={"Content-Type": encoder.content_type, "Cache-Control": "no-cache, private"}
        )
        response.enable_chunked_encoding()
        await response.prepare(request)
        said = REMARKS.get()
        if said is not None and said.on_start is not None:
            said.on_start()
        connection = request.protocol
        assert isinstance(connection, Connection)
        opened: list[StoreWatch] = []

        def open_(watch: StoreWatch) -> None:
            opened.append(watch)
            self._watches.add(watch)

        connection.stream = asyncio.current_task()
        self._metrics.watches[scope.kind.resource.plural] += 1
        try:
            await watching.watch(self._ctx, scope, options, encoder, _sender(request), open_)
            await response.write_eof()
        finally:
            connection.stream = None
            self._metrics.watches[scope.kind.resource.plural] -= 1
            self._watches.difference_update(opened)
        return response

    async def _shown(self, request: web.BaseRequest, scope: RequestScope, value: bytes, query: Query) -> Reply:
        wanted = negotiated(request.headers.get("Accept", ""), scope.kind)
        return await object_reply(wanted, scope.kind, value, query, self._ctx.clock.now(), self._ctx.pace(scope))


def _is_at_home(kind: Kind, info: RequestInfo) -> bool:
    """Reports whether the kind's scope fits the path: a cluster-scoped kind has nothing below a namespace.

    Authorization has checked the namespace of the path, so the operation must happen there. Only a Namespace is
    authorized in its own namespace ("API Concepts", resource URIs).
    """
    if kind.resource.namespaced:
        # A list or watch by a field selector has a name that is not of the path.
        named = info.verb == "watch" and info.path.endswith(f"/{info.resource}/{info.name}")
        return bool(info.namespace) or not named
    return not info.namespace or (kind.suffix == NAMESPACES and not info.below)


def _check_body_type(expected: GroupVersionKind, sent: Object) -> None:
    given = sent.get("kind", expected.kind), sent.get("apiVersion", expected.api_version)
    if given != (expected.kind, expected.api_version):
        raise BadRequest(f"a {expected.kind} of {expected.api_version} is expected, not a {given[0]} of {given[1]}")


def _sent_object(kind: Kind, body: bytes, content_type: str, options: WriteOptions) -> tuple[Object, list[str]]:
    obj = sent_object(body, content_type, kind.resource.gvk)
    if kind.custom and not obj.get("kind"):
        raise kindless(body, kind.resource.kind)
    if options.validation == "Ignore" or media_type_of(content_type) not in _WITH_DUPLICATES:
        return obj, []
    return obj, [f'duplicate field "{path}"' for path in duplicate_fields(body, obj)]


def _sender(request: web.BaseRequest) -> watching.Send:
    """Writes chunks of a prepared answer, past aiohttp's writer, which costs a watch event as much as TLS does."""

    async def send(lines: bytes) -> None:
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the watcher has gone")
        transport.write(b"%x\r\n%b\r\n" % (len(lines), lines))
        if transport.get_write_buffer_size() < _UNSENT_LIMIT:
            return
        await taken(request)

    return send
