"""The state of addons as a metric."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from hortus.domains.stacks.metrics import AddonMetrics
from hortus.engine import Cache
from hortus.kube.objects import Object


def addon(name: str, *, ready: bool, **summary: Any) -> Object:
    conditions = [{"type": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z", **summary}] if summary else []
    return {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"clusterRef": {"name": name}},
        "status": {"ready": ready, "conditions": conditions},
    }


def test_clusters_are_counted_by_the_state_of_their_addons() -> None:
    addons, registry = Cache("addons"), CollectorRegistry()
    found = [
        addon("a", ready=True, status="True"),
        addon("b", ready=True, status="True"),
        addon("c", ready=False, status="False", severity="Error", reason="Bad"),
        addon("d", ready=False, status="False", severity="Info", reason="Slow"),
        addon("e", ready=False),
        {"metadata": {"name": "f", "namespace": "team"}, "spec": 5},
    ]
    addons.replace(found, 1)
    registry.register(AddonMetrics(addons))
    lines = [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]
    assert lines == [
        'hortus_stack_addons{state="Ready"} 2.0',
        'hortus_stack_addons{state="Waiting"} 2.0',
        'hortus_stack_addons{state="Failed"} 1.0',
    ]
