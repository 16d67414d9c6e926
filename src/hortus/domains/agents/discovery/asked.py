"""The facts of a cluster of the fleet, read through its client: a few small requests, made when objects are applied.

A fact that cannot be read fails the reconcile of this cluster: objects that are built without it would be others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hortus.domains.agents.builders.configuration import MONITORING_LABEL
from hortus.domains.agents.builders.etcd import BUNDLE, CLIENT, SERVICE_LABEL, SOURCE_NAMESPACE
from hortus.domains.agents.discovery.facts import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    CONTROL_PLANE,
    DEFINITIONS,
    ENDPOINTS,
    NAMESPACES,
    SECRETS,
    SERVICES,
    SLICES,
)
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource

_DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet")


class AskedFacts:
    """A `FactSource` that sends requests."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def is_openshift(self) -> bool:
        return await self._found(DEFINITIONS, CLUSTER_OPERATORS, metadata_only=True) is not None

    async def namespaces(self) -> Iterable[Object]:
        return (await self._client.list(NAMESPACES, labels=MONITORING_LABEL, metadata_only=True)).items

    async def daemon_sets(self, names: Sequence[str], namespace: str) -> Mapping[str, Object]:
        live = {name: await self._found(_DAEMON_SETS, name, namespace) for name in names}
        return {name: found for name, found in live.items() if found is not None}

    async def has_secret(self, name: str, namespace: str) -> bool:
        return await self._found(SECRETS, name, namespace, metadata_only=True) is not None

    async def etcd_services(self) -> Iterable[Object]:
        return (await self._client.list(SERVICES, CONTROL_PLANE)).items

    async def etcd_slices(self, service: str) -> Iterable[Object]:
        return (await self._client.list(SLICES, CONTROL_PLANE, labels=f"{SERVICE_LABEL}={service}")).items

    async def etcd_endpoints(self, service: str) -> Object | None:
        return await self._found(ENDPOINTS, service, CONTROL_PLANE)

    async def etcd_credentials(self) -> tuple[Object | None, Object | None]:
        bundle = await self._found(CONFIG_MAPS, BUNDLE, SOURCE_NAMESPACE)
        return bundle, await self._found(SECRETS, CLIENT, SOURCE_NAMESPACE)

    async def _found(
        self, resource: Resource, name: str, namespace: str = "", *, metadata_only: bool = False
    ) -> Object | None:
        try:
            return await self._client.get(resource, name, namespace, metadata_only=metadata_only)
        except NotFound:
            return None
