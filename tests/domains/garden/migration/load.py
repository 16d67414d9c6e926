"""Clients of a control plane through the router: writers, readers, watchers, each with connections that stay."""

from __future__ import annotations

import asyncio
import itertools
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from tests.domains.garden.migration.router import HOST
from tests.waiting import PATIENCE, until

PLACE = "/api/v1/namespaces/default/configmaps"
_PAUSE = 0.02
"""Seconds between two requests of one client."""


@dataclass
class Load:
    """Requests and events of all clients."""

    requests: int = 0
    failed: list[str] = field(default_factory=list)
    turned_away: int = 0
    """Requests that a server did not take, with the time after which to repeat them."""
    longest: float = 0.0
    """Seconds of the longest request, for people to read: they say as much about the machine."""
    longest_rounds: int = 0
    """The same in rounds of the observer."""
    slow: list[tuple[float, float, str]] = field(default_factory=list)
    written: dict[str, list[int]] = field(default_factory=dict)
    """Acknowledged writes: values by name, in order."""
    watched: list[list[tuple[str, str, str]]] = field(default_factory=list)
    """By watcher: type, name and resource version of each event."""
    resumed: int = 0
    """Watches that ended and were opened again at their last resource version."""
    answered: list[float] = field(default_factory=list)
    """Times of successful answers."""
    final: Any = None
    """The list of all objects at the end."""

    def took(self, began: float, rounds: int, what: str) -> None:
        """Note a request that began at a time and was answered so many rounds of the observer later."""
        now = time.monotonic()
        self.longest_rounds = max(self.longest_rounds, rounds)
        self.requests += 1
        self.answered.append(now)
        seconds = now - began
        self.longest = max(self.longest, seconds)
        if seconds > 0.5:
            self.slow.append((round(began, 2), round(seconds, 2), what))

    @property
    def summary(self) -> str:
        """The figures of docs/garden/migration.md."""
        return f"longest {self.longest:.3f} s, longest time without an answer {self.gap:.3f} s"

    @property
    def gap(self) -> float:
        """The longest time without any successful answer."""
        times = sorted(self.answered)
        return max((after - before for before, after in itertools.pairwise(times)), default=0.0)


