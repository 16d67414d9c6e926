"""A change planned, then really applied: what the fleet came to, compared with the plan object by object.

The live fleet is a `hortus up` of its own. Its state is read by the same reads as the fork's.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.plan.comparison import Comparison, Missed, changed, compared, unread
from tests.cli.plan.edits.rollouts import ROLLOUTS
from tests.cli.plan.edits.shape import GARDEN, HOME, SECRETS, Edit, Write

from hortus.cli.plan.flags import plan_flags
from hortus.cli.plan.running import PlanRequest, run_plan
from hortus.domains import all_domains
from hortus.kube import Access, Client
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.kubeconfig import Trust, from_untrusted, load
from hortus.kube.objects import Object, Resource
from hortus.simulation.fork import Fork, ForkSettings, LiveClusters, VirtualClock, VirtualLoop
from hortus.simulation.plan.building import change_of
from hortus.simulation.plan.composing import PlanRun
from hortus.simulation.plan.snapshot import ForkSnapshot
from hortus.terminal import Connections

PATIENCE = 75.0
"""Seconds without a step towards the planned state after which a live fleet has missed it."""
_STILL = 2.0
"""Seconds for which the fleet must stay as it is planned."""
_REST = 6.0
"""Seconds without a change after which a fleet is at rest."""
_PAUSE = 0.5
_SHOOT = "shoot--demo--"
CONFIG: Mapping[str, Any] = {
    "controllers": {
        # Times of seconds in place of minutes, so that reality can follow soon.
        "module-upgrade-rollout-max-delay": "1s",
        "kyma-requeue-success-interval": "5s",
        "kyma-comparison-interval": "60s",
        "manifest-requeue-success-interval": "60s",
        "mandatory-module-requeue-success-interval": "3s",
        "mandatory-module-deletion-requeue-success-interval": "3s",
        "node-rollouts": True,
        "node-rollouts-patience": "3s",
        "canary-template": str(Path(__file__).parents[3] / "examples" / "canary.yaml"),
        "canary-period": "8760h",
        "inventory-labels": "ring,kyma-project.io/broker-plan-name",
    }
}
"""The fleet's settings. A plan has the same flags."""


class Fleet:
    """A running `hortus up`, by its state directory."""

    def __init__(self, state: Path) -> None:
        self.connections = Connections(local_state=state, local_chosen=True)
        self.management = load(state / "kubeconfig").access()
        self.garden = load(state / "garden.kubeconfig").access()

    def plan(self, edit: Edit) -> PlanRun:
        """Raises KubeError for a change that the API server refuses."""

        async def change(fork: Fork) -> None:
            for write in edit.writes:
                async with fork.client(write.cluster) as client:
                    await write.make(client)

        values = plan_flags(self.connections, None, self.garden.namespace)
        return run_plan(PlanRequest(self.management, self.garden, values, change), lambda run: run)

    async def make(self, writes: Iterable[Write]) -> None:
        for write in writes:
            async with Client(await self._access(write.cluster)) as client:
                await write.make(client)

    async def list(self, resource: Resource, cluster: str = "root") -> list[Object]:
        """The objects of a kind; none where the cluster cannot be reached, or does not serve it."""
        try:
            async with Client(await self._access(cluster)) as client:
                return (await client.list(resource)).items
        except KubeError:
            return []

    async def _access(self, cluster: str) -> Access:
        if cluster == "root":
            return self.management
        if cluster == GARDEN:
            return self.garden
        async with Client(self.management) as client:
            secret = await client.get(SECRETS, f"kubeconfig-{cluster.removeprefix(_SHOOT)}", HOME)
        (document,) = secret["data"].values()
        return from_untrusted(base64.b64decode(document), trust=Trust(), origin=f"kubeconfig of {cluster}").access()

    async def approve(self, wanted: Iterable[str]) -> None:
        """Gives the approvals that the plan takes for granted, where a stage waits for one."""
        async with Client(self.management) as client:
            for one in wanted:
                name, _, stage = one.partition("/")
                try:
                    rollout = await client.get(ROLLOUTS, name, "fleet")
                except NotFound:
                    continue
                status, approved = rollout.get("status") or {}, rollout["spec"].get("approved") or []
                messages = [each["message"] for each in status.get("conditions") or () if each["type"] == "Progressing"]
                waits = any("waits for approval" in text for text in messages) and status.get("stage") == stage
                if waits and stage not in approved:
                    await client.patch(ROLLOUTS, name, {"spec": {"approved": [*approved, stage]}}, "fleet")

    def state(self, buckets: Iterable[str] = (), *, whole: bool = False) -> ForkSnapshot:
        """The live state of what a plan has read; `whole` has all kinds of all clusters."""
        loop = VirtualLoop()
        with LiveClusters() as live:
            try:
                return loop.run_until_complete(self._state(live, loop, buckets, whole=whole))
            finally:
                loop.close()

    async def _state(
        self, live: LiveClusters, loop: VirtualLoop, buckets: Iterable[str], *, whole: bool
    ) -> ForkSnapshot:
        selector = ",".join(filter(None, (domain.kubeconfig_selector() for domain in all_domains())))
        settings = ForkSettings(
            management=self.management, garden=self.garden, kubeconfigs=selector, trust=Trust(plain_http=False)
        )
        async with Fork.opened(settings, live, VirtualClock(loop, began=time.time())) as fork:
            await asyncio.gather(*(fork._ensure(bucket) for bucket in buckets))
            if whole:
                registry = fork.server.context.registry
                for cluster in sorted({bucket.partition("/")[0] for bucket in buckets} | {*fork.members}):
                    with suppress(KubeError):  # a hibernated cluster does not answer
                        await registry.load(cluster)
                    kinds = [kind.suffix for kind in registry.kinds(cluster) if "list" in kind.definition.verbs]
                    await asyncio.gather(*(fork._ensure(f"{cluster}/{suffix}") for suffix in kinds))
            return ForkSnapshot.of(fork)


