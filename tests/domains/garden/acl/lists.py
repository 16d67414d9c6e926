"""Access lists of the Shoots of a gateway, made into filters by the Gateways that Gardener has for these Shoots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.domains.garden.acl.gardener import INGRESS, Release, SeedShoot, gateways_of
from tests.domains.garden.acl.gateway import LABELS, NEWEST
from tests.domains.garden.acl.istio import Server

from hortus.domains.garden.acl.cidrs import parse_cidr
from hortus.domains.garden.acl.config import read_config
from hortus.domains.garden.acl.entrypoints import ReadGateway, api_host, filtered_hosts, read_gateway
from hortus.domains.garden.acl.filters import FilterInputs, GatewayChains, envoy_filters, rivals_of
from hortus.kube.objects import Object

ALWAYS = ("10.96.0.0/11", "10.250.0.0/16")
PLACES = {"": ("istio-ingress", LABELS), "other": ("istio-ingress--other", {"istio": "other"})}
"""Namespaces and labels of the gateways."""


def rule(*cidrs: str, action: str = "ALLOW", type: str = "remote_ip") -> dict[str, Any]:
    return {"cidrs": list(cidrs), "action": action, "type": type}


def filters_of(
    lists: Mapping[SeedShoot, dict[str, Any] | None],
    *,
    release: Release = NEWEST,
    always: tuple[str, ...] = ALWAYS,
) -> list[Object]:
    """The EnvoyFilters of Shoots with their configurations; none of those without one."""
    return [
        made
        for shoot, config in lists.items()
        if config is not None
        for made in envoy_filters(_inputs(shoot, config, release, always, [one.short_id for one in lists]))
    ]


def _inputs(
    shoot: SeedShoot, config: dict[str, Any], release: Release, always: tuple[str, ...], others: list[str]
) -> FilterInputs:
    own = {place: _read(shoot, release, place) for place in PLACES}
    api = own[""][0]
    host = api_host(api, [shoot.hosts[0]])
    hosts = {
        place: tuple(one for gateway in gateways for one in filtered_hosts(gateway, apart=host).hosts)
        for place, gateways in own.items()
    }
    # Dashboards of all Shoots are at the default gateway, which is `other` for a Shoot that has one of its own.
    namespace, labels = PLACES["other" if shoot.wildcard == "other" else ""]
    return FilterInputs(
        technical_id=shoot.technical_id,
        short_id=shoot.short_id,
        access=read_config(config, "").access,
        always=tuple(parse_cidr(one)[0] for one in always),
        host=host,
        gateway_namespace=PLACES[""][0],
        gateway_labels=PLACES[""][1],
        chains=tuple(GatewayChains(*PLACES[place], found) for place, found in hosts.items() if found),
        ingress_domain=INGRESS if release.nginx else "",
        ingress_labels=labels,
        ingress_namespace=namespace,
        rivals=rivals_of(shoot.short_id, others),
    )


def _read(shoot: SeedShoot, release: Release, place: str) -> list[ReadGateway]:
    return [
        read_gateway(gateway_document(name, shoot.technical_id, servers, PLACES[place][1]))
        for name, servers in gateways_of(shoot, release, place=place)
    ]


def gateway_document(name: str, namespace: str, servers: list[Server], labels: dict[str, str]) -> Object:
    """A Gateway of Istio as Gardener writes it."""
    made = [
        {
            "hosts": list(one.hosts),
            "port": {"number": 443, "name": f"tls-{index}", "protocol": "HTTPS" if one.ends_tls else "TLS"},
            "tls": {"mode": "SIMPLE" if one.ends_tls else "PASSTHROUGH"},
        }
        for index, one in enumerate(servers)
    ]
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": labels, "servers": made}}
