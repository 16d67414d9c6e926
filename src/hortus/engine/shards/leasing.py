"""The calls of a sharded replica about its own Lease and those of the others.

Each call ends within a time that the caller gives or the lease times set. Leases that this replica has lost are kept by
name: one that could not be given back is given back when it is seen again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from random import Random
from typing import Protocol

import structlog

from hortus.engine.leases import LeaseTimes
from hortus.engine.shards.records import GROUP_LABEL, LEASES, LeaseRecord, new_lease, record_of, release, renewal
from hortus.engine.shards.roster import MemberRoster
from hortus.engine.within import within
from hortus.kube.clock import Clock
from hortus.kube.errors import Conflict, KubeError, NotFound
from hortus.kube.objects import Object, Resource

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_MOST_REMEMBERED = 1000
"""Former names of this replica; in an outage there is one for each attempt to make a lease."""


class Listed(Protocol):
    @property
    def items(self) -> list[Object]: ...


class ShardClient(Protocol):
    """The part of `hortus.kube.Client` that the leases use."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...

    async def list(self, resource: Resource, namespace: str = "", labels: object = "") -> Listed: ...

    async def create(self, resource: Resource, obj: Object) -> Object: ...

    async def patch(self, resource: Resource, name: str, patch: Object, namespace: str = "") -> Object: ...

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> Object: ...


class MemberLeases:
    """The Leases of one group in one namespace, as one replica writes and reads them."""

    def __init__(
        self,
        client: ShardClient,
        *,
        group: str,
        namespace: str,
        identity: str,
        clock: Clock,
        times: LeaseTimes,
        random: Random,
    ) -> None:
        self.group = group
        self.namespace = namespace
        self._client = client
        self._identity = identity
        self._clock = clock
        self._times = times
        self._random = random
        self._former: dict[str, None] = {}
        """Names of this replica whose work is over, oldest first."""
        self._returning: dict[str, asyncio.Task[None]] = {}

    @property
    def selector(self) -> str:
        return f"{GROUP_LABEL}={self.group}"

    def new_name(self) -> str:
        return f"{self.group}-{self._random.getrandbits(48):012x}"

    def record(self, lease: Object) -> LeaseRecord:
        return record_of(lease, default_duration=self._times.duration)

    async def create(self, name: str) -> None:
        """Make the Lease `name` for this replica. Raises KubeError, OSError."""
        lease = new_lease(
            name,
            self.namespace,
            group=self.group,
            identity=self._identity,
            duration=self._times.duration,
            now=self._clock.now(),
        )
        await within(self._clock, self._times.renew_deadline, self._client.create(LEASES, lease))

    async def renew(self, name: str, view: frozenset[str], *, held: int, seconds: float) -> LeaseRecord:
        """Renew within `seconds` and acknowledge `view`; returns the Lease as written. Raises KubeError, OSError."""
        patch = renewal(view, held=held, now=self._clock.now())
        writing = self._client.patch(LEASES, name, patch, self.namespace)
        return self.record(await within(self._clock, seconds, writing))

    async def list(self, *, seconds: float) -> list[LeaseRecord]:
        """The Leases of the group, within `seconds`. Raises KubeError, OSError."""
        listing = self._client.list(LEASES, self.namespace, labels=self.selector)
        return [self.record(lease) for lease in (await within(self._clock, seconds, listing)).items]

    async def delete_unchanged(self, record: LeaseRecord) -> LeaseRecord | None:
        """Delete an overdue Lease on condition that it is as `record` says.

        Returns None when it is deleted, otherwise the Lease as it is now. Raises KubeError, OSError.
        """
        return await within(self._clock, self._times.renew_deadline, self._delete_unchanged(record))

    async def _delete_unchanged(self, record: LeaseRecord) -> LeaseRecord | None:
        name = record.member
        try:
            await self._client.delete(
                LEASES, name, self.namespace, uid=record.uid, resource_version=record.resource_version
            )
        except Conflict:
            return self.record(await self._client.get(LEASES, name, self.namespace))
        except NotFound:
            pass
        return None

    # Leases that this replica has lost.

    @property
    def former(self) -> tuple[str, ...]:
        """The names under which nothing works any more, nor ever will."""
        return tuple(self._former)

    def retire(self, name: str) -> None:
        """Keep `name` among the former ones: the work under it is over."""
        self._former[name] = None
        if len(self._former) > _MOST_REMEMBERED:
            del self._former[next(iter(self._former))]

    def is_former(self, name: str) -> bool:
        return name in self._former

    def seen(self, record: LeaseRecord) -> None:
        """Give the Lease back when it is a former one of this replica that is still held."""
        name = record.member
        if name in self._former and not record.released and name not in self._returning:
            task = self._returning[name] = asyncio.create_task(self.give_back(name), name=f"give back {name}")
            task.add_done_callback(lambda _: self._returning.pop(name, None))

    async def give_back(self, name: str) -> None:
        """Release the Lease and delete it; a failure is logged, and `seen` tries again."""
        try:
            patching = self._client.patch(LEASES, name, release(self._clock.now()), self.namespace)
            await within(self._clock, self._times.retry_period, patching)
            deleting = self._client.delete(LEASES, name, self.namespace)
            await within(self._clock, self._times.retry_period, deleting)
        except NotFound:
            return
        except (KubeError, OSError) as error:
            _log.warning("a lease among the shards could not be given back", lease=name, error=str(error))

    async def close(self) -> None:
        """Cancel the attempts to give former Leases back."""
        tasks = list(self._returning.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class OverdueCheck:
    """Asks the server about members whose Lease was unchanged for its duration, one round at a time.

    A Lease that is still unchanged there is deleted, after which its member is gone.
    """

    def __init__(
        self, leases: MemberLeases, *, clock: Clock, retry: Callable[[], float], checked: Callable[[MemberRoster], None]
    ) -> None:
        """`retry` returns the seconds to wait after a failure; `checked` is called after each round."""
        self._leases = leases
        self._clock = clock
        self._retry = retry
        self._checked = checked
        self._not_before = float("-inf")
        self._round: asyncio.Task[None] | None = None

    @property
    def _running(self) -> bool:
        return self._round is not None and not self._round.done()

    def next(self, roster: MemberRoster) -> float:
        """The time at which `begin` has something to do; infinite while a round is under way."""
        return float("inf") if self._running else max(roster.next_overdue(), self._not_before)

    def begin(self, roster: MemberRoster) -> None:
        """Start a round when members are overdue."""
        if not self._running and self._clock.monotonic() >= self._not_before:
            overdue = roster.overdue()
            if overdue:
                self._round = asyncio.create_task(self._check(roster, overdue), name="overdue shards")

    async def _check(self, roster: MemberRoster, overdue: Iterable[LeaseRecord]) -> None:
        for record in overdue:
            try:
                changed = await self._leases.delete_unchanged(record)
            except (KubeError, OSError) as error:
                _log.warning("an overdue lease could not be checked", lease=record.member, error=str(error))
                self._not_before = self._clock.monotonic() + self._retry()
                continue
            if changed is not None:
                roster.saw(changed)
            else:
                _log.warning("a replica is gone, its lease ran out", lease=record.member, identity=record.identity)
                roster.is_gone(record.member)
        self._checked(roster)

    async def close(self) -> None:
        if self._round is not None:
            self._round.cancel()
            await asyncio.gather(self._round, return_exceptions=True)


__all__ = ["MemberLeases", "OverdueCheck", "ShardClient"]
