"""A gateway of a seed, as Gardener makes it: its EnvoyFilters, and what it has for one Shoot, by Gardener's version.

The facts are those of gardener 1.120, 1.130, 1.139, 1.148, 1.149 and 1.150:
pkg/component/networking/istio/charts/istio/istio-ingress (listeners, routes, headers), pkg/component/kubernetes/
apiserverexposure (Gateways and clusters), pkg/component/observability (dashboards), docs/deployment/feature_gates.md.
`test_gateway_of_gardener.py` compares the routes with the chart, where its source is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.domains.garden.acl.istio import HTTP, HTTP_NAME, Server

VPN_PORT, PROXY_PORT = 8132, 8443
HEADERS = {VPN_PORT: "Reversed-VPN", PROXY_PORT: "X-Gardener-Destination"}
_SERVICES = r"outbound\|(1194\|\|vpn-seed-server(-[0-4])?|443\|\|kube-apiserver)\..*\.svc\.cluster\.local"
_OLD_SOCKET = r"shoot--.*--.*--kube-apiserver-socket"
_SOCKET = r"(shoot-[a-z0-9]+(-[a-z0-9]+)*|shoot--[a-z0-9]+(-[a-z0-9]+)*--[a-z0-9]+(-[a-z0-9]+)*)--kube-apiserver-socket"
INGRESS = "ingress.seed.example.org"
DASHBOARDS = {
    "plutono": ("gu",),
    "alertmanager-shoot": ("au",),
    "prometheus-shoot": ("p",),
    "opentelemetry-collector": ("otc", "v"),
}
"""Prefixes of the hosts of the Gateways that each Shoot has where the seed has no nginx."""


class Release(NamedTuple):
    """The defaults of one version of Gardener."""

    version: str
    vpn_port: bool = True
    proxy_port: bool = True
    ends_tls: bool = True
    """True where the gateway ends TLS of kube-apiservers (gate IstioTLSTermination)."""
    nginx: bool = False
    """True where dashboards are behind nginx (gate DisableNginxIngressInSeed off)."""
    old_routes: bool = False
    """True where the routes take a wider expression, until a version between 1.130 and 1.139."""

    @property
    def ports(self) -> tuple[int, ...]:
        return (VPN_PORT,) * self.vpn_port + (PROXY_PORT,) * self.proxy_port

    @property
    def pattern(self) -> str:
        return f"^({_SERVICES}|{_OLD_SOCKET if self.old_routes else _SOCKET})$"


RELEASES = (
    Release("1.120 to 1.129", proxy_port=False, ends_tls=False, nginx=True, old_routes=True),
    Release("1.130 to 1.143", ends_tls=False, nginx=True, old_routes=True),
    Release("1.144 to 1.148", nginx=True),
    Release("1.149 and 1.150"),
)


class SeedShoot(NamedTuple):
    """A Shoot on the seed."""

    short_id: str
    wildcard: str = "same"
    """Place of the host of the wildcard certificate: the same gateway, `other`, or none."""
    prefix: str = "shoot--"
    """Begin of the technical ID; that of old Shoots has one dash."""

    @property
    def technical_id(self) -> str:
        return f"{self.prefix}{self.short_id}"

    @property
    def hosts(self) -> tuple[str, str]:
        """The external and the internal host."""
        project, _, name = self.short_id.partition(self.prefix.removeprefix("shoot"))
        return f"api.{name}.{project}.example.org", f"api.{name}.{project}.internal.example.org"

    def dashboard(self, prefix: str) -> str:
        return f"{prefix}-{self.short_id}.{INGRESS}"

    @property
    def wildcard_host(self) -> str:
        return self.dashboard("api")

    @property
    def service(self) -> str:
        return f"outbound|443||kube-apiserver.{self.technical_id}.svc.cluster.local"

    @property
    def socket(self) -> str:
        return f"{self.technical_id}--kube-apiserver-socket"

    @property
    def vpn(self) -> tuple[str, str]:
        """The VPN alone, and one of several."""
        first, second = (
            f"outbound|1194||vpn-seed-server{end}.{self.technical_id}.svc.cluster.local" for end in ("", "-1")
        )
        return first, second

    def clusters(self, release: Release) -> tuple[str, ...]:
        """The clusters that a gateway knows for the Shoot; Services of others are hidden from it by exportTo."""
        return (self.service, *self.vpn, *((self.socket,) if release.ends_tls else ()))


def gateways_of(shoot: SeedShoot, release: Release, *, place: str = "") -> list[tuple[str, list[Server]]]:
    """The Gateways of a Shoot with their servers: those on its own gateway, or those on `other`."""
    wildcard = (Server((shoot.wildcard_host,), release.ends_tls),) if shoot.wildcard != "none" else ()
    own = Server(shoot.hosts, release.ends_tls)
    if shoot.wildcard == "same" and not release.ends_tls:
        own, wildcard = Server((*shoot.hosts, shoot.wildcard_host)), ()
    boards = [
        (name, [Server(tuple(map(shoot.dashboard, prefixes)), ends_tls=True)])
        for name, prefixes in ({} if release.nginx else DASHBOARDS).items()
    ]
    if shoot.wildcard == "other":
        on_other = [("kube-apiserver-wildcard", list(wildcard)), *boards]
        return on_other if place == "other" else [("kube-apiserver", [own])]
    return [] if place == "other" else [("kube-apiserver", [own, *wildcard]), *boards]


def servers_of(shoots: list[SeedShoot], release: Release, *, place: str = "") -> list[Server]:
    """All servers of one gateway."""
    made = [one for shoot in shoots for _, servers in gateways_of(shoot, release, place=place) for one in servers]
    # nginx is at the default gateway, which is `other` for a Shoot that has one of its own.
    shared = [Server((f"*.{INGRESS}",))] if release.nginx else []
    return [*made, *shared]


def envoy_filters(release: Release, labels: dict[str, str]) -> list[dict[str, Any]]:
    """The EnvoyFilters of a gateway that matter here."""
    return [_routes(port, release, labels) for port in release.ports]


def _routes(port: int, release: Release, labels: dict[str, str]) -> dict[str, Any]:
    config = {
        "@type": HTTP,
        "http_protocol_options": {"accept_http_10": True},
        "upgrade_configs": [{"upgrade_type": "CONNECT"}],
        "route_config": route_config(port, release),
    }
    match = {"filterChain": {"filter": {"name": HTTP_NAME}}, "portNumber": port}
    patch = {"operation": "MERGE", "value": {"name": HTTP_NAME, "typed_config": config}}
    return {
        "metadata": {"name": HEADERS[port].lower()},
        "spec": {
            "workloadSelector": {"labels": labels},
            "configPatches": [
                {"applyTo": "NETWORK_FILTER", "match": {"context": "GATEWAY", "listener": match}, "patch": patch}
            ],
        },
    }


def route_config(port: int, release: Release) -> dict[str, Any]:
    """The routes of a port: CONNECT goes to the cluster that the header names, all else is sent away."""
    header = HEADERS[port]
    named = {"name": header, "string_match": {"safe_regex": {"regex": release.pattern}}}
    upgrade = {"upgrade_type": "CONNECT", "connect_config": {}}
    away = {"https_redirect": True, "port_redirect": 443}
    return {
        "virtual_hosts": [
            {
                "name": {VPN_PORT: "reversed-vpn-tls-tunnel", PROXY_PORT: "http-proxy"}[port],
                "domains": ["*"],
                "routes": [
                    {
                        "match": {"connect_matcher": {}, "headers": [named]},
                        "route": {"cluster_header": header, "upgrade_configs": [upgrade]},
                    },
                    {"match": {"connect_matcher": {}}, "redirect": away},
                    {"match": {"prefix": "/"}, "redirect": away},
                ],
            }
        ]
    }
