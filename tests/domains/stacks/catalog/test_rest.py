"""The catalogue at rest: nothing is written, rendered or reported twice, however often it is reconciled."""

from __future__ import annotations

from typing import Any

from tests.domains.stacks.catalog.world import HOME, CatalogWorld
from tests.waiting import until

from hortus.domains.stacks.catalog.composition import RELEASES, STACKS
from hortus.domains.stacks.catalog.reasons import CatalogEvent
from hortus.domains.stacks.types import STACK_POLICIES
from hortus.engine import Manager
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
        for _ in range(2):
            await releases.reconcile(ObjectKey(HOME, V1))
            await stacks.reconcile(ObjectKey(HOME, "stack"))
        rendered, writes = here.renderer.counts.rendered, len(here.requests.writes)
        for _ in range(3):
            await releases.reconcile(ObjectKey(HOME, V1))
            await stacks.reconcile(ObjectKey(HOME, "stack"))
        assert here.renderer.counts.rendered == rendered == 1
        assert here.requests.writes[writes:] == []
    assert [one.get("count", 1) for one in await _refusals(here)] == [1]


async def _refusals(here: CatalogWorld) -> list[Object]:
    events = (await here.client.list(EVENTS, HOME)).items
    return [one for one in events if one["reason"] == CatalogEvent.NOT_APPROVED]
