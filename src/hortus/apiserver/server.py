"""The embedded Kubernetes API server: its parts, their start and their stop.

One process and one port hold many logical clusters: `/` is the cluster `root`, `/clusters/<name>/` any other.
`handling` is the path of a request.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Sequence
from typing import Protocol

from hortus.apiserver.accepting import Acceptor, connections_within
from hortus.apiserver.admission import AuthorGuard, DynamicAdmission, ServiceResolver, WebhookClient
from hortus.apiserver.aggregation import Aggregation
from hortus.apiserver.audit import AuditLog, Auditor, read_policy
from hortus.apiserver.authn import json_web_keys, openid_configuration
from hortus.apiserver.authn.identity import Authenticator, UserInfo
from hortus.apiserver.authz import Authorizer
from hortus.apiserver.clusters import LogicalClusters
from hortus.apiserver.connection import Connection, Listener
from hortus.apiserver.crds import (
    CRD_GROUP,
    PLURAL,
    CustomKinds,
    DefinitionController,
    DefinitionStrategy,
    complete_definition,
    end_definition,
)
from hortus.apiserver.handling import Interceptor, RequestHandler
from hortus.apiserver.identities import CreationGuard
from hortus.apiserver.local import Local
from hortus.apiserver.namespaces import SERVER, NamespaceController, NamespaceStates
from hortus.apiserver.pods import PodNetwork
from hortus.apiserver.resources.context import Admission, OperationContext
from hortus.apiserver.resources.definition import ResourceDefinition
from hortus.apiserver.resources.failures import no_such_resource
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.settings import ApiServerSettings, AuditSettings
from hortus.apiserver.tenants import ROOT_CLUSTER
from hortus.apiserver.turns import FreeTurns, Turns
from hortus.kube.clock import Clock
from hortus.kube.objects import Object

_log = logging.getLogger("hortus.apiserver")


class BackgroundPart(Protocol):
    """A background part of the server, with a start and a stop."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class ApiServer:
    """`definitions` are served in every logical cluster; `extend` adds kinds to one. See `composition.open_server`."""

    def __init__(
        self,
        settings: ApiServerSettings,
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
        self.authorizer = authorizer
        self._tls = tls
        self._socket = listening
        self.port = int(listening.getsockname()[1])
        self.clusters = clusters
        self.registry = Registry(definitions, synced=storage.backend.sync)
        self.auditor = None if settings.audit is None else _auditor(settings.audit, clock)
        namespaces = NamespaceStates(storage)
        names = frozenset({settings.host, *settings.names})
        self.webhooks = WebhookClient(
            own_names=names, own_port=self.port, services=services, local=settings.local_webhooks
        )
        turns = FreeTurns() if settings.in_process else Turns()
        reviewer = DynamicAdmission(storage, self.registry, authorizer, self.webhooks, turns)
        judges = (*admission, AuthorGuard(storage, self.registry, authorizer))
        self.context = OperationContext(
            storage, self.registry, clock, namespaces, judges, CreationGuard(authorizer), reviewer, turns
        )
        _serve_custom_resources(self.context, self.webhooks)
        self.aggregation = Aggregation(self.context, clusters, local=settings.local_webhooks, alone=settings.in_process)
        self.collector = self.aggregation.collector
        self.namespaces = NamespaceController(self.context, self.aggregation.content)
        self.custom_resources = DefinitionController(self.context)
        self._parts = self._background()
        holders = (namespaces, self.webhooks, self.collector, self.namespaces, self.custom_resources, self.registry)
        self._forget = [reviewer.forget, self.aggregation.forget, *(holder.forget for holder in holders)]
        most = settings.limits.connections
        self._most = most if settings.in_process else connections_within(most)
        self._handler = self._request_handler(authenticator)
        self._listener: Listener | None = None
        self._acceptor: Acceptor | None = None

    def _request_handler(self, authenticator: Authenticator) -> RequestHandler:
        return RequestHandler(
            self.context,
            clusters=self.clusters,
            authenticator=authenticator,
            authorizer=self.authorizer,
            aggregation=self.aggregation,
            auditor=self.auditor,
            token_document=self._token_document,
            limits=self._settings.limits.within(self._most),
            compress=self._settings.compress,
        )

    def _background(self) -> list[BackgroundPart]:
        # The loops that delete ask other servers first, so these are known before the loops begin.
        parts: list[BackgroundPart] = [self.clusters, self.webhooks, self.aggregation, self.collector]
        parts += [self.namespaces, self.custom_resources]
        return parts if self.auditor is None else [*parts, self.auditor.log]

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

    def add_part(self, part: BackgroundPart) -> None:
        """Starts and stops `part` with the server. To be called before `start`."""
        self._parts.append(part)

    def intercept(self, interceptor: Interceptor) -> None:
        """Lets `interceptor` answer requests. To be called before `start`."""
        self._handler.interceptor = interceptor

    def reach_pods(self, network: PodNetwork) -> None:
        """Lets `network` answer for the pods of all logical clusters (`pods/proxy`)."""
        self._handler.reach_pods(network)

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
        self._listener = Listener(self._handler.handle, self._settings.limits, self.context.turns)
        if not self._settings.in_process:
            self._acceptor = Acceptor(self._socket, self._tls, self._listener, self._most)
            self._acceptor.open()

    def accept(self) -> Connection:
        """The server's end of a connection within this process, to be given a transport. To be called after `start`."""
        assert self._listener is not None, "a server accepts connections once it has started"
        return self._listener()

    async def stop(self) -> None:
        """Drains, stops listening, ends watches cleanly, lets requests in progress finish, closes the store."""
        if self._listener is not None and self._settings.drain:
            await self._listener.drain(self._settings.drain, self._handler.end_watches)
        if self._acceptor is not None:
            await self._acceptor.close()
        self._socket.close()
        await self._handler.end_watches()
        if self._listener is not None:
            await self._listener.end(self._settings.grace)
        for part in reversed(self._parts):
            await part.stop()
        await self.context.storage.backend.close()


def _auditor(settings: AuditSettings, clock: Clock) -> Auditor:
    log = AuditLog(settings.log, largest=settings.largest, kept=settings.kept)
    return Auditor(read_policy(settings.policy), log, clock)


def _serve_custom_resources(context: OperationContext, webhooks: WebhookClient) -> None:
    registry = context.registry
    CustomKinds(context.storage, registry, webhooks)
    registry.replace_strategy(
        CRD_GROUP,
        PLURAL,
        lambda inner: DefinitionStrategy(inner, registry),
        complete=complete_definition,
        end=end_definition,
    )
