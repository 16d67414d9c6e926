"""One replica among those that divide the objects: it keeps its Lease, watches the others and answers the controllers.

`MemberRoster` has the rules and `MemberLeases` the calls; here are the timers and the order of things. One task renews
the lease, acknowledges others and asks the server about those that are overdue. When the lease is lost all work is cut
off, and the replica joins again under another name; the process and its caches stay. A lease that could not be given
back, since the server did not answer, is given back when it is seen again: no other replica knows that its work ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

import structlog

from hortus.engine.backoff import spread
from hortus.engine.cache import Cache, Change
from hortus.engine.leases import LeaseTimes, default_identity
from hortus.engine.shards.leasing import MemberLeases, OverdueCheck, ShardClient
from hortus.engine.shards.rendezvous import owner
from hortus.engine.shards.roster import MemberRoster, Permit
from hortus.kube.clock import Clock
from hortus.kube.errors import AlreadyExists, KubeError, NotFound
from hortus.kube.objects import ObjectKey

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

DEFAULT_DRAIN = 10.0
"""Seconds that work has to end by itself when its object moves to another replica; then it is cut off."""

_JITTER = 0.1
_BLIND = 3
"""Renewals that the watch may fail to show before the leases are listed instead."""


class ShardCounts:
    """Counters since the start."""

    __slots__ = ("changes", "gained", "interrupted", "lost")

    def __init__(self) -> None:
        self.changes = 0
        """Changes of who the members are."""
        self.gained = 0
        """Objects taken over."""
        self.interrupted = 0
        """Reconciles cut off since their object had moved or the lease was lost."""
        self.lost = 0
        """Leases lost."""


class Shards:
    """This replica's place among those of `group`: the `Assignment` of every controller of the process."""

    def __init__(
        self,
        client: ShardClient,
        *,
        group: str,
        namespace: str,
        identity: str = "",
        clock: Clock,
        times: LeaseTimes | None = None,
        drain: float = DEFAULT_DRAIN,
        random: Random | None = None,
    ) -> None:
        self.group = group
        self.namespace = namespace
        self.identity = identity or default_identity()
        self.counts = ShardCounts()
        self.held: Callable[[], int] = int
        """Returns the number of objects that this replica holds; shown in its Lease."""
        self._clock = clock
        self._times = times or LeaseTimes()
        self._drain = drain
        self._random = random or Random()  # noqa: S311 - names and jitter, not secrecy
        self._leases = MemberLeases(
            client,
            group=group,
            namespace=namespace,
            identity=self.identity,
            clock=clock,
            times=self._times,
            random=self._random,
        )
        self._overdue = OverdueCheck(self._leases, clock=clock, retry=self._period, checked=self._react)
        self._roster = self._new_roster()
        self._cache: Cache | None = None
        self._gain: list[Callable[[Callable[[ObjectKey], bool]], int]] = []
        self._reported: tuple[str, list[str], int] | None = None
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._has_joined = asyncio.Event()
        self._task: asyncio.Task[object] | None = None
        self._drain_until = float("inf")
        self._terms = 0
        """The versions of all rosters before the present one, summed."""
        self._unseen: tuple[int, int] = (0, 0)
        """The version of the first renewal that the watch has not shown, and how many it has not."""

    # For controllers.

    def holds(self, key: ObjectKey) -> bool:
        """True when work on `key` may begin here now."""
        return self._roster.holds(key)

    def enter(self, key: ObjectKey, interrupt: Callable[[], None]) -> Permit | None:
        """The right to work on `key`, or None when it is not ours. The caller owes a `leave`.

        `interrupt` is called, once at most, when the work has to end.
        """
        return self._roster.enter(key, interrupt)

    def leave(self, permit: Permit, *, clean: bool) -> None:
        """The work of `permit` is over; `clean` when it came to its end without any failure."""
        permit.roster.leave(permit, clean=clean)
        if not permit.roster.permits:
            self._idle.set()
        if not permit.roster.owns(permit.key):
            self._wake.set()

    def on_gain(self, look: Callable[[Callable[[ObjectKey], bool]], int]) -> None:
        """Call `look` with a test for keys that have become ours; it returns how many it found."""
        self._gain.append(look)

    # For people and probes.

    @property
    def members(self) -> list[str]:
        """The names of all members as this one sees them, its own among them; empty while it is none."""
        return self._roster.members if self._roster.valid else []

    @property
    def joined(self) -> bool:
        """True when this replica may hold objects now."""
        return self._roster.joined and self._roster.valid

    @property
    def version(self) -> int:
        """Grows whenever what this replica holds may have changed."""
        return self._terms + self._roster.version

    @property
    def problem(self) -> str:
        """The reason why it may not; empty when it may."""
        if not self._roster.valid:
            return "this replica has no valid lease"
        if self._roster.awaited:
            return f"waiting for {', '.join(self._roster.awaited)} to hand over or to run out"
        return "" if self._roster.joined else "the other replicas are not known yet"

    def check(self) -> None:
        """The check of a readiness probe. Raises RuntimeError while this replica may hold nothing."""
        if self.problem:
            raise RuntimeError(self.problem)

    # Lifecycle.

    def watch(self, leases: Cache) -> None:
        """Learn of the others from `leases`: the cache of the namespace's Leases with `selector`."""
        self._cache = leases
        leases.subscribe(self._on_change)

    @property
    def selector(self) -> str:
        return self._leases.selector

    async def has_joined(self) -> None:
        """Return when `run` has made this replica a member that may hold objects."""
        await self._has_joined.wait()

    async def run(self) -> None:
        """Be a member, again after each loss, until cancelled. Failures of the API are retried."""
        self._task = asyncio.current_task()
        while True:
            await self._make_lease()
            _log.info("made a lease among the shards", lease=self._roster.name, identity=self.identity)
            await self._stay(self._roster)
            self.counts.lost += 1
            _log.error("the lease among the shards is lost", lease=self._roster.name, identity=self.identity)
            await self._retire(self._roster)

    async def leave_group(self) -> None:
        """End `run` and give the lease back, so that others take over at once. All work has to be over."""
        if self._task is not None:
            await _cancelled(self._task)
        await self._overdue.close()
        await self._leases.close()
        roster = self._roster
        if roster.valid:
            roster.end()
            await self._retire(roster)

    # The own lease.

    def _new_roster(self) -> MemberRoster:
        times = self._times
        return MemberRoster(
            self._leases.new_name(),
            renew_deadline=times.renew_deadline,
            settling=times.duration - times.renew_deadline,
            monotonic=self._clock.monotonic,
        )

    async def _make_lease(self) -> None:
        while True:
            roster = self._new_roster()
            began = self._clock.monotonic()
            try:
                await self._leases.create(roster.name)
            except (KubeError, OSError) as error:
                _log.warning("no lease among the shards", error=str(error))
                self._leases.retire(roster.name)
                if not isinstance(error, AlreadyExists):
                    # It may have been made all the same, and the others would wait for it.
                    await self._leases.give_back(roster.name)
            else:
                if roster.renewed(began):
                    for name in self._leases.former:
                        roster.is_gone(name)
                    self._terms += self._roster.version + 1
                    self._roster, self._reported, self._unseen = roster, None, (0, 0)
                    return
            await self._clock.sleep(self._period())

    async def _stay(self, roster: MemberRoster) -> None:
        """Renew, acknowledge, watch, until the lease is lost."""
        renew_at, retry_after = self._next(), float("-inf")
        published: frozenset[str] = frozenset()
        listed = False
        while roster.valid:
            now = self._clock.monotonic()
            if not listed and now >= retry_after:
                listed = await self._list_leases(roster)
                retry_after = now if listed else self._next()
                continue
            self._end_foreign_work(roster)
            self._overdue.begin(roster)
            ready = roster.acknowledged()
            if now >= renew_at or (now >= retry_after and not ready <= published):
                if await self._renew(roster, ready):
                    published = ready
                    retry_after = float("-inf") if listed else retry_after
                else:
                    retry_after = self._next()
                # Counted from the request: an answer that took long leaves less time for the next one.
                renew_at = now + self._period()
                if self._unseen[1] > _BLIND:
                    _log.warning("the watch of the shards' leases shows nothing, listing them")
                    await self._list_leases(roster)
                continue
            retry_at = retry_after if not listed or not ready <= published else float("inf")
            turns = (renew_at, retry_at, self._drain_until, self._overdue.next(roster), roster.next_settled())
            await self._until(min(roster.valid_until, *turns))
        self._drain_until = float("inf")

    def _next(self) -> float:
        return self._clock.monotonic() + self._period()

    def _period(self) -> float:
        return spread(self._times.retry_period, _JITTER, random=self._random)

    async def _until(self, when: float) -> None:
        """Return at `when`, or earlier when something has changed."""
        timer = self._clock.call_later(max(0.0, when - self._clock.monotonic()), self._wake.set)
        await self._wake.wait()
        self._wake.clear()
        timer.cancel()

    async def _list_leases(self, roster: MemberRoster) -> bool:
        left = roster.valid_until - self._clock.monotonic()
        try:
            records = await self._leases.list(seconds=left)
        except (KubeError, OSError) as error:
            _log.warning("the leases of the shards could not be listed", error=str(error))
            return False
        for record in records:
            self._leases.seen(record)
        self._unseen = (0, 0)
        if roster.looked:
            for record in records:
                roster.saw(record)
        else:
            roster.first_look(records)
        if roster.name not in {record.member for record in records}:
            roster.end()
        self._react(roster)
        return True

    async def _renew(self, roster: MemberRoster, view: frozenset[str]) -> bool:
        began = self._clock.monotonic()
        left = roster.valid_until - began
        try:
            record = await self._leases.renew(roster.name, view, held=self.held(), seconds=left)
        except NotFound:
            _log.error("somebody deleted this replica's lease", lease=roster.name)
            roster.end()
            return False
        except (KubeError, OSError) as error:
            _log.warning("the lease among the shards could not be renewed", lease=roster.name, error=str(error))
            return False
        if record.released:
            roster.end()
        version, count = self._unseen
        self._unseen = (version or record.version, count + 1)
        return roster.renewed(began)

    async def _retire(self, roster: MemberRoster) -> None:
        """Cut all work off, wait until none of its requests can be on the way, and give the lease back."""
        self.counts.interrupted += roster.permits
        roster.revoke()
        while roster.permits:
            self._idle.clear()
            await self._idle.wait()
        pause = roster.settled_at - self._clock.monotonic()
        if pause > 0:
            await self._clock.sleep(pause)
        self._leases.retire(roster.name)
        await self._leases.give_back(roster.name)

    # The others.

    def _on_change(self, change: Change) -> None:
        roster, record = self._roster, self._leases.record(change.current)
        if record.member == roster.name:
            if change.new is None or record.released:
                roster.end()
                self._wake.set()
            elif record.version >= self._unseen[0]:
                self._unseen = (0, 0)
        elif self._leases.is_former(record.member):
            if change.new is not None:
                self._leases.seen(record)
        elif change.new is not None or record.released:
            # A lease that somebody deleted counts until it is overdue: its member may not know yet.
            roster.saw(record)
            self._react(roster)

    def _react(self, roster: MemberRoster) -> None:
        """Enqueue the objects that this replica has gained, and wake the task."""
        self._wake.set()
        if not roster.joined or not roster.valid:
            return
        reported, members = self._reported, roster.members
        if reported is not None and reported[2] == roster.version:
            return
        self._reported = (roster.name, members, roster.version)
        self.counts.changes += 1
        mine, before = (reported[0], reported[1]) if reported is not None else ("", [])

        def gained(key: ObjectKey) -> bool:
            return roster.holds(key) and (not before or owner(before, key) != mine)

        found = sum(look(gained) for look in self._gain)
        self.counts.gained += found
        _log.info("the shards have changed", members=len(members), gained=found, lease=roster.name)
        self._has_joined.set()

    def _end_foreign_work(self, roster: MemberRoster) -> None:
        """Give work whose object has moved its time to end, and cut it off then."""
        foreign = roster.foreign()
        if not foreign:
            self._drain_until = float("inf")
        elif self._drain_until == float("inf"):
            self._drain_until = self._clock.monotonic() + self._drain
        elif self._clock.monotonic() >= self._drain_until:
            late = [permit for permit in foreign if not permit.revoked]
            self.counts.interrupted += len(late)
            roster.revoke(late)
            self._drain_until = self._clock.monotonic() + self._drain


async def _cancelled(task: asyncio.Task[object] | asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


__all__ = ["DEFAULT_DRAIN", "ShardCounts", "Shards"]
