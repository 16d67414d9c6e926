"""The clusters to adopt, and those adopted already: reads of both clusters, in lists, whatever the size of a fleet.

Raises KubeError, and CommandError naming what was asked for and does not exist.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from hortus.domains.clusters import service
from hortus.domains.clusters.adoption.identity import Holder
from hortus.domains.clusters.garden import SHOOTS
from hortus.domains.clusters.pools import converted
from hortus.domains.clusters.reading import runtime_of, shoot_name_of, spec_problem
from hortus.domains.clusters.shoot import LiveShoot
from hortus.domains.clusters.types import RUNTIMES, Label, Runtime
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import metadata_of
from hortus.kube import Client, yaml
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource
from hortus.schema import ObjectMeta
from hortus.terminal import CommandError, TargetSelection

KYMAS: Final = Resource("operator.kyma-project.io", "v1beta2", "kymas", "Kyma")
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
_SHOWN: Final = 20


class _Context(msgspec.Struct):
    cluster: str


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context


class _Cluster(msgspec.Struct):
    server: str


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster


class _Kubeconfig(msgspec.Struct, rename="kebab"):
    contexts: tuple[_NamedContext, ...]
    clusters: tuple[_NamedCluster, ...]
    current_context: str | None = None


class ClusterObject:
    """A Runtime, GardenerCluster or Kyma of the management cluster, with the name of its shoot, if it has one."""

    def __init__(self, document: Object) -> None:
        self._document = document
        self.metadata = metadata_of(document)
        self.shoot = shoot_name_of(document) or self.metadata.labels.get(Label.SHOOT_NAME, "")

    @property
    def title(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def problem(self) -> str:
        """The reason why a Runtime is read without a spec; empty when it has one."""
        return spec_problem(self._document)

    @cached_property
    def runtime(self) -> Runtime:
        """The struct of a Runtime; without a spec when it cannot be read."""
        return runtime_of(self._document)


class OfferedKubeconfig(msgspec.Struct, frozen=True):
    """A Secret of the management cluster with a kubeconfig."""

    metadata: ObjectMeta
    data: dict[str, str] | None = None

    @property
    def title(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"


class Surroundings:
    """The objects of the management cluster that are about clusters."""

    def __init__(
        self, runtimes: Sequence[ClusterObject], clusters: Sequence[ClusterObject], kymas: Sequence[ClusterObject]
    ) -> None:
        self.kymas = kymas
        self._runtimes = _by_shoot(runtimes)
        ids = ((service.runtime_id(one.runtime), one) for one in runtimes)
        self._by_id = {identity: one for identity, one in ids if identity}
        self._clusters = _by_shoot(clusters)
        self._by_name = {one.metadata.name: one for one in clusters}
        self._kymas = _by_shoot(kymas)

    def runtimes_of(self, shoot: str) -> list[ClusterObject]:
        return self._runtimes.get(shoot, [])

    def runtime_with(self, runtime_id: str) -> ClusterObject | None:
        return self._by_id.get(runtime_id)

    def clusters_of(self, shoot: str) -> list[ClusterObject]:
        return self._clusters.get(shoot, [])

    def cluster_named(self, name: str) -> ClusterObject | None:
        return self._by_name.get(name)

    def holders_of(self, shoot: str) -> list[Holder]:
        """The objects that carry labels of this shoot's cluster."""
        clusters = [_holder(one, "GardenerCluster", Label.RUNTIME_ID) for one in self.clusters_of(shoot)]
        return clusters + [_holder(one, "Kyma", Label.KYMA_NAME) for one in self._kymas.get(shoot, [])]


async def surroundings(client: Client, namespace: str, *, kymas: bool = False) -> Surroundings:
    """Raises CommandError when there must be `kymas` and the kind is not there."""
    runtimes = (await client.list(RUNTIMES, namespace)).items
    clusters = (await client.list(GARDENER_CLUSTERS, namespace)).items
    try:
        found = (await client.list(KYMAS, namespace)).items
    except NotFound:
        if kymas:
            text = f"the management cluster has no {KYMAS.plural}.{KYMAS.group}: adopt the shoots themselves by "
            raise CommandError(f"{text}`hortus adopt shoots`") from None
        found = []
    return Surroundings([*map(ClusterObject, runtimes)], [*map(ClusterObject, clusters)], [*map(ClusterObject, found)])


