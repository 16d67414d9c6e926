"""A simulated pod's pages follow from its object."""

from __future__ import annotations

import pytest

from hortus.kube.objects import Object
from hortus.simulation.podpages import SimulatedPages


def pod(*, ready: bool, phase: str = "Running") -> Object:
    return {
        "metadata": {"name": "one"},
        "spec": {"containers": [{"name": "a"}, {"name": "b", "ports": [{"containerPort": 42699}]}]},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": str(ready)}]},
    }


async def test_the_status_page_says_whether_the_pod_is_ready() -> None:
    pages = SimulatedPages()
    assert await pages.get("shoot--a", pod(ready=True), 42699, "/status?x") == (
        200,
        b"OK\n",
        "text/plain; charset=utf-8",
    )
    assert (await pages.get("shoot--a", pod(ready=False), 42699, "/status")).code == 503
    assert (await pages.get("shoot--a", pod(ready=True), 42699, "/")).code == 404


async def test_nothing_listens_on_other_ports_or_before_the_pod_runs() -> None:
    for one, port in ((pod(ready=True), 80), (pod(ready=False, phase="Pending"), 42699), ({}, 42699)):
        with pytest.raises(ConnectionError, match="refused"):
            await SimulatedPages().get("shoot--a", one, port, "/status")
