"""A kubelet makes its Node with the status in it, and a real API server keeps that."""

from __future__ import annotations

from tests.apiserver.wire import Wire


async def test_a_node_is_made_with_its_status(wire: Wire) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "fine"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-1"}, "status": {"conditions": [ready]}}
    created = await wire.post("/api/v1/nodes", node)
    assert created.code == 201
    [kept] = created.body["status"]["conditions"]
    assert kept.items() >= ready.items()
    changed = await wire.merge("/api/v1/nodes/n-1", {"status": {"conditions": []}})
    assert changed.body["status"]["conditions"] == [kept]
    table = await wire.get("/api/v1/nodes/n-1", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert table.body["rows"][0]["cells"][:2] == ["n-1", "Ready"]


async def test_other_kinds_lose_a_status_that_was_sent_along(wire: Wire, namespace: str) -> None:
    pod = {"spec": {"containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "Succeeded"}}
    created = await wire.post(f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": "p"}, **pod})
    assert created.body["status"]["phase"] == "Pending"