class Clients:
    """All clients. `retries` 1 lets each try a failed request once more; `rounds` counts those of the observer."""

    def __init__(
        self, port: int, token: str, tls: ssl.SSLContext, *, retries: int = 0, rounds: Callable[[], int] = lambda: 0
    ) -> None:
        self.load = Load()
        self._url = f"https://127.0.0.1:{port}"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._tls = tls
        self._retries = retries
        self._rounds = rounds
        self._stopping = asyncio.Event()
        self._watching = asyncio.Event()

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(headers=self._headers, connector=aiohttp.TCPConnector(ssl=self._tls))

    async def _ask(self, session: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> Any:
        tries = self._retries + 1
        while tries:
            tries -= 1
            began, round_ = time.monotonic(), self._rounds()
            try:
                asked = session.request(method, self._url + path, json=body, server_hostname=HOST)
                async with asyncio.timeout(PATIENCE), asked as answer:
                    if self._is_turned_away(answer):
                        tries += 1
                        continue
                    found = await answer.json()
                    # A create that is repeated may have been carried out the first time.
                    if answer.status < 300 or (answer.status == 409 and method == "POST" and tries < self._retries):
                        self.load.took(began, self._rounds() - round_, method)
                        return found
                    why = f"{method} {path}: {answer.status} {found.get('message')}"
            except (aiohttp.ClientError, TimeoutError) as error:
                why = f"{method} {path}: {error!r}"
            if not tries:
                self.load.failed.append(f"{time.monotonic():.2f} {why}")
        return None

    def _is_turned_away(self, answer: aiohttp.ClientResponse) -> bool:
        """Reports whether to repeat a request, as client-go does by itself: 429 with the header Retry-After.

        It waits for that long. A server that stops sends clients to another one by it, which need not be waited for.
        """
        if answer.status != 429 or "Retry-After" not in answer.headers:
            return False
        self.load.turned_away += 1
        return True

    async def write(self, number: int) -> None:
        """Create an object, then change it again and again."""
        name, value = f"writer-{number}", 0
        async with self._session() as session:
            while not self._stopping.is_set():
                body = {"metadata": {"name": name}, "data": {"value": str(value)}}
                method, path = ("PUT", f"{PLACE}/{name}") if name in self.load.written else ("POST", PLACE)
                if await self._ask(session, method, path, body) is not None:
                    self.load.written.setdefault(name, []).append(value)
                value += 1
                await asyncio.sleep(_PAUSE)

    async def read(self) -> None:
        async with self._session() as session:
            while not self._stopping.is_set():
                await self._ask(session, "GET", PLACE)
                await asyncio.sleep(_PAUSE)

    async def watch(self, version: str) -> None:
        seen: list[tuple[str, str, str]] = []
        self.load.watched.append(seen)
        async with self._session() as session:
            while True:
                query = f"?watch=true&resourceVersion={version}"
                try:
                    async with session.get(
                        f"{self._url}{PLACE}{query}", server_hostname=HOST, timeout=aiohttp.ClientTimeout(total=None)
                    ) as answer:
                        if self._is_turned_away(answer):
                            continue
                        if answer.status != 200:
                            self.load.failed.append(f"{time.monotonic():.2f} watch: {answer.status}")
                        async for line in answer.content:
                            event = json.loads(line)
                            metadata = event["object"].get("metadata", {})
                            if event["type"] == "ERROR":
                                self.load.failed.append(f"{time.monotonic():.2f} watch: {event['object']}")
                                return
                            version = metadata["resourceVersion"]
                            if event["type"] != "BOOKMARK":
                                seen.append((metadata["name"], version, event["object"]["data"]["value"]))
                except aiohttp.ClientError as error:
                    self.load.failed.append(f"{time.monotonic():.2f} watch: {error!r}")
                    await asyncio.sleep(_PAUSE)
                self.load.resumed += 1

    async def list(self) -> Any:
        async with self._session() as session:
            return await self._ask(session, "GET", PLACE)

    def stop(self) -> None:
        self._stopping.set()


@asynccontextmanager
async def running_load(
    port: int,
    token: str,
    tls: ssl.SSLContext,
    *,
    writers: int = 3,
    readers: int = 2,
    watchers: int = 2,
    retries: int = 0,
    rounds: Callable[[], int] = lambda: 0,
) -> AsyncIterator[Clients]:
    """Clients at work until the end of the block; then writes end, watchers see the rest, and all is compared."""
    clients = Clients(port, token, tls, retries=retries, rounds=rounds)
    first = await clients.list()
    version = first["metadata"]["resourceVersion"]
    watching = [asyncio.create_task(clients.watch(version)) for _ in range(watchers)]
    working = [asyncio.create_task(clients.write(number)) for number in range(writers)]
    working += [asyncio.create_task(clients.read()) for _ in range(readers)]
    try:
        yield clients
        clients.stop()
        await asyncio.gather(*working)
        await _caught_up(clients)
    finally:
        for task in (*working, *watching):
            task.cancel()
        await asyncio.gather(*working, *watching, return_exceptions=True)


async def _caught_up(clients: Clients) -> None:
    final = await clients.list()
    newest = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in final["items"]}
    clients.load.final = final

    def all_seen() -> bool:
        latest = [{name: version for name, version, _ in seen} for seen in clients.load.watched]
        return all(
            one == {name: newest[name] for name in one} and len(one) >= len(clients.load.written) for one in latest
        )

    # The comparison of all events names the events that a watcher never sees.
    with suppress(TimeoutError):
        await until(all_seen)


def assert_nothing_was_lost(load: Load) -> None:
    """Each acknowledged write was seen by each watcher, once and in order, and the last ones are there at the end."""
    for name, values in load.written.items():
        for seen in load.watched:
            got = [int(value) for one, _, value in seen if one == name]
            assert got == sorted(set(got)), f"{name}: doubled or out of order"
            assert set(values) <= set(got), f"{name}: missed {sorted(set(values) - set(got))}"
        versions = [int(version) for one, version, _ in load.watched[0] if one == name]
        assert versions == sorted(set(versions))
    for one in load.final["items"]:
        name = one["metadata"]["name"]
        if name in load.written:
            assert int(one["data"]["value"]) >= load.written[name][-1]
