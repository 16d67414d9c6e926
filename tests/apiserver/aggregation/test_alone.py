"""A server within a process, which holds a copy of a fleet: the APIServices of the original lead nowhere."""

from __future__ import annotations

from hortus.apiserver import ApiServerSettings, open_server
from hortus.apiserver.registrations import MANAGED
from hortus.apiserver.store import MemoryBackend
from hortus.kube.objects import Object, Resource

SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
BEHIND: Object = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": "v1.behind.example.com"},
    "spec": {
        "group": "behind.example.com",
        "version": "v1",
        "service": {"namespace": "default", "name": "behind"},
        "groupPriorityMinimum": 2000,
        "versionPriority": 10,
    },
}


async def test_a_copy_of_a_fleet_neither_asks_servers_behind_nor_registers_kinds() -> None:
    server = await open_server(ApiServerSettings(in_process=True), MemoryBackend())
    await server.start()
    try:
        local = server.local("root")
        await local.create(SERVICES, BEHIND)
        assert dict(server.aggregation.apis.of("root")) == {}
        await server.aggregation.availability.queue.settled()
        assert (await local.get(SERVICES, "v1.behind.example.com")).get("status", {}) == {}
        written = await local.list(SERVICES, labels=f"{MANAGED}=true")
        assert written == []
    finally:
        await server.stop()
