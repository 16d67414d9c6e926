"""The Leases by which other operators elect their leader, held as long as this installation does their work.

An operator that a domain replaces works on the same objects, under a Lease of its own name, in whatever namespace it
runs. So Hortus holds every Lease of that name, and one in its own namespace: the operator stands by like a second
replica of itself, and leads once Hortus has given the Leases back. Where such an operator holds one already, the work
of the domain waits until that one is given back or has run out.

A namespace without a Lease of that name is the gap: an operator that is started there creates one and leads at once. A
watch shows it, the work is cut off, and no request of it is sent any more until the other has stopped.

Replicas of one installation hold under one identity and for twice the duration of their own election, so the operator
stands by while one replica follows another, also after one that was killed. Only one of them renews; the others see
that in the watch, and trust a renewal for the renew deadline from when they saw it. A Lease as it was when they began
is not trusted, since nobody may have renewed it for hours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from random import Random
from typing import Final

import structlog

from hortus.engine.cache import Cache, Change
from hortus.engine.leases import Elector, LeaseClient, LeaseTimes
from hortus.engine.shards import Permit, Shards
from hortus.kube.clock import Clock
from hortus.kube.fencing import Fence, Fenced, joined_fence, set_fence
from hortus.kube.objects import Object, ObjectKey

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_HOLDER: Final = "hortus/"
"""The holder's identity begins so, for any installation; no host name has a slash."""
MADE_LABELS: Final = {"app.kubernetes.io/managed-by": "hortus"}
"""Labels of a Lease that Hortus created, so that it can be deleted with the installation."""
_LONGEST: Final = 600.0
"""Seconds for which a Lease counts that is not renewed: anybody who may create one in some namespace chooses its
duration. Operators renew theirs within seconds or a few minutes."""

Gain = Callable[[Callable[[ObjectKey], bool]], object]


def is_hortus(holder: str) -> bool:
    """Reports whether `holder`, of a Lease of another operator's name, is an installation of Hortus."""
    return holder.startswith(_HOLDER)


class RivalPermit:
    """The right to work on one key, until the work is over or a rival works."""

    __slots__ = ("interrupt", "permit", "revoked", "rivals")

    def __init__(self, rivals: RivalLeases, permit: Permit | None, interrupt: Callable[[], None]) -> None:
        self.rivals = rivals
        self.permit = permit
        """The right among shards."""
        self.interrupt = interrupt
        self.revoked = False

    def check(self) -> None:
        """Raises Fenced when this work must not act any more."""
        if self.revoked or not self.rivals.free:
            raise Fenced("another operator may work on the object: nothing is written any more")
        if self.permit is not None:
            self.permit.check()
        self.rivals.fence()

    def revoke(self) -> None:
        """End the work."""
        if not self.revoked:
            self.revoked = True
            self.interrupt()


class _RivalLease:
    """One Lease: as it was seen, and this process's candidacy for it."""

    def __init__(self, elector: Elector, *, clock: Clock, trust: float) -> None:
        self.elector = elector
        self._clock = clock
        self._trust = trust
        """Seconds for which a renewal that was seen counts."""
        self._spec: Object | None = None
        self._trusted_until = float("-inf")
        self._campaign: asyncio.Task[None] | None = None

    @property
    def holder(self) -> str:
        return str((self._spec or {}).get("holderIdentity") or "")

    @property
    def is_secure(self) -> bool:
        """True while no other operator may take the Lease."""
        if self.holder and not is_hortus(self.holder):
            return False
        return self.elector.leading or self._clock.monotonic() < self._trusted_until

    def saw(self, lease: Object) -> None:
        spec: Object = lease.get("spec") or {}
        if spec == self._spec:
            return
        renewed, self._spec = self._spec is not None, spec
        trusted = renewed and is_hortus(self.holder)
        self._trusted_until = self._clock.monotonic() + self._trust if trusted else float("-inf")

    def forget(self) -> None:
        """The Lease was deleted."""
        self._spec, self._trusted_until = None, float("-inf")

    def campaign(self, changed: Callable[[], None], ended: Callable[[asyncio.Task[None]], None]) -> None:
        """Take the Lease as soon as nobody holds it, and renew it, until `withdraw`; `ended` hears of the end."""
        if self._campaign is None:
            self._campaign = asyncio.create_task(self._take_and_keep(changed), name=f"rival {self.elector.name}")
            self._campaign.add_done_callback(ended)

    async def _take_and_keep(self, changed: Callable[[], None]) -> None:
        while True:
            await self.elector.acquire()
            changed()
            await self.elector.lost()
            changed()

    async def withdraw(self) -> None:
        """End the candidacy; a Lease that is held runs out, unless it is released."""
        if self._campaign is not None:
            self._campaign.cancel()
            await asyncio.gather(self._campaign, return_exceptions=True)
            self._campaign = None
        await self.elector.rest()


