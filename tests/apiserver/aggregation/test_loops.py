"""The loops of the server that delete, where another server has objects and does not answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.apiserver.aggregation.test_content import until
from tests.apiserver.wire import Answer, Wire, connected

from hortus.apiserver.aggregation.apiservices import RemoteApi, RemoteApis, ServiceReference
from hortus.apiserver.aggregation.content import RemoteContent
from hortus.apiserver.namespaces import NamespaceController
from hortus.apiserver.registrations import CUSTOM
from hortus.testing.apiserver import TestServer, running_apiserver
from hortus.testing.clock import FakeClock

APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
SPACE = "/api/v1/namespaces/x"
AWAY = {
    "metadata": {"name": "v1.behind.example.com"},
    "spec": {
        "group": "behind.example.com",
        "version": "v1",
        "service": {"namespace": "default", "name": "behind"},
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 2000,
        "versionPriority": 10,
    },
}


async def deleted(wire: Wire) -> None:
    """Deletes the namespace, which waits for a server that is away."""
    assert (await wire.post(APISERVICES, AWAY)).code == 201
    await wire.delete(SPACE)
    await until(lambda: wire.get(SPACE), discovery_failed)


async def settled(server: TestServer) -> None:
    """Returns when the loop of namespaces has nothing to do."""
    await asyncio.to_thread(server.run, server.server.namespaces.queue.settled())


def discovery_failed(answer: Answer) -> bool:
    conditions = answer.body.get("status", {}).get("conditions") or ()
    return ("NamespaceDeletionDiscoveryFailure", "True") in [(each["type"], each["status"]) for each in conditions]


async def test_a_restart_keeps_a_namespace_whose_content_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        running_apiserver(store="sqlite", folder=tmp_path) as server,
        connected(server.url, server.token, server.tls()) as wire,
    ):
        assert (await wire.post("/api/v1/namespaces", {"metadata": {"name": "x"}})).code == 201
        await deleted(wire)
    controllers: list[NamespaceController] = []
    survey, begin = RemoteApis.start, NamespaceController.start

    async def noted(self: NamespaceController) -> None:
        controllers.append(self)
        await begin(self)

    async def slow(self: RemoteApis) -> None:
        """Reads the APIServices once all that has begun before is done."""
        for controller in controllers:
            await controller.queue.settled()
        await survey(self)

    monkeypatch.setattr(NamespaceController, "start", noted)
    monkeypatch.setattr(RemoteApis, "start", slow)
    async with (
        running_apiserver(store="sqlite", folder=tmp_path) as server,
        connected(server.url, server.token, server.tls()) as wire,
    ):
        await settled(server)
        assert (await wire.get(SPACE)).code == 200


async def test_a_namespace_waits_for_one_next_look() -> None:
    """Each object that goes is a reason to look; none of these looks leaves a timer of its own."""
    clock = FakeClock()
    async with running_apiserver(clock=clock) as server, connected(server.url, server.token, server.tls()) as wire:
        assert (await wire.post("/api/v1/namespaces", {"metadata": {"name": "x"}})).code == 201
        for number in range(10):
            held = {"name": f"held-{number}", "finalizers": ["example.com/held"]}
            assert (await wire.post(f"{SPACE}/configmaps", {"metadata": held})).code == 201
        await deleted(wire)
        await settled(server)
        before = clock.sleepers
        for number in range(10):
            await wire.merge(f"{SPACE}/configmaps/held-{number}", {"metadata": {"finalizers": None}})
            await settled(server)
        assert (await wire.get(SPACE)).code == 200
        assert clock.sleepers == before


async def test_a_cluster_scoped_object_with_a_namespaced_owner_elsewhere_stays() -> None:
    """As with owners of this server: it is asked for nowhere."""
    api = RemoteApi("g", "v1", ServiceReference("n", "s", 443), b"", True, CUSTOM, True)
    resource = {"resource": "things", "responseKind": {"kind": "Thing"}, "scope": "Namespaced", "verbs": ["get"]}

    class Apis:
        def of(self, cluster: str) -> dict[tuple[str, str], RemoteApi]:
            return {("g", "v1"): api}

    class Documents:
        def entry(self, *of: str) -> dict[str, object]:
            return {"freshness": "Current", "resources": [resource]}

    content = RemoteContent(Apis(), Documents(), None)  # type: ignore[arg-type]
    owner = {"apiVersion": "g/v1", "kind": "Thing", "name": "x", "uid": "u"}
    assert await content.state("root", "", owner) == "present"
