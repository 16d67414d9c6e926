"""The cluster that a name on the command line stands for: a GardenerCluster, its Runtime or its Shoot.

Names stand alone or, where several kinds have one, as TYPE/NAME. Raises CommandError with what helps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster, Label
from hortus.engine import NotReadable, metadata_of, read
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.terminal import EXIT_USAGE, CommandError

_CLUSTER: Final = "gardenercluster"
_RUNTIME: Final = "runtime"
_SHOOT: Final = "shoot"
_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys((_CLUSTER, "gardenerclusters", "cluster", "clusters", "gc"), _CLUSTER),
    **dict.fromkeys((_RUNTIME, "runtimes"), _RUNTIME),
    **dict.fromkeys((_SHOOT, "shoots"), _SHOOT),
}
_LABEL: Final = re.compile("[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_SHOWN: Final = 20
"""Names in an error."""


def parse_name(text: str) -> tuple[str, str]:
    """The type, empty where any will do, and the name."""
    kind, slash, name = text.rpartition("/")
    if not slash:
        return "", text
    found = _TYPES.get(kind.lower().partition(".")[0], "")
    if not found or not name:
        types = ", ".join(dict.fromkeys(_TYPES.values()))
        raise CommandError(f"{text}: a name, or TYPE/NAME with a type of {types}", code=EXIT_USAGE)
    return found, name


async def find_cluster(client: Client, text: str, namespace: str) -> GardenerCluster:
    """The GardenerCluster that a name stands for."""
    kind, name = parse_name(text)
    found: dict[str, list[GardenerCluster]] = {}
    if kind in ("", _CLUSTER):
        found[_CLUSTER] = await _named(client, name, namespace)
    if kind in ("", _RUNTIME):
        identities = await _runtime_ids(client, name, namespace)
        found[_RUNTIME] = [one for identity in identities for one in await _named(client, identity, namespace)]
    if kind in ("", _SHOOT):
        found[_SHOOT] = await _of_shoot(client, name, namespace)
    chosen = {f"{what}/{name}": those for what, those in found.items() if those}
    different = {cluster.metadata.name: cluster for those in chosen.values() for cluster in those}
    if len(different) == 1:
        return next(iter(different.values()))
    if different:
        raise CommandError(f"{text} stands for several clusters: {_choices(chosen)}; give TYPE/NAME", code=EXIT_USAGE)
    listed = await _listed(client, namespace)
    unlabelled = [cluster for cluster in listed if cluster.shoot == name and kind in ("", _SHOOT)]
    if len(unlabelled) == 1:
        return unlabelled[0]
    names = ", ".join(cluster.metadata.name for cluster in listed[:_SHOWN]) or "none"
    what = {_RUNTIME: "GardenerCluster of Runtime", _SHOOT: "GardenerCluster of Shoot"}.get(kind, "GardenerCluster")
    raise CommandError(f"no {what} {name} in namespace {namespace}; there are: {names}")


async def known_names(client: Client, namespace: str) -> set[str]:
    """All names that stand for a cluster."""
    clusters = await _listed(client, namespace)
    return {
        *(cluster.metadata.name for cluster in clusters),
        *(cluster.shoot for cluster in clusters),
        *(metadata_of(runtime).name for runtime in await _runtimes(client, namespace)),
    }


def _choices(chosen: Mapping[str, Iterable[GardenerCluster]]) -> str:
    """The types under which a name is known; of one type with several clusters, their own names."""
    return ", ".join(
        title if len(those := list(clusters)) == 1 else ", ".join(f"{_CLUSTER}/{one.metadata.name}" for one in those)
        for title, clusters in chosen.items()
    )


async def _runtime_ids(client: Client, name: str, namespace: str) -> list[str]:
    """The name of the GardenerCluster of the Runtime of that name; empty where there is no such Runtime."""
    try:
        found = await client.get(RUNTIMES, name, namespace, metadata_only=True)
    except NotFound:
        return []
    return [metadata_of(found).labels.get(Label.RUNTIME_ID) or name]


async def _runtimes(client: Client, namespace: str) -> list[Object]:
    try:
        return list((await client.list(RUNTIMES, namespace, metadata_only=True)).items)
    except NotFound:
        # A management cluster without the kind: GardenerClusters alone are served there.
        return []


async def _of_shoot(client: Client, name: str, namespace: str) -> list[GardenerCluster]:
    """The GardenerClusters with the label of a Shoot; none for a name that no label can have."""
    if not _LABEL.fullmatch(name):
        return []
    return await _listed(client, namespace, labels=f"{Label.SHOOT_NAME}={name}")


async def _named(client: Client, name: str, namespace: str) -> list[GardenerCluster]:
    try:
        return [read(GardenerCluster, await client.get(GARDENER_CLUSTERS, name, namespace))]
    except NotFound:
        return []
    except NotReadable as error:
        raise CommandError(str(error)) from None


async def _listed(client: Client, namespace: str, *, labels: str = "") -> list[GardenerCluster]:
    """The GardenerClusters that can be read: a malformed one does not keep people from the others."""
    found = []
    for obj in (await client.list(GARDENER_CLUSTERS, namespace, labels=labels)).items:
        with suppress(NotReadable):
            found.append(read(GardenerCluster, obj))
    return found
