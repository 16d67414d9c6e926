"""The address and the port of a Service that this process can connect to.

No cluster network is behind this server, so a Service is followed to its endpoints, as kube-apiserver does with
`--enable-aggregator-routing` (k8s.io/apiserver, pkg/util/proxy), and one of type ExternalName to its name. There is no
controller that mirrors Endpoints into slices either, so Endpoints count where a Service has no slices. What is found is
kept until an object of these kinds changes in the namespace.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from hortus.apiserver.aggregation.apiservices import ServiceReference
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.store.backend import Commit, StoreKey

SERVICES: Final = "core/services"
ENDPOINTS: Final = "core/endpoints"
SLICES: Final = "discovery.k8s.io/endpointslices"
_LABEL: Final = "kubernetes.io/service-name"
_EXTERNAL: Final = "ExternalName"
_KEPT = 1024
"""Services whose addresses are remembered."""


class RemoteAddress(NamedTuple):
    host: str
    port: int

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port}"


class _Port(msgspec.Struct):
    port: int | None = None
    name: str | None = None


class _ServiceSpec(msgspec.Struct, rename="camel"):
    type: str = "ClusterIP"
    external_name: str = ""
    ports: tuple[_Port, ...] | None = ()


class _Service(msgspec.Struct):
    spec: _ServiceSpec


class _Metadata(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Ready(msgspec.Struct):
    ready: bool | None = None


class _Endpoint(msgspec.Struct):
    addresses: tuple[str, ...] = ()
    conditions: _Ready = msgspec.field(default_factory=_Ready)


class _Slice(msgspec.Struct):
    metadata: _Metadata
    endpoints: tuple[_Endpoint, ...] | None = ()
    ports: tuple[_Port, ...] | None = ()


class _Ip(msgspec.Struct):
    ip: str


class _Subset(msgspec.Struct):
    addresses: tuple[_Ip, ...] | None = ()
    ports: tuple[_Port, ...] | None = ()


class _Endpoints(msgspec.Struct):
    subsets: tuple[_Subset, ...] | None = ()


class ServiceTarget(NamedTuple):
    """The addresses of a Service. `problem` is the reason of its condition where it leads nowhere, else empty."""

    addresses: Sequence[RemoteAddress] = ()
    problem: str = ""
    message: str = ""

    def any(self) -> RemoteAddress:
        """One of the addresses. Raises LookupError."""
        if not self.addresses:
            raise LookupError(self.message)
        return random.choice(self.addresses)  # noqa: S311 - spreads load, protects nothing


class Resolver:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[tuple[str, ServiceReference], ServiceTarget] = {}
        self._changes = 0
        for suffix in (SERVICES, ENDPOINTS, SLICES):
            storage.listen(self._changed, suffix)

    async def target(self, cluster: str, service: ServiceReference) -> ServiceTarget:
        found = self._known.get((cluster, service))
        if found is None:
            before = self._changes
            found = await self._target(cluster, service)
            if before == self._changes:
                if len(self._known) >= _KEPT:
                    del self._known[next(iter(self._known))]
                self._known[cluster, service] = found
        return found

    def forget(self, cluster: str) -> None:
        self._known = {key: target for key, target in self._known.items() if key[0] != cluster}

    def _changed(self, change: Commit) -> None:
        self._changes += 1
        if self._known:
            cluster, namespace = change.key.cluster, change.key.name.partition("/")[0]
            gone = [key for key in self._known if key[0] == cluster and key[1].namespace == namespace]
            for key in gone:
                del self._known[key]

    async def _target(self, cluster: str, service: ServiceReference) -> ServiceTarget:
        where = f'service/{service.name} in "{service.namespace}"'
        place = f"{service.namespace}/{service.name}"
        record = await self._storage.get(StoreKey(f"{cluster}/{SERVICES}", place), fresh=False)
        if record is None:
            return ServiceTarget(problem="ServiceNotFound", message=f"{where} is not present")
        spec = msgspec.json.decode(record.value, type=_Service).spec
        if spec.type == _EXTERNAL:
            return ServiceTarget((RemoteAddress(spec.external_name, service.port),))
        named = next((port.name or "" for port in spec.ports or () if port.port == service.port), None)
        if named is None:
            message = f"{where} is not listening on port {service.port}"
            return ServiceTarget(problem="ServicePortError", message=message)
        present, addresses = await self._endpoints(cluster, service, named)
        if not present:
            return ServiceTarget(problem="EndpointsNotFound", message=f"cannot find endpointslices for {where}")
        if not addresses:
            message = f'endpointslices for {where} have no addresses with port name "{named}"'
            return ServiceTarget(problem="MissingEndpoints", message=message)
        return ServiceTarget(addresses)

    async def _endpoints(self, cluster: str, service: ServiceReference, port: str) -> tuple[bool, list[RemoteAddress]]:
        """Reports whether the Service has slices or Endpoints, with the ready addresses that have the port."""
        page = await self._storage.list(f"{cluster}/{SLICES}", prefix=f"{service.namespace}/", fresh=False)
        label = _LABEL.encode()
        slices = [
            found
            for record in page.records
            if label in record.value
            and ((found := msgspec.json.decode(record.value, type=_Slice)).metadata.labels or {}).get(_LABEL)
            == service.name
        ]
        if slices:
            return True, [address for each in slices for address in _of_slice(each, port)]
        place = StoreKey(f"{cluster}/{ENDPOINTS}", f"{service.namespace}/{service.name}")
        record = await self._storage.get(place, fresh=False)
        if record is None:
            return False, []
        return True, list(_of_endpoints(msgspec.json.decode(record.value, type=_Endpoints), port))


def _of_slice(found: _Slice, name: str) -> Iterator[RemoteAddress]:
    for port in found.ports or ():
        if (port.name or "") == name and port.port is not None:
            for endpoint in found.endpoints or ():
                if endpoint.conditions.ready is not False and endpoint.addresses:
                    yield RemoteAddress(endpoint.addresses[0], port.port)


def _of_endpoints(found: _Endpoints, name: str) -> Iterator[RemoteAddress]:
    for subset in found.subsets or ():
        for port in subset.ports or ():
            if (port.name or "") == name and port.port is not None:
                for address in subset.addresses or ():
                    yield RemoteAddress(address.ip, port.port)
