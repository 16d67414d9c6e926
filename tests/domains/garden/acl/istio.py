"""The configuration that Istio gives the Envoy of a gateway, as far as access lists depend on it, and EnvoyFilters.

Sources: istio, pilot/pkg/networking/core (gateway.go, listener_builder.go) for listeners and chains, and
pilot/pkg/networking/core/envoyfilter for the meaning of patches.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_API = "type.googleapis.com/envoy.extensions"
TCP = f"{_API}.filters.network.tcp_proxy.v3.TcpProxy"
HTTP = f"{_API}.filters.network.http_connection_manager.v3.HttpConnectionManager"
HTTP_NAME = "envoy.filters.network.http_connection_manager"
_HTTP_RBAC = f"{_API}.filters.http.rbac.v3.RBAC"
_ROUTER = f"{_API}.filters.http.router.v3.Router"
_INSPECTOR = f"{_API}.filters.listener.tls_inspector.v3.TlsInspector"
_PROXY_PROTOCOL = f"{_API}.filters.listener.proxy_protocol.v3.ProxyProtocol"
_TLS = f"{_API}.transport_sockets.tls.v3.DownstreamTlsContext"
_RUNTIME = {"re2.max_program_size.error_level": 32768}
"""Part of the bootstrap configuration of Istio (tools/packaging/common/envoy_bootstrap.json)."""
TLS_PORT = 9443
"""The port that the Service of a gateway sends 443 to."""


class Server(NamedTuple):
    """One server of a Gateway: one filter chain."""

    hosts: tuple[str, ...]
    ends_tls: bool = False
    """True where the gateway ends TLS and routes requests, False where it passes TLS on."""


def bootstrap(
    servers: Iterable[Server],
    http_ports: Iterable[int],
    clusters: Iterable[str],
    *,
    ports: dict[int, int],
    admin: int,
    backend: int,
    certificate: str,
    proxied: bool,
    runtime: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The configuration of a gateway; `ports` are real ones by those of the gateway, `clusters` all lead to one end.

    `proxied` puts a load balancer before it that speaks the PROXY protocol, `runtime` changes settings of Envoy.
    """
    before = [_typed("proxy", _PROXY_PROTOCOL)] if proxied else []
    chains = [_chain(one, certificate) for one in servers]
    made = [
        _listener(TLS_PORT, ports, [*before, _typed("inspector", _INSPECTOR)], chains),
        *(_listener(port, ports, before, [{"filters": [_blackhole(port)]}]) for port in http_ports),
    ]
    return {
        "admin": {"address": _address(admin)},
        "layered_runtime": {"layers": [{"name": "istio", "static_layer": {**_RUNTIME, **(runtime or {})}}]},
        "static_resources": {
            "listeners": [one for one in made if one["filter_chains"]],
            "clusters": [_cluster(name, backend) for name in ("backend", *clusters)],
        },
    }


def _chain(server: Server, certificate: str) -> dict[str, Any]:
    match = {"server_names": list(server.hosts)}
    if not server.ends_tls:
        return {"filter_chain_match": match, "filters": [_typed("tcp", TCP, stat_prefix="tcp", cluster="backend")]}
    files = {"certificate_chain": {"filename": certificate}, "private_key": {"filename": certificate}}
    tls = {"alpn_protocols": ["h2", "http/1.1"], "tls_certificates": [files]}
    # Istio has a route configuration for each server, so that a request can name no host but those of its chain.
    names = [name for host in server.hosts for name in (host, f"{host}:*")]
    routes = {"match": {"prefix": "/"}, "direct_response": {"status": 200, "body": {"inline_string": "let in"}}}
    virtual = {"name": server.hosts[0], "domains": names, "routes": [routes]}
    return {
        "filter_chain_match": match,
        "transport_socket": _typed("envoy.transport_sockets.tls", _TLS, common_tls_context=tls),
        "filters": [_http({"name": "https.443.tls", "virtual_hosts": [virtual]})],
    }


def _blackhole(port: int) -> dict[str, Any]:
    """The routes of a Gateway without a VirtualService."""
    virtual = {"name": f"blackhole:{port}", "domains": ["*"], "routes": []}
    return _http({"name": f"http.{port}", "virtual_hosts": [virtual]})


