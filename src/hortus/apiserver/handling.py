"""The path of a request through the server.

    bytes -> path and query -> authentication -> authorization -> router -> operation -> store -> bytes

One handler on aiohttp's low-level server: there is no reflection, no middleware and no second decoding. Every request,
whatever its end, is counted, recorded by the audit log and released from the limits.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from aiohttp import web
from aiohttp.hdrs import AUTHORIZATION

from hortus.apiserver.aggregation import LONG_RUNNING, Aggregation
from hortus.apiserver.answers import ReplyResponse
from hortus.apiserver.audit import Auditor
from hortus.apiserver.audit.recording import RequestRecord
from hortus.apiserver.authn.chain import ANONYMOUS
from hortus.apiserver.authn.identity import Authenticator, RequestCredentials, UserInfo
from hortus.apiserver.authz import Attributes, Authorizer, denied, impersonated
from hortus.apiserver.clusters import LogicalClusters
from hortus.apiserver.clusters.registry import LogicalCluster
from hortus.apiserver.connection import Connection
from hortus.apiserver.documents import Documents, TokenDocument
from hortus.apiserver.http import Reply, RequestInfo, flag, parse_query, request_info, status_reply
from hortus.apiserver.http.queries import Query
from hortus.apiserver.limits import Bound, ServerLimits
from hortus.apiserver.metrics import ServerMetrics
from hortus.apiserver.pods import PodNetwork
from hortus.apiserver.remarks import REMARKS
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.routing import Router
from hortus.apiserver.store.backend import ObjectTooLarge, StoreFailed
from hortus.apiserver.tenants import ROOT_CLUSTER, tenant_of
from hortus.apiserver.turns import Shares, metered
from hortus.kube.errors import (
    ApiError,
    BadRequest,
    InternalError,
    NotFound,
    RequestEntityTooLarge,
    ServiceUnavailable,
    Unauthorized,
)
from hortus.kube.naming import path_segment
from hortus.kube.selectors import FieldSelector

_log = logging.getLogger("hortus.apiserver")

_STORE_RETRY = 1.0
"""Seconds after which clients are asked to retry when the store failed."""
_CLIENT_GONE = 499
"""The code of a request whose client has gone, as in nginx; it is never sent."""


def _refusal(error: Exception) -> ApiError:
    """The error that a client gets for an exception; an exception that is not the client's fault is logged, too."""
    match error:
        case ApiError():
            return error
        case ObjectTooLarge():
            return RequestEntityTooLarge(str(error))
        case StoreFailed():
            _log.error("the store failed", extra={"error": str(error)})
            return ServiceUnavailable(f"the store failed: {error}", retry_after=_STORE_RETRY)
        case RecursionError():
            return BadRequest("the object provided is nested too deeply")
    _log.error("a request failed", exc_info=error)
    return InternalError(f"Internal error occurred: {type(error).__name__}")


_NOWHERE = "-"
"""The name used for every logical cluster that does not exist, for requests without a proven identity: no cluster can
have this name, so only the default policy applies, and the answers equal those of an existing cluster."""
_UNPARSED = RequestInfo(ROOT_CLUSTER, "", "", "")


class Interceptor(Protocol):
    """Runs between authorization and the execution of a request, to inject faults."""

    async def answer(
        self, request: web.BaseRequest, info: RequestInfo, serve: Callable[[], Awaitable[Reply | web.StreamResponse]]
    ) -> Reply | web.StreamResponse:
        """The answer of `serve`, or a replacement. Raises ApiError, ConnectionError."""


class _Progress:
    """The attributes of a request as far as they are known, and the places that it holds."""

    __slots__ = ("bound", "cluster", "info")

    def __init__(self) -> None:
        self.info = _UNPARSED
        self.cluster: LogicalCluster | None = None
        self.bound: Bound | None = None

    def release(self, connection: Connection) -> None:
        if self.bound is not None:
            self.bound.give(connection.holder)
        connection.done()
        if self.cluster is not None:
            self.cluster.request_done()


