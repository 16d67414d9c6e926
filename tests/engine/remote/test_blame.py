"""Errors are blamed on the server that made them, and nothing that was due is forgotten meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from tests.engine.remote.world import (
    CONFIGMAPS,
    IDENTITY,
    World,
    answer_of,
    http_kubeconfig,
    listening,
    place_of,
    request_of,
    sane_then,
    settings_with,
)
from tests.waiting import until

from hortus.engine.backoff import Backoff
from hortus.engine.remote import KubeconfigRef, Phase, RemotePool, RemoteUnavailable, health
from hortus.engine.remote.links import digest_of
from hortus.kube import yaml
from hortus.kube.errors import ConnectionFailed, KubeError, RequestTimedOut, Unauthorized
from hortus.kube.objects import Object
from hortus.testing import FakeClock
from hortus.testing.apiserver import TestServer


class Drawer:
    """Kubeconfigs in the hands of a test; `problem` is what reading one fails with."""

    def __init__(self) -> None:
        self.documents: dict[KubeconfigRef, bytes] = {}
        self.problem: KubeError | None = None
        self.reads = 0
        self.changed: Callable[[str, str], None] = lambda namespace, name: None

    async def read(self, place: KubeconfigRef) -> bytes:
        self.reads += 1
        if self.problem is not None:
            raise self.problem
        return self.documents[place]

    def subscribe(self, changed: Callable[[str, str], None]) -> Callable[[], None]:
        self.changed = changed
        return lambda: None

    def put(self, place: KubeconfigRef, kubeconfig: Object) -> bytes:
        document = self.documents[place] = yaml.dump(kubeconfig).encode()
        self.changed(place.namespace, place.name)
        return document


AWAY = ConnectionFailed("management", "cannot connect: connection refused")


@asynccontextmanager
async def pool_on(drawer: Drawer, **options: object) -> AsyncIterator[RemotePool]:
    async with RemotePool(drawer, settings=settings_with(**options)) as pool:
        yield pool


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "READ_AGAIN", Backoff(first=0.02, cap=0.05, jitter=0.2))


async def test_a_secret_that_cannot_be_read_says_nothing_about_its_cluster_and_the_rotation_comes_later(
    server: TestServer,
) -> None:
    drawer, place = Drawer(), place_of("rotates")
    async with pool_on(drawer) as pool:
        drawer.put(place, server.token_kubeconfig_dict("red"))
        remote = pool.at(place)
        await remote.list(CONFIGMAPS)
        drawer.problem = AWAY
        latest = drawer.put(place, server.kubeconfig_dict("red"))
        await until(lambda: pool.state(place).reason == "CredentialUnread")
        reads = drawer.reads
        await until(lambda: drawer.reads > reads + 2)
        assert (await remote.list(CONFIGMAPS)).resource_version, "the old credential is as good as before"
        status, reason, message = pool.state(place).condition()
        assert (status, reason) == ("True", "CredentialUnread")
        assert "management" in message
        assert pool.metrics.opened == 0

        drawer.problem = None
        await until(lambda: pool.metrics.rotations == 1)
        link = pool.remote(place).link
        assert link is not None
        assert link.digest == digest_of(latest)
        assert pool.state(place).reason == "Connected"


async def test_a_cluster_is_not_asked_for_again_and_again_while_its_secret_cannot_be_read(
    server: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "READ_AGAIN", Backoff(first=60, cap=60))
    drawer, place = Drawer(), place_of("unread")
    drawer.problem = AWAY
    async with pool_on(drawer) as pool:
        for _ in range(20):
            with pytest.raises(RemoteUnavailable, match="could not be read"):
                await pool.at(place).list(CONFIGMAPS)
        assert drawer.reads == 1
        assert pool.state(place).condition()[:2] == ("Unknown", "CredentialUnread")
        assert pool.metrics.opened == 0
        drawer.problem = None
        drawer.put(place, server.kubeconfig_dict("red"))  # the watch of Secrets reports it earlier
        await until(lambda: pool.state(place).reason == "Connected")


async def test_who_waits_for_a_cluster_whose_secret_could_not_be_read_is_served_when_it_can(server: TestServer) -> None:
    drawer, place = Drawer(), place_of("waits")
    drawer.documents[place] = yaml.dump(server.kubeconfig_dict("red")).encode()
    drawer.problem = AWAY
    async with pool_on(drawer) as pool:
        waiting = asyncio.ensure_future(pool.patient(place).list(CONFIGMAPS))
        await until(lambda: drawer.reads > 3)
        drawer.problem = None
        assert (await waiting).resource_version


async def test_a_token_that_no_header_can_hold_is_read_once_and_reported(world: World) -> None:
    kubeconfig = http_kubeconfig("https://127.0.0.1:1")
    kubeconfig["users"][0]["user"]["token"] = "tab\tinside"
    drawer, place = Drawer(), place_of("unusable")
    async with pool_on(drawer, breaker=Backoff(first=60, cap=60)) as pool:
        drawer.put(place, kubeconfig)
        for _ in range(20):
            with pytest.raises(RemoteUnavailable, match="not allowed in a header"):
                await pool.at(place).list(CONFIGMAPS)
        assert drawer.reads == 1
        assert pool.state(place).condition()[:2] == ("False", "CredentialMalformed")


async def test_a_refused_credential_is_read_again_when_the_secret_can_be(server: TestServer) -> None:
    """A 401 while the management cluster is away: the cluster's own word, and the new credential is not forgotten."""
    revoked = False

    async def serve(head: bytes, writer: asyncio.StreamWriter) -> None:
        body = b'{"metadata":{"resourceVersion":"1"},"items":[]}'
        old = b"Bearer secret-token" in head
        writer.write(answer_of(body, "401 Unauthorized" if old and revoked else "200 OK"))

    drawer, place = Drawer(), place_of("revoked")
    async with listening(sane_then(serve)) as kubeconfig, pool_on(drawer) as pool:
        drawer.put(place, kubeconfig)
        await pool.at(place).list(CONFIGMAPS)
        revoked, drawer.problem = True, AWAY
        kubeconfig["users"][0]["user"]["token"] = "another"
        drawer.documents[place] = yaml.dump(kubeconfig).encode()  # and the watch reports nothing
        with pytest.raises(Unauthorized):
            await pool.at(place).list(CONFIGMAPS)
        drawer.problem = None
        await until(lambda: pool.metrics.rotations == 1)
        assert (await pool.patient(place).list(CONFIGMAPS)).resource_version