class RivalLeases:
    """The exclusion of the operators that one domain replaces: the `Assignment` of the domain's controllers."""

    def __init__(
        self,
        client: LeaseClient,
        *,
        names: Sequence[str],
        namespace: str,
        clock: Clock,
        times: LeaseTimes | None = None,
        random: Random | None = None,
    ) -> None:
        """`names` are those of the Leases. Hortus makes its own in `namespace`; `times` are those of its election."""
        self.names = tuple(names)
        self._client = client
        self._namespace = namespace
        self._clock = clock
        times = times or LeaseTimes()
        self._times = LeaseTimes(
            duration=2 * times.duration, renew_deadline=times.renew_deadline, retry_period=times.retry_period
        )
        self._random = random
        self._unseen = set(self.names)
        """The names whose watch has not begun."""
        self._leases: dict[ObjectKey, _RivalLease] = {}
        self._entries: set[RivalPermit] = set()
        self._gain: list[Gain] = []
        self._is_free = False
        self._reported: tuple[str, ...] = ()
        """The other holders that the log knows of."""
        self._turned = asyncio.Event()
        self._holding: asyncio.Future[None] | None = None
        """Fails when a candidacy does."""
        self._withdrawals: set[asyncio.Future[None]] = set()
        self._shards: Shards | None = None
        self.fence: Fence = _nothing
        """Asked after the rivals', before each request."""
        for name in self.names:
            self._lease(ObjectKey(namespace, name))

    # For the manager.

    def join(self, *, shards: Shards | None, fence: Fence) -> None:
        """Let work begin only where `shards` allows it, too, and ask `fence` before each request."""
        self._shards, self.fence = shards, fence

    def watch(self, name: str, leases: Cache) -> None:
        """Follow the Leases of `name`, in all namespaces, by their cache."""

        def changed(change: Change) -> None:
            if change.key.name == name:
                self._on_change(change)

        def complete() -> None:
            self._unseen.discard(name)
            self._react()

        leases.subscribe(changed)
        leases.on_sync(complete)

    def on_gain(self, look: Gain) -> None:
        """Call `look` with a test for the keys of this process when work may begin again."""
        self._gain.append(look)

    async def hold(self) -> None:
        """Take the Leases and renew them, until cancelled. They stay held; see `give_back`.

        Fails when a candidacy fails: without it the work would wait forever, and nobody would know why.
        """
        self._holding = asyncio.get_running_loop().create_future()
        try:
            for lease in self._leases.values():
                lease.campaign(self._react, self._campaign_ended)
            await self._holding
        finally:
            self._holding = None
            await asyncio.gather(*self._withdrawals, *(lease.withdraw() for lease in self._leases.values()))

    async def give_back(self, *, to_successor: bool) -> None:
        """Empty the Leases that this process holds, so that another operator leads at once. All work has to be over.

        With `to_successor` a replica that leads by now has time to take them: those that it has renewed stay.
        """
        self._end_work()
        if to_successor:
            await self._clock.sleep(1.5 * self._times.retry_period)
        await asyncio.gather(*(lease.elector.release() for lease in self._leases.values()))

    async def while_free(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run `run` while no rival works, again after each that did. Ends or fails when `run` does."""
        while True:
            while not self._is_free:
                await self._turned.wait()
            turned, work = self._turned, asyncio.ensure_future(self._fenced(run))
            waiting = asyncio.ensure_future(turned.wait())
            try:
                await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    await work
                    return
            except Fenced:
                if self.free:
                    raise
            finally:
                for task in (work, waiting):
                    task.cancel()
                await asyncio.gather(work, waiting, return_exceptions=True)

    async def _fenced(self, run: Callable[[], Awaitable[None]]) -> None:
        set_fence(joined_fence(self._check))
        await run()

    def _check(self) -> None:
        if not self.free:
            raise Fenced("another operator may work on the objects: nothing is written any more")

    # For controllers.

    @property
    def free(self) -> bool:
        """True while no other operator may work. Once false, it becomes true again with a change of a Lease only."""
        if self._is_free and not self._is_secure:
            self._stand_aside()
        return self._is_free

    def holds(self, key: ObjectKey) -> bool:
        """True when work on `key` may begin here now."""
        return self.free and (self._shards is None or self._shards.holds(key))

    def enter(self, key: ObjectKey, interrupt: Callable[[], None]) -> RivalPermit | None:
        """The right to work on `key`, or None when it is not ours; `interrupt` is called when the work has to end."""
        if not self.free:
            return None
        permit = self._shards.enter(key, interrupt) if self._shards is not None else None
        if permit is None and self._shards is not None:
            return None
        entry = RivalPermit(self, permit, interrupt)
        self._entries.add(entry)
        return entry

    def leave(self, entry: RivalPermit, *, clean: bool) -> None:
        """The work of `entry` is over; `clean` when it came to its end without any failure."""
        self._entries.discard(entry)
        if self._shards is not None and entry.permit is not None:
            self._shards.leave(entry.permit, clean=clean)

    def is_held_by_others(self, name: str) -> bool:
        """Reports whether another operator held a Lease of `name` when it was last seen."""
        return any(
            key.name == name and lease.holder and not is_hortus(lease.holder) for key, lease in self._leases.items()
        )

    # The Leases.

    @property
    def _is_secure(self) -> bool:
        return not self._unseen and all(lease.is_secure for lease in self._leases.values())

    def _lease(self, key: ObjectKey) -> _RivalLease:
        known = self._leases.get(key)
        if known is None:
            own = key.namespace == self._namespace
            elector = Elector(
                self._client,
                name=key.name,
                namespace=key.namespace,
                identity=f"{_HOLDER}{self._namespace}",
                clock=self._clock,
                times=self._times,
                random=self._random,
                labels=MADE_LABELS if own else None,
                creates=own,
                longest=_LONGEST,
            )
            known = self._leases[key] = _RivalLease(elector, clock=self._clock, trust=self._times.renew_deadline)
        return known

    def _on_change(self, change: Change) -> None:
        if change.new is not None:
            lease = self._lease(change.key)
            lease.saw(change.new)
            if self._holding is not None:
                lease.campaign(self._react, self._campaign_ended)
        elif change.key.namespace == self._namespace:
            self._lease(change.key).forget()
        elif (gone := self._leases.pop(change.key, None)) is not None:
            withdrawal = asyncio.ensure_future(gone.withdraw())
            self._withdrawals.add(withdrawal)
            withdrawal.add_done_callback(self._withdrawals.discard)
        self._react()

    def _campaign_ended(self, task: asyncio.Task[None]) -> None:
        failure = None if task.cancelled() else task.exception()
        if failure is not None and self._holding is not None and not self._holding.done():
            self._holding.set_exception(failure)

    def _react(self) -> None:
        """Begin or end the work as the Leases are now."""
        if not self._is_secure:
            self._stand_aside()
            self._report_holders()
        elif not self._is_free:
            self._is_free = True
            _log.info("no other operator works", leases=list(self.names))
            self._turn()
            for look in self._gain:
                look(self.holds)

    def _stand_aside(self) -> None:
        if self._is_free:
            _log.warning("another operator may work, ours ends", leases=list(self.names), holders=list(self._holders()))
            self._end_work()

    def _report_holders(self) -> None:
        """Log who works in our place, once for each choice of holders."""
        holders = tuple(self._holders())
        if holders and holders != self._reported:
            _log.warning("another operator works, ours waits", leases=list(self.names), holders=list(holders))
        self._reported = holders

    def _end_work(self) -> None:
        self._is_free = False
        self._turn()
        for entry in list(self._entries):
            entry.revoke()

    def _holders(self) -> Iterator[str]:
        for key, lease in self._leases.items():
            if lease.holder and not is_hortus(lease.holder):
                yield f"{lease.holder} in {key.namespace}"

    def _turn(self) -> None:
        """Wake all that waits for a change between work and no work."""
        turned, self._turned = self._turned, asyncio.Event()
        turned.set()


def _nothing() -> None:
    """A fence that refuses nothing."""


__all__ = ["MADE_LABELS", "RivalLeases", "RivalPermit", "is_hortus"]
