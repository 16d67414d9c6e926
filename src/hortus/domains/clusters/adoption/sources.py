"""What there is to adopt, and what is adopted already: reads of both clusters, in lists, whatever the size of a fleet.

Raises KubeError, and CommandError naming what was asked for and does not exist.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from hortus.domains.clusters import service
from hortus.domains.clusters.adoption.identity import Holder
from hortus.domains.clusters.garden import SHOOTS
from hortus.domains.clusters.reading import runtime_of, shoot_name_of
from hortus.domains.clusters.types import RUNTIMES, Label
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.kube import Client, yaml
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource
from hortus.terminal import CommandError

KYMAS: Final = Resource("operator.kyma-project.io", "v1beta2", "kymas", "Kyma")
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
_SHOWN: Final = 20


class Selection(msgspec.Struct, frozen=True):
    """Which clusters are meant."""

    names: tuple[str, ...] = ()
    labels: str = ""
    everything: bool = False

    def check(self) -> None:
        """Raises CommandError when nothing is chosen, or twice."""
        if not (self.names or self.labels or self.everything):
            raise CommandError("which clusters? Give names, --selector LABELS or --all", code=2)
        if self.names and (self.labels or self.everything):
            raise CommandError("give either names or --selector or --all", code=2)


class Surroundings:
    """What the management cluster knows of clusters."""

    def __init__(self, runtimes: Sequence[Object], clusters: Sequence[Object], kymas: Sequence[Object]) -> None:
        self.kymas = kymas
        self._runtimes: dict[str, list[Object]] = {}
        for runtime in runtimes:
            self._runtimes.setdefault(shoot_name_of(runtime), []).append(runtime)
        ids = ((service.runtime_id(runtime_of(runtime)), runtime) for runtime in runtimes)
        self._by_id = {identity: runtime for identity, runtime in ids if identity}
        self._clusters: dict[str, list[Object]] = {}
        for cluster in clusters:
            self._clusters.setdefault(shoot_name_of(cluster), []).append(cluster)
        self._by_name = {cluster["metadata"]["name"]: cluster for cluster in clusters}
        self._kymas: dict[str, list[Object]] = {}
        for kyma in kymas:
            self._kymas.setdefault(shoot_of_kyma(kyma), []).append(kyma)

    def runtimes_of(self, shoot: str) -> list[Object]:
        return self._runtimes.get(shoot, [])

    def runtime_with(self, runtime_id: str) -> Object | None:
        return self._by_id.get(runtime_id)

    def clusters_of(self, shoot: str) -> list[Object]:
        return self._clusters.get(shoot, [])

    def cluster_named(self, name: str) -> Object | None:
        return self._by_name.get(name)

    def holders_of(self, shoot: str) -> list[Holder]:
        """Who carries labels of this shoot's cluster."""
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
    return Surroundings(runtimes, clusters, found)


async def shoots(garden: Client, namespace: str, selection: Selection) -> list[Object]:
    """The chosen shoots of a project."""
    listed = list((await garden.list(SHOOTS, namespace, labels=selection.labels)).items)
    return named(listed, selection.names, f"shoot of project namespace {namespace}")


def chosen_kymas(around: Surroundings, matching: Iterable[Object], names: Sequence[str]) -> list[Object]:
    return named(list(matching), names, "Kyma")


def shoot_of_kyma(kyma: Object) -> str:
    return str((kyma["metadata"].get("labels") or {}).get(Label.SHOOT_NAME) or "")


def kyma_holder(kyma: Object) -> Holder:
    return _holder(kyma, "Kyma", Label.KYMA_NAME)


def server_of(document: str | bytes) -> str:
    """The API server that a kubeconfig leads to. Raises ValueError saying what is wrong with it."""
    try:
        found = yaml.load(document)
        contexts = {entry["name"]: entry["context"] for entry in found["contexts"]}
        context = contexts[found.get("current-context") or next(iter(contexts))]
        clusters = {entry["name"]: entry["cluster"] for entry in found["clusters"]}
        return str(clusters[context["cluster"]]["server"])
    except (yaml.YamlError, KeyError, TypeError, StopIteration, AttributeError, ValueError) as error:
        raise ValueError(f"not a kubeconfig with a current context and its cluster ({type(error).__name__})") from None


def by_address(listed: Iterable[Object]) -> dict[str, Object]:
    """Shoots by the addresses of their API servers."""
    found = {}
    for shoot in listed:
        for address in (shoot.get("status") or {}).get("advertisedAddresses") or ():
            found[normal(address.get("url") or "")] = shoot
    return found


def normal(server: str) -> str:
    """An address as it is compared: scheme, host and port, with the port said."""
    parts = urlsplit(server)
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{parts.port or 443}{path}"


async def kubeconfig_secrets(client: Client, namespace: str, labels: str) -> list[Object]:
    """Secrets that say which Runtime their kubeconfig belongs to."""
    wanted = ",".join(filter(None, (Label.RUNTIME_ID, labels)))
    return list((await client.list(SECRETS, namespace, labels=wanted)).items)


def kubeconfig_in(secret: Object) -> bytes:
    """The kubeconfig of a Secret: key `config`, else `kubeconfig`, else its only key. Raises ValueError."""
    data: dict[str, Any] = secret.get("data") or {}
    key = next((key for key in (service.KUBECONFIG_KEY, "kubeconfig") if key in data), None)
    if key is None and len(data) == 1:
        [key] = data
    if key is None:
        raise ValueError(f"no key {service.KUBECONFIG_KEY} or kubeconfig; there are: {', '.join(data) or 'none'}")
    try:
        return base64.b64decode(data[key], validate=True)
    except (binascii.Error, TypeError) as error:
        raise ValueError(f"key {key} is not base64") from error


def _holder(obj: Object, kind: str, own: str) -> Holder:
    """A GardenerCluster is named by the runtime-id, a Kyma by its own name, also where the label is missing."""
    metadata = obj["metadata"]
    labels = {own: metadata["name"], **{key: value for key, value in (metadata.get("labels") or {}).items() if value}}
    return Holder(f"{kind} {metadata['namespace']}/{metadata['name']}", labels)


def named(listed: list[Object], names: Sequence[str], what: str) -> list[Object]:
    """Those of the names, or all without any."""
    if not names:
        return listed
    found = {obj["metadata"]["name"]: obj for obj in listed}
    if missing := [name for name in names if name not in found]:
        there = ", ".join(sorted(found)[:_SHOWN]) or "none"
        raise CommandError(f"no {what} named {', '.join(missing)}; there are: {there}")
    return [found[name] for name in dict.fromkeys(names)]
