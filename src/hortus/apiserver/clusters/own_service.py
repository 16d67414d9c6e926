"""The Service `default/kubernetes` and its endpoints, by which programs inside a cluster find its API server.

Clients read it to check that a cluster exists (controller-runtime's envtest among them). The objects equal those of
kube-apiserver's endpoint reconciler for one server; one port serves many logical clusters, so the address leads to the
server but not to the cluster's path.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from typing import Any

from hortus.apiserver.builtin.rules.services import API_ADDRESS
from hortus.kube.objects import Object, format_time

_PLACE = {"name": "kubernetes", "namespace": "default"}
_DOCUMENTATION = ("192.0.2.1", 9)
"""An unused address (RFC 5737), to find the source address that this machine would use; nothing is sent."""


def advertised(host: str) -> str:
    """The address by which others reach the server: the one it listens on, or the machine's where that is not
    reachable."""
    try:
        listens = ipaddress.ip_address(host)
    except ValueError:
        listens = None
    if listens is not None and not (listens.is_loopback or listens.is_unspecified):
        return host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_DOCUMENTATION)
        except OSError:
            return host if listens is not None else "127.0.0.1"  # a machine without a network
        return str(probe.getsockname()[0])


def own_service(address: str, port: int, created: float) -> Iterable[Object]:
    """Service, Endpoints and EndpointSlice of a server that is reached at `address` and `port`."""
    https = {"name": "https", "protocol": "TCP", "port": port}
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata("v1", {"component": "apiserver", "provider": "kubernetes"}, created, _SERVICE_FIELDS),
        "spec": {
            "ports": [{**https, "port": 443, "targetPort": port}],
            "clusterIP": API_ADDRESS,
            "clusterIPs": [API_ADDRESS],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    }
    yield {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": _metadata("v1", {"endpointslice.kubernetes.io/skip-mirror": "true"}, created, {"f:subsets": {}}),
        "subsets": [{"addresses": [{"ip": address}], "ports": [https]}],
    }
    labels = {"kubernetes.io/service-name": "kubernetes"}
    slices = "discovery.k8s.io/v1"
    yield {
        "apiVersion": slices,
        "kind": "EndpointSlice",
        "metadata": {**_metadata(slices, labels, created, _SLICE_FIELDS), "generation": 1},
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [https],
    }


def _metadata(api_version: str, labels: dict[str, str], created: float, fields: Object) -> dict[str, Any]:
    owned = {"f:metadata": {"f:labels": {".": {}, **{f"f:{key}": {} for key in labels}}}, **fields}
    entry = {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": api_version,
        "time": format_time(created),
        "fieldsType": "FieldsV1",
        "fieldsV1": dict(sorted(owned.items())),
    }
    return {**_PLACE, "labels": labels, "managedFields": [entry]}


_PORT_FIELDS: Object = {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}}
_SERVICE_FIELDS: Object = {
    "f:spec": {
        "f:clusterIP": {},
        "f:internalTrafficPolicy": {},
        "f:ipFamilyPolicy": {},
        "f:ports": {".": {}, 'k:{"port":443,"protocol":"TCP"}': _PORT_FIELDS},
        "f:sessionAffinity": {},
        "f:type": {},
    }
}
_SLICE_FIELDS: Object = {"f:addressType": {}, "f:endpoints": {}, "f:ports": {}}
