"""The embedded Kubernetes API server: composition and the way of a request.

    bytes -> path and query -> who asks (authn) -> may they (authz) -> router -> operation -> store -> bytes

One process and one port hold many logical clusters: `/` is the cluster `root`, `/clusters/<name>/` any other. The hot
path is one handler on aiohttp's low-level server; nothing is looked up by reflection, wrapped in middlewares or
decoded twice.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Mapping, Sequence
from uuid import uuid4

from aiohttp import web

from hortus.apiserver.authn.identity import Authenticator, Credentials, UserInfo
from hortus.apiserver.authz.attributes import Attributes, Authorizer
from hortus.apiserver.connection import IDLE_FOR, LONGEST_HEADER_LINE, Connection, Listener
from hortus.apiserver.discovery import Discovery
from hortus.apiserver.http import Reply, RequestInfo, flag, parse_query, request_info, status_reply
from hortus.apiserver.http.paths import ROOT_CLUSTER
from hortus.apiserver.http.queries import Query
from hortus.apiserver.http.replies import compressed, warning_header
from hortus.apiserver.metrics import RequestMetrics
from hortus.apiserver.namespaces import NamespaceStates, make_initial_namespaces
from hortus.apiserver.openapi import OpenApi
from hortus.apiserver.resources.context import Admission, Context
from hortus.apiserver.resources.definition import ResourceDefinition
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.routing import Router
from hortus.apiserver.settings import Settings
from hortus.apiserver.store.backend import Backend, StoreFailed
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.errors import ApiError, BadRequest, Forbidden, InternalError, Unauthorized

_ANONYMOUS = UserInfo(username="system:anonymous", groups=("system:unauthenticated",))
_log = logging.getLogger("hortus.apiserver")


class ApiServer:
    """`definitions` are served in every logical cluster, `extensions` in the clusters they are listed under."""

    def __init__(
        self,
        settings: Settings,
        backend: Backend,
        definitions: Sequence[ResourceDefinition],
        authenticator: Authenticator,
        authorizer: Authorizer,
        *,
        tls: ssl.SSLContext,
        extensions: Mapping[str, Sequence[ResourceDefinition]] | None = None,
        admission: Sequence[Admission] = (),
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._backend = backend
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._tls = tls
        storage = Storage(backend)
        self.registry = Registry(definitions, extensions)
        self._namespaces = NamespaceStates(storage)
        self.context = Context(storage, self.registry, clock or SystemClock(), self._namespaces, admission)
        self._metrics = RequestMetrics()
        self._router = Router(self.context, Discovery(self.registry), OpenApi(self.registry), self._metrics)
        self._listener: Listener | None = None
        self._sockets: asyncio.Server | None = None
        self._stopping = False

    @property
    def port(self) -> int:
        """The TCP port that is listened on; only between start and stop."""
        assert self._sockets is not None, "the server is not started"
        return int(self._sockets.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"https://{self._settings.host}:{self.port}"

    async def start(self) -> None:
        """Open the store and listen. Raises StoreFailed, OSError (the port is taken)."""
        await self._backend.start()
        if self._settings.namespaces:
            await self.prepare_cluster(ROOT_CLUSTER)
        loop = asyncio.get_running_loop()
        self._listener = Listener(
            self._handle,
            access_log=None,
            keepalive_timeout=IDLE_FOR,
            max_line_size=LONGEST_HEADER_LINE,
            max_field_size=LONGEST_HEADER_LINE,
            lingering_time=1.0,
        )
        self._sockets = await loop.create_server(
            self._listener,
            self._settings.host,
            self._settings.port,
            ssl=self._tls,
            backlog=1024,
            ssl_handshake_timeout=10.0,
        )

    async def prepare_cluster(self, cluster: str) -> None:
        """Make the namespaces every cluster has, where they are missing."""
        await make_initial_namespaces(self.context, cluster)

    async def stop(self) -> None:
        """Stop listening, end watches cleanly, let requests in progress finish, close the store."""
        self._stopping = True
        if self._sockets is not None:
            self._sockets.close()
        await self._router.end_watches()
        if self._listener is not None:
            self._listener.pre_shutdown()
            await self._listener.shutdown(self._settings.grace)
        await self._backend.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        began = time.perf_counter()
        connection = request.protocol
        assert isinstance(connection, Connection)
        if connection.timer is not None:
            connection.began()
        info = _UNPARSED
        try:
            raw_path, _, raw_query = request._message.path.partition("?")
            info = request_info(request.method, raw_path)
            query = parse_query(raw_query)
            if info.verb == "list" and flag(query, "watch"):
                info = info._replace(verb="watch")
            user = await self._user(request, connection, info)
            await self._check_allowed(info, query, user)
            reply = await self._router.answer(request, info, query, user)
        except ApiError as error:
            reply = status_reply(error)
        except StoreFailed as error:
            _log.error("the store cannot write", exc_info=error)
            reply = status_reply(InternalError(f"the store cannot write: {error}"))
        except RecursionError:
            reply = status_reply(BadRequest("the object provided is nested too deeply"))
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            _log.exception("a request failed")
            reply = status_reply(InternalError(f"Internal error occurred: {type(error).__name__}"))
        if isinstance(reply, web.StreamResponse):
            code, response = reply.status, reply
        else:
            code, response = reply.code, _response(request, reply)
        self._metrics.done(info.verb, info.group, info.resource, info.subresource, code, time.perf_counter() - began)
        return response

    async def _user(self, request: web.BaseRequest, connection: Connection, info: RequestInfo) -> UserInfo:
        authorization = request.headers.get("Authorization", "")
        bearer = authorization[7:].strip() if authorization[:7].lower() == "bearer " else ""
        credentials = Credentials(info.cluster, bearer, connection.peer_certificate())
        user = await self._authenticator.authenticate(credentials)
        if user is not None:
            return user
        if authorization or not self._settings.anonymous:
            raise Unauthorized("Unauthorized")
        return _ANONYMOUS

    async def _check_allowed(self, info: RequestInfo, query: Query, user: UserInfo) -> None:
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
            raise refused(attributes, decision.reason)


_UNPARSED = RequestInfo(ROOT_CLUSTER, "", "", "")


def refused(attributes: Attributes, reason: str) -> Forbidden:
    """403 in kube-apiserver's words."""
    user, path = attributes.user.username, attributes.path
    if path:
        text = f'forbidden: User "{user}" cannot {attributes.verb} path "{path}"'
        return Forbidden(text + (f": {reason}" if reason else ""), details={})
    full = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    group_resource = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    name = f' "{attributes.name}"' if attributes.name else ""
    text = (
        f'{group_resource}{name} is forbidden: User "{user}" cannot {attributes.verb} resource "{full}" '
        f'in API group "{attributes.group}" {where}'
    )
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    return Forbidden(
        text + (f": {reason}" if reason else ""), details={key: value for key, value in details.items() if value}
    )


def _response(request: web.BaseRequest, reply: Reply) -> web.Response:
    body = reply.body
    response = web.Response(body=body, status=reply.code)
    headers = response.headers
    headers["Content-Type"] = reply.content_type
    headers["Cache-Control"] = "no-cache, private"
    headers["Audit-Id"] = request.headers.get("Audit-Id") or str(uuid4())
    for warning in reply.warnings:
        headers.add("Warning", warning_header(warning))
    if reply.headers:
        headers.update(reply.headers)
    packed = compressed(body, request.headers.get("Accept-Encoding", ""))
    if packed is not None:
        response.body = packed
        headers["Content-Encoding"] = "gzip"
    return response
