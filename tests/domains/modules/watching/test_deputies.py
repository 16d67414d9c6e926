"""Watchers and Kymas of a namespace that is not trusted reach Gateways and certificates as its deputy may."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.domains.granting import grant
from tests.domains.modules.watching.test_istio import gateway
from tests.domains.modules.watching.test_istio import world as world
from tests.domains.modules.watching.world import DIRECT, KEY, World, watcher

from hortus.domains.modules.types import WATCHERS
from hortus.domains.modules.watching.certificates import certificate_name
from hortus.domains.modules.watching.gateways import GATEWAYS, VIRTUAL_SERVICES
from hortus.engine import StepError
from hortus.engine.deputies import Action
from hortus.engine.remote import SECRETS
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.testing import wait_for, wait_gone

HOME = KEY.namespace
ROUTES = Action("create", VIRTUAL_SERVICES.group, VIRTUAL_SERVICES.plural, HOME)


async def test_a_watcher_routes_events_where_its_namespace_may_create_routes(world: World) -> None:
    """A VirtualService binds itself to the Gateway of another namespace, and leads to Services of any."""
    world.trusted = "none"
    await world.control.create(GATEWAYS, gateway(("a.example.org", 443)))
    async with world.watching():
        await world.control.create(WATCHERS, watcher())
        await wait_for(world.control, WATCHERS, "watcher", HOME, until=_state("Error"))
        assert (await world.reported("NotPermitted"))["type"] == "Warning"
        with pytest.raises(NotFound):
            await world.control.get(VIRTUAL_SERVICES, "watcher", HOME)
    await grant(world.control, HOME, ROUTES)
    async with world.watching():
        await wait_for(world.control, WATCHERS, "watcher", HOME, until=_state("Ready"))
    world.trusted = "other"
    async with world.watching():
        await world.control.delete(WATCHERS, "watcher", HOME)
        await wait_gone(world.control, WATCHERS, "watcher", HOME)


async def test_a_certificate_is_issued_where_the_namespace_may_make_it(world: World) -> None:
    """It is for the runtime that the Kyma names."""
    world.trusted = "none"
    name = certificate_name(KEY.name)
    async with world.watching(*DIRECT):
        with pytest.raises(StepError, match="may not create secrets in namespace istio-system"):
            await world.install()
        await world.control.create(SECRETS, {"metadata": {"name": name, "namespace": "istio-system"}})
        assert not await world.parts.installer.delete_certificate(KEY)
        await world.control.delete(SECRETS, name, "istio-system")
    await grant(world.control, HOME, Action("create", "", "secrets", "istio-system"))
    async with world.watching(*DIRECT):
        await world.installed()
        assert await world.parts.installer.delete_certificate(KEY)


def _state(state: str) -> Callable[[Object], bool]:
    def says(found: Object) -> bool:
        return bool((found.get("status") or {}).get("state") == state)

    return says
