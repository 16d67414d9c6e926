"""Clusters that misbehave: none of it may hang a caller, fill the memory or reach another cluster."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from tests.engine.remote.world import (
    CONFIGMAPS,
    IDENTITY,
    Backoff,
    World,
    answer_of,
    listening,
    place_of,
    request_of,
    sane_then,
)

from hortus.engine import Controller, Trigger
from hortus.engine.lanes import Flows
from hortus.engine.remote import Phase, RemoteUnavailable
from hortus.kube.errors import (
    ConnectionFailed,
    Garbage,
    KubeError,
    NotFound,
    RequestTimedOut,
    ResponseTooLarge,
    TooManyRequests,
)
from hortus.kube.objects import ObjectKey

LONG_PAUSE = Backoff(first=60, cap=60)
NOT_FOUND = b'{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","message":"gone"}'
SHORT = {"timeout": 2.0, "connect_timeout": 2.0, "deadline": 5.0, "patience": 0.02, "breaker": LONG_PAUSE}


async def _silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()  # until the other side goes


@pytest.mark.parametrize("world", [SHORT], indirect=True)
async def test_a_server_that_accepts_and_never_answers_costs_one_timeout_and_then_nothing(world: World) -> None:
    async with listening(_silence) as kubeconfig:
        place = await world.give("silent", kubeconfig)
        with pytest.raises(RemoteUnavailable, match="no whole answer"):
            await world.pool.at(place).list(CONFIGMAPS)
        assert world.pool.state(place).condition()[:2] == ("False", "NoAnswer")
        asked = len(world.calls.answers)
        for _ in range(100):
            with pytest.raises(RemoteUnavailable) as caught:
                await world.pool.at(place).list(CONFIGMAPS)
        assert len(world.calls.answers) == asked, "nothing more was sent"
        assert 0 < (caught.value.retry_after or 0) < 125


@pytest.mark.parametrize("world", [SHORT], indirect=True)
async def test_a_cluster_that_falls_silent_after_it_was_well_opens_its_breaker_at_once(world: World) -> None:
    async def never(head: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    async with listening(sane_then(never)) as kubeconfig:
        place = await world.give("falls-silent", kubeconfig)
        with pytest.raises(RequestTimedOut):
            await world.pool.at(place).list(CONFIGMAPS)
        with pytest.raises(RemoteUnavailable):
            await world.pool.at(place).list(CONFIGMAPS)


@pytest.mark.parametrize(
    ("name", "body", "problem"),
    [
        ("half", b'{"kind":"Namespace","metadata":{"na', "not a Kubernetes object"),
        ("html", b"<html><body>Please log in</body></html>", "not a Kubernetes object"),
        ("list", b"[1, 2, 3]", "not a Kubernetes object"),
        ("nobody", b"", "not a Kubernetes object"),
    ],
)
async def test_a_server_that_is_no_api_server_is_recognised(world: World, name: str, body: bytes, problem: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await request_of(reader)
            writer.write(answer_of(body))

    async with listening(serve) as kubeconfig:
        place = await world.give(f"garbage-{name}", kubeconfig)
        with pytest.raises(RemoteUnavailable, match=problem):
            await world.pool.at(place).list(CONFIGMAPS)
        assert world.pool.state(place).reason == "NotAnApiServer"


async def test_a_login_page_in_front_of_a_known_cluster_opens_its_breaker(world: World) -> None:
    async def login(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer_of(b"<!doctype html><title>Sign in</title>", Content_Type="text/html"))

    async with listening(sane_then(login)) as kubeconfig:
        place = await world.give("login", kubeconfig)
        with pytest.raises(Garbage, match=r"/configmaps was answered with markup"):
            await world.pool.at(place).list(CONFIGMAPS)
        assert world.pool.metrics.opened == 1


@pytest.mark.parametrize("world", [{"max_response": 100_000, "deadline": 60.0}], indirect=True)
async def test_an_endless_body_is_cut_at_the_limit(world: World) -> None:
    async def endless(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")
            await writer.drain()

    async with listening(sane_then(endless)) as kubeconfig:
        place = await world.give("endless", kubeconfig)
        with pytest.raises((ResponseTooLarge, ConnectionFailed)):
            await world.pool.at(place).list(CONFIGMAPS)
        await world.until(lambda: world.pool.remote(place).account.uses == 0)


@pytest.mark.parametrize("world", [{"longest_pause": 3.0}], indirect=True)
async def test_retry_after_is_honoured_and_bounded(world: World) -> None:
    asked = 0

    async def busy(head: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            writer.write(answer_of(b"{}", "429 Too Many Requests", Retry_After="999999999"))
        else:
            writer.write(answer_of(b'{"metadata":{"resourceVersion":"1"},"items":[]}', Content_Type="application/json"))

    async with listening(sane_then(busy)) as kubeconfig:
        place = await world.give("busy", kubeconfig)
        with pytest.raises(TooManyRequests) as first:
            await world.pool.at(place).list(CONFIGMAPS)
        assert first.value.retry_after is not None
        assert first.value.retry_after <= 600
        with pytest.raises(TooManyRequests, match="asked for a pause"):
            await world.pool.at(place).list(CONFIGMAPS)
        assert asked == 1
        assert world.pool.state(place).phase is Phase.READY
        async with asyncio.timeout(60):
            while True:
                try:
                    await world.pool.at(place).list(CONFIGMAPS)
                    break
                except TooManyRequests as error:
                    await asyncio.sleep(error.retry_after or 0)
        assert asked == 2


async def test_connections_reset_after_one_byte_open_the_breaker_after_a_few(world: World) -> None:
    async def reset(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"H")
        await writer.drain()
        writer.transport.abort()

    async with listening(sane_then(reset)) as kubeconfig:
        place = await world.give("resets", kubeconfig)
        failures: list[KubeError] = []
        while not failures or not isinstance(failures[-1], RemoteUnavailable):
            with pytest.raises((ConnectionFailed, RemoteUnavailable)) as caught:
                await world.pool.at(place).list(CONFIGMAPS)
            failures.append(caught.value)
        assert len(failures) == world.pool.settings.failures + 1


@pytest.mark.parametrize("world", [{"patience": 0.02, "timeout": 600.0, "deadline": 600.0}], indirect=True)
async def test_hanging_clusters_hold_no_worker_that_others_need(world: World) -> None:
    """Eight hanging clusters, two workers; a ninth cluster is well, and its objects are reconciled meanwhile."""

    async def never(head: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    done: list[str] = []
    async with listening(sane_then(never)) as hanging:
        for number in range(8):
            await world.give(f"hang-{number}", hanging)
        await world.give("well", world.server.kubeconfig_dict("red"))

        class Reconciler:
            async def reconcile(self, key: ObjectKey) -> None:
                try:
                    await world.pool.at(place_of(key.name)).list(CONFIGMAPS)
                finally:
                    done.append(key.name)

        trigger = Trigger()
        controller = Controller(
            "remote",
            Reconciler(),
            sources=[trigger],
            workers=2,
            flows=Flows(lambda key: key.name, limit=1),
            clock=world.pool.clock,
        )
        await controller.start()
        try:
            for number in range(8):
                trigger.fire(ObjectKey("default", f"hang-{number}"))
            trigger.fire(ObjectKey("default", "well"))
            await world.until(lambda: done)
            assert done == ["well"], "the hanging ones wait still"
        finally:
            await controller.stop()


@pytest.mark.parametrize("world", [{"patience": 0.0}], indirect=True)
@pytest.mark.parametrize("status", ["200 OK", "404 Not Found"])
async def test_where_all_clusters_answer_late_the_workers_are_no_more_than_configured(
    world: World, status: str
) -> None:
    """The clusters share something that has too much to do: workers that stand in would ask for more."""

    async def late(head: bytes, writer: asyncio.StreamWriter) -> None:
        body = b'{"metadata":{"resourceVersion":"1"},"items":[]}' if status == "200 OK" else NOT_FOUND
        writer.write(answer_of(body, status, Content_Type="application/json"))

    at_once: list[int] = []
    waiting: set[str] = set()
    async with listening(sane_then(late)) as kubeconfig:
        for number in range(60):
            await world.give(f"late-{number}", kubeconfig)

        class Reconciler:
            async def reconcile(self, key: ObjectKey) -> None:
                waiting.add(key.name)
                at_once.append(len(waiting))
                with suppress(NotFound):
                    await world.pool.at(place_of(key.name)).list(CONFIGMAPS)
                waiting.remove(key.name)

        trigger = Trigger()
        controller = Controller("remote", Reconciler(), sources=[trigger], workers=2, clock=world.pool.clock)
        await controller.start()
        try:
            for number in range(20):
                trigger.fire(ObjectKey("default", f"late-{number}"))
            await world.until(lambda: len(at_once) == 20 and not waiting)
            for number in range(20, 60):
                trigger.fire(ObjectKey("default", f"late-{number}"))
            await world.until(lambda: len(at_once) == 60 and not waiting)
        finally:
            await controller.stop()
    assert max(at_once[:20]) > 2, "some late clusters, for all that was known"
    assert max(at_once[20:]) <= 2


async def test_identity_is_read_from_the_probe(world: World) -> None:
    async def empty(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer_of(b'{"metadata":{"resourceVersion":"1"},"items":[]}', Content_Type="application/json"))

    async with listening(sane_then(empty)) as kubeconfig:
        place = await world.give("identified", kubeconfig)
        await world.pool.at(place).list(CONFIGMAPS)
        assert world.pool.identity(place).uid == "one"
        assert b'"uid":"one"' in IDENTITY


async def test_a_noisy_cluster_does_not_starve_a_quiet_one(world: World) -> None:
    """A thousand keys of one cluster wait, and more come all the time; another one's key is among the first served."""
    place = await world.give("quiet", world.server.kubeconfig_dict("red"))
    done: list[str] = []
    trigger = Trigger()

    class Reconciler:
        async def reconcile(self, key: ObjectKey) -> None:
            await world.pool.at(place).list(CONFIGMAPS, "default", limit=1)
            done.append(key.name)
            if key.name.startswith("noisy"):
                trigger.fire(ObjectKey("default", key.name))

    flows: Flows[ObjectKey] = Flows(lambda key: key.name.partition("-")[0], limit=2)
    controller = Controller("fair", Reconciler(), sources=[trigger], workers=4, flows=flows, clock=world.pool.clock)
    await controller.start()
    try:
        for number in range(1000):
            trigger.fire(ObjectKey("default", f"noisy-{number}"))
        trigger.fire(ObjectKey("default", "quiet-1"))
        await world.until(lambda: "quiet-1" in done)
        assert done.index("quiet-1") < 20
    finally:
        await controller.stop()


