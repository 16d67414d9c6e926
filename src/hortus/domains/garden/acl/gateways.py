"""Gateways of a Shoot: the Istio Deployments that its connections go through, found by labels.

With several zones or an ExposureClass a Shoot is served by a gateway of another namespace; the Gateway in the Shoot's
own namespace selects its pods, so that one look-up serves all of these.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from hortus.domains.garden.acl.names import (
    API_GATEWAY,
    CONFIG_MAPS,
    DEPLOYMENTS,
    EGRESS_KEY,
    GATEWAY_SERVICE,
    GATEWAYS,
    INGRESS_GATEWAY,
    INGRESS_GATEWAY_NAMESPACE,
    SERVICES,
    SHOOT_INFO,
    SHOOT_INFO_NAMESPACE,
)
from hortus.engine import Actor, StepError
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, key_of

_PROXY = "Proxy"


class _Struct(msgspec.Struct, rename="camel"):
    """Base of the parts that are read; unknown fields are left out."""


class _GatewaySpec(_Struct):
    selector: dict[str, str] = {}


class _Gateway(_Struct):
    spec: _GatewaySpec = msgspec.field(default_factory=_GatewaySpec)


class _Ingress(_Struct):
    ip_mode: str | None = None


class _LoadBalancer(_Struct):
    ingress: list[_Ingress] | None = None


class _ServiceStatus(_Struct):
    load_balancer: _LoadBalancer = msgspec.field(default_factory=_LoadBalancer)


class _Service(_Struct):
    status: _ServiceStatus = msgspec.field(default_factory=_ServiceStatus)


class _ConfigMap(_Struct):
    data: dict[str, str] | None = None


class IstioGateway(NamedTuple):
    """The Deployment behind a Gateway."""

    namespace: str
    labels: dict[str, str]
    """The selector of the Gateway, which is that of the filters."""


class GatewayLookup:
    """Reads gateways of a seed."""

    def __init__(self, seed: Client) -> None:
        self._seed = seed

    async def of_shoot(self, namespace: str) -> IstioGateway | None:
        """The gateway of a Shoot's kube-apiserver; None where it has no Gateway. Raises StepError, KubeError."""
        selector = await self._selector(API_GATEWAY, namespace)
        if selector is None:
            return None
        listed = await self._seed.list(DEPLOYMENTS, labels=_text(selector), metadata_only=True)
        return IstioGateway(_only_namespace(listed.items, namespace, selector), selector)

    async def ingress_labels(self) -> dict[str, str]:
        """The selector of the gateway of dashboards; empty where there is none. Raises StepError, KubeError."""
        return await self._selector(INGRESS_GATEWAY, INGRESS_GATEWAY_NAMESPACE) or {}

    async def seed_egress(self, namespace: str) -> tuple[str, ...]:
        """The seed's own addresses, which count where the load balancer of a gateway hides those of clients."""
        try:
            service = msgspec.convert(await self._seed.get(SERVICES, GATEWAY_SERVICE, namespace), _Service)
        except NotFound:
            return ()
        if all(one.ip_mode != _PROXY for one in service.status.load_balancer.ingress or ()):
            return ()
        try:
            found = await self._seed.get(CONFIG_MAPS, SHOOT_INFO, SHOOT_INFO_NAMESPACE)
        except NotFound:
            return ()  # the seed is no Shoot itself
        text = (msgspec.convert(found, _ConfigMap).data or {}).get(EGRESS_KEY, "")
        if not text:
            raise StepError(
                f"ConfigMap {SHOOT_INFO_NAMESPACE}/{SHOOT_INFO} of the seed has no key {EGRESS_KEY}: its own clients "
                "would be locked out behind the proxy of the gateway",
                reason="SeedEgressUnknown",
                actor=Actor.OPERATOR,
            )
        return tuple(one.strip() for one in text.split(",") if one.strip())

    async def _selector(self, name: str, namespace: str) -> dict[str, str] | None:
        try:
            found = await self._seed.get(GATEWAYS, name, namespace)
        except NotFound:
            return None
        selector = msgspec.convert(found, _Gateway).spec.selector
        if not selector:
            raise StepError(
                f"Gateway {namespace}/{name} has no spec.selector: its Deployment cannot be found",
                reason="GatewayWithoutSelector",
                actor=Actor.PROVIDER,
            )
        return selector


def _only_namespace(deployments: list[Object], namespace: str, selector: dict[str, str]) -> str:
    if len(deployments) == 1:
        return key_of(deployments[0]).namespace
    found = ", ".join(sorted(str(key_of(one)) for one in deployments)) or "none"
    raise StepError(
        f"Gateway {namespace}/{API_GATEWAY} selects {_text(selector)}: exactly one Deployment must have these labels; "
        f"there are: {found}",
        reason="GatewayNotFound" if not deployments else "GatewayAmbiguous",
        actor=Actor.PROVIDER,
    )


def _text(selector: dict[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(selector.items()))
