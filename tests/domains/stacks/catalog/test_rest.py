"""The catalogue at rest: nothing is written, rendered or reported twice, however often it is reconciled."""

from __future__ import annotations

from typing import Any

from tests.domains.counting import requests_of
from tests.domains.stacks.catalog.world import HOME, CatalogWorld, condition
from tests.waiting import until

from hortus.domains.stacks.catalog.composition import RELEASES, STACKS
from hortus.domains.stacks.catalog.reasons import CatalogEvent
from hortus.domains.stacks.releases import LIST_AGE
from hortus.domains.stacks.types import CLUSTER_STACKS, STACK_POLICIES
from hortus.engine import Manager
from hortus.kube.clock import SystemClock
from hortus.kube.objects import Object, ObjectKey, Resource

V1, V2 = (f"docker-ferrol-1-27-v{number}" for number in (1, 2))
EVENTS = Resource("", "v1", "events", "Event")


def controller(manager: Manager, name: str) -> Any:
    return next(one for one in manager.controllers if one.name == name)._reconciler


async def test_a_catalogue_that_is_reconciled_again_writes_and_renders_nothing(here: CatalogWorld) -> None:
    here.release(V1)
    await here.create(STACK_POLICIES, "docker", spec={"provider": "docker", "name": "ferrol", "versions": ["v1"]})
    await here.stack("v1", "v2")
    async with here.controllers() as manager:
        await here.ready(V1)
        await until(lambda: _refusals(here))
        releases, stacks = controller(manager, RELEASES), controller(manager, STACKS)

        async def reconciled() -> None:
            await releases.reconcile(ObjectKey(HOME, V1))
            await stacks.reconcile(ObjectKey(HOME, "stack"))

        async def writes_nothing() -> bool:
            return {method for method, *_ in await requests_of(reconciled())} <= {"GET"}

        await until(writes_nothing)
        for _ in range(3):
            assert await writes_nothing()
        assert here.renderer.counts.rendered == 1
    assert [one.get("count", 1) for one in await _refusals(here)] == [1]


async def test_a_stack_that_is_younger_than_the_list_of_releases_is_looked_at_once_more(here: CatalogWorld) -> None:
    """A user publishes a release and makes its ClusterStack, while others have just read the list."""
    await here.stack(autoSubscribe=True)
    async with here.controllers() as manager:
        await here.until(CLUSTER_STACKS, "stack", lambda obj: condition(obj, "ReleasesSynced").get("status") == "True")
        stacks = controller(manager, STACKS)
        result = await stacks.reconcile(ObjectKey(HOME, "stack"))
        assert result is not None
        assert result.requeue_after == LIST_AGE
        stacks.wiring.clock = _Later()
        assert await stacks.reconcile(ObjectKey(HOME, "stack")) is None


class _Later(SystemClock):
    """The clock after the time for which one list serves all."""

    def now(self) -> float:
        return super().now() + LIST_AGE


async def _refusals(here: CatalogWorld) -> list[Object]:
    events = (await here.client.list(EVENTS, HOME)).items
    return [one for one in events if one["reason"] == CatalogEvent.NOT_APPROVED]
