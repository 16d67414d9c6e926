"""The embedded Kubernetes API server: the path of a request through its parts.

    bytes -> path and query -> authentication -> authorization -> router -> operation -> store -> bytes

One process and one port hold many logical clusters: `/` is the cluster `root`, `/clusters/<name>/` any other. The hot
path is one handler on aiohttp's low-level server; there is no reflection, no middleware and no second decoding.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

from aiohttp import web
from aiohttp.hdrs import AUTHORIZATION

from hortus.apiserver.accepting import Acceptor, connections_within
from hortus.apiserver.admission import AuthorGuard, DynamicAdmission, ServiceResolver, WebhookClient
from hortus.apiserver.answers import Answer
from hortus.apiserver.audit import AuditLog, Auditor, read_policy
from hortus.apiserver.authn import json_web_keys, openid_configuration
from hortus.apiserver.authn.chain import ANONYMOUS
from hortus.apiserver.authn.identity import Authenticator, Credentials, UserInfo
from hortus.apiserver.authz import Attributes, Authorizer, denied, impersonated
from hortus.apiserver.clusters import LogicalClusters
from hortus.apiserver.connection import Connection, Listener
from hortus.apiserver.crds import (
    GROUP,
    PLURAL,
    CustomKinds,
    DefinitionController,
    DefinitionStrategy,
    complete_definition,
    end_definition,
)
from hortus.apiserver.documents import Documents
from hortus.apiserver.gc import GarbageCollector
from hortus.apiserver.http import Reply, RequestInfo, flag, parse_query, request_info, status_reply
from hortus.apiserver.http.queries import Query
from hortus.apiserver.identities import CreationGuard
from hortus.apiserver.limits import Bound
from hortus.apiserver.local import Local
from hortus.apiserver.metrics import RequestMetrics
from hortus.apiserver.namespaces import SERVER, NamespaceController, NamespaceStates
from hortus.apiserver.remarks import REMARKS
from hortus.apiserver.resources.context import Admission, Context
from hortus.apiserver.resources.definition import ResourceDefinition
from hortus.apiserver.resources.failures import no_such_resource
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.routing import Router
from hortus.apiserver.settings import AuditSettings, Settings
from hortus.apiserver.store.backend import ObjectTooLarge, StoreFailed
from hortus.apiserver.tenants import ROOT_CLUSTER, tenant_of
from hortus.apiserver.turns import Shares, Turns, metered
from hortus.kube.clock import Clock
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
from hortus.kube.objects import Object
from hortus.kube.selectors import FieldSelector

_log = logging.getLogger("hortus.apiserver")


class Part(Protocol):
    """A background part of the server, with a start and a stop."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


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
            _log.error("the store failed: %s", error)
            return ServiceUnavailable(f"the store failed: {error}", retry_after=_STORE_RETRY)
        case RecursionError():
            return BadRequest("the object provided is nested too deeply")
    _log.error("a request failed", exc_info=error)
    return InternalError(f"Internal error occurred: {type(error).__name__}")


class Interceptor(Protocol):
    """Runs between authorization and the execution of a request, to inject faults."""

    async def answer(
        self, request: web.BaseRequest, info: RequestInfo, serve: Callable[[], Awaitable[Reply | web.StreamResponse]]
    ) -> Reply | web.StreamResponse:
        """The answer of `serve`, or a replacement. Raises ApiError, ConnectionError."""


