"""The protocol of the shards without clocks, tasks and network: what one member knows, and what it may do knowing it.

Times are seconds of this member's own monotonic clock, handed in by the caller. Why no key is ever worked on by two
members is argued in docs/adr/0010-shards.md, by the names used here:

- A member is *valid* until its last renewal's request plus the renew deadline. Not valid any more, it never is again:
  it joins again under another name.
- Its *view* holds itself and all others that it has seen and not seen to be gone. A key is its own when it bids most of
  all in its view.
- It is *joined* when all others which it found at its first look have acknowledged it. Who acknowledges a member has it
  in the view, and has nothing in work any more that is that member's.
- Another is *gone* when it gave its lease back, or when its lease was unchanged for its duration and still unchanged
  when the server was asked thereafter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from hortus.engine.shards.records import LeaseRecord
from hortus.engine.shards.rendezvous import weight
from hortus.kube.fencing import Fenced
from hortus.kube.objects import ObjectKey

_MOST_REMEMBERED = 200_000
"""Answers to `holds` that are kept, a hundred bytes each; then it starts from scratch."""


class Permit:
    """The right to work on one key, from `MemberRoster.enter` until `MemberRoster.leave`."""

    __slots__ = ("interrupt", "key", "revoked", "roster")

    def __init__(self, roster: MemberRoster, key: ObjectKey, interrupt: Callable[[], None]) -> None:
        self.roster = roster
        self.key = key
        self.interrupt = interrupt
        """Ends the work at its next await."""
        self.revoked = False

    @property
    def active(self) -> bool:
        """True while this work may act."""
        return not self.revoked and self.roster.valid

    def check(self) -> None:
        """Raise `Fenced` when this work must not act any more: to be asked right before each request."""
        if not self.active:
            raise Fenced(f"{self.key} may be another replica's by now: nothing is written any more")


class _Other:
    __slots__ = ("record", "since")

    def __init__(self, record: LeaseRecord, since: float) -> None:
        self.record = record
        self.since = since
        """When this very record was first seen."""


class MemberRoster:
    """One member, from its first lease to the loss of its last. Thrown away then."""

    def __init__(self, name: str, *, renew_deadline: float, settling: float, monotonic: Callable[[], float]) -> None:
        """`settling`: seconds after which a request that was sent and given up has had its effect or never will."""
        self.name = name
        self._renew_deadline = renew_deadline
        self._settling = settling
        self._monotonic = monotonic
        self._valid_until = float("-inf")
        self._others: dict[str, _Other] = {}
        self._gone: set[str] = set()
        self._awaited: set[str] | None = None
        """Replicas that were there before this one and have not acknowledged it; None before the first look."""
        self._permits: set[Permit] = set()
        self._unsettled: deque[tuple[float, ObjectKey]] = deque()
        """Keys whose work ended in a failure, until the time when its last request is sure to be over."""
        self._own: dict[ObjectKey, bool] = {}
        self.version = 0
        """Grows whenever what we hold may have become more or less."""

    # Permissions of this member.

    @property
    def valid(self) -> bool:
        """True when this member's lease counts now."""
        return self._monotonic() < self._valid_until

    @property
    def valid_until(self) -> float:
        return self._valid_until

    @property
    def joined(self) -> bool:
        return self._awaited is not None and not self._awaited

    @property
    def looked(self) -> bool:
        """True when the first look has been taken."""
        return self._awaited is not None

    def holds(self, key: ObjectKey) -> bool:
        """True when work on `key` may begin here now."""
        return self.joined and self.valid and self.owns(key)

    def owns(self, key: ObjectKey) -> bool:
        """True when `key` is this member's by its view, be it valid or not."""
        known = self._own.get(key)
        if known is None:
            if len(self._own) >= _MOST_REMEMBERED:
                self._own.clear()
            mine = weight(self.name, key)
            known = self._own[key] = all(weight(other, key) < mine for other in self._others)
        return known

    def enter(self, key: ObjectKey, interrupt: Callable[[], None]) -> Permit | None:
        """The right to begin work on `key`, or None when it is not ours. The caller owes a `leave`."""
        if not self.holds(key):
            return None
        permit = Permit(self, key, interrupt)
        self._permits.add(permit)
        return permit

    def leave(self, permit: Permit, *, clean: bool = True) -> None:
        """The work is over. Not `clean`: it failed or was cut off, so that a request of it may still be on its way."""
        self._permits.discard(permit)
        if permit.revoked or not clean:
            self._unsettled.append((self._monotonic() + self._settling, permit.key))

    @property
    def permits(self) -> int:
        """The number of pieces of work that are going on."""
        return len(self._permits)

    @property
    def settled_at(self) -> float:
        """The time at which no request of any work that has ended can be on its way any more."""
        return self._unsettled[-1][0] if self._unsettled else float("-inf")

    def next_settled(self) -> float:
        """The time at which the next key is settled that is another's by now; infinite when there is none."""
        return next((until for until, key in self._unsettled if not self.owns(key)), float("inf"))

    def foreign(self) -> list[Permit]:
        """Work that goes on although its key is another's by now."""
        return [permit for permit in self._permits if not self.owns(permit.key)]

    def revoke(self, permits: Iterable[Permit] | None = None) -> None:
        """Let the work of `permits`, or of all, act no more, and end it."""
        for permit in list(self._permits if permits is None else permits):
            if not permit.revoked:
                permit.revoked = True
                permit.interrupt()

    # The own lease.

    def renewed(self, began: float) -> bool:
        """A write of our lease, whose request began at `began`, was answered just now; False when that was too late.

        An answer that comes when we are not valid any more counts for nothing: others may have looked in between.
        """
        if self._valid_until != float("-inf") and not self.valid:
            return False
        self._valid_until = began + self._renew_deadline
        return self.valid

    def end(self) -> None:
        """Be valid no more, from now on."""
        self._valid_until = min(self._valid_until, self._monotonic())
        self._changed()

    # The others.

    def first_look(self, records: Iterable[LeaseRecord]) -> None:
        """The leases that a list showed which was asked for after our own lease had been made."""
        for record in records:
            self.saw(record)
        # Members that have acknowledged us meanwhile need not do it again.
        self._awaited = {name for name, other in self._others.items() if self.name not in other.record.view}
        self._changed()

    def saw(self, record: LeaseRecord) -> None:
        """The lease of a member is as `record` says; any order, any number of times."""
        name = record.member
        if name == self.name or name in self._gone:
            return
        if record.released:
            self.is_gone(name)
            return
        known = self._others.get(name)
        if known is None:
            self._others[name] = _Other(record, self._monotonic())
            self._changed()
        elif record.resource_version != known.record.resource_version and record.version >= known.record.version:
            self._others[name] = _Other(record, self._monotonic())
        if self._awaited and name in self._awaited and self.name in record.view:
            self._awaited.discard(name)
            self._changed()

    def is_gone(self, name: str) -> None:
        """`name` will never work again: it said so, or its time is over and the server has confirmed it."""
        self._gone.add(name)
        if self._others.pop(name, None) is not None:
            if self._awaited:
                self._awaited.discard(name)
            self._changed()

    def overdue(self) -> list[LeaseRecord]:
        """Members whose lease was unchanged for its duration as far as we saw: the server is to be asked about them."""
        now = self._monotonic()
        return [other.record for other in self._others.values() if now >= other.since + other.record.duration]

    def next_overdue(self) -> float:
        """The time at which `overdue` will have something to tell unless leases change; infinite without others."""
        return min((other.since + other.record.duration for other in self._others.values()), default=float("inf"))

    @property
    def members(self) -> list[str]:
        """All in the view, ourselves among them."""
        return sorted((self.name, *self._others))

    @property
    def awaited(self) -> list[str]:
        """The members whose acknowledgement we wait for."""
        return sorted(self._awaited or ())

    def acknowledged(self) -> frozenset[str]:
        """The others to acknowledge now: they are in the view, and nothing of theirs is in work here."""
        now = self._monotonic()
        while self._unsettled and self._unsettled[0][0] <= now:
            self._unsettled.popleft()
        busy = [permit.key for permit in self._permits] + [key for _, key in self._unsettled]
        return frozenset(name for name in self._others if not any(self._claims(name, key) for key in busy))

    def _claims(self, name: str, key: ObjectKey) -> bool:
        return not self.owns(key) and weight(name, key) > weight(self.name, key)

    def _changed(self) -> None:
        self._own.clear()
        self.version += 1


__all__ = ["MemberRoster", "Permit"]