def _http(routes: dict[str, Any]) -> dict[str, Any]:
    return _typed(
        HTTP_NAME,
        HTTP,
        stat_prefix="http",
        use_remote_address=True,
        server_name="istio-envoy",
        normalize_path=True,
        route_config=routes,
        http_filters=[_typed("envoy.filters.http.router", _ROUTER)],
    )


def _cluster(name: str, backend: int) -> dict[str, Any]:
    endpoint = {"endpoint": {"address": _address(backend)}}
    load = {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]}
    return {"name": name, "type": "STATIC", "connect_timeout": "5s", "load_assignment": load}


def _listener(port: int, ports: dict[int, int], before: list[Any], chains: list[Any]) -> dict[str, Any]:
    return {
        "name": f"0.0.0.0_{port}",
        "address": _address(ports[port]),
        "listener_filters": before,
        "filter_chains": chains,
    }


def _typed(name: str, type_: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "typed_config": {"@type": type_, **fields}}


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def patched(bootstrap: dict[str, Any], filters: Iterable[dict[str, Any]], labels: dict[str, str]) -> dict[str, Any]:
    """The configuration with the patches that Istio makes of the EnvoyFilters for pods with `labels`.

    A patch that inserts must fit exactly one place, unless it is for a port that the gateway does not have: one that
    Istio would silently leave out is an open gateway.
    """
    made = copy.deepcopy(bootstrap)
    for found in filters:
        wanted = found["spec"]["workloadSelector"]["labels"]
        if not wanted.items() <= labels.items():
            continue
        for one in found["spec"]["configPatches"]:
            assert one["match"]["context"] == "GATEWAY"
            _patch(made, one, found["metadata"]["name"])
    return made


def _patch(made: dict[str, Any], one: dict[str, Any], name: str) -> None:
    operation, value = one["patch"]["operation"], one["patch"]["value"]
    if operation == "MERGE":
        for filters in _places(made, "NETWORK_FILTER", one["match"]["listener"]):
            for target in filters:
                if target["name"] == value["name"]:
                    _merge(target["typed_config"], value["typed_config"])
        return
    assert operation == "INSERT_FIRST", operation
    listeners = {int(found["name"].rpartition("_")[2]) for found in made["static_resources"]["listeners"]}
    match = one["match"]["listener"]
    if match.get("portNumber", TLS_PORT) not in listeners:
        return
    places = list(_places(made, one["applyTo"], match))
    assert len(places) == 1, f"{name} fits {len(places)} places"
    places[0].insert(0, _as_istio_reads(value))


def _merge(target: dict[str, Any], value: dict[str, Any]) -> None:
    """Protobuf's merge of messages, except that the routes replace those that the listener would ask for."""
    for key, part in value.items():
        if isinstance(part, dict) and isinstance(target.get(key), dict) and key != "route_config":
            _merge(target[key], part)
        elif isinstance(part, list) and key in target:
            target[key] = [*target[key], *part]
        else:
            target[key] = copy.deepcopy(part)


def _as_istio_reads(value: dict[str, Any]) -> dict[str, Any]:
    """The patch without the field that the Go extension sets and Envoy's HTTP filter does not have.

    Istio drops unknown fields of patches; Envoy refuses them here, so that a second one does not pass unseen.
    """
    config = dict(value["typed_config"])
    if config["@type"] == _HTTP_RBAC:
        del config["stat_prefix"]
    return {**value, "typed_config": config}


def _places(bootstrap: dict[str, Any], kind: str, match: dict[str, Any]) -> Iterator[list[Any]]:
    assert match.keys() <= {"portNumber", "filterChain", "name"}, match
    for listener in bootstrap["static_resources"]["listeners"]:
        port = int(listener["name"].rpartition("_")[2])
        if match.get("portNumber", port) != port or match.get("name", listener["name"]) != listener["name"]:
            continue
        for chain in listener["filter_chains"]:
            if not _is_of(chain, match.get("filterChain", {})):
                continue
            if kind == "NETWORK_FILTER":
                yield chain["filters"]
            elif (config := chain["filters"][-1]["typed_config"])["@type"] == HTTP:
                yield config["http_filters"]


def _is_of(chain: dict[str, Any], match: dict[str, Any]) -> bool:
    names: Sequence[str] = chain.get("filter_chain_match", {}).get("server_names", ())
    wanted = match.get("filter", {}).get("name")
    return match.get("sni") in (None, *names) and wanted in (None, *(one["name"] for one in chain["filters"]))
