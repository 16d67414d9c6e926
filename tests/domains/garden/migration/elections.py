"""Controllers at both sites that elect one leader by a Lease through the router, and an observer of who leads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.waiting import until

from hortus.engine.leases import Elector, LeaseTimes
from hortus.engine.livemigration import Site
from hortus.engine.shards.records import LEASES
from hortus.kube import Client
from hortus.kube.access import Access
from hortus.kube.clock import SystemClock
from hortus.kube.objects import Object

PLACE = ("controllers", "default")
EACH = 2
"""Candidates of each site."""
TIMES = LeaseTimes(duration=6.0, renew_deadline=4.0, retry_period=0.3)
_ROUND = 0.01
"""Seconds between two looks at who leads; real time, since etcd and Envoy are real."""


class ElectedControllers:
    """The candidates of both sites. At most one leads at any moment; where none has, `gap` is the longest such time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._running: dict[str, list[asyncio.Task[None]]] = {site: [] for site in Site}
        self._electors: list[Elector] = []
        self.terms: list[str] = []
        """Identities in the order in which they became leaders."""
        self.broken: list[str] = []
        self.gap = 0.0
        self.looks = 0
        self._observing = asyncio.create_task(self._observe(), name="observer of leaders")

    def are_at(self, site: str) -> bool:
        return bool(self._running[site])

    async def move(self, site: Site) -> None:
        """Start the candidates of a site, then stop those of the other, whose leader gives the lease back."""
        if not self._running[site]:
            self._running[site] = [
                asyncio.create_task(self._stand(f"{site}-{number}"), name=f"controllers {site}-{number}")
                for number in range(EACH)
            ]
        other = Site.SOURCE if site == Site.DESTINATION else Site.DESTINATION
        await self._stop(other)

    async def lease(self) -> Object:
        """The Lease at this moment."""
        return await self._client.get(LEASES, *PLACE)

    @property
    def leaders(self) -> list[str]:
        return [one.identity for one in self._electors if one.leading]

    async def close(self) -> None:
        self._observing.cancel()
        await asyncio.gather(self._observing, return_exceptions=True)
        for site in Site:
            await self._stop(site)

    async def _stop(self, site: Site) -> None:
        stopping, self._running[site] = self._running[site], []
        for task in stopping:
            task.cancel()
        await asyncio.gather(*stopping, return_exceptions=True)

    async def _stand(self, identity: str) -> None:
        name, namespace = PLACE
        clock = SystemClock()
        elector = Elector(self._client, name=name, namespace=namespace, identity=identity, clock=clock, times=TIMES)
        self._electors.append(elector)
        try:
            while True:
                await elector.acquire()
                self.terms.append(identity)
                self._judge()
                await elector.lost()
        finally:
            await elector.release()
            self._electors.remove(elector)

    async def _observe(self) -> None:
        """Looks who leads, from the time that the first leader was there."""
        loop = asyncio.get_running_loop()
        led_at: float | None = None
        while True:
            self.looks += 1
            self._judge()
            now = loop.time()
            if led_at is not None:
                self.gap = max(self.gap, now - led_at)
            if self.leaders:
                led_at = now
            await asyncio.sleep(_ROUND)

    def _judge(self) -> None:
        if len(found := self.leaders) > 1:
            self.broken.append(f"these lead at one moment: {', '.join(found)}")

    def assert_handed_over(self, before: Object, after: Object) -> None:
        """The one Lease went from the source to the destination once, and two never led."""
        assert self.broken == []
        assert [one.rpartition("-")[0] for one in self.terms] == ["source", "destination"]
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["spec"]["holderIdentity"] == self.terms[1]
        assert after["spec"]["leaseTransitions"] == before["spec"].get("leaseTransitions", 0) + 1
        assert self.gap < 2 * TIMES.retry_period + 1, f"{self.gap:.2f} s without a leader"


@asynccontextmanager
async def elected_controllers(access: Access) -> AsyncIterator[ElectedControllers]:
    """Controllers of the source, of which one leads."""
    async with Client(access) as client:
        controllers = ElectedControllers(client)
        try:
            await controllers.move(Site.SOURCE)
            await until(lambda: controllers.leaders)
            yield controllers
        finally:
            await controllers.close()
