"""A fleet at rest: its costs, its metrics, patches suspended and forced, and no credential in any output."""

from __future__ import annotations

from structlog.testing import capture_logs
from tests.domains.clusters.world import World, is_ready

from hortus.domains.clusters.types import RUNTIMES, Annotation
from hortus.kube.errors import Invalid

CANARY = "c4n4ry-t0ken-0123456789"


async def test_at_rest_nothing_is_written_and_nothing_is_asked(here: World) -> None:
    async with here.controlled():
        await here.grow()
        await here.until_event("AdministratorsConfigured")
        await here.rest()
        before, garden, visits = await here.revision(), here.garden_requests.total, here.inside.visits
        await here.rest()
        await here.advance(3600)
        await here.rest()
        assert await here.revision() == before
        assert here.garden_requests.total == garden
        assert here.inside.visits == visits


async def test_a_restart_of_a_ready_fleet_writes_nothing_and_asks_the_garden_for_nothing(here: World) -> None:
    async with here.controlled():
        await here.grow()
        await here.until_event("AdministratorsConfigured")
    before, garden = await here.revision(), here.garden_requests.writes
    async with here.controlled():
        await here.rest()
        assert await here.revision() == before
        assert here.garden_requests.writes == garden
        assert [line for line in here.metrics() if "im_runtime_state{" in line]


async def test_progress_of_an_operation_makes_nobody_look(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        await here.operate("Create", "Processing")
        await here.until_said("Shoot creation in progress")
        await here.rest()
        before = here._ended.total()
        for progress in (10, 30, 50, 70):
            await here.operate("Create", "Processing", progress=progress)
        await here.seen()
        await here.rest()
        assert here._ended.total() == before + 1


async def test_a_suspended_runtime_is_not_patched_until_the_annotation_is_gone(here: World) -> None:
    async with here.controlled():
        await here.grow()
        await here.annotate(Annotation.SUSPEND_PATCH)
        await here.annotate(Annotation.FORCE_PATCH)
        await here.resize(11)
        await here.rest()
        [pool] = (await here.shoot())["spec"]["provider"]["workers"]
        assert pool["maximum"] == 20
        await here.annotate(Annotation.SUSPEND_PATCH, None)
        await here.until_patched(2)
        left = await here.until(
            "Runtime", "rt-1", lambda found: list(found["metadata"].get("annotations") or ()) == [Annotation.CLUSTER]
        )
        assert Annotation.FORCE_PATCH not in (left["metadata"].get("annotations") or {})


async def test_only_true_suspends(here: World) -> None:
    async with here.controlled():
        await here.grow()
        await here.annotate(Annotation.SUSPEND_PATCH, "yes")
        await here.resize(12)
        shoot = await here.until_patched(2)
        assert shoot["spec"]["provider"]["workers"][0]["maximum"] == 12


async def test_the_first_status_after_a_change_comes_before_the_garden_answers(here: World) -> None:
    async with here.controlled():
        await here.grow()
        here.trail.clear()
        here.failures["get", "shoots"] = Invalid("the garden is slow")
        await here.resize(9)
        await here.until_trail(1)
        message = "Shoot is pending for update after patch"
        assert here.trail[0] == ("Pending", ("Provisioned", "Unknown", "Processing", message))


async def test_a_label_that_changes_causes_no_patch(here: World) -> None:
    async with here.controlled():
        await here.grow()
        writes = here.garden_requests.writes
        await here.change({"metadata": {"labels": {"kyma-project.io/global-account-id": "moved"}}})
        await here.rest()
        assert here.garden_requests.writes == writes


async def test_metrics_and_events_carry_the_go_systems_names(here: World) -> None:
    async with here.controlled():
        ready = await here.grow()
        await here.rest()
        [series] = [line for line in here.metrics() if line.startswith("infrastructure_manager_im_runtime_state{")]
        for label in (
            'runtimeId="rt-1"',
            'runtimeName="rt-1"',
            'shootName="c-1"',
            'provider="aws"',
            'state="Ready"',
            'message="Cluster admin configuration complete"',
        ):
            assert label in series
        assert series.endswith(" 1.0")
        assert "unexpected_stops_total 0.0" in here.metrics()
        await here.until_event("AdministratorsConfigured")
    events = await here.events()
    assert {event["source"]["component"] for event in events} == {"runtime-controller"}
    reported = {(event["type"], event["reason"], event["message"]) for event in events}
    assert ("Normal", "Initialised", f"Runtime initialized: {here.namespace}/rt-1") in reported
    assert ("Normal", "GardenerClusterCRReady", f"Gardener Cluster CR is ready.: {here.namespace}/rt-1") in reported
    assert is_ready(ready)


async def test_no_credential_gets_out_of_an_error_of_the_garden(here: World) -> None:
    here.failures["create", "shoots"] = Invalid(f"token: {CANARY} Bearer {CANARY}")
    with capture_logs() as logs:
        async with here.controlled():
            await here.create()
            await here.until_state("Failed")
            await here.rest()
            assert CANARY not in str(here.metrics())
    assert CANARY not in str(await here.client.get(RUNTIMES, "rt-1", here.namespace))
    assert CANARY not in str(await here.events())
    assert CANARY not in str(logs)