def _by_shoot(listed: Iterable[ClusterObject]) -> dict[str, list[ClusterObject]]:
    found: dict[str, list[ClusterObject]] = {}
    for one in listed:
        found.setdefault(one.shoot, []).append(one)
    return found


async def shoots(garden: Client, namespace: str, selection: TargetSelection) -> list[LiveShoot]:
    """The chosen shoots of a project."""
    listed = [LiveShoot(found) for found in (await garden.list(SHOOTS, namespace, labels=selection.labels)).items]
    return named(listed, selection.names, f"shoot of project namespace {namespace}")


def server_of(document: str | bytes) -> str:
    """The API server that a kubeconfig leads to. Raises ValueError with the reason when it leads to none."""
    try:
        found = msgspec.convert(yaml.load(document), _Kubeconfig)
        contexts = {entry.name: entry.context for entry in found.contexts}
        context = contexts[found.current_context or next(iter(contexts))]
        clusters = {entry.name: entry.cluster for entry in found.clusters}
        return clusters[context.cluster].server
    except (yaml.YamlError, KeyError, StopIteration, ValueError) as error:
        raise ValueError(f"not a kubeconfig with a current context and its cluster ({type(error).__name__})") from None


def by_address(listed: Iterable[LiveShoot]) -> dict[str, LiveShoot]:
    """Shoots by the addresses of their API servers."""
    return {normal(address): shoot for shoot in listed for address in shoot.addresses}


def normal(server: str) -> str:
    """An address as it is compared: scheme, host and port, with the port said."""
    parts = urlsplit(server)
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{parts.port or 443}{path}"


async def kubeconfig_secrets(client: Client, namespace: str, labels: str) -> list[OfferedKubeconfig]:
    """Secrets with the id of the Runtime that their kubeconfig belongs to."""
    wanted = ",".join(filter(None, (Label.RUNTIME_ID, labels)))
    listed = (await client.list(SECRETS, namespace, labels=wanted)).items
    return [converted(secret, OfferedKubeconfig, "Secret") for secret in listed]


def kubeconfig_in(secret: OfferedKubeconfig) -> bytes:
    """The kubeconfig of a Secret: key `config`, else `kubeconfig`, else its only key. Raises ValueError."""
    data = secret.data or {}
    key = next((key for key in (service.KUBECONFIG_KEY, "kubeconfig") if key in data), None)
    if key is None and len(data) == 1:
        [key] = data
    if key is None:
        raise ValueError(f"no key {service.KUBECONFIG_KEY} or kubeconfig; there are: {', '.join(data) or 'none'}")
    try:
        return base64.b64decode(data[key], validate=True)
    except (ValueError, TypeError) as error:
        raise ValueError(f"key {key} is not base64") from error


def _holder(listed: ClusterObject, kind: str, own: str) -> Holder:
    """A GardenerCluster is named by the runtime-id, a Kyma by its own name, also where the label is missing."""
    metadata = listed.metadata
    labels = {own: metadata.name, **{key: value for key, value in metadata.labels.items() if value}}
    return Holder(f"{kind} {listed.title}", labels)


class _Named(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


N = TypeVar("N", bound=_Named)


def named(listed: list[N], names: Sequence[str], what: str) -> list[N]:
    """The items with these names; all items if there are no names."""
    if not names:
        return listed
    found = {one.metadata.name: one for one in listed}
    if missing := [name for name in names if name not in found]:
        there = ", ".join(sorted(found)[:_SHOWN]) or "none"
        raise CommandError(f"no {what} named {', '.join(missing)}; there are: {there}")
    return [found[name] for name in dict.fromkeys(names)]