async def rest(fleet: Fleet) -> None:
    """Returns once the fleet has not changed for a while."""
    last, since, began = ForkSnapshot({}), time.monotonic(), time.monotonic()
    while time.monotonic() - since < _REST and time.monotonic() - began < PATIENCE:
        found = await asyncio.to_thread(fleet.state, last.buckets)
        if any(change_of(one) is not None for one in last.changes(found, {})):
            last, since = found, time.monotonic()
        await asyncio.sleep(_PAUSE)


class Outcome(NamedTuple):
    """One change, planned and made."""

    edit: Edit
    missed: tuple[Missed, ...]
    apart: tuple[Missed, ...]
    """Objects that differed before the change."""
    follows: int
    """Objects that the controllers change once the edit is made."""
    is_void: bool
    """Nothing changes, or the change is refused on both sides."""
    refused: str
    seconds: tuple[float, float]
    """Time of the plan, and of the fleet until it came to it."""


async def outcome(fleet: Fleet, edit: Edit) -> Outcome:
    """Plans and applies one change, and follows the fleet until it has come to the plan, or to rest."""
    began = time.monotonic()
    try:
        run = await asyncio.to_thread(fleet.plan, edit)
    except KubeError as error:
        return await _refused(fleet, edit, error)
    planned = time.monotonic()
    before = await asyncio.to_thread(fleet.state, run.after.buckets, whole=True)
    await fleet.make(edit.writes)
    found = await _followed(fleet, run, before)
    missed = found.missed
    if not missed:
        after = await asyncio.to_thread(fleet.state, run.after.buckets, whole=True)
        missed = tuple(unread(run, before, after))
    return Outcome(
        edit,
        missed,
        found.apart,
        changed(run, run.changed),
        not changed(run, run.before),
        "",
        (planned - began, time.monotonic() - planned),
    )


async def _followed(fleet: Fleet, run: PlanRun, before: ForkSnapshot) -> Comparison:
    last, since = Comparison((Missed("", "not compared yet"),), ()), time.monotonic()
    while True:
        await fleet.approve(run.approved)
        found = compared(run, before, await asyncio.to_thread(fleet.state, run.after.buckets))
        now = time.monotonic()
        if found.missed != last.missed:
            last, since = found, now
        if now - since > (PATIENCE if found.missed else _STILL):
            return found
        await asyncio.sleep(_PAUSE)


async def _refused(fleet: Fleet, edit: Edit, refusal: KubeError) -> Outcome:
    try:
        await fleet.make(edit.writes)
    except KubeError:
        missed: tuple[Missed, ...] = ()
    else:
        missed = (Missed("the change", f"refused in the plan alone: {refusal}"),)
    return Outcome(edit, missed, (), 0, not missed, str(refusal), (0.0, 0.0))


class Tally:
    """The outcomes of one fleet. Changes that change nothing are not counted."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}
        self.missed: dict[str, tuple[Missed, ...]] = {}
        self._seconds: list[float] = []

    @property
    def changes(self) -> int:
        return sum(one["changes"] for one in self._counts.values())

    def take(self, found: Outcome) -> None:
        count = self._counts.setdefault(found.edit.domain, Counter())
        if found.is_void and not found.missed:
            count["void"] += 1
            return
        count["changes"] += 1
        count["as planned"] += not found.missed
        count["with consequences"] += found.follows > 0
        self._seconds.append(sum(found.seconds))
        if found.missed:
            self.missed[f"{self.changes}: {found.edit.domain}: {found.edit.text}"] = found.missed

    def line(self, found: Outcome) -> str:
        """One outcome, and the count so far."""
        shown = [f"\n    {one}" for one in found.missed] + [f"\n    apart: {one}" for one in found.apart]
        took = f"{found.seconds[0]:.0f} + {found.seconds[1]:.0f} s, {found.follows} objects follow"
        void = f" (changes nothing{f': {found.refused}' if found.refused else ''})" if found.is_void else ""
        good = self.changes - len(self.missed)
        return f"{good} of {self.changes}; {found.edit.domain}: {found.edit.text}{void}; {took}{''.join(shown)}"

    def table(self) -> str:
        """Counts by domain: changes, those that came as planned, those that others followed, those without effect."""
        words = ("changes", "as planned", "with consequences", "void")
        sums = sum(self._counts.values(), Counter[str]())
        rows = [*sorted(self._counts.items()), ("all", sums)]
        lines = [f"{name}: " + ", ".join(f"{count[word]} {word}" for word in words) for name, count in rows]
        return "\n".join([*lines, f"{sum(self._seconds) / max(len(self._seconds), 1):.1f} s a change", *self.missed])