class RequestHandler:
    """Answers the requests of all connections; `handle` is called by the listener."""

    def __init__(
        self,
        context: OperationContext,
        *,
        clusters: LogicalClusters,
        authenticator: Authenticator,
        authorizer: Authorizer,
        aggregation: Aggregation,
        auditor: Auditor | None,
        token_document: TokenDocument,
        limits: ServerLimits,
        compress: bool,
    ) -> None:
        self._context = context
        self._metrics = ServerMetrics()
        self._documents = Documents(context, self._metrics, token_document, aggregation)
        self._router = Router(context, self._documents, self._metrics, aggregation)
        self._clusters = clusters
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._auditor = auditor
        self._compress = compress
        self._shares = Shares(context.turns)
        reads, writes = Bound(limits.reads), Bound(limits.writes)
        self._bounds = {"get": reads, "list": reads, "head": reads, "watch": Bound(limits.watches)}
        self._bounds |= dict.fromkeys(("create", "update", "patch", "delete", "deletecollection"), writes)
        self.interceptor: Interceptor | None = None

    def reach_pods(self, network: PodNetwork) -> None:
        """Lets `network` answer for pods."""
        self._router.pods = network

    async def end_watches(self) -> None:
        """Ends every open watch as if its time were over."""
        await self._router.end_watches()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        began = time.perf_counter()
        connection = request.protocol
        assert isinstance(connection, Connection)
        connection.began()
        if REMARKS.get() is not None:
            REMARKS.set(None)
        audited = None if self._auditor is None else self._auditor.begin(request)
        progress = _Progress()
        try:
            reply = await self._replied(request, connection, progress, audited)
        except ConnectionError:
            # The client has gone, so no answer is sent; this is no error of the server.
            if audited is not None:
                audited.done(progress.info, _CLIENT_GONE if progress.info.verb != "watch" else 200, None)
            return web.Response(status=_CLIENT_GONE)
        except asyncio.CancelledError:
            if audited is not None:
                audited.done(progress.info, 200, None)
            raise
        except Exception as error:
            reply = status_reply(_refusal(error))
        finally:
            progress.release(connection)
        return self._finished(request, progress.info, reply, audited, began)

    async def _replied(
        self, request: web.BaseRequest, connection: Connection, progress: _Progress, audited: RequestRecord | None
    ) -> Reply | web.StreamResponse:
        progress.info, query = _parsed(request)
        progress.cluster = await self._cluster_of(request, connection, progress.info.cluster)
        if progress.cluster is not None:
            progress.cluster.requests += 1
        user = await self._user(request, connection, progress.info)
        if audited is not None:
            audited.received(progress.info, user)
        if self._clusters.get(progress.info.cluster) is None:
            progress.info = progress.info._replace(cluster=_NOWHERE)
        info = progress.info
        answering = self._answered(request, info, query, user)
        if not info.resource and self._documents.is_light(info.path):
            return await answering
        try:
            progress.bound = self._take(connection, info, user)
            account = await self._shares.enter(tenant_of(info.cluster, user.username))
        except BaseException:
            answering.close()
            raise
        return await metered(answering, account)

    async def _cluster_of(self, request: web.BaseRequest, connection: Connection, name: str) -> LogicalCluster | None:
        cluster = self._clusters.get(name)
        if cluster is None and (AUTHORIZATION in request.headers or connection.peer_certificate()):
            await self._context.storage.backend.sync()  # another server may have made it a moment ago
            cluster = self._clusters.get(name)
        return cluster

    def _finished(
        self,
        request: web.BaseRequest,
        info: RequestInfo,
        reply: Reply | web.StreamResponse,
        audited: RequestRecord | None,
        began: float,
    ) -> web.StreamResponse:
        if isinstance(reply, web.StreamResponse):
            code, response = reply.status, reply
        else:
            code, response = reply.code, ReplyResponse(request, reply, compress=self._compress)
        if audited is not None:
            audited.done(info, code, reply if isinstance(reply, Reply) else None)
        asked = (info.verb, info.group, info.resource, info.subresource)
        self._metrics.done(*asked, code, time.perf_counter() - began, made_up=code >= 400 and not self._serves(info))
        return response

    def _serves(self, info: RequestInfo) -> bool:
        """Reports whether these names are served, so that they may become labels of metrics; subresources may be
        invented."""
        known = self._context.registry.known(info.cluster, (info.group, info.version, info.resource))
        return known is not None and not info.subresource

    async def _answered(
        self, request: web.BaseRequest, info: RequestInfo, query: Query, user: UserInfo
    ) -> Reply | web.StreamResponse:
        await self._check_allowed(info, user)
        if self.interceptor is None:
            return await self._router.answer(request, info, query, user)
        serve = partial(self._router.answer, request, info, query, user)
        return await self.interceptor.answer(request, info, serve)

    def _take(self, connection: Connection, info: RequestInfo, user: UserInfo) -> Bound:
        """Takes a place among the requests in progress. Raises TooManyRequests."""
        verb = "watch" if info.subresource and info.subresource.partition("/")[0] in LONG_RUNNING else info.verb
        bound = self._bounds.get(verb) or self._bounds["update"]
        holder = (info.cluster, user.username)
        bound.take(holder)
        connection.holder = holder
        return bound

    async def _user(self, request: web.BaseRequest, connection: Connection, info: RequestInfo) -> UserInfo:
        authorization = request.headers.get(AUTHORIZATION, "")
        bearer = authorization[7:].strip() if authorization[:7].lower() == "bearer " else ""
        credentials = RequestCredentials(info.cluster, bearer, connection.peer_certificate())
        user = await self._authenticator.authenticate(credentials)
        if user is None:
            raise Unauthorized("Unauthorized")
        cluster = info.cluster
        if self._clusters.get(cluster) is None:
            # Refused before anything is derived from a name that a client can invent.
            if user != ANONYMOUS:
                raise NotFound(f'logical cluster "{cluster}" not found')
            cluster = _NOWHERE
        for name, _ in request.raw_headers:
            if name[:12].lower() == b"impersonate-":
                headers = request.headers.items()
                said = REMARKS.get()
                if said is not None:
                    said.impersonator = user
                return await impersonated(user, headers, cluster=cluster, authorizer=self._authorizer)
        return user

    async def _check_allowed(self, info: RequestInfo, user: UserInfo) -> None:
        if info.resource:
            attributes = Attributes(
                info.cluster,
                user,
                info.verb,
                info.group,
                info.version,
                info.resource,
                info.subresource,
                info.namespace,
                info.name,
            )
        else:
            attributes = Attributes(info.cluster, user, info.verb, path=info.path)
        decision = await self._authorizer.authorize(attributes)
        if not decision.allowed:
            raise denied(attributes, decision.reason)


def _parsed(request: web.BaseRequest) -> tuple[RequestInfo, Query]:
    """The request by its path, method and query. Raises BadRequest."""
    if request.version.major != 1:
        raise BadRequest("HTTP/1.0 or HTTP/1.1 is expected")
    raw_path, _, raw_query = request._message.path.partition("?")
    info = request_info(request.method, raw_path)
    query = parse_query(raw_query)
    if info.verb == "list":
        verb = "watch" if flag(query, "watch") else "list"
        info = info._replace(verb=verb, name=_selected_name(query) if query else "")
    return info, query


def _selected_name(query: Query) -> str:
    """The one name that the field selector of a list or watch selects, if it does.

    A rule with that resourceName suffices only then. Deletion of collections, and watches by the deprecated form of
    path, take permission for all names, as in kube-apiserver (k8s.io/apiserver, pkg/endpoints/request).
    """
    selector = query.get("fieldSelector", "")
    if "metadata.name" not in selector:
        return ""
    try:
        name = FieldSelector.parse(selector).required("metadata.name") or ""
    except ValueError:
        return ""
    return "" if path_segment(name) else name