async def test_a_place_asked_for_while_the_management_cluster_is_away_is_forgotten_like_any_other() -> None:
    drawer, place = Drawer(), place_of("asked")
    drawer.problem = AWAY
    async with pool_on(drawer, idle=0.05) as pool:
        with pytest.raises(KubeError):
            await pool.at(place).list(CONFIGMAPS)
        await until(lambda: not pool.places())
        assert sum(pool.metrics.phases.values()) == 0


async def test_a_silent_watch_is_probed_and_not_taken_for_a_dead_cluster(world: World) -> None:
    """Kinds without bookmarks exist; the watch ends and goes on, and the cluster's breaker stays closed."""
    watches = 0

    async def quiet(head: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal watches
        watches += 1
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(3600)

    drawer, place = Drawer(), place_of("quiet")
    async with listening(sane_then(quiet)) as kubeconfig, pool_on(drawer, bookmark_period=1.0) as pool:
        drawer.put(place, kubeconfig)
        for turn in (1, 2):
            with pytest.raises(KubeError):
                async with pool.patient(place).watch(CONFIGMAPS, resource_version="1") as events:
                    await anext(events)
            assert watches == turn
        assert pool.state(place).phase is Phase.READY
        assert pool.metrics.opened == 0


async def test_an_absorbed_bookmark_shows_that_the_cluster_lives() -> None:
    """A cluster that was heard of is not probed, whichever way a bookmark takes."""
    more, absorbed = asyncio.Event(), asyncio.Event()

    async def lively(head: bytes, writer: asyncio.StreamWriter) -> None:
        line = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"2"}}}\n'
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"%x\r\n%s\r\n" % (len(line), line))
            await more.wait()
            more.clear()

    drawer, place = Drawer(), place_of("lively")
    async with listening(sane_then(lively)) as kubeconfig, pool_on(drawer) as pool:
        drawer.put(place, kubeconfig)
        client = pool.watcher(place)
        events = client.watch(CONFIGMAPS, resource_version="1", on_bookmark=lambda _: absorbed.set())
        reading = asyncio.ensure_future(anext(events))
        for _ in range(2):  # the first may come with the head of the answer
            assert (await reading).type == "BOOKMARK"
            reading = asyncio.ensure_future(anext(events))
            for _ in range(3):
                await asyncio.sleep(0)
            health = pool.remote(place).health
            health.heard = 0.0
            more.set()
        await absorbed.wait()
        assert health.heard > 0.0
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await events.aclose()
        await client.close()


class Unreachable:
    """A connection to a cluster that is away."""

    host = "away"

    def __init__(self, *_: object, **__: object) -> None:
        self.closed = False

    async def call(self, *_: object, **__: object) -> None:
        Unreachable.asked += 1
        raise ConnectionFailed("away", "cannot connect: connection refused")

    async def close(self) -> None:
        self.closed = True

    asked = 0


