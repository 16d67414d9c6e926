"""The Istio Gateways by which events reach the control plane."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NoReturn, Protocol

import msgspec

from hortus.domains.modules.watching.settings import WatcherSettings
from hortus.engine import Actor, Cache, StepError
from hortus.kube.objects import ObjectKey, Resource
from hortus.kube.selectors import LabelSelector, SelectorError

GATEWAYS: Final = Resource("networking.istio.io", "v1beta1", "gateways", "Gateway")
VIRTUAL_SERVICES: Final = Resource("networking.istio.io", "v1beta1", "virtualservices", "VirtualService")


class GatewayPort(msgspec.Struct, frozen=True):
    """The port of a server."""

    number: int = 0


class GatewayServer(msgspec.Struct, frozen=True):
    """A server of a Gateway."""

    hosts: tuple[str, ...] = ()
    port: GatewayPort = GatewayPort()


class GatewaySpec(msgspec.Struct, frozen=True):
    """The servers of a Gateway."""

    servers: tuple[GatewayServer, ...] = ()


class GatewayMetadata(msgspec.Struct, frozen=True):
    """The identity of a Gateway."""

    name: str
    namespace: str = ""
    labels: dict[str, str] = {}


class Gateway(msgspec.Struct, frozen=True):
    """An Istio Gateway, as far as it is read."""

    metadata: GatewayMetadata
    spec: GatewaySpec = GatewaySpec()

    @property
    def reference(self) -> str:
        """Namespace and name, as a VirtualService names it."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def hosts(self) -> list[str]:
        """The hosts of all its servers."""
        return [host for server in self.spec.servers for host in server.hosts]


class ListenerAddress(Protocol):
    """The address that agents report to."""

    def get(self) -> str:
        """Host and port. Raises StepError where it cannot be known."""


class DirectAddress:
    """An address that the operator has set; no Istio is needed."""

    def __init__(self, address: str) -> None:
        self._address = address

    def get(self) -> str:
        return self._address


class GatewayAddress:
    """The address of the only host of the only server of one Gateway."""

    def __init__(self, gateways: Cache, settings: WatcherSettings) -> None:
        self._gateways = gateways
        self._key = ObjectKey(settings.gateway_namespace, settings.gateway_name)
        self._port = settings.port_overwrite

    def get(self) -> str:
        found = self._gateways.get(self._key)
        if found is None:
            self._refuse("it does not exist; create it, or name another one by --istio-gateway-name")
        servers = msgspec.convert(found, Gateway).spec.servers
        if len(servers) != 1 or len(servers[0].hosts) != 1:
            self._refuse("it must have exactly one server with exactly one host")
        port = self._port or str(servers[0].port.number)
        return f"{servers[0].hosts[0]}:{port}"

    def _refuse(self, problem: str) -> NoReturn:
        raise StepError(f"Gateway {self._key}: {problem}", reason="GatewayUnusable", actor=Actor.OPERATOR)


def selected(gateways: Iterable[Any], selector: Any, namespace: str) -> list[Gateway]:
    """The Gateways of a namespace that a metav1.LabelSelector selects, by name. Raises SelectorError."""
    parsed = LabelSelector.from_object(selector)
    if parsed is None:
        raise SelectorError("the selector is missing")
    read = (msgspec.convert(one, Gateway) for one in gateways)
    found = [one for one in read if one.metadata.namespace == namespace and parsed.matches(one.metadata.labels)]
    return sorted(found, key=lambda one: one.metadata.name)
