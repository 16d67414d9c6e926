"""The fork itself: one API server in memory for the management cluster, the garden and all members.

It is the network of its loop: whatever address a client of a controller calls, the call arrives here, at the logical
cluster that stands for that address. Kubeconfigs keep what they say; the credentials in them are used for nothing but
the reads of the live cluster they lead to.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import aiohttp
import msgspec
import orjson

from hortus.apiserver import ApiServer, ApiServerSettings, ServerLimits, open_server
from hortus.apiserver.authn import UserInfo
from hortus.apiserver.authn.static_tokens import EVERY_CLUSTER
from hortus.apiserver.store import MemoryBackend
from hortus.kube import Access, Client
from hortus.kube.errors import AlreadyExists, ConnectionFailed, KubeError, ServiceUnavailable
from hortus.kube.kubeconfig import KubeconfigError, Trust, from_untrusted, through_proxy
from hortus.kube.objects import Object
from hortus.kube.selectors import LabelSelector
from hortus.kube.tokens import claims_of
from hortus.simulation.faults import Faults
from hortus.simulation.fork.counting import RequestCounts
from hortus.simulation.fork.live import CENTRAL, LiveCluster, LiveClusters, LiveReadFailed, allowing
from hortus.simulation.fork.naming import FOREIGN, GARDEN, NOWHERE, ForkNames
from hortus.simulation.fork.pipes import MemoryConnector
from hortus.simulation.fork.store import UNREAD, Filling, ReadThrough
from hortus.simulation.fork.time import VirtualClock, VirtualLoop
from hortus.simulation.garden.admission import ShootAdmission
from hortus.simulation.garden.definitions import definitions
from hortus.simulation.garden.hibernation import Hibernation
from hortus.simulation.garden.issuing import ClusterIssuer
from hortus.simulation.garden.kinds import DECISIVE, LOGICAL_CLUSTERS, SHOOTS
from hortus.simulation.garden.kubeconfigs import Issued, Kubeconfigs
from hortus.simulation.settings import GardenSettings

_SERVER: Final = re.compile(rb"server:\s*[\"']?(https?://[^\s\"']+)")
_SECRETS: Final = "root/core/secrets"
_SERVED_WITHOUT: Final = ("admissionregistration.k8s.io/", "rbac.authorization.k8s.io/")
"""Kinds that the server itself reads with requests for others: what may not be listed of them counts as absent."""
_LOGICAL: Final = f"{LOGICAL_CLUSTERS.group}/{LOGICAL_CLUSTERS.plural}"
_BASE: Final = "http://fork"
_UNLIMITED: Final = ServerLimits(
    connections=1 << 30,
    reads=1 << 30,
    writes=1 << 30,
    watches=1 << 30,
    bodies=1 << 40,
    answers=1 << 40,
    stalled=1e9,
    first_request=1e9,
    idle=1e9,
)
_ACCOUNT: Final = "system:serviceaccount:"
_WATCH_SECONDS: Final = 24 * 3600
"""Seconds of one stream of a watch: the longest that the server grants, so that days cost few requests."""
_STREAM_TIME: Final = re.compile(r"timeoutSeconds=\d+")


class ForkSettings(msgspec.Struct, frozen=True, kw_only=True):
    management: Access
    garden: Access | None = None
    simulation: GardenSettings = GardenSettings()
    trust: Trust = Trust()
    """The features of kubeconfigs that the controllers accept."""
    kubeconfigs: str = ""
    """Label selector of the Secrets whose kubeconfigs are tried first to read a member."""


class Fork:
    """A running fork; made by `Fork.opened` on a virtual loop."""

    def __init__(self, settings: ForkSettings, live: LiveClusters, loop: VirtualLoop, clock: VirtualClock) -> None:
        self.settings = settings
        self.live = live
        self.loop = loop
        self.clock = clock
        self.store = ReadThrough(MemoryBackend(clock=clock))
        self.counts = RequestCounts(clock)
        self._token = secrets.token_urlsafe(24)
        garden = settings.garden.server if settings.garden is not None else ""
        self.names = ForkNames(settings.management.server, garden)
        self.server: ApiServer
        self._made: set[str] = set()
        self.members: dict[str, str] = {}
        """By the name of a cluster, that of the Secret with its kubeconfig, without what says that it is one."""
        self._kubeconfigs: dict[str, bytes] | None = None
        loop.network = self

    @classmethod
    @asynccontextmanager
    async def opened(cls, settings: ForkSettings, live: LiveClusters, clock: VirtualClock) -> AsyncIterator[Fork]:
        """The fork, serving. To be entered on the virtual loop of `clock`. Raises LiveReadFailed."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop), "a fork runs on virtual time"
        fork = cls(settings, live, loop, clock)
        live.add("root", LiveCluster(through_proxy(settings.management), CENTRAL))
        if settings.garden is not None:
            live.add(GARDEN, LiveCluster(through_proxy(settings.garden), CENTRAL))
        await fork._open()
        try:
            try:
                await fork._serve()
                await fork._begin()
            except ServiceUnavailable as error:
                refused = live.forbidden("root")
                fix = f"; {allowing(refused)}" if refused else ""
                raise LiveReadFailed(f"the management cluster cannot be planned for: {error.message}{fix}") from None
            yield fork
        finally:
            loop.network = None
            await fork.server.stop()

    async def _open(self) -> None:
        simulation, clock = self.settings.simulation, self.clock
        admission = ShootAdmission(GARDEN, simulation, clock)
        everybody = UserInfo("hortus-plan", groups=("system:masters",))
        self.server = server = await open_server(
            ApiServerSettings(in_process=True, event_ttl=0.0, limits=_UNLIMITED, compress=False),
            self.store,
            tokens={(EVERY_CLUSTER, self._token): everybody},
            admission=[admission],
            clock=clock,
        )
        admission.read_from(server.context.storage)
        issuer, faults = _LiveIssuer(ClusterIssuer(server.clusters), self), Faults(simulation.faults)
        kubeconfigs = Kubeconfigs(issuer, _allowed, faults, simulation, clock)
        server.extend(GARDEN, definitions(kubeconfigs.handlers(), mutate=admission.mutate))
        self.store.fill = self._fill

    async def _serve(self) -> None:
        server = self.server
        hibernation = Hibernation(server, GARDEN, self.counts)
        server.intercept(hibernation)
        await server.start()
        await self._ensure_cluster(GARDEN)
        await hibernation.start()

    async def _begin(self) -> None:
        """Reads the management cluster, all kinds at once, and the garden. Raises LiveReadFailed."""
        registry = self.server.context.registry
        await registry.load("root")
        suffixes = sorted({kind.suffix for kind in registry.kinds("root") if "list" in kind.definition.verbs} - UNREAD)
        await asyncio.gather(*(self._ensure(f"root/{suffix}") for suffix in suffixes))
        if self.settings.garden is not None:
            garden = [f"{GARDEN}/{one.group}/{one.plural}" for one in DECISIVE]
            await asyncio.gather(*(self._ensure(bucket) for bucket in garden))
            for shoot in await self.server.local(GARDEN).list(SHOOTS):
                self.names.take(shoot)

    async def _ensure(self, bucket: str) -> None:
        with suppress(KubeError):  # what cannot be read is unknown, and reported as such
            await self.store.ensure(bucket)

    async def _fill(self, cluster: str, suffix: str) -> Filling | None:
        registry = self.server.context.registry
        if cluster.startswith("_") or (cluster == "root" and suffix == _LOGICAL and not self.is_embedded):
            return None
        if not self._is_live(cluster):
            return None
        kind = registry.by_suffix(cluster, suffix)
        if kind is None:
            await registry.load(cluster)
            kind = registry.by_suffix(cluster, suffix)
        if kind is None or "list" not in kind.definition.verbs:
            return None
        try:
            found = await self.live.list(cluster, kind.resource)
        except LiveReadFailed:
            if suffix.startswith(_SERVED_WITHOUT) and not self.live.is_silent(cluster):
                return None
            raise
        return Filling(kind, found.objects)

    @property
    def is_embedded(self) -> bool:
        """True where garden and members are behind the management cluster's own server, as in `hortus up`."""
        garden = self.settings.garden
        return garden is not None and garden.server.startswith(f"{self.settings.management.server.rstrip('/')}/")

    async def leave_out(self, bucket: str, names: Iterable[str]) -> None:
        """Take objects out as if they had not been there, before anything runs in the fork."""
        await self.store.leave_out(bucket, names)
        self._kubeconfigs = None
        self.members.clear()

    def kubeconfigs(self) -> Mapping[str, bytes]:
        """The first kubeconfig of each cluster among the Secrets as they were read, by the name of the cluster."""
        if self._kubeconfigs is None:
            if _SECRETS not in self.store.initial:
                return {}
            self._kubeconfigs = dict(self._found_kubeconfigs())
        return self._kubeconfigs

    def _is_live(self, cluster: str) -> bool:
        if cluster in self.live:
            return True
        document = self.kubeconfigs().get(cluster)
        if document is None:
            return False
        try:
            access = from_untrusted(document, trust=self.settings.trust, origin=f"kubeconfig of {cluster}").access()
        except (KubeconfigError, ValueError) as error:
            raise LiveReadFailed(f"cluster {cluster} could not be read: {error}") from None
        self.live.add(cluster, LiveCluster(access))
        return True

    def _found_kubeconfigs(self) -> Iterator[tuple[str, bytes]]:
        """The kubeconfigs among the Secrets as they were read: an administrator's before one with less permissions."""
        selector = LabelSelector.parse(self.settings.kubeconfigs)
        stored = [orjson.loads(value) for value in self.store.initial[_SECRETS].values()]
        stored.sort(key=lambda one: not selector.matches(one["metadata"].get("labels") or {}))
        found: dict[str, bytes] = {}
        for secret in stored:
            for text in (secret.get("data") or {}).values():
                try:
                    document = base64.b64decode(text, validate=True)
                except (binascii.Error, ValueError):
                    continue
                if (server := _SERVER.search(document)) is not None:
                    name, title = self.names.of(server[1].decode()), secret["metadata"]["name"]
                    found.setdefault(name, document)
                    self.members.setdefault(name, title.removeprefix("kubeconfig-").removesuffix("-kubeconfig"))
        return iter(found.items())

    # The network of the loop.

    def headers(self, access: Access) -> Mapping[str, str]:
        """Administrator for everybody but ServiceAccounts, which are tried for what they may not do as well."""
        headers = {"Authorization": f"Bearer {self._token}"}
        token = access.credentials.token
        account = claims_of(token).sub if token is not None else ""
        return {**headers, "Impersonate-User": account} if account.startswith(_ACCOUNT) else headers

    def connector(self) -> aiohttp.BaseConnector:
        return MemoryConnector(self.server.accept)

    async def url(self, access: Access, target: str, *, stream: bool) -> str:
        """See `hortus.kube.network.Network`. Raises ConnectionFailed."""
        name = self.names.of(access.server)
        if name != "root" and self.server.clusters.get(name) is None:
            is_gone = self.is_embedded and not name.startswith(FOREIGN)
            if name in self._made or is_gone or not self._is_live(name):
                raise ConnectionFailed(access.server, "there is no such cluster in the plan", "")
            await self._ensure_cluster(name)
            await self._ensure(f"{name}/core/namespaces")  # finds out whether it answers
        if self.live.is_silent(name):
            raise ConnectionFailed(access.server, "it could not be read for the plan", "")
        if stream:
            # Bookmarks would wake every watch each minute of days that pass without an event.
            target = _STREAM_TIME.sub(f"timeoutSeconds={_WATCH_SECONDS}", target)
            if "sendInitialEvents" not in target:
                target = target.replace("allowWatchBookmarks=true", "allowWatchBookmarks=false")
        return f"{_BASE}{target}" if name == "root" else f"{_BASE}/clusters/{name}{target}"

    async def _ensure_cluster(self, name: str) -> None:
        self._made.add(name)
        if self.server.clusters.get(name) is not None:
            return
        cluster: Object = {
            "apiVersion": LOGICAL_CLUSTERS.api_version,
            "kind": LOGICAL_CLUSTERS.kind,
            "metadata": {"name": name},
        }
        with suppress(AlreadyExists):
            await self.server.local("root").create(LOGICAL_CLUSTERS, cluster)

    def access(self, cluster: str = "root") -> Access:
        """A cluster of the fork, for clients on its loop."""
        if cluster == "root":
            return _without_credentials(self.settings.management)
        if cluster == GARDEN and self.settings.garden is not None:
            return _without_credentials(self.settings.garden)
        return Access(server=f"{NOWHERE}/clusters/{cluster}")

    def client(self, cluster: str = "root", **options: Any) -> Client:
        return Client(self.access(cluster), **options)


class _LiveIssuer:
    """Issues kubeconfigs with the authority of the live cluster: what follows from it is no change."""

    def __init__(self, inner: ClusterIssuer, fork: Fork) -> None:
        self._inner = inner
        self._fork = fork

    async def issue(self, cluster: str, *, username: str, group: str, seconds: int) -> Issued:
        issued = await self._inner.issue(cluster, username=username, group=group, seconds=seconds)
        known = self._fork.live.access(cluster) or self._fork.settings.management
        return issued._replace(authority=known.ca) if known.ca else issued


def _without_credentials(access: Access) -> Access:
    return Access(server=access.server, namespace=access.namespace)


async def _allowed(user: UserInfo, verb: str, group: str, resource: str) -> bool:
    return True
