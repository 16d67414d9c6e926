"""The access list of one Shoot, rendered as EnvoyFilters of the gateways that serve it.

Owns the conditions EgressStable and EntryPointsFiltered. Reads the Gateways of the Shoot and of the dashboards with
their Deployments, the Infrastructure, and the Service of the gateway. Writes nothing itself: the frame hands filters to
gardener-resource-manager.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from hortus.domains.garden.acl.always import always_allowed
from hortus.domains.garden.acl.config import LOG_ONLY, AccessList, read_config
from hortus.domains.garden.acl.egress import stability
from hortus.domains.garden.acl.entrypoints import ENTRY_POINTS_FILTERED, read_gateway
from hortus.domains.garden.acl.filters import FilterInputs, envoy_filters, rivals_of
from hortus.domains.garden.acl.gateways import ApiGateway, EntryPoints, GatewayLookup, is_by_header
from hortus.domains.garden.acl.names import (
    API_GATEWAY,
    INGRESS_GATEWAY_NAMESPACE,
    INGRESS_NAMESPACE,
    PROXY_PORT,
    SERVICE_ACCOUNTS,
    VPN_PORT,
)
from hortus.domains.garden.acl.review import AclReviewer
from hortus.domains.garden.acl.settings import AclSettings
from hortus.domains.garden.extension.composition import SeedView
from hortus.domains.garden.extension.context import ExtensionContext
from hortus.domains.garden.extension.topic import ExtensionTopic, TopicCondition, TopicObjects
from hortus.domains.garden.kinds.seedcluster import SeedCluster, short_id
from hortus.domains.garden.types import INFRASTRUCTURES, ShootInfrastructure
from hortus.engine import NEVER, Actor, Change, StepError, TypedCache, Watch, read, without_managed_fields
from hortus.engine.sources import Source
from hortus.kube.objects import Object, ObjectKey, key_of

EGRESS_STABLE: Final = "EgressStable"
"""The condition that reports whether the nodes call from addresses that stay."""


class AclTopic(AclReviewer, ExtensionTopic):
    """Renders access lists for Shoots of one seed."""

    def __init__(self, settings: AclSettings, view: SeedView) -> None:
        super().__init__(settings)
        self._view = view
        self._gateways = GatewayLookup(view.client, view.caches)
        self._infrastructures = TypedCache(
            ShootInfrastructure, view.caches.get(INFRASTRUCTURES, transform=without_managed_fields)
        )

    def sources(self) -> Sequence[Source]:
        type_ = self.facts.type
        return (
            Watch(
                self._infrastructures.raw,
                to=lambda obj: self._view.extensions_in(key_of(obj).namespace, type_),
                when=_egress_changed,
            ),
            Watch(self._view.clusters.raw, to=self._of_rival, when=_came_or_went),
            Watch(self._gateways.cache, to=self._of_gateway, when=_gateway_changed),
        )

    def dependencies(self, context: ExtensionContext) -> str:
        cluster = context.cluster
        facts = (
            sorted(set(self._egress(cluster))),
            self.settings.additional,
            self._rivals(cluster),
            self._gateways.known(context.namespace),
            self._gateways.of_dashboards(_domain(cluster)),
            self._gateways.by_header(),
        )
        return json.dumps(facts)

    async def render(self, context: ExtensionContext) -> TopicObjects | None:
        cluster = context.cluster
        gateway = await self._gateways.of_shoot(context.namespace)
        if gateway is None:
            if context.shoot.is_hibernated:
                return None
            raise StepError(
                f"Gateway {context.namespace}/{API_GATEWAY} does not exist: gardenlet creates it with the "
                "kube-apiserver",
                reason="GatewayMissing",
                actor=Actor.PROVIDER,
            )
        access = _access_list(context)
        entries = await self._gateways.entry_points(gateway, _advertised(cluster), _domain(cluster))
        inputs = await self._inputs(cluster, gateway, entries, access)
        found = stability(cluster.shoot, self._egress(cluster))
        return TopicObjects(
            seed=tuple(envoy_filters(inputs)),
            state={"istioNamespace": gateway.namespace},
            conditions=(
                TopicCondition(EGRESS_STABLE, "True" if found.stable else "False", found.reason, found.message),
                _entry_points_filtered(entries, access),
            ),
        )

    async def _inputs(
        self, cluster: SeedCluster, gateway: ApiGateway, entries: EntryPoints, access: AccessList
    ) -> FilterInputs:
        always = always_allowed(
            cluster,
            seed_egress=await self._gateways.seed_egress(gateway.namespace),
            additional=self.settings.additional,
            egress=self._egress(cluster),
        )
        dashboards = entries.dashboards
        return FilterInputs(
            technical_id=cluster.technical_id,
            short_id=cluster.short_id,
            access=access,
            always=always,
            host=_host(cluster, entries),
            gateway_namespace=gateway.namespace,
            gateway_labels=gateway.read.selector,
            chains=entries.chains,
            ingress_domain=_domain(cluster) if dashboards is not None else "",
            ingress_labels=dashboards.labels if dashboards is not None else {},
            ingress_namespace=dashboards.namespace if dashboards is not None else INGRESS_NAMESPACE,
            rivals=self._rivals(cluster),
        )

    def _of_gateway(self, gateway: Object) -> list[ObjectKey]:
        namespace = key_of(gateway).namespace
        if namespace == INGRESS_GATEWAY_NAMESPACE or is_by_header(read_gateway(gateway)):
            return self._view.extensions_of(self.facts.type)
        return self._view.extensions_in(namespace, self.facts.type)

    def _of_rival(self, cluster: Object) -> list[ObjectKey]:
        """The Extensions of Shoots whose hosts the hosts of this one end like."""
        name = short_id(key_of(cluster).name)
        namespaces = [key.name for key in self._view.clusters.raw if name.endswith(f"-{short_id(key.name)}")]
        return [key for one in namespaces for key in self._view.extensions_in(one, self.facts.type)]

    def _egress(self, cluster: SeedCluster) -> tuple[str, ...]:
        found = self._infrastructures.get(ObjectKey(cluster.technical_id, cluster.shoot.metadata.name))
        return (found.status.egress_cidrs or ()) if found is not None else ()

    def _rivals(self, cluster: SeedCluster) -> tuple[str, ...]:
        return rivals_of(cluster.short_id, (short_id(key.name) for key in self._view.clusters.raw))


def _access_list(context: ExtensionContext) -> AccessList:
    access = read_config(context.config, "spec.providerConfig").access
    if not access.rules:
        raise StepError(
            "spec.providerConfig.rule: Required value: rule must be present",
            reason="RuleMissing",
            actor=Actor.USER,
            after=NEVER,
        )
    return access


def _domain(cluster: SeedCluster) -> str:
    ingress = cluster.seed.spec.ingress
    return ingress.domain if ingress is not None else ""


def _advertised(cluster: SeedCluster) -> list[str]:
    """The hosts in the addresses of the kube-apiserver."""
    addresses = cluster.shoot.status.advertised_addresses or ()
    return [
        host for one in addresses if one.name != SERVICE_ACCOUNTS and (host := urlsplit(one.url).hostname) is not None
    ]


def _host(cluster: SeedCluster, entries: EntryPoints) -> str:
    """The host of the kube-apiserver's chain. Raises StepError where none is advertised yet."""
    if entries.host and _advertised(cluster):
        return entries.host
    raise StepError(
        f"status.advertisedAddresses of Shoot {cluster.shoot.metadata.name} is empty: gardenlet writes it early",
        reason="NoAddress",
        actor=Actor.PROVIDER,
    )