class ApiServer:
    """`definitions` are served in every logical cluster; `extend` adds kinds to one. See `composition.open_server`."""

    def __init__(
        self,
        settings: Settings,
        storage: Storage,
        definitions: Sequence[ResourceDefinition],
        authenticator: Authenticator,
        authorizer: Authorizer,
        *,
        tls: ssl.SSLContext,
        listening: socket.socket,
        clusters: LogicalClusters,
        admission: Sequence[Admission] = (),
        services: ServiceResolver | None = None,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._authenticator = authenticator
        self.authorizer = authorizer
        self._tls = tls
        self._socket = listening
        self.port = int(listening.getsockname()[1])
        self.clusters = clusters
        self.registry = Registry(definitions, synced=storage.backend.sync)
        namespaces = NamespaceStates(storage)
        names = frozenset({settings.host, *settings.names})
        self.webhooks = WebhookClient(own_names=names, own_port=self.port, services=services)
        turns = Turns()
        reviewer = DynamicAdmission(storage, self.registry, authorizer, self.webhooks, turns)
        judges = (*admission, AuthorGuard(storage, self.registry, authorizer))
        self.context = Context(
            storage, self.registry, clock, namespaces, judges, CreationGuard(authorizer), reviewer, turns
        )
        CustomKinds(storage, self.registry, self.webhooks)
        self.registry.replace_strategy(
            GROUP,
            PLURAL,
            lambda inner: DefinitionStrategy(inner, self.registry),
            complete=complete_definition,
            end=end_definition,
        )
        self.collector = GarbageCollector(self.context)
        self.namespaces = NamespaceController(self.context)
        self.custom_resources = DefinitionController(self.context)
        self.auditor = None if settings.audit is None else _auditor(settings.audit, clock)
        self._parts: list[Part] = [clusters, self.webhooks, self.collector, self.namespaces, self.custom_resources]
        if self.auditor is not None:
            self._parts.append(self.auditor.log)
        self._forget = [namespaces.forget, *(part.forget for part in (self.webhooks, self.collector, self.namespaces))]
        self._forget += [self.custom_resources.forget, self.registry.forget, reviewer.forget]
        self._metrics = RequestMetrics()
        self._shares = Shares(self.context.turns)
        self._documents = Documents(self.context, self._metrics, self._token_document)
        self._router = Router(self.context, self._documents, self._metrics)
        self._listener: Listener | None = None
        self._acceptor: Acceptor | None = None
        self._most = connections_within(settings.limits.connections)
        limits = settings.limits.within(self._most)
        reads, writes = Bound(limits.reads), Bound(limits.writes)
        self._bounds = {"get": reads, "list": reads, "head": reads, "watch": Bound(limits.watches)}
        self._bounds |= dict.fromkeys(("create", "update", "patch", "delete", "deletecollection"), writes)
        self.interceptor: Interceptor | None = None
        """To be set before `start`."""

    @property
    def url(self) -> str:
        return f"https://{self._settings.host}:{self.port}"

    def _token_document(self, cluster: str, path: str, address: str) -> Object:
        keys = self.clusters.keys(cluster)
        if keys is None:
            raise no_such_resource()
        if path.endswith("/jwks"):
            return dict(json_web_keys(keys))
        base = address if cluster == ROOT_CLUSTER else f"{address}/clusters/{cluster}"
        return dict(openid_configuration(cluster, base))

    def extend(self, cluster: str, definitions: Sequence[ResourceDefinition]) -> None:
        """Serves further kinds in one logical cluster. To be called before `start`."""
        self.registry.bind(cluster, definitions)

    def add_part(self, part: Part) -> None:
        """Starts and stops `part` with the server. To be called before `start`."""
        self._parts.append(part)

    def local(self, cluster: str, user: UserInfo = SERVER, *, manager: str = "hortus-apiserver") -> Local:
        """The API of a logical cluster for code of this process and loop, acting as `user`."""
        return Local(self.context, cluster, user, manager)

    def forget_cluster(self, cluster: str) -> None:
        """Drops the derived state of a removed logical cluster."""
        for forget in self._forget:
            forget(cluster)

    async def start(self) -> None:
        """Starts the parts, then serves on the port."""
        for part in self._parts:
            await part.start()
        self._listener = Listener(self._handle, self._settings.limits, self.context.turns)
        self._acceptor = Acceptor(self._socket, self._tls, self._listener, self._most)
        self._acceptor.open()

    async def stop(self) -> None:
        """Stops listening, ends watches cleanly, lets requests in progress finish, closes the store."""
        if self._acceptor is not None:
            await self._acceptor.close()
        self._socket.close()
        await self._router.end_watches()
        if self._listener is not None:
            await self._listener.end(self._settings.grace)
        for part in reversed(self._parts):
            await part.stop()
        await self.context.storage.backend.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        began = time.perf_counter()
        connection = request.protocol
        assert isinstance(connection, Connection)
        connection.began()
        info, cluster, bound = _UNPARSED, None, None
        if REMARKS.get() is not None:
            REMARKS.set(None)
        audited = None if self.auditor is None else self.auditor.begin(request)
        try:
            if request.version.major != 1:
                raise BadRequest("HTTP/1.0 or HTTP/1.1 is expected")
            raw_path, _, raw_query = request._message.path.partition("?")
            info = request_info(request.method, raw_path)
            query = parse_query(raw_query)
            if info.verb == "list":
                info = info._replace(
                    verb="watch" if flag(query, "watch") else "list", name=_selected_name(query) if query else ""
                )
            cluster = self.clusters.get(info.cluster)
            if cluster is None and (AUTHORIZATION in request.headers or connection.peer_certificate()):
                await self.context.storage.backend.sync()  # it may have been made a moment ago, through another server
                cluster = self.clusters.get(info.cluster)
            if cluster is not None:
                cluster.requests += 1
            user = await self._user(request, connection, info)
            if audited is not None:
                audited.received(info, user)
            if self.clusters.get(info.cluster) is None:
                info = info._replace(cluster=_NOWHERE)
            answering = self._answered(request, info, query, user)
            if info.resource or not self._documents.is_light(info.path):
                try:
                    bound = self._take(connection, info, user)
                    account = await self._shares.enter(tenant_of(info.cluster, user.username))
                except BaseException:
                    answering.close()
                    raise
                reply = await metered(answering, account)
            else:
                reply = await answering
        except ConnectionError:
            # The client has gone, so no answer is sent; this is no error of the server.
            if audited is not None:
                audited.done(info, _CLIENT_GONE if info.verb != "watch" else 200, None)
            return web.Response(status=_CLIENT_GONE)
        except asyncio.CancelledError:
            if audited is not None:
                audited.done(info, 200, None)
            raise
        except Exception as error:
            reply = status_reply(_refusal(error))
        finally:
            if bound is not None:
                bound.give(connection.holder)
            connection.done()
            if cluster is not None:
                cluster.request_done()
        if isinstance(reply, web.StreamResponse):
            code, response = reply.status, reply
        else:
            code, response = reply.code, Answer(request, reply, compress=self._settings.compress)
        if audited is not None:
            audited.done(info, code, reply if isinstance(reply, Reply) else None)
        asked = (info.verb, info.group, info.resource, info.subresource)
        self._metrics.done(*asked, code, time.perf_counter() - began, made_up=code >= 400 and not self._serves(info))
        return response

    def _serves(self, info: RequestInfo) -> bool:
        """Reports whether these names are served, so that they may become labels of metrics; subresources may be
        invented."""
        known = self.registry.known(info.cluster, (info.group, info.version, info.resource))
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
        bound = self._bounds.get(info.verb) or self._bounds["update"]
        holder = (info.cluster, user.username)
        bound.take(holder)
        connection.holder = holder
        return bound

    async def _user(self, request: web.BaseRequest, connection: Connection, info: RequestInfo) -> UserInfo:
        authorization = request.headers.get(AUTHORIZATION, "")
        bearer = authorization[7:].strip() if authorization[:7].lower() == "bearer " else ""
        credentials = Credentials(info.cluster, bearer, connection.peer_certificate())
        user = await self._authenticator.authenticate(credentials)
        if user is None:
            raise Unauthorized("Unauthorized")
        cluster = info.cluster
        if self.clusters.get(cluster) is None:
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
                return await impersonated(user, headers, cluster=cluster, authorizer=self.authorizer)
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
        decision = await self.authorizer.authorize(attributes)
        if not decision.allowed:
            raise denied(attributes, decision.reason)


def _auditor(settings: AuditSettings, clock: Clock) -> Auditor:
    log = AuditLog(settings.log, largest=settings.largest, kept=settings.kept)
    return Auditor(read_policy(settings.policy), log, clock)


_NOWHERE = "-"
"""The name used for every logical cluster that does not exist, for requests without a proven identity: no cluster can
have this name, so only the default policy applies, and the answers equal those of an existing cluster."""
_UNPARSED = RequestInfo(ROOT_CLUSTER, "", "", "")


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
