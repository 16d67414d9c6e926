"""Names of the ACL extension and of the objects around it, as Gardener and the Go extension have them."""

from __future__ import annotations

from typing import Final

from hortus.domains.garden.extension.topic import ExtensionFacts
from hortus.engine.rbac import Permission
from hortus.kube.objects import Resource

ACL: Final = "acl"
FACTS: Final = ExtensionFacts(type=ACL, seed_resource="acl-seed", workerless=True)

GATEWAYS: Final = Resource("networking.istio.io", "v1beta1", "gateways", "Gateway")
ENVOY_FILTERS: Final = Resource("networking.istio.io", "v1alpha3", "envoyfilters", "EnvoyFilter")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
SERVICES: Final = Resource("", "v1", "services", "Service")
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")

API_SERVICE: Final = "kube-apiserver"
EXPORT_TO: Final = "networking.istio.io/exportTo"
"""Annotation of a Service: namespaces whose gateways know it, or `*` for all. Gardener's Istio has no default."""
API_GATEWAY: Final = "kube-apiserver"
"""Gateway in the Shoot's namespace: its selector finds the Deployment that serves the Shoot."""
INGRESS_GATEWAY_NAMESPACE: Final = "garden"
"""Namespace of the Gateway of nginx, which serves the dashboards of all Shoots."""
INGRESS_NAMESPACE: Final = "istio-ingress"
"""The gateway of dashboards is in this namespace, wherever that of a kube-apiserver is."""
GATEWAY_SERVICE: Final = "istio-ingressgateway"
SHOOT_INFO: Final = "shoot-info"
SHOOT_INFO_NAMESPACE: Final = "kube-system"
EGRESS_KEY: Final = "egressCIDRs"

VPN_PORT: Final = 8132
"""Port of the VPN alone, until gardenlet's gate RemoveHTTPProxyLegacyPort is on."""
VPN_HEADER: Final = "reversed-vpn"
PROXY_PORT: Final = 8443
"""The unified HTTP proxy port (gardener, docs/proposals/30-apiserver-proxy.md)."""
PROXY_HEADER: Final = "X-Gardener-Destination"
TLS_PORT: Final = 443
SERVICE_ACCOUNTS: Final = "service-account-issuer"
"""The advertised address that is none of the kube-apiserver."""

PERMISSIONS: Final = (
    Permission(GATEWAYS.group, (GATEWAYS.plural,), ("get", "list", "watch"), "follows the entry points of Shoots"),
    Permission(DEPLOYMENTS.group, (DEPLOYMENTS.plural,), ("list",), "finds the Deployment of a gateway"),
    Permission(
        "", (SERVICES.plural,), ("get",), "reads gateways that know a Shoot", names=(GATEWAY_SERVICE, API_SERVICE)
    ),
    Permission("", (CONFIG_MAPS.plural,), ("get",), "reads the seed's own addresses", names=(SHOOT_INFO,)),
    Permission("extensions.gardener.cloud", ("infrastructures",), ("list", "watch"), "reads addresses of nodes"),
)
"""On the seed."""
