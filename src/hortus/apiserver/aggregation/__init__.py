"""Aggregation: groups and versions that other servers serve behind this one, by their APIServices.

    request -> authentication -> authorization -> RemoteApis (is this version another server's?)
            -> Resolver (the address of its Service) -> RemoteServers (a connection with the front-proxy certificate)
            -> Proxy (streams both ways)

`GarbageCollector` and `NamespaceController` reach the objects of others through `RemoteContent`.
`AvailabilityController` keeps the condition of each APIService, `RemoteDocuments` what discovery and OpenAPI of this
server show of the others, `RegistrationController` the APIServices of groups that this server serves itself. The design
is kube-aggregator's; each logical cluster has APIServices, connections and a front-proxy authority of its own.
"""

from __future__ import annotations

from collections.abc import Collection

from aiohttp import web

from hortus.apiserver.aggregation.apiservices import RemoteApi, RemoteApis
from hortus.apiserver.aggregation.availability import AvailabilityController
from hortus.apiserver.aggregation.collecting import RemoteCollector
from hortus.apiserver.aggregation.content import RemoteContent
from hortus.apiserver.aggregation.documents import RemoteDocuments, RemoteRequests
from hortus.apiserver.aggregation.proxying import LONG_RUNNING, Proxy
from hortus.apiserver.aggregation.registering import RegistrationController
from hortus.apiserver.aggregation.resolving import Resolver
from hortus.apiserver.aggregation.servers import RemoteServers
from hortus.apiserver.aggregation.watching import RemoteWatches
from hortus.apiserver.authn.cluster_keys import ClusterKeyLookup
from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.gc import GarbageCollector
from hortus.apiserver.http import Reply, RequestInfo
from hortus.apiserver.registrations import API_GROUP
from hortus.apiserver.resources.context import OperationContext

__all__ = ["LONG_RUNNING", "Aggregation"]


class Aggregation:
    """`local` are the logical clusters besides root whose Services may lead to this machine.

    With `alone`, no other server is ever reached, and no APIService is written: APIServices are objects and no more. A
    copy of a fleet in memory has those of the original, and must not act on what they lead to.
    """

    def __init__(
        self, ctx: OperationContext, clusters: ClusterKeyLookup, *, local: Collection[str], alone: bool = False
    ) -> None:
        self._alone = alone
        self.apis = RemoteApis(ctx.storage, follows=not alone)
        self._resolver = Resolver(ctx.storage)
        self._servers = RemoteServers(clusters, local=local)
        requests = RemoteRequests(self._servers, self._resolver)
        self.documents = RemoteDocuments(self.apis, requests)
        self.content = RemoteContent(self.apis, self.documents, requests)
        self.collector = GarbageCollector(ctx, self.content)
        self._remote_collector = RemoteCollector(ctx, self.content, self.collector)
        found = self._remote_collector
        self._watches = RemoteWatches(self.content, requests, self.documents, found.seen, found.ended, ctx.clock)
        self.availability = AvailabilityController(ctx, self.apis, self._servers, self._resolver, self.documents)
        self.registration = RegistrationController(ctx)
        self._proxy = Proxy(self._servers, self._resolver)

    async def start(self) -> None:
        if self._alone:
            return
        await self.apis.start()
        await self._remote_collector.start()
        await self.availability.start()
        await self.registration.start()

    async def stop(self) -> None:
        await self.availability.stop()
        await self.registration.stop()
        await self._watches.stop()
        await self._remote_collector.stop()
        await self._proxy.stop()
        await self._servers.close()

    async def end_streams(self) -> None:
        """Ends every stream of another server."""
        await self._proxy.end()

    def forget(self, cluster: str) -> None:
        """Drops the state of a removed logical cluster."""
        self.apis.forget(cluster)
        self.documents.forget(cluster)
        self._remote_collector.forget(cluster)
        self._resolver.forget(cluster)
        self._servers.forget(cluster)

    def serving(self, info: RequestInfo) -> RemoteApi | None:
        """The version of another server that a request is for."""
        served = self.apis.of(info.cluster)
        if not served:
            return None
        group, version = info.group, info.version
        if not info.resource:
            parts = info.path.split("/")
            if len(parts) >= 4 and parts[1] == "apis":
                group, version = parts[2], parts[3]
            elif len(parts) >= 3 and parts[1] == "api":
                group, version = "", parts[2]
            else:
                return None
        # As in kube-apiserver, nobody else can serve the group by which others are found.
        return None if group == API_GROUP else served.get((group, version))

    def describing(self, info: RequestInfo) -> RemoteApi | None:
        """The version whose server has the document of a path below /openapi/v3."""
        served = self.apis.of(info.cluster)
        path = info.path.removeprefix("/openapi/v3/")
        if not served or path == info.path:
            return None
        return next((api for gv, api in served.items() if path in self.documents.described(info.cluster, gv)), None)

    async def pass_on(
        self, request: web.BaseRequest, info: RequestInfo, api: RemoteApi, user: UserInfo
    ) -> Reply | web.StreamResponse:
        """The answer of another server to a request that has been authorized."""
        return await self._proxy.pass_on(request, info, api, user)