async def test_what_a_hostile_server_says_does_not_fill_a_condition(world: World) -> None:
    body = b'{"kind":"Status","code":401,"reason":"Unauthorized","message":"' + b"\\u0007A" * 200_000 + b'"}'

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await request_of(reader)
            writer.write(answer_of(body, "401 Unauthorized", Content_Type="application/json"))
            await writer.drain()

    async with listening(serve) as kubeconfig:
        place = await world.give("talks", kubeconfig)
        with pytest.raises(RemoteUnavailable):
            await world.pool.at(place).list(CONFIGMAPS)
        status, reason, message = world.pool.state(place).condition()
        assert (status, reason) == ("False", "CredentialRefused")
        assert len(message) <= 500
        assert message.isprintable()


async def test_a_call_that_waits_for_a_cluster_fails_when_the_pool_closes(world: World) -> None:
    place = place_of("never-given")
    waiting = asyncio.create_task(world.pool.patient(place).list(CONFIGMAPS))
    await world.reaches(place, "CredentialMissing")
    await world.pool.close()
    with pytest.raises(RemoteUnavailable):
        await waiting


@pytest.mark.parametrize("world", [{"memory": 1 << 20}], indirect=True)
async def test_long_answers_of_many_clusters_share_one_budget_of_memory(world: World) -> None:
    go_on = asyncio.Event()

    async def slow(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n")
        writer.write(b" " * 800_000)
        await go_on.wait()
        writer.write(b'{"metadata":{"resourceVersion":"1"},"items":[]}'.rjust(100_000))

    async with listening(sane_then(slow)) as kubeconfig:
        first, second = await world.give("long-1", kubeconfig), await world.give("long-2", kubeconfig)
        reading = asyncio.create_task(world.pool.at(first).list(CONFIGMAPS))
        await world.until(lambda: world.pool.memory.held >= 512 << 10)
        with pytest.raises(ResponseTooLarge, match="no room"):
            await world.pool.at(second).list(CONFIGMAPS)
        assert world.pool.state(second).phase is Phase.READY, "that is not the cluster's fault"
        go_on.set()
        assert (await reading).resource_version == "1"
        assert world.pool.memory.held == 0
        assert (await world.pool.at(second).list(CONFIGMAPS)).resource_version == "1"


@pytest.mark.parametrize("world", [{"memory": 200_000}], indirect=True)
async def test_an_event_without_end_finds_no_room(world: World) -> None:
    async def babble(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
            await writer.drain()

    async with listening(sane_then(babble)) as kubeconfig:
        place = await world.give("babbles", kubeconfig)
        with pytest.raises(ResponseTooLarge, match="no room for a long event"):
            async with world.pool.at(place).watch(CONFIGMAPS, resource_version="1") as events:
                await anext(events)
        assert world.pool.memory.held == 0