PAGES = {
    "broken": b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
    "refuses": answer_of(b"{}", "401 Unauthorized"),
    "moved": answer_of(b"", "302 Found", Location="/login"),
    "busy": answer_of(b"", "429 Too Many Requests", Retry_After="60"),
    "markup": answer_of(b"<html></html>", Content_Type="text/html"),
}


@pytest.mark.parametrize("world", [{"breaker": Backoff(first=60, cap=60)}], indirect=True)
async def test_the_pages_of_pods_say_nothing_about_their_cluster(world: World) -> None:
    async def serve(head: bytes, writer: asyncio.StreamWriter) -> None:
        path = head.split()[1].decode()
        if "/proxy/" not in path:
            writer.write(answer_of(b'{"metadata":{"resourceVersion":"1"},"items":[]}'))
        elif (name := path.split("/")[6].partition(":")[0]) in PAGES:
            writer.write(PAGES[name])
        else:
            await asyncio.sleep(3600)

    async def ask(name: str) -> KubeError | None:
        path = f"/api/v1/namespaces/a/pods/{name}:42699/proxy/status"
        try:
            await client.request("GET", path, accept="*/*", repeatable=False, timeout=0.5)
        except KubeError as error:
            return error
        return None

    async with listening(sane_then(serve)) as kubeconfig:
        place = await world.give("pages", kubeconfig)
        client = world.pool.at(place)
        await client.list(CONFIGMAPS)
        errors = [await ask(name) for name in ("broken", "broken", "broken", "refuses", "moved", "busy", "hangs")]
        assert None not in errors
        assert isinstance(errors[-1], RequestTimedOut)
        assert await ask("markup") is None
        assert world.pool.state(place).phase is Phase.READY
        assert (world.pool.metrics.opened, world.pool.metrics.rotations) == (0, 0)
        await client.list(CONFIGMAPS)


async def test_a_probe_that_is_due_comes_also_when_somebody_keeps_asking() -> None:
    """It may be due later than the check of a cluster that nobody uses."""
    drawer, place, clock = Drawer(), place_of("down"), FakeClock()
    drawer.put(place, http_kubeconfig("http://127.0.0.1:1"))
    settings = settings_with(idle=10.0, breaker=Backoff(first=100, cap=100, jitter=0.5))
    async with RemotePool(drawer, settings=settings, clock=clock, connect=Unreachable) as pool:  # type: ignore[arg-type]
        for _ in range(40):
            with pytest.raises(RemoteUnavailable):
                await pool.at(place).list(CONFIGMAPS)
            pool.used(pool.remote(place))  # as after a call that was under way when the breaker opened
            await clock.advance(5)
        assert Unreachable.asked >= 2, "one probe when it was opened, and again when the breaker let one out"


async def test_a_new_secret_is_tried_at_once_also_when_the_breaker_opens_in_between(server: TestServer) -> None:
    drawer, place = Drawer(), place_of("moves")
    async with pool_on(drawer, breaker=Backoff(first=600, cap=600)) as pool:
        drawer.put(place, http_kubeconfig("http://127.0.0.1:1"))
        with pytest.raises(RemoteUnavailable):
            await pool.at(place).list(CONFIGMAPS)
        drawer.put(place, server.kubeconfig_dict("red"))
        pool.remote(place).health.open_breaker(AWAY)
        await until(lambda: pool.state(place).reason == "Connected")


async def test_a_new_credential_is_not_forgotten_when_its_cluster_was_away_while_it_was_tried(
    server: TestServer,
) -> None:
    """The breaker is open, the trial fails, and then the cluster comes back and takes the old credential, too."""
    away = False

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await request_of(reader):
            if away:
                return
            listed = b'{"metadata":{"resourceVersion":"1"},"items":[]}'
            writer.write(answer_of(IDENTITY if b"kube-system" in head else listed))

    drawer, place = Drawer(), place_of("comes-back")
    async with listening(serve) as kubeconfig, pool_on(drawer) as pool:
        drawer.put(place, kubeconfig)
        await pool.at(place).list(CONFIGMAPS)
        away = True
        with pytest.raises(RemoteUnavailable):
            while True:
                with suppress(ConnectionFailed):
                    await pool.at(place).list(CONFIGMAPS)
        kubeconfig["users"][0]["user"]["token"] = "another"
        reads = drawer.reads
        latest = drawer.put(place, kubeconfig)
        await until(lambda: drawer.reads > reads + 1)
        away = False
        await until(lambda: pool.metrics.rotations == 1)
        link = pool.remote(place).link
        assert link is not None
        assert link.digest == digest_of(latest)
