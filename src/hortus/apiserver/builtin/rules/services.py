"""Services: addresses and ports are allocated here, since no controller does it.

An address is the hash of the Service's namespace and name within the logical cluster's service range, a node port that
of the Service and its port: the same Service gets the same numbers again, and no allocator has to be stored or shared.
Two Services may share an address; nothing routes by it.
"""

from __future__ import annotations

import hashlib
import ipaddress
from typing import Any

from hortus.apiserver.builtin.names import port_name, port_number
from hortus.apiserver.builtin.problems import duplicate, every, forbidden, invalid, required
from hortus.apiserver.builtin.rules.selectors import labels
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.errors import BadRequest
from hortus.kube.naming import dns_1035_label, dns_label, dns_subdomain
from hortus.kube.objects import Object

_RANGE = ipaddress.IPv4Network("10.96.0.0/12")
API_ADDRESS = "10.96.0.1"
_NODE_PORTS = range(30000, 32768)
_NO_NODE_PORT = "provided port is not in the valid range. The range of valid ports is 30000-32767"
_AFFINITY_SECONDS = 10800
_HEADLESS = "None"


def _ingress(obj: Object) -> list[Object]:
    """The addresses of the load balancer; a write of the status may leave out any part of it."""
    return ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []


def _hash(*parts: str) -> int:
    return int.from_bytes(hashlib.blake2s("\0".join(parts).encode(), digest_size=8).digest(), "big")


def cluster_ip(namespace: str, name: str) -> str:
    """The address of a Service; the API server's own Service has the first of the range, as in every cluster."""
    if (namespace, name) == ("default", "kubernetes"):
        return API_ADDRESS
    reserved = 256
    return str(_RANGE[reserved + _hash(namespace, name) % (_RANGE.num_addresses - reserved - 1)])


class ServiceStrategy(BuiltinStrategy):
    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        spec = obj["spec"]
        before = old["spec"] if old is not None else {}
        _default_ports(spec)
        _default_policies(spec)
        if before:
            if "ExternalName" not in (spec["type"], before.get("type", "ExternalName")):
                _keep_addresses(spec, before)
            if _has_node_ports(spec):
                _keep_node_ports(spec, before)
        else:
            obj["status"] = {"loadBalancer": {}}

    def allocate(self, obj: Object, old: Object | None) -> None:
        """Allocates addresses and ports, which have no owner in managedFields, and removes those of another type."""
        spec = obj["spec"]
        if old is not None:
            _drop_dependent(spec, old["spec"])
        if spec["type"] != "ExternalName":
            _default_addresses(obj, spec)
        if _has_node_ports(spec):
            _allocate_node_ports(obj, spec)
        if spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local":
            spec.setdefault("healthCheckNodePort", _free_port(obj, spec, "health check"))

    def prepare_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        super().prepare_update(obj, old, context)
        if context.subresource == "status":
            for ingress in _ingress(obj):
                if ingress.get("ip"):
                    ingress.setdefault("ipMode", "VIP")

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        if context.subresource != "status":
            return super().validate_update(obj, old, context)
        if not _ingress(obj) or obj["spec"]["type"] == "LoadBalancer":
            return []
        return [forbidden("status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'")]

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec, name = obj["spec"], obj["metadata"].get("name", "")
        found = every("metadata.name", name, dns_1035_label(name)) if not dns_label(name) else []
        headless = spec.get("clusterIP") == _HEADLESS
        if not spec.get("ports") and not headless and spec["type"] != "ExternalName":
            found.append(required("spec.ports"))
        if spec["type"] == "ExternalName":
            found += _external_name(spec)
        elif spec.get("ipFamilyPolicy") == "RequireDualStack" and (not headless or spec.get("selector")):
            why = "this cluster is not configured for dual-stack services"
            found.append(invalid("spec.ipFamilyPolicy", "RequireDualStack", why))
        if spec["type"] == "LoadBalancer" and headless:
            found.append(invalid("spec.clusterIPs[0]", _HEADLESS, "may not be set to 'None' for LoadBalancer services"))
        found += _ports(spec)
        found += labels(spec.get("selector"), "spec.selector")
        for place, address in enumerate(spec.get("clusterIPs") or []):
            found += _address(address, f"spec.clusterIPs[{place}]")
        return found

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        spec, before = obj["spec"], old["spec"]
        if "ExternalName" in (spec["type"], before.get("type")) or not before.get("clusterIP"):
            return []
        if spec.get("clusterIP") == before["clusterIP"]:
            return []
        return [invalid("spec.clusterIPs[0]", spec.get("clusterIPs"), "may not change once set")]


def _default_ports(spec: dict[str, Any]) -> None:
    for port in spec.get("ports") or []:
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)


def _default_policies(spec: dict[str, Any]) -> None:
    kind = spec["type"]
    if spec["sessionAffinity"] == "ClientIP":
        config = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        config.setdefault("timeoutSeconds", _AFFINITY_SECONDS)
    if kind != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _keep_addresses(spec: dict[str, Any], before: dict[str, Any]) -> None:
    """Keeps allocated addresses that an update omits."""
    if not spec.get("clusterIP"):
        given = spec.get("clusterIPs") or []
        spec["clusterIP"] = (given[0] if given else "") or before.get("clusterIP", "")
    if not spec.get("clusterIPs") or spec.get("clusterIPs") == before.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    for field in ("ipFamilies", "ipFamilyPolicy"):
        if before.get(field):
            spec.setdefault(field, before[field])


