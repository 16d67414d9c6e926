"""Histories of a migration on simulated members: faults between steps, and an observer of the invariants.

The observer reads the simulated etcd itself. It shares no code with the rules that it judges.
"""

from __future__ import annotations

from hypothesis import strategies as st

from hortus.gardener.livemigration import (
    MigrationRecord,
    MoveDecision,
    Observation,
    Site,
    StepRefused,
    migration_record,
    steps,
    walk,
)
from hortus.gardener.livemigration.steps import Action
from hortus.simulation.garden.livemigration.controlplane import SimulatedControlPlane
from hortus.testing import FakeClock

FAULTS = (
    "kill",
    "kill two",
    "revive",
    "cut",
    "heal",
    "flip",
    "write",
    "wait",
    "wait long",
    "interrupt",
    "force",
    "lose keys",
)
FAULT = st.tuples(st.sampled_from(FAULTS), st.integers(0, 9))


class Broken(AssertionError):
    """An invariant does not hold."""


class Interrupted(Exception):
    """The coordinator was killed in the middle of a step."""


class ObservedPlane(SimulatedControlPlane):
    """A control plane whose etcd is looked at before and after each step."""

    half = False
    """True to end the next step of two parts after its first part."""

    def __init__(self, clock: FakeClock, size: int) -> None:
        super().__init__(clock, cluster_id="c1", source="old", destination="new", size=size)
        self.former_keys = dict(self.sites[Site.SOURCE].keys)

    async def act(self, step: Action) -> None:
        etcd = self.etcd
        before = {one.id: one.is_learner for one in etcd.members.values()}
        leader, had_majority, cluster = etcd.leader_id, bool(etcd.group()), etcd.cluster_id
        if isinstance(step, steps.Remove | steps.Swing):
            self.check_majority_without(step)
        if isinstance(step, steps.StartServers) and self.sites[step.site].keys != self.former_keys:
            raise Broken(f"I2: API servers would refuse tokens of before: {step}")
        if isinstance(step, steps.Swing) and self.half:
            self.half = False
            await super().act(steps.Promote(id=step.id, name=step.name))
            raise Interrupted
        await super().act(step)
        if isinstance(step, steps.Remove | steps.Swing):
            removed = step.id if isinstance(step, steps.Remove) else step.removed_id
            if removed == leader:
                raise Broken(f"I5: the leader was removed by {step}")
            is_source = removed.startswith("a")
            if is_source and leader.startswith("a"):
                raise Broken(f"I5: a member of the source was removed while the leader was there: {step}")
        after = {one.id: one.is_learner for one in etcd.members.values()}
        promoted = [one for one in before.keys() & after.keys() if before[one] != after[one]]
        changes = len(before.keys() ^ after.keys()) + len(promoted)
        if changes > (2 if isinstance(step, steps.Swing) else 1):
            raise Broken(f"I4: {changes} changes of members by {step}")
        if had_majority and not etcd.group():
            raise Broken(f"I1: no majority after {step}")
        if etcd.cluster_id != cluster:
            raise Broken("I3: another cluster")
        self.check()

    def check_majority_without(self, step: steps.Remove | steps.Swing) -> None:
        """A removal is asked for only where a healthy majority remains, whatever etcd itself would refuse."""
        gone, promoted = (step.id, "") if isinstance(step, steps.Remove) else (step.removed_id, step.id)
        left = [one for one in self.etcd.members.values() if one.id != gone]
        voters = [one for one in left if not one.is_learner or one.id == promoted]
        healthy = [one for one in voters if one.id in self.etcd.group()]
        if len(healthy) * 2 <= len(voters):
            raise Broken(f"I1: {len(healthy)} of {len(voters)} voters would be left by {step}")

    def check(self) -> None:
        """Checks the invariants that hold at any time."""
        members = list(self.etcd.members.values())
        if sum(one.is_learner for one in members) > 1:
            raise Broken("I4: two learners")
        names = [one.name for one in members if one.name]
        if len(names) != len(set(names)):
            raise Broken("I4: two members with one name")
        if sum(not one.is_learner for one in members) > 2 * self.size:
            raise Broken("more voters than both sites have")

    @property
    def size(self) -> int:
        return len(next(iter(self.sites.values())).members)


async def nothing(decision: MoveDecision, seen: Observation) -> None:
    """A report that nobody reads."""


class History:
    """One migration with its faults."""

    def __init__(self, size: int = 3) -> None:
        self.clock = FakeClock()
        self.plane = ObservedPlane(self.clock, size)
        self.record: MigrationRecord
        self.aborting = False
        self.is_forced = False
        self.seen: list[MoveDecision] = []

    async def begin(self) -> None:
        self.record = migration_record(await self.plane.observe())

    async def turn(self, most: int = 1) -> MoveDecision | None:
        """One turn of a coordinator that remembers nothing."""
        revision = self.plane.etcd.revision
        try:
            found = await walk(
                self.plane, self.record, nothing, aborting=self.aborting, is_forced=self.is_forced, most=most
            )
        except (Interrupted, StepRefused):
            return None
        finally:
            self.plane.check()
            if self.plane.etcd.revision < revision:
                raise Broken("I3: the revision went back")
        self.seen.append(found)
        return found

    async def strike(self, fault: str, number: int) -> None:
        etcd, clock = self.plane.etcd, self.clock
        ids = sorted(etcd.members)
        victim = etcd.members[ids[number % len(ids)]]
        match fault:
            case "kill" | "kill two":
                down = sum(not one.is_up for one in etcd.voters())
                if down < (2 if fault == "kill two" else 1):
                    victim.is_up = False
                    etcd.settle(clock.monotonic())
            case "revive":
                self.revive()
            case "cut" | "heal":
                etcd.link = fault == "heal"
                etcd.settle(clock.monotonic())
            case "flip" if not victim.is_learner and victim.id in etcd.group():
                etcd.leader_id = victim.id
            case "write":
                etcd.write(clock.monotonic())
            case "force":
                self.is_forced = True
            case "lose keys":
                self.plane.sites[Site.DESTINATION].keys.clear()
            case "interrupt":
                self.plane.half = True
            case "wait" | "wait long":
                await clock.advance(0.3 if fault == "wait" else 6.0)

    def revive(self) -> None:
        """The processes of all members that ran once start again."""
        for one in self.plane.etcd.members.values():
            if one.name and not one.is_up:
                self.plane.etcd.start(one.id, one.name, self.clock.monotonic())

    async def end(self) -> MoveDecision:
        """Heal everything, and walk to the end."""
        self.plane.etcd.link = True
        for _ in range(400):
            self.revive()
            found = await self.turn(50)
            if found is not None and isinstance(found.step, steps.Moved):
                return found
            await self.clock.advance(1.0)
        raise Broken(f"no end: {self.seen[-1]}")
