"""A fleet seen from outside: calls to the host of releases, and ClusterAddons over time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import web
from tests.benchmarks.clusterstacks.catalog import HOME
from tests.benchmarks.fleet import Figures

from hortus.domains.stacks.types import CLUSTER_ADDONS
from hortus.kube import Client
from hortus.kube.objects import Object
from hortus.simulation.releases import GitHubServer

OWNER, REPOSITORY = "example", "stacks"
_REPORT = 30.0
"""Seconds between two lines about the progress of a long phase."""
_KINDS = {"tags": "release", "assets": "asset"}


class CountedHost:
    """A GitHub with the releases of a folder, whose calls are counted."""

    def __init__(self, folder: Path) -> None:
        self.server = GitHubServer(folder, owner=OWNER, repository=REPOSITORY)
        self.server.intercept = self._count
        self.calls: Counter[str] = Counter()
        """By kind: list, release, asset, download; and the bytes of downloads."""

    async def _count(self, request: web.BaseRequest) -> web.StreamResponse | None:
        parts = request.path.strip("/").split("/")
        if parts[0] == "storage":
            self.calls["download"] += 1
            self.calls["bytes"] += (self.server.folder / Path(*parts[1:])).stat().st_size
        else:
            kind = parts[4] if len(parts) > 4 else "list"
            self.calls[_KINDS.get(kind, kind)] += 1
        return None

    def since(self, before: Counter[str]) -> Figures:
        """The calls after a copy of `calls` was taken."""
        found = self.calls - before
        return {f"host_{kind}": float(found[kind]) for kind in ("list", "release", "asset", "download", "bytes")}


class AddonTimes:
    """Follows all ClusterAddons: when each had the addons of a class installed."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.installed: dict[tuple[str, str], float] = {}
        """By Cluster and class; seconds of the monotonic clock."""
        self.classes: dict[str, str] = {}
        """The installed class of each Cluster."""
        self.writes = 0
        self._changed = asyncio.Event()
        self._waiting: dict[str, asyncio.Event] = {}

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def until(self, class_name: str, count: int) -> None:
        """Return when so many Clusters have the addons of a class."""
        began, shown = time.monotonic(), 0
        while (done := sum(1 for found in self.classes.values() if found == class_name)) < count:
            if (seconds := time.monotonic() - began) > (shown + 1) * _REPORT:
                shown = int(seconds / _REPORT)
                print(f"{class_name}: {done} of {count} after {seconds:.0f} s", flush=True)
            self._changed.clear()
            await self._changed.wait()
            await asyncio.sleep(0.1)

    async def has(self, cluster: str, class_name: str) -> None:
        """Return when a Cluster has the addons of a class."""
        while self.classes.get(cluster) != class_name:
            await self._waiting.setdefault(cluster, asyncio.Event()).wait()

    def after(self, began: float, class_name: str) -> list[float]:
        """Seconds from a moment until each Cluster had a class."""
        return [at - began for (_, found), at in self.installed.items() if found == class_name]

    async def _run(self) -> None:
        async with contextlib.aclosing(self._client.watch(CLUSTER_ADDONS, HOME, initial_events=True)) as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED"):
                    self._see(event.object)

    def _see(self, addon: Object) -> None:
        self.writes += 1
        spec, cluster = addon["spec"], addon["spec"]["clusterRef"]["name"]
        settled = (addon.get("status") or {}).get("ready") and not spec.get("hook")
        if settled and (class_name := spec.get("clusterStack")):
            self.installed.setdefault((cluster, class_name), time.monotonic())
            self.classes[cluster] = class_name
            self._changed.set()
            if (waiting := self._waiting.pop(cluster, None)) is not None:
                waiting.set()
