"""An observer of the invariants I1 to I5. It asks each member of etcd itself; the coordinator has none of this code."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp

_ROUND = 0.05
"""Seconds between two looks."""
_MISSING = 10
"""Looks in a row at which a majority may be missing: the list may be younger than the statuses."""


class Observer:
    """Looks at the members until it is stopped, and notes what must not be.

    Its rounds are the measure of time: the busier the machine is, the longer each of them takes.
    """

    def __init__(self, clients: Callable[[], Mapping[str, str]], *, source: frozenset[str] = frozenset()) -> None:
        """`source` are the names of the members that are to be removed."""
        self._clients = clients
        self._source = source
        self.broken: list[str] = []
        self.rounds = 0
        """All looks, also those that find no leader."""
        self.looks = 0
        self.cluster_ids: set[str] = set()
        self.history: list[tuple[tuple[str, ...], str]] = []
        """Members (learners in brackets) and leader, whenever they change."""
        self.faults = 0
        """Faults that last now, during which a majority may be missing."""
        self._revision = 0
        self._last: dict[str, bool] = {}
        self._missing = 0
        """Looks in a row without a majority."""

    async def watch(self) -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=1.0)) as session:
            while True:
                await self._look(session)
                self.rounds += 1
                await asyncio.sleep(_ROUND)

    async def _look(self, session: aiohttp.ClientSession) -> None:
        clients = self._clients()
        statuses = await asyncio.gather(*(self._ask(session, url, "maintenance/status") for url in clients.values()))
        known = [one for one in statuses if one]
        leaders = {one["leader"] for one in known if one.get("leader", "0") != "0"}
        leading = next((one for one in known if one["header"]["member_id"] in leaders), None)
        if leading is None:
            return
        url = next(url for url, one in zip(clients.values(), statuses, strict=True) if one is leading)
        listed = await self._ask(session, url, "cluster/member/list")
        if listed and len(leaders) == 1:
            self.looks += 1
            self._judge(listed["members"], known, str(leading["header"]["member_id"]), listed["header"]["cluster_id"])

    async def _ask(self, session: aiohttp.ClientSession, url: str, path: str) -> Any:
        try:
            async with session.post(f"{url}/v3/{path}", data=b"{}") as answer:
                return json.loads(await answer.read()) if answer.status == 200 else None
        except (aiohttp.ClientError, TimeoutError):
            return None

    def _judge(self, listed: list[Any], known: list[Any], leader: str, cluster: str) -> None:
        voters = {one["ID"] for one in listed if not one.get("isLearner")}
        alive = {str(one["header"]["member_id"]) for one in known if one.get("leader", "0") == leader}
        self._majority(voters, alive)
        self.cluster_ids.add(str(cluster))
        if len(self.cluster_ids) > 1:
            self.broken.append(f"I3: cluster ids {self.cluster_ids}")
        revision = max(int(one["header"].get("revision", 0)) for one in known)
        if revision < self._revision:
            self.broken.append(f"I3: the revision went from {self._revision} to {revision}")
        self._revision = revision
        names = [one["name"] for one in listed if one.get("name")]
        if len(names) != len(set(names)) or len(listed) - len(voters) > 1:
            self.broken.append(f"I4: members {listed}")
        self._removals(listed, leader)
        shown = tuple(f"({one.get('name')})" if one.get("isLearner") else one.get("name", "") for one in listed)
        name = next((one.get("name", "") for one in listed if one["ID"] == leader), "")
        if not self.history or self.history[-1] != (shown, name):
            self.history.append((shown, name))

    def _majority(self, voters: set[str], alive: set[str]) -> None:
        self._missing = 0 if 2 * len(voters & alive) > len(voters) else self._missing + 1
        if not self.faults and self._missing > _MISSING:
            self.broken.append(f"I1: {len(voters & alive)} of {len(voters)} voters answer")

    def _removals(self, listed: list[Any], leader: str) -> None:
        """The first member of the source is gone: the leader must have been elsewhere when it was seen last."""
        now = {one.get("name", ""): one["ID"] == leader for one in listed}
        for name in self._last.keys() - now.keys():
            if name in self._source and self._last[name]:
                self.broken.append(f"I5: {name} was removed while it led")
            if name in self._source and any(now.get(one) for one in self._source):
                self.broken.append(f"I5: {name} was removed while the leader was at the source")
        self._last = now
