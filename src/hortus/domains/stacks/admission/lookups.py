"""The objects that decisions depend on, read from the server, so that every replica answers from its first moment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from hortus.domains.stacks.capi import CLUSTERS, CapiCluster, read_cluster
from hortus.domains.stacks.types import (
    CLUSTER_STACK_RELEASES,
    STACK_POLICIES,
    ClusterStackRelease,
    StackPolicy,
    StackPolicySpec,
)
from hortus.engine import NotReadable, read
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object


class Lookups(Protocol):
    """The reads of the rules. Each raises KubeError."""

    async def release(self, namespace: str, tag: str) -> ClusterStackRelease | None:
        """A ClusterStackRelease; None where it does not exist."""

    async def clusters(self) -> list[CapiCluster]:
        """The Clusters of all watched namespaces; a Cluster that cannot be read is left out."""

    async def policies(self, namespace: str) -> list[StackPolicySpec]:
        """The StackPolicies of a namespace; none where the kind is not served."""


class ServerLookups:
    """Reads from the server. `namespace` is the watched one, empty for all."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def release(self, namespace: str, tag: str) -> ClusterStackRelease | None:
        try:
            return read(ClusterStackRelease, await self._client.get(CLUSTER_STACK_RELEASES, tag, namespace))
        except NotFound:
            return None

    async def clusters(self) -> list[CapiCluster]:
        *preferred, last = CLUSTERS.values()
        for resource in preferred:
            try:
                return _readable((await self._client.list(resource, self._namespace)).items)
            except NotFound:
                continue
        return _readable((await self._client.list(last, self._namespace)).items)

    async def policies(self, namespace: str) -> list[StackPolicySpec]:
        try:
            found = (await self._client.list(STACK_POLICIES, namespace)).items
        except NotFound:
            return []
        return [read(StackPolicy, obj).spec for obj in found]


def _readable(objects: Iterable[Object]) -> list[CapiCluster]:
    found = []
    for obj in objects:
        try:
            found.append(read_cluster(obj))
        except NotReadable:
            continue
    return found
