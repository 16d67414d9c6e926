"""An API server is killed while clients write over TLS: what it answered is kept, whole, and watches miss nothing."""

from __future__ import annotations

import asyncio
import random
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import orjson
import pytest
from tests.apiserver.crash import serving
from tests.apiserver.store.etcdserver import find_etcd, free_port, running_etcd
from tests.apiserver.wire import Answer, Wire, configmap, connected

MAPS = "/api/v1/namespaces/default/configmaps"
WRITERS = 6
STORES = ["sqlite", *(["etcd"] if find_etcd() else [])]
_TOKEN = "token-of-the-test"
_LOST = (aiohttp.ClientError, ConnectionError, TimeoutError, ssl.SSLError)


class Write(NamedTuple):
    """A write that was sent; `number` is in the data of what it leaves, None when it deletes."""

    name: str
    number: int | None


class Place:
    """The address and files of the server, which stay the same through its restarts."""

    def __init__(self, folder: Path, etcd: str) -> None:
        self.url = ""
        self._folder = folder
        self._port = free_port()
        self._etcd = etcd

    @asynccontextmanager
    async def life(self) -> AsyncIterator[tuple[Wire, subprocess.Popen[bytes]]]:
        """Start it; it is killed at the end at the latest."""
        words = [str(self._folder), str(self._port), _TOKEN, *([self._etcd] if self._etcd else [])]
        command = [sys.executable, "-m", serving.__name__, *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as process:
            assert process.stdout is not None
            try:
                assert await asyncio.to_thread(process.stdout.readline) == b"ready\n"
                tls = ssl.create_default_context(cafile=str(self._folder / "ca.pem"))
                async with connected(f"https://127.0.0.1:{self._port}", _TOKEN, tls) as wire:
                    yield wire, process
            finally:
                process.kill()


class Account:
    """The knowledge of the clients: answered writes, writes without an answer, and the events of the watch."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[int, int]] = {}
        """By name: revision and number of the last write that was answered (or was found to be made)."""
        self.sent: dict[str, Write] = {}
        self.answered: list[int] = []
        self.highest = 0
        self.shown: dict[str, tuple[int, int]] = {}
        self.seen = 0
        self.events: list[int] = []
        self.count = 0
        self.enough = asyncio.Event()
        self.limit = 0
        """The number of answers that are `enough`."""

    def answer(self, write: Write, answer: Answer) -> None:
        self.sent.pop(write.name, None)
        if answer.code >= 300:
            return
        if write.number is None:
            self.kept.pop(write.name, None)
        else:
            self.keep(write.name, answer.body)
            self.answered.append(self.kept[write.name][0])
        self.count += 1
        if self.count >= self.limit:
            self.enough.set()

    def keep(self, name: str, obj: dict[str, Any]) -> None:
        self.kept[name] = revision(obj), whole(obj)
        self.highest = max(self.highest, revision(obj))

    def event(self, event: dict[str, Any]) -> None:
        assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
        obj = event["object"]
        name = obj["metadata"]["name"]
        assert revision(obj) > self.seen
        self.seen = revision(obj)
        self.highest = max(self.highest, self.seen)
        self.events.append(self.seen)
        if event["type"] == "DELETED":
            assert self.shown.pop(name)
        else:
            assert (event["type"] == "ADDED") == (name not in self.shown)
            self.shown[name] = revision(obj), whole(obj)

    def settle(self, listed: dict[str, Any]) -> None:
        """Compare with a list after a restart, and take over what was made of the writes without an answer."""
        assert revision(listed) >= self.highest
        found = {item["metadata"]["name"]: (revision(item), whole(item)) for item in listed["items"]}
        for name in self.kept.keys() | found.keys():
            known, now, sent = self.kept.get(name), found.get(name), self.sent.get(name)
            if now == known:
                continue
            assert sent is not None, f"{name}: {now} instead of {known}, and there was no write"
            assert (now[1] if now else None) == sent.number, f"{name}: {now} instead of {known} or {sent}"
            assert now is None or now[0] > (known or (0, 0))[0]
        self.kept = found
        self.sent.clear()
        self.highest = max(self.highest, revision(listed))


def revision(obj: dict[str, Any]) -> int:
    return int(obj["metadata"]["resourceVersion"])


def body(name: str, number: int, chance: random.Random) -> dict[str, Any]:
    fill = str(number) * chance.randrange(1, 2000)
    return configmap(name, {"number": str(number), "fill": fill, "length": str(len(fill))})


def whole(obj: dict[str, Any]) -> int:
    """The number in an object whose parts belong together."""
    data = obj["data"]
    assert len(data["fill"]) == int(data["length"])
    assert data["fill"].startswith(data["number"])
    return int(data["number"])


async def write_on(wire: Wire, account: Account, writer: int, chance: random.Random) -> None:
    """Write objects of one's own until the server has gone."""
    number = account.count * WRITERS
    while True:
        number += 1
        name = f"w{writer}-{chance.randrange(5)}"
        known = account.kept.get(name)
        step = chance.choice(["put", "merge", "delete"]) if known else "create"
        write = Write(name, None if step == "delete" else number)
        account.sent[name] = write
        obj = body(name, number, chance)
        try:
            if step == "create":
                answer = await wire.post(MAPS, obj)
            elif step == "put":
                obj["metadata"]["resourceVersion"] = str(known[0]) if known else ""
                answer = await wire.put(f"{MAPS}/{name}", obj)
            elif step == "merge":
                answer = await wire.merge(f"{MAPS}/{name}", {"data": obj["data"]})
            else:
                answer = await wire.delete(f"{MAPS}/{name}")
        except _LOST:
            return
        assert answer.code in (200, 201), answer.body
        account.answer(write, answer)


async def follow(wire: Wire, account: Account) -> None:
    """Go on with the watch where it broke off, until the server has gone."""
    try:
        async with wire.watch(f"{MAPS}?watch=true&resourceVersion={account.seen}") as events:
            while line := await events._response.content.readline():
                if not line.endswith(b"\n"):
                    return  # cut off in the middle of an event, which is not one yet
                account.event(orjson.loads(line))
    except _LOST:
        return


async def catch_up(wire: Wire, account: Account, until: int) -> None:
    """The rest of the watch, up to the write of revision `until`."""
    async with wire.watch(f"{MAPS}?watch=true&resourceVersion={account.seen}") as events:
        while account.seen < until:
            account.event(await events.next())


async def killed_and_checked(place: Place, account: Account, chance: random.Random, acknowledged: int) -> None:
    async with place.life() as (wire, process):
        listed = (await wire.get(MAPS)).body
        account.settle(listed)
        account.limit, account.enough = account.count + acknowledged, asyncio.Event()
        before, answers = account.highest, len(account.answered)
        tasks = [asyncio.create_task(follow(wire, account))]
        for writer in range(WRITERS):
            own = random.Random(chance.random())
            tasks.append(asyncio.create_task(write_on(wire, account, writer, own)))
        enough = asyncio.create_task(account.enough.wait())
        try:
            async with asyncio.timeout(60):
                await asyncio.wait([enough, *tasks], return_when=asyncio.FIRST_COMPLETED)
                assert enough.done(), [task.exception() for task in tasks if task.done()]
                process.kill()
                await asyncio.gather(*tasks)
        finally:
            enough.cancel()
        assert all(each > before for each in account.answered[answers:])


async def assert_answers_outlive_kills(place: Place, seed: int, rounds: int, most: int) -> None:
    chance, account = random.Random(seed), Account()
    async with place.life() as (wire, _):
        account.seen = revision((await wire.get(MAPS)).body)
    for _ in range(rounds):
        await killed_and_checked(place, account, chance, chance.randrange(1, most))
    async with place.life() as (wire, _):
        account.settle((await wire.get(MAPS)).body)
        last = revision((await wire.post(MAPS, body("the-last", 1, chance))).body)
        assert last > account.highest
        await catch_up(wire, account, last)
    del account.shown["the-last"]
    assert account.shown == account.kept
    assert len(account.events) == len(set(account.events))
    assert set(account.answered) <= set(account.events)
    assert len(account.answered) >= rounds


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "sqlite":
        yield Place(tmp_path, "")
        return
    binary, port = find_etcd(), free_port()
    assert binary is not None
    with running_etcd(binary, tmp_path / "etcd", port):
        yield Place(tmp_path, f"http://127.0.0.1:{port}")


async def test_answers_of_a_killed_server_are_kept_and_its_watches_continue(place: Place) -> None:
    await assert_answers_outlive_kills(place, seed=1, rounds=3, most=150)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(3))
async def test_the_same_many_times_over(place: Place, seed: int) -> None:
    await assert_answers_outlive_kills(place, seed=seed, rounds=25, most=1500)
