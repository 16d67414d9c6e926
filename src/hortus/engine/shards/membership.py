"""One replica among those that divide the objects: keeps its Lease, watches the others', and tells what it may do.

The rules are `Roster`'s; here are the calls, the timers and the order of things. One task renews the lease,
acknowledges others and asks the server about those that are overdue. When the lease is lost all work is cut off, and
the replica joins again under another name; the process and its caches stay. A lease that could not be given back then,
since the server was away, is given back when it is seen again: nobody else can know so early that its work is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from random import Random
from typing import Protocol

import structlog

from hortus.engine.backoff import spread
from hortus.engine.cache import Cache, Change
from hortus.engine.leases import LEASES, LeaseTimes, default_identity
from hortus.engine.shards.records import GROUP_LABEL, Record, new_lease, record_of, release, renewal
from hortus.engine.shards.rendezvous import owner
from hortus.engine.shards.roster import Permit, Roster
from hortus.engine.within import within
from hortus.kube.clock import Clock
from hortus.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey, Resource

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

DEFAULT_DRAIN = 10.0
"""Seconds that work has to end by itself when its object moves to another replica; then it is cut off."""

_JITTER = 0.1
_MOST_REMEMBERED = 1000
"""Former names of this replica; in an outage there is one for each attempt to make a lease."""
_BLIND = 3
"""Renewals that the watch may fail to show before the leases are listed instead."""


class Listed(Protocol):
    @property
    def items(self) -> list[Object]: ...


class ShardClient(Protocol):
    """What membership needs of `hortus.kube.Client`."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...

    async def list(self, resource: Resource, namespace: str = "", labels: object = "") -> Listed: ...

    async def create(self, resource: Resource, obj: Object) -> Object: ...

    async def patch(self, resource: Resource, name: str, patch: Object, namespace: str = "") -> Object: ...

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> Object: ...