def _default_addresses(obj: Object, spec: dict[str, Any]) -> None:
    if not spec.get("clusterIP"):
        given, metadata = spec.get("clusterIPs") or [], obj["metadata"]
        fresh = cluster_ip(metadata.get("namespace", ""), metadata.get("name", ""))
        spec["clusterIP"] = (given[0] if given else "") or fresh
    if not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    bare_headless = spec["clusterIP"] == _HEADLESS and not spec.get("selector")
    families = ["IPv6", "IPv4"] if ":" in spec["clusterIP"] else ["IPv4", "IPv6"]
    spec.setdefault("ipFamilies", families if bare_headless else families[:1])
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if bare_headless else "SingleStack")


def _drop_dependent(spec: dict[str, Any], before: dict[str, Any]) -> None:
    """Removes the values that were allocated for the old type of a Service, unless its owner changed them."""
    kind = spec["type"]
    dropped: list[str] = []
    if kind == "ExternalName":
        dropped += ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]
    if kind not in ("NodePort", "LoadBalancer"):
        dropped.append("externalTrafficPolicy")
        known = {(port.get("protocol"), port.get("port")): port.get("nodePort") for port in before.get("ports") or []}
        for port in spec.get("ports") or []:
            if port.get("nodePort") and port["nodePort"] == known.get((port.get("protocol"), port.get("port"))):
                del port["nodePort"]
    if kind != "LoadBalancer":
        dropped += ["allocateLoadBalancerNodePorts", "healthCheckNodePort", "loadBalancerClass"]
    for field in dropped:
        if field in spec and spec[field] == before.get(field) and before.get("type") != kind:
            del spec[field]


def _has_node_ports(spec: dict[str, Any]) -> bool:
    if spec["type"] == "LoadBalancer":
        return bool(spec.get("allocateLoadBalancerNodePorts"))
    return bool(spec["type"] == "NodePort")


def _keep_node_ports(spec: dict[str, Any], before: dict[str, Any]) -> None:
    known = {(p.get("protocol"), p.get("port")): p.get("nodePort") for p in before.get("ports") or []}
    ports = spec.get("ports") or []
    taken = {port["nodePort"] for port in ports if port.get("nodePort")}
    for port in ports:
        number = known.get((port.get("protocol"), port.get("port")))
        if not port.get("nodePort") and number and number not in taken:
            port["nodePort"] = number
            taken.add(number)


def _allocate_node_ports(obj: Object, spec: dict[str, Any]) -> None:
    for port in spec.get("ports") or []:
        if not port.get("nodePort"):
            port["nodePort"] = _free_port(obj, spec, str(port.get("port")))


def _free_port(obj: Object, spec: dict[str, Any], purpose: str) -> int:
    """A node port that the Service does not use yet; the same port for the same purpose."""
    metadata = obj["metadata"]
    taken = {port.get("nodePort") for port in spec.get("ports") or []}
    free = [candidate for candidate in _NODE_PORTS if candidate not in taken]
    if not free:
        raise BadRequest(f"spec.ports: there are {len(_NODE_PORTS)} node ports for all that a Service may ask for")
    return free[_hash(metadata.get("namespace", ""), metadata.get("name", ""), purpose) % len(free)]


def _external_name(spec: dict[str, Any]) -> list[FieldProblem]:
    name = (spec.get("externalName") or "").removesuffix(".")
    found = every("spec.externalName", name, dns_subdomain(name)) if name else [required("spec.externalName")]
    if spec.get("clusterIP") or spec.get("clusterIPs"):
        found.append(forbidden("spec.clusterIPs", "may not be set for ExternalName services"))
    return found


def _ports(spec: dict[str, Any]) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    ports = spec.get("ports") or []
    names: set[str] = set()
    seen: set[tuple[Any, Any]] = set()
    for place, port in enumerate(ports):
        path, name = f"spec.ports[{place}]", port.get("name", "")
        if name:
            found += every(f"{path}.name", name, dns_label(name))
            if name in names:
                found.append(duplicate(f"{path}.name", name))
            names.add(name)
        elif len(ports) > 1:
            found.append(required(f"{path}.name"))
        found += every(f"{path}.port", port.get("port", 0), port_number(port.get("port", 0)))
        target = port.get("targetPort")
        wrong = port_number(target) if isinstance(target, int) else port_name(target or "")
        found += every(f"{path}.targetPort", target, wrong)
        if port.get("nodePort") and spec["type"] in ("ClusterIP", "ExternalName"):
            sentence = f"may not be used when `type` is '{spec['type']}'"
            found.append(forbidden(f"{path}.nodePort", sentence))
        elif port.get("nodePort") and port["nodePort"] not in _NODE_PORTS:
            found.append(invalid(f"{path}.nodePort", port["nodePort"], _NO_NODE_PORT))
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            found.append(duplicate(path, {"protocol": key[0], "port": key[1]}))
        seen.add(key)
    return found


def _address(address: str, path: str) -> list[FieldProblem]:
    if address == _HEADLESS:
        return []
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return [invalid(path, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    return []


STRATEGIES: dict[str, type[BuiltinStrategy]] = {"core.Service": ServiceStrategy}