def _entry_points_filtered(entries: EntryPoints, access: AccessList) -> TopicCondition:
    """The condition that names every way to the Shoot without a filter."""
    if entries.problems:
        message = f"The list does not judge every way to the Shoot. {'; '.join(entries.problems)}."
        return TopicCondition(ENTRY_POINTS_FILTERED, "False", "NotFiltered", message)
    hosts = 1 + sum(len(one.hosts) for one in entries.chains)
    places = ", ".join(one.namespace for one in entries.chains)
    message = f"Filters judge {hosts} chains of hosts, and the ports {VPN_PORT} and {PROXY_PORT} in {places}."
    if access.mode == LOG_ONLY:
        message += " In mode LogOnly they turn nobody away."
    return TopicCondition(ENTRY_POINTS_FILTERED, "True", "AllFiltered", message)


def _gateway_changed(change: Change) -> bool:
    before, after = (read_gateway(one) if one is not None else None for one in (change.old, change.new))
    return not change.initial and before != after


def _came_or_went(change: Change) -> bool:
    return not change.initial and (change.old is None or change.new is None)


def _egress_changed(change: Change) -> bool:
    """Reports whether the addresses differ as a set; an Infrastructure that comes has none yet."""
    before, after = (
        frozenset(read(ShootInfrastructure, one).status.egress_cidrs or ()) if one is not None else frozenset()
        for one in (change.old, change.new)
    )
    return before != after


__all__ = ["EGRESS_STABLE", "AclTopic"]