class ShardCounts:
    """What has happened since the start."""

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
        """Tells how many objects this replica holds; shown in its Lease."""
        self._client = client
        self._clock = clock
        self._times = times or LeaseTimes()
        self._drain = drain
        self._random = random or Random()  # noqa: S311 - names and jitter, not secrecy
        self._roster = self._new_roster()
        self._cache: Cache | None = None
        self._gain: list[Callable[[Callable[[ObjectKey], bool]], int]] = []
        self._told: tuple[str, list[str], int] | None = None
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._has_joined = asyncio.Event()
        self._task: asyncio.Task[object] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._former: dict[str, None] = {}
        """Names of this replica whose work is over."""
        self._returning: dict[str, asyncio.Task[None]] = {}
        self._ask_after = float("-inf")
        self._drain_until = float("inf")
        self._terms = 0
        """The versions of all rosters before the present one, summed."""
        self._unseen: tuple[int, int] = (0, 0)
        """The version of the first renewal that the watch has not shown, and how many it has not."""

    # What the controllers ask.

    def holds(self, key: ObjectKey) -> bool:
        """Whether work on `key` may begin here at this very moment."""
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
        """Have `look` called with a test for keys that have become ours; it returns how many it found."""
        self._gain.append(look)

    # What people ask.

    @property
    def members(self) -> list[str]:
        """The names of all members as this one sees them, its own among them; empty while it is none."""
        return self._roster.members if self._roster.valid else []

    @property
    def joined(self) -> bool:
        """Whether this replica may hold objects at this very moment."""
        return self._roster.joined and self._roster.valid

    @property
    def version(self) -> int:
        """Grows whenever what this replica holds may have changed."""
        return self._terms + self._roster.version

    @property
    def problem(self) -> str:
        """Why it may not, or empty."""
        if not self._roster.valid:
            return "this replica has no valid lease"
        if self._roster.awaited:
            return f"waiting for {', '.join(self._roster.awaited)} to hand over or to run out"
        return "" if self._roster.joined else "the other replicas are not known yet"

    def check(self) -> None:
        """For a readiness probe. Raises RuntimeError while this replica may hold nothing."""
        if self.problem:
            raise RuntimeError(self.problem)

    # Its life.

    def watch(self, leases: Cache) -> None:
        """Learn of the others from `leases`: the cache of the namespace's Leases with `selector`."""
        self._cache = leases
        leases.subscribe(self._on_change)

    @property
    def selector(self) -> str:
        return f"{GROUP_LABEL}={self.group}"

    async def has_joined(self) -> None:
        """Return when `run` has made this replica a member that may hold objects."""
        await self._has_joined.wait()

    async def run(self) -> None:
        """Be a member, again after each loss, until cancelled. Failures of the API are waited out."""
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
        for task in (self._asking, *self._returning.values()):
            if task is not None:
                await _cancelled(task)
        roster = self._roster
        if roster.valid:
            roster.end()
            await self._retire(roster)

    # The own lease.

    def _new_roster(self) -> Roster:
        times = self._times
        return Roster(
            f"{self.group}-{self._random.getrandbits(48):012x}",
            renew_deadline=times.renew_deadline,
            settling=times.duration - times.renew_deadline,
            monotonic=self._clock.monotonic,
        )

    async def _make_lease(self) -> None:
        while True:
            roster = self._new_roster()
            began = self._clock.monotonic()
            lease = new_lease(
                roster.name,
                self.namespace,
                group=self.group,
                identity=self.identity,
                duration=self._times.duration,
                now=self._clock.now(),
            )
            try:
                await within(self._clock, self._times.renew_deadline, self._client.create(LEASES, lease))
            except (KubeError, OSError) as error:
                _log.warning("no lease among the shards", error=str(error))
                self._remember(roster.name)
                if not isinstance(error, AlreadyExists):
                    # It may have been made all the same, and the others would wait for it.
                    await self._give_back(roster.name)
            else:
                if roster.renewed(began):
                    for name in self._former:
                        roster.is_gone(name)
                    self._terms += self._roster.version + 1
                    self._roster, self._told, self._unseen = roster, None, (0, 0)
                    return
            await self._clock.sleep(self._period())

    async def _stay(self, roster: Roster) -> None:
        """Renew, acknowledge, watch, until the lease is lost."""
        renew_at, hurry_after = self._next(), float("-inf")
        published: frozenset[str] = frozenset()
        looked = False
        while roster.valid:
            now = self._clock.monotonic()
            if not looked and now >= hurry_after:
                looked = await self._look(roster)
                hurry_after = now if looked else self._next()
                continue
            self._tend_drain(roster)
            self._ask_about_overdue(roster)
            ready = roster.acknowledged()
            if now >= renew_at or (now >= hurry_after and not ready <= published):
                if await self._renew(roster, ready):
                    published = ready
                    hurry_after = float("-inf") if looked else hurry_after
                else:
                    hurry_after = self._next()
                # Counted from the request: an answer that took long leaves less time for the next one.
                renew_at = now + self._period()
                if self._unseen[1] > _BLIND:
                    _log.warning("the watch of the shards' leases shows nothing, listing them")
                    await self._look(roster)
                continue
            hurry = hurry_after if not looked or not ready <= published else float("inf")
            turns = (renew_at, hurry, self._drain_until, self._asks_at(roster), roster.next_settled())
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

    async def _look(self, roster: Roster) -> bool:
        left = roster.valid_until - self._clock.monotonic()
        try:
            listing = self._client.list(LEASES, self.namespace, labels=self.selector)
            listed = await within(self._clock, left, listing)
        except (KubeError, OSError) as error:
            _log.warning("the leases of the shards could not be listed", error=str(error))
            return False
        records = [self._record(lease) for lease in listed.items]
        for record in records:
            self._give_back_former(record)
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

    async def _renew(self, roster: Roster, view: frozenset[str]) -> bool:
        began = self._clock.monotonic()
        patch = renewal(view, held=self.held(), now=self._clock.now())
        try:
            writing = self._client.patch(LEASES, roster.name, patch, self.namespace)
            record = self._record(await within(self._clock, roster.valid_until - began, writing))
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

    async def _retire(self, roster: Roster) -> None:
        """Cut all work off, wait until none of its requests can be on the way, and give the lease back."""
        self.counts.interrupted += roster.permits
        roster.revoke()
        while roster.permits:
            self._idle.clear()
            await self._idle.wait()
        pause = roster.settled_at - self._clock.monotonic()
        if pause > 0:
            await self._clock.sleep(pause)
        self._remember(roster.name)
        await self._give_back(roster.name)

    def _remember(self, name: str) -> None:
        """`name` was this replica's; nothing works under it any more, nor ever will."""
        self._former[name] = None
        if len(self._former) > _MOST_REMEMBERED:
            del self._former[next(iter(self._former))]

    def _give_back_former(self, record: Record) -> None:
        """A lease was seen: when it is one that this replica has lost, it is given back."""
        name = record.member
        if name in self._former and not record.released and name not in self._returning:
            task = self._returning[name] = asyncio.create_task(self._give_back(name), name=f"give back {name}")
            task.add_done_callback(lambda _: self._returning.pop(name, None))

    async def _give_back(self, name: str) -> None:
        try:
            patching = self._client.patch(LEASES, name, release(self._clock.now()), self.namespace)
            await within(self._clock, self._times.retry_period, patching)
            deleting = self._client.delete(LEASES, name, self.namespace)
            await within(self._clock, self._times.retry_period, deleting)
        except NotFound:
            return
        except (KubeError, OSError) as error:
            _log.warning("a lease among the shards could not be given back", lease=name, error=str(error))

    # The others.

    def _record(self, lease: Object) -> Record:
        return record_of(lease, default_duration=self._times.duration)

    def _on_change(self, change: Change) -> None:
        roster, record = self._roster, self._record(change.current)
        if record.member == roster.name:
            if change.new is None or record.released:
                roster.end()
                self._wake.set()
            elif record.version >= self._unseen[0]:
                self._unseen = (0, 0)
        elif record.member in self._former:
            if change.new is not None:
                self._give_back_former(record)
        elif change.new is not None or record.released:
            # A lease that somebody deleted counts until it is overdue: its member may not know yet.
            roster.saw(record)
            self._react(roster)

    def _react(self, roster: Roster) -> None:
        """Tell the controllers what has become ours, and wake the task for what it may have to do."""
        self._wake.set()
        if not roster.joined or not roster.valid:
            return
        told, members = self._told, roster.members
        if told is not None and told[2] == roster.version:
            return
        self._told = (roster.name, members, roster.version)
        self.counts.changes += 1
        mine, before = (told[0], told[1]) if told is not None else ("", [])

        def gained(key: ObjectKey) -> bool:
            return roster.holds(key) and (not before or owner(before, key) != mine)

        found = sum(look(gained) for look in self._gain)
        self.counts.gained += found
        _log.info("the shards have changed", members=len(members), gained=found, lease=roster.name)
        self._has_joined.set()

    def _tend_drain(self, roster: Roster) -> None:
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

    def _asks_at(self, roster: Roster) -> float:
        if self._asking is not None and not self._asking.done():
            return float("inf")
        return max(roster.next_overdue(), self._ask_after)

    def _ask_about_overdue(self, roster: Roster) -> None:
        if (self._asking is None or self._asking.done()) and self._clock.monotonic() >= self._ask_after:
            overdue = roster.overdue()
            if overdue:
                self._asking = asyncio.create_task(self._ask(roster, overdue), name="overdue shards")

    async def _ask(self, roster: Roster, overdue: Iterable[Record]) -> None:
        """Remove the leases of members that are overdue, on condition that nothing has changed in them."""
        for record in overdue:
            try:
                await within(self._clock, self._times.renew_deadline, self._remove(roster, record))
            except (KubeError, OSError) as error:
                _log.warning("a lease could not be looked at", lease=record.member, error=str(error))
                self._ask_after = self._next()
        self._react(roster)

    async def _remove(self, roster: Roster, record: Record) -> None:
        name = record.member
        try:
            await self._client.delete(
                LEASES, name, self.namespace, uid=record.uid, resource_version=record.resource_version
            )
        except Conflict:
            roster.saw(self._record(await self._client.get(LEASES, name, self.namespace)))
            return
        except NotFound:
            pass
        _log.warning("a replica is gone, its lease ran out", lease=name, identity=record.identity)
        roster.is_gone(name)


async def _cancelled(task: asyncio.Task[object] | asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


__all__ = ["DEFAULT_DRAIN", "ShardClient", "ShardCounts", "Shards"]
