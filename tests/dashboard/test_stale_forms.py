"""Buttons of a page that is no longer true: an order is for the object as it was shown."""

from __future__ import annotations

import pytest
from tests.dashboard.conftest import FLEET, Browser, World, make_rollout

from hortus.engine.rollouts.types import ROLLOUTS
from hortus.kube import Client
from hortus.kube.objects import Object

PATH = f"/rollouts/rollout/{FLEET}/spring"


async def spec_of(world: World) -> Object:
    found: Object = (await world.admin.get(ROLLOUTS, "spring", FLEET))["spec"]
    return found


async def moves_on(world: World) -> None:
    """The rollout, which waited with stage one, waits with stage two."""
    stages = [{"name": name, "clusters": 10, "succeeded": 4} for name in ("one", "two")]
    status = {"stage": "two", "stages": stages}
    await world.admin.patch(ROLLOUTS, "spring", {"status": status}, FLEET, subresource="status")


async def order(browser: Browser, action: str, form: dict[str, str]) -> tuple[int, str]:
    reply = await browser.post(f"{PATH}/{action}", form, Accept="application/json")
    return reply.status, reply.json["message"]


async def test_approve_is_for_the_stage_that_was_shown_and_says_what_has_changed(world: World) -> None:
    await make_rollout(world.admin, "spring")
    browser = await world.signed_in()
    form = (await browser.get(PATH)).form("approve")
    await moves_on(world)
    status, message = await order(browser, "approve", form)
    assert status == 409 and "has changed since the page was drawn: stage one is now two" in message
    assert "approved" not in await spec_of(world)
    status, message = await order(browser, "approve", (await browser.get(PATH)).form("approve"))
    assert (status, message) == (200, "stage two of rollout spring approved")
    assert (await spec_of(world))["approved"] == ["two"]


async def test_approve_is_for_the_very_version_that_was_shown(world: World) -> None:
    await make_rollout(world.admin, "spring")
    browser = await world.signed_in()
    form = (await browser.get(PATH)).form("approve")
    await world.admin.patch(ROLLOUTS, "spring", {"metadata": {"labels": {"moved": "yes"}}}, FLEET)
    status, message = await order(browser, "approve", form)
    assert status == 409 and "has changed since the page was drawn: a part that its page does not show" in message
    assert "approved" not in await spec_of(world)


async def test_a_change_while_the_order_is_given_is_not_approved(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await make_rollout(world.admin, "spring")
    browser = await world.signed_in()
    form = (await browser.get(PATH)).form("approve")
    patch = Client.patch

    async def late(self: Client, *given: object, **more: object) -> object:
        if more.get("field_manager") == "hortus-dashboard":
            await patch(world.admin, ROLLOUTS, "spring", {"metadata": {"labels": {"moved": "yes"}}}, FLEET)
        return await patch(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Client, "patch", late)
    status, message = await order(browser, "approve", form)
    assert status == 409 and "has changed" in message
    assert "approved" not in await spec_of(world)


@pytest.mark.parametrize("action", ["approve", "pause", "abort"])
async def test_no_order_is_for_another_rollout_of_the_same_name(world: World, action: str) -> None:
    await make_rollout(world.admin, "spring")
    browser = await world.signed_in()
    form = (await browser.get(PATH)).form(action)
    await world.admin.delete(ROLLOUTS, "spring", FLEET)
    await make_rollout(world.admin, "spring")
    status, message = await order(browser, action, form)
    assert status == 409 and "is another one than was shown" in message
    spec = await spec_of(world)
    assert spec.get("state", "Run") == "Run" and "approved" not in spec


async def test_pause_and_abort_do_not_wait_for_a_page_without_changes(world: World) -> None:
    await make_rollout(world.admin, "spring")
    browser = await world.signed_in()
    page = await browser.get(PATH)
    await moves_on(world)
    assert await order(browser, "pause", page.form("pause")) == (
        200, "rollout spring paused: clusters that have begun finish",
    )  # fmt: skip
    assert (await order(browser, "abort", page.form("abort")))[0] == 200


async def test_resume_after_a_halt_forgives_the_failures_that_were_shown_alone(world: World) -> None:
    await make_rollout(world.admin, "spring")
    await world.admin.patch(ROLLOUTS, "spring", {"status": {"halts": 1}}, FLEET, subresource="status")
    browser = await world.signed_in()
    form = (await browser.get(PATH)).form("resume")
    await world.admin.patch(ROLLOUTS, "spring", {"status": {"halts": 2}}, FLEET, subresource="status")
    status, message = await order(browser, "resume", form)
    assert status == 409 and "halts 1 is now 2" in message and "resumes" not in await spec_of(world)
    assert (await order(browser, "resume", (await browser.get(PATH)).form("resume")))[0] == 200
    assert (await spec_of(world))["resumes"] == 2


async def test_a_form_without_what_was_shown_is_refused(world: World) -> None:
    await make_rollout(world.admin, "spring")
    browser = await world.signed_in()
    csrf = (await browser.get(PATH)).csrf
    for action in ("approve", "pause", "abort"):
        assert (await order(browser, action, {"csrf": csrf}))[0] == 409
    assert (await spec_of(world)).get("state", "Run") == "Run"
