"""Evicting and binding pods."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.wire import Answer
from tests.conformance.api.transcripts import RecordedWire

DONE = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def _pod(wire: RecordedWire, namespace: str, name: str, *, phase: str = "Running", ready: bool = True) -> str:
    """Make a pod, as its kubelet has it run; its path."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0}
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    with wire.unrecorded():
        # A controller may have been faster.
        await wire.post(account, {"metadata": {"name": "default"}})
    made = await wire.post(path, {"metadata": {"name": name, "labels": {"app": "a"}}, "spec": spec})
    assert made.code == 201, made.body
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    assert (await wire.merge(f"{path}/{name}/status", {"status": status})).code == 200
    return f"{path}/{name}"


async def _budget(wire: RecordedWire, namespace: str, name: str = "b", *, selector: Any = None, **status: Any) -> str:
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}} if selector is None else selector}
    made = await wire.post(path, {"metadata": {"name": name}, "spec": spec})
    assert made.code == 201, made.body
    whole = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1} | status
    assert (await wire.merge(f"{path}/{name}/status", {"status": whole})).code == 200
    return f"{path}/{name}"


async def _evict(wire: RecordedWire, path: str, query: str = "", **more: Any) -> Answer:
    name = path.rpartition("/")[2]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **more}
    return await wire.post(f"{path}/eviction{query}", body)


async def test_an_eviction_without_budget_deletes(wire: RecordedWire, namespace: str) -> None:
    path = await _pod(wire, namespace, "a")
    assert (await _evict(wire, path, "?dryRun=All")).code == 201
    assert (await wire.get(path)).code == 200
    answer = await _evict(wire, path)
    assert (answer.code, answer.body) == (201, DONE)
    assert (await wire.get(path)).code == 404
    assert (await _evict(wire, path)).code == 404


async def test_a_budget_gives_as_many_disruptions_as_it_has(wire: RecordedWire, namespace: str) -> None:
    paths = [await _pod(wire, namespace, name) for name in ("a", "b")]
    budget = await _budget(wire, namespace, observedGeneration=1, disruptionsAllowed=1, currentHealthy=2)
    assert (await _evict(wire, paths[0])).code == 201
    status = (await wire.get(budget)).body["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["a"])
    assert [(c["type"], c["status"], c["reason"]) for c in status["conditions"]] == [
        ("DisruptionAllowed", "False", "InsufficientPods")
    ]
    answer = await _evict(wire, paths[1])
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "reason": "TooManyRequests",
        "details": {
            "causes": [
                {
                    "reason": "DisruptionBudget",
                    "message": "The disruption budget b needs 1 healthy pods and has 2 currently",
                }
            ]
        },
        "code": 429,
    }


async def test_a_budget_that_nobody_has_seen_yet_says_wait(wire: RecordedWire, namespace: str) -> None:
    path = await _pod(wire, namespace, "a")
    await _budget(wire, namespace, disruptionsAllowed=5, observedGeneration=0)
    answer = await _evict(wire, path)
    assert (answer.code, answer.headers["Retry-After"]) == (429, "10")
    cause = answer.body["details"]["causes"][0]["message"]
    assert cause == "The disruption budget b is still being processed by the server."


async def test_pods_that_do_not_run_need_no_budget(wire: RecordedWire, namespace: str) -> None:
    await _budget(wire, namespace, observedGeneration=1)
    for phase in ("Succeeded", "Failed", "Pending"):
        assert (await _evict(wire, await _pod(wire, namespace, phase.lower(), phase=phase))).code == 201
    assert (await _evict(wire, await _pod(wire, namespace, "unready", ready=False))).code == 201
    assert (await _evict(wire, await _pod(wire, namespace, "ready"))).code == 429


async def test_two_budgets_for_one_pod_are_an_error(wire: RecordedWire, namespace: str) -> None:
    path = await _pod(wire, namespace, "a")
    await _budget(wire, namespace, "one", observedGeneration=1)
    await _budget(wire, namespace, "two", selector={}, observedGeneration=1)
    answer = await _evict(wire, path)
    assert (answer.code, answer.message) == (
        500,
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    )


async def test_an_eviction_keeps_to_its_preconditions(wire: RecordedWire, namespace: str) -> None:
    path = await _pod(wire, namespace, "a")
    assert (await _evict(wire, path, deleteOptions={"preconditions": {"uid": "other"}})).code == 409
    wrong = await wire.post(f"{path}/eviction", {"metadata": {"name": "b"}})
    assert (wrong.code, wrong.message) == (400, "name in URL does not match name in Eviction object")


@pytest.mark.parametrize("through", ["pods/a/binding", "bindings"])
async def test_a_binding_puts_a_pod_on_a_node_once(wire: RecordedWire, namespace: str, through: str) -> None:
    path = await _pod(wire, namespace, "a", phase="Pending", ready=False)
    binding = {"metadata": {"name": "a", "annotations": {"by": "me"}}, "target": {"kind": "Node", "name": "n"}}
    answer = await wire.post(f"/api/v1/namespaces/{namespace}/{through}", binding)
    assert (answer.code, answer.body) == (201, DONE)
    pod = (await wire.get(path)).body
    assert (pod["spec"]["nodeName"], pod["metadata"]["annotations"]) == ("n", {"by": "me"})
    assert ("PodScheduled", "True") in [(each["type"], each["status"]) for each in pod["status"]["conditions"]]
    again = await wire.post(f"/api/v1/namespaces/{namespace}/{through}", binding)
    assert (again.code, again.message) == (
        409,
        'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n"',
    )


async def test_a_binding_needs_a_node(wire: RecordedWire, namespace: str) -> None:
    path = await _pod(wire, namespace, "a", phase="Pending")
    answer = await wire.post(f"{path}/binding", {"metadata": {"name": "a"}, "target": {"kind": "Node"}})
    assert (answer.code, answer.message) == (500, "target.name: Required value")
    nameless = await wire.post(f"{path}/binding", {"target": {"name": "n"}})
    assert (nameless.code, nameless.message) == (400, "name in URL does not match name in Binding object")
    missing = {"metadata": {"name": "a-none"}, "target": {"name": "n"}}
    assert (await wire.post(f"{path}-none/binding", missing)).code == 404


@pytest.mark.allows("`pods/exec`", "*/resources/pods/*", "*/resources/nodes/proxy", "*/resources/services/proxy")
async def test_discovery_says_what_the_actions_take(wire: RecordedWire) -> None:
    listed = {entry["name"]: entry for entry in (await wire.get("/api/v1")).body["resources"]}
    eviction = listed["pods/eviction"]
    assert (eviction["group"], eviction["version"], eviction["kind"]) == ("policy", "v1", "Eviction")
    assert listed["pods/binding"]["kind"] == "Binding"
    assert listed["serviceaccounts/token"]["kind"] == "TokenRequest"
