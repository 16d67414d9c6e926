"""Controllers at both sites that elect one leader by a Lease through the router, and an observer of who leads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

from tests.waiting import until

from hortus.engine.leases import Elector, LeaseTimes
from hortus.engine.shards.records import LEASES
from hortus.gardener.livemigration import Site
from hortus.kube import Client
from hortus.kube.access import Access
from hortus.kube.clock import Clock
from hortus.kube.objects import Object, Resource
from hortus.testing import FakeClock

PLACE = ("controllers", "default")
EACH = 2
"""Candidates of each site."""
TIMES = LeaseTimes(duration=6.0, renew_deadline=4.0, retry_period=0.3)
_ROUND = 0.01
"""Seconds between two looks at who leads; real time, since etcd and Envoy are real."""


class ElectionRequests:
    """The requests of all candidates; `under_way` is how many wait for an answer."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.under_way = 0

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        return await self._answered(self._client.get(resource, name, namespace))

    async def create(self, resource: Resource, obj: Object) -> Object:
        return await self._answered(self._client.create(resource, obj))

    async def replace(self, resource: Resource, obj: Object) -> Object:
        return await self._answered(self._client.replace(resource, obj))

    async def _answered(self, request: Awaitable[Object]) -> Object:
        self.under_way += 1
        try:
            return await request
        finally:
            self.under_way -= 1


class ElectedControllers:
    """The candidates of both sites. At most one leads at any moment; where none has, `gap` is the longest such time.

    The time of the election stands still while a request of a candidate is under way, and passes by one round with each
    look otherwise. A slow machine therefore ends no term: only a request that fails does, again and again.
    """

    def __init__(self, client: Client, *, clock: Clock) -> None:
        """With a clock that is not a `FakeClock`, time passes by itself."""
        self._requests = ElectionRequests(client)
        self._clock = clock
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
        return await self._requests.get(LEASES, *PLACE)

    async def elected(self) -> Object:
        """The Lease, once a candidate leads."""
        await until(lambda: self.leaders)
        return await self.lease()

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
        elector = Elector(
            self._requests, name=name, namespace=namespace, identity=identity, clock=self._clock, times=TIMES
        )
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
        led_at: float | None = None
        while True:
            self.looks += 1
            self._judge()
            now = self._clock.monotonic()
            if led_at is not None:
                self.gap = max(self.gap, now - led_at)
            if self.leaders:
                led_at = now
            await asyncio.sleep(_ROUND)
            if isinstance(self._clock, FakeClock) and not self._requests.under_way:
                await self._clock.advance(_ROUND)

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
        # A candidate that asked just before the lease was given back asks again after its retry period.
        assert self.gap < 2 * TIMES.retry_period, f"{self.gap:.2f} s without a leader"


@asynccontextmanager
async def elected_controllers(access: Access, *, clock: Clock | None = None) -> AsyncIterator[ElectedControllers]:
    """Controllers of the source, of which one leads."""
    async with Client(access) as client:
        controllers = ElectedControllers(client, clock=clock or FakeClock())
        try:
            await controllers.move(Site.SOURCE)
            await until(lambda: controllers.leaders)
            yield controllers
        finally:
            await controllers.close()
