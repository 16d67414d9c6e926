"""2.1.12, 2.2.1 and 5.2: the times between reconciles, and the metrics of Manifests."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from tests.domains.modules.manifests.world import (
    HOME,
    ModuleWorld,
    config_map,
    deployment,
    is_ready,
    operation,
    state,
)
from tests.waiting import until

from hortus.domains.modules.manifests.controller import varied
from hortus.domains.modules.manifests.metrics import SLOW, ManifestMetrics
from hortus.domains.modules.names import Label, State
from hortus.domains.modules.types import MANIFESTS
from hortus.kube.objects import ObjectKey

KEY = ObjectKey(HOME, "one-module")


@given(st.floats(1, 1000), st.floats(0, 0.05), st.floats(0, 1), st.integers())
def test_intervals_are_varied_by_the_percentage_at_most(
    seconds: float, probability: float, percentage: float, seed: int
) -> None:
    found = varied(seconds, probability=probability, percentage=percentage, random=Random(seed))
    assert seconds * (1 - percentage) <= found <= seconds * (1 + percentage)


def test_intervals_are_varied_as_often_as_the_probability_says() -> None:
    random = Random(1)
    found = [varied(300.0, probability=0.02, percentage=0.02, random=random) for _ in range(10_000)]
    assert 120 < sum(one != 300.0 for one in found) < 280
    assert {varied(300.0, probability=0.0, percentage=1.0, random=random) for _ in range(100)} == {300.0}


async def test_each_state_has_its_interval(here: ModuleWorld) -> None:
    """A Deployment that is waited for is watched, so that a minute is enough; a StatefulSet is asked every 5 s."""
    here.flags = ["--manifest-requeue-jitter-probability=0"]
    await here.manifest(here.layers.push(deployment()))
    workload = deployment("store")
    store = {**workload, "kind": "StatefulSet", "spec": {**workload["spec"], "serviceName": "store", "replicas": 1}}
    await here.manifest(here.layers.push(store), "asked")
    await here.manifest(here.layers.push(config_map("one")), "skipped", labels={Label.SKIP_RECONCILIATION: "true"})
    async with here.controllers():
        assert here.reconciler is not None
        await here.until(lambda obj: operation(obj) == "waiting for resources to become ready")
        await here.list_in_status("one-module")

        async def watched() -> float | None:
            """The interval, once the watch of the cluster has begun."""
            assert here.reconciler is not None
            found = await here.reconciler.reconcile(KEY)
            return found.requeue_after if found is not None and found.requeue_after == 60.0 else None

        processing = await until(watched)
        await here.until(lambda obj: operation(obj) == "waiting for resources to become ready", name="asked")
        asked = await here.reconciler.reconcile(ObjectKey(HOME, "asked"))
        await here.become_available("operator")
        await here.until(is_ready)

        async def at_rest() -> float | None:
            """The interval, once a reconcile has found all as it should be."""
            assert here.reconciler is not None
            found = await here.reconciler.reconcile(KEY)
            return found.requeue_after if found is not None and found.requeue_after > 300.0 else None

        ready = await until(at_rest)
        skipped = await here.reconciler.reconcile(ObjectKey(HOME, "skipped"))
    found = [one.requeue_after if one else None for one in (asked, skipped)]
    assert (processing, found) == (60.0, [5.0, 300.0])
    assert ready == pytest.approx(6 * 3600.0, rel=0.28)


async def test_requeues_are_counted_by_the_step_that_asked_for_them(here: ModuleWorld) -> None:
    ref = here.layers.push(config_map("one"))
    here.layers.break_down(ref)
    await here.manifest(ref)

    async with here.controllers() as manager:

        def count(reason: str, kind: str) -> float:
            labels = {"requeue_reason": reason, "requeue_type": kind}
            return manager.registry.get_sample_value("lifecycle_mgr_requeue_reason_total", labels) or 0.0

        await here.until(lambda obj: state(obj) == "Error")
        here.layers.broken.clear()
        await here.until(is_ready)
        await here.until_at_rest()
        assert count("manifest_render_resources", "unexpected") >= 1
        assert count("manifest_reconcile_finished", "intended") >= 1


async def test_the_state_of_a_mandatory_module_is_a_metric(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one")), labels={Label.MANDATORY_MODULE: "true"})
    async with here.controllers() as manager:
        await here.until(is_ready)
        await here.until_at_rest()

        def series(one: State) -> float | None:
            labels = {"module_name": "one-module", "kyma_name": "one", "state": one.value}
            return manager.registry.get_sample_value("lifecycle_mgr_mandatory_module_state", labels)

        assert [series(one) for one in (State.READY, State.ERROR)] == [1.0, 0.0]
        await here.client.delete(MANIFESTS, "one-module", HOME)
        await here.until_gone()

        async def has_ended() -> bool:
            """The watch has shown the deletion here as well."""
            assert here.reconciler is not None
            await here.reconciler.reconcile(KEY)
            return series(State.READY) is None

        await until(has_ended)
        assert [series(one) for one in State] == [None] * len(State)


@pytest.mark.parametrize(("seconds", "shown"), [(SLOW - 1.0, None), (SLOW, 60.0)])
def test_only_slow_reconciles_are_shown(seconds: float, shown: float | None) -> None:
    registry = CollectorRegistry()
    metrics = ManifestMetrics(registry)
    metrics.took(KEY, seconds)
    labels = {"manifest_name": "one-module"}
    assert registry.get_sample_value("reconcile_duration_seconds", labels) == shown
    metrics.shed(lambda key: False)
    assert registry.get_sample_value("reconcile_duration_seconds", labels) is None
