"""The agent through its sockets: webhook, delivery, certificates, metrics."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.domains.modules.watching.agent.world import World, review
from tests.domains.modules.watching.certificates import authority, client, write_files
from tests.waiting import until

from hortus.kube.tls import client_context
from hortus.testing import FakeClock

BODY = {
    "watched": {"Namespace": "kyma-system", "Name": "default"},
    "watchedGvk": {"group": "operator.kyma-project.io", "version": "v1beta2", "kind": "Kyma"},
}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    await made.control.start()
    try:
        yield made
    finally:
        await made.control.stop()


async def test_a_created_kyma_is_reported_with_the_agents_certificate_and_capitalised_keys(world: World) -> None:
    """2.4: path, contract and manager; body; client certificate; allowed."""
    async with world.agent() as agent:
        status, answer = await world.review(agent.webhook_port, review())
        path, body = await world.control.next()
    assert (status, answer["response"]) == (200, {"uid": "u-1", "allowed": True})
    assert (path, body) == ("/v2/lifecycle-manager/event", BODY)
    assert world.control.subjects == ["runtime-1"]
    assert world.metric("watcher_admission_request_total") == 1
    assert world.metric("watcher_kcp_requests_total") == 1


async def test_the_agent_names_its_runtime_where_it_knows_it(world: World) -> None:
    async with world.agent(RUNTIME_ID="runtime-1") as agent:
        await world.review(agent.webhook_port, review())
        _, body = await world.control.next()
    assert body == {**BODY, "sender": {"runtimeId": "runtime-1"}}


async def test_only_tls_1_3_is_served(world: World) -> None:
    """2.4: TLS 1.3 only."""
    async with world.agent() as agent:
        old = client_context(ca=world.ca.certificate)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.post(f"https://127.0.0.1:{agent.webhook_port}/validate/m", data=b"", ssl=old)


async def test_a_body_that_is_no_review_is_refused_and_counted(world: World) -> None:
    async with world.agent() as agent:
        assert await world.review(agent.webhook_port, b"{") == (
            400,
            "the body is no AdmissionReview: Input data was truncated\n",
        )
        status, text = await world.review(agent.webhook_port, review(), manager="a%2Fb%2F..")
        assert (status, text) == (400, "the path names no manager: 'a/b/..'\n")
    assert world.metric("watcher_admission_request_error_total") == 2


async def test_another_subresource_is_an_error_text_and_allowed(world: World) -> None:
    """2.4: other subresources are an error text."""
    async with world.agent() as agent:
        _, answer = await world.review(agent.webhook_port, review("UPDATE", subResource="scale"))
    assert answer["response"]["allowed"] is True
    assert answer["response"]["status"]["message"] == "invalid subresource for watched resource: 'scale'"
    assert world.metric("watcher_failed_kcp_total", {"error_reason": "invalid-subresource"}) == 1


async def _delivered(world: World, clock: FakeClock) -> dict[str, Any]:
    """The body of the next event. The pauses of the agent pass on the clock; its requests take the machine's time."""

    async def arrived() -> bool:
        await clock.advance(1.0)
        return not world.control.events.empty()

    await until(arrived)
    return (await world.control.next())[1]


async def test_a_refused_event_is_tried_three_times_and_then_in_another_round(world: World) -> None:
    """2.4: three tries with exponential back-off; ours: it stays until it is accepted."""
    world.control.refusals = [web.Response(status=503) for _ in range(3)]
    clock = FakeClock()
    async with world.agent(clock=clock) as agent:
        await world.review(agent.webhook_port, review())
        assert await _delivered(world, clock) == BODY
    assert world.control.attempts == 4
    assert world.metric("watcher_failed_kcp_total", {"error_reason": "failed-request"}) == 1


async def test_events_wait_for_the_control_plane_in_order_and_each_object_once(world: World) -> None:
    """6 (m): nothing is lost while the control plane is away."""
    await world.control.stop()
    async with world.agent() as agent:
        for name in ("first", "second", "third", "first", "second"):
            assert (await world.review(agent.webhook_port, review(name=name)))[0] == 200
    async with world.agent() as agent:
        # The head may have been in delivery when the same object changed again: then it is reported twice.
        assert world.metric("hortus_watcher_buffered_events") in (3, 4)
        await world.control.start()
        names = [(await world.control.next())[1]["watched"]["Name"] for _ in range(3)]
    assert names == ["first", "second", "third"]


async def test_a_replaced_certificate_is_shown_and_used_without_a_restart(world: World) -> None:
    """2.4: certificate files are reloaded on change."""
    clock = FakeClock()
    async with world.agent(clock=clock) as agent:
        other = authority()
        write_files(world.folder / "ssl", client(other, name="runtime-2"), ca=other.certificate)
        await clock.advance(5.0)
        world.ca = world.control.ca = other
        await world.control.stop()
        await world.control.start()
        assert (await world.review(agent.webhook_port, review()))[0] == 200
        await _delivered(world, clock)
    assert world.control.subjects == ["runtime-2"]


async def test_a_certificate_without_its_key_is_not_taken_over_and_readiness_says_so(world: World) -> None:
    clock = FakeClock()
    async with world.agent(clock=clock) as agent:
        (world.folder / "ssl" / "tls.crt").write_bytes(client(world.ca).certificate)
        await clock.advance(5.0)
        assert (await world.review(agent.webhook_port, review()))[0] == 200
        assert await _status(agent.metrics_port, "/readyz") == 500
        assert await _status(agent.metrics_port, "/healthz") == 200
        write_files(world.folder / "ssl", client(world.ca), ca=world.ca.certificate)
        await clock.advance(5.0)
        assert await _status(agent.metrics_port, "/readyz") == 200


async def test_the_metrics_have_the_names_of_the_contract(world: World) -> None:
    async with (
        world.agent() as agent,
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{agent.metrics_port}/metrics") as answer,
    ):
        text = await answer.text()
    for name in (
        "watcher_request_duration",
        "watcher_fips_mode",
        "watcher_admission_request_total",
        "watcher_admission_request_error_total",
        "watcher_kcp_requests_total",
    ):
        assert f"\n{name} " in text
    assert "# TYPE watcher_failed_kcp_total counter" in text


async def _status(port: int, path: str) -> int:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status
