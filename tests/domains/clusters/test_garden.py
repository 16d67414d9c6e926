"""Reads of the garden: a Shoot is gone only when the garden says that of this Shoot."""

from __future__ import annotations

import pytest
from tests.kube.scripted import Script, failure, json, serving

from hortus.domains.clusters.garden import SHOOTS, Garden
from hortus.engine import Cache
from hortus.kube import Client
from hortus.kube.errors import Garbage, NotServed


async def test_a_garden_that_serves_no_shoots_now_does_not_say_that_one_is_gone() -> None:
    details = {"name": "c-1", "group": SHOOTS.group, "kind": SHOOTS.plural}
    missing = {"kind": "Status", "reason": "NotFound", "code": 404, "message": "not found", "details": details}
    script = Script(failure(404, "NotFound", "the server could not find the requested resource"), json(missing, 404))
    async with serving(script) as access, Client(access) as client:
        garden = Garden(client, "garden-demo", Cache("shoots"))
        with pytest.raises(NotServed):
            await garden.ask("c-1")
        assert await garden.ask("c-1") is None


async def test_a_shoot_without_the_shape_of_one_is_an_error_of_the_garden() -> None:
    shoot = {"metadata": {"name": "c-1", "namespace": "garden-demo"}, "status": {"lastErrors": "none"}}
    async with serving(Script(json(shoot))) as access, Client(access) as client:
        garden = Garden(client, "garden-demo", Cache("shoots"))
        with pytest.raises(Garbage, match="the garden: shoot c-1: Expected `array"):
            await garden.ask("c-1")
