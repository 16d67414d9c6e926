"""The dashboard's page of rollouts: their stages as bars, the clusters that failed, and the four orders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hortus.domains.rollouts import directing
from hortus.domains.rollouts.decisions import WAITS_FOR_APPROVAL
from hortus.domains.rollouts.directing import OrderRefused, is_over
from hortus.domains.rollouts.rows import RolloutRows, RolloutSubject
from hortus.domains.rollouts.terms import UNSELECTED
from hortus.domains.rollouts.views import age_key, message_of
from hortus.engine import read
from hortus.engine.fleet import OWNERS, FleetKind, FleetObjects, reading
from hortus.engine.outcomes import Actor
from hortus.engine.pages import (
    STANDINGS,
    AccessNeed,
    Action,
    ActionRefused,
    Bar,
    BarPart,
    Bars,
    Block,
    Cell,
    ClusterNames,
    ClusterPart,
    FactList,
    FleetPage,
    Grid,
    Item,
    ItemKey,
    PageLink,
    StateMark,
    TimeCell,
    TreeNode,
    is_at,
    item_of,
    node_of,
)
from hortus.engine.rollouts.types import (
    ENDED,
    PLACEMENT_DECISIONS,
    ROLLOUTS,
    Label,
    PlacementDecision,
    Rollout,
    RolloutPhase,
    StageStatus,
)
from hortus.kube import Client

_ROLLOUTS: Final = FleetKind(ROLLOUTS, reading(Rollout))
_SLICES: Final = FleetKind(PLACEMENT_DECISIONS, reading(PlacementDecision))
_NAME: Final = "rollouts"
_MANAGER: Final = "hortus-dashboard"
_SHOWN: Final = 200
"""Rollouts in the overview, the newest first."""


class RolloutPage(FleetPage):
    """All rollouts, those under way as rows with a reason and a bar for each stage."""

    name = _NAME
    title = "Rollouts"
    order = 10
    intro = "Changes of many clusters, stage by stage."
    kinds = (_ROLLOUTS,)

    def blocks(self, objects: FleetObjects, now: float) -> Sequence[Block]:
        known = sorted(objects.all(_ROLLOUTS, Rollout), key=age_key, reverse=True)
        going = [one for one in known if one.status.phase not in ENDED]
        bars = [bar for one in going for bar in _bars(one, prefix=f"{one.metadata.name}, ")]
        rows: list[list[Cell]] = [
            [
                PageLink(one.metadata.name, (_NAME, "rollout", one.metadata.namespace, one.metadata.name)),
                StateMark(_standing(one), one.status.phase or RolloutPhase.PENDING),
                f"{one.spec.change.subject} {one.spec.change.to}",
                TimeCell(one.metadata.creation_timestamp or ""),
                TimeCell(one.status.ended_at or ""),
            ]
            for one in known[:_SHOWN]
        ]
        heads = ("Rollout", "Phase", "Change", "Created", "Ended")
        return (
            Bars("Stages under way", bars, "No rollout is under way."),
            Grid("All rollouts", heads, rows, "There are no rollouts; `hortus rollout start --help` begins one."),
        )

    def item(self, objects: FleetObjects, key: ItemKey, now: float) -> Item | None:
        known = objects.all(_ROLLOUTS, Rollout)
        rollout = next((one for one in known if is_at(key, ROLLOUTS, one.metadata)), None)
        if rollout is None:
            return None
        node = _node(rollout)
        return item_of(node, *_detail(rollout, node), actions=_actions(rollout))

    async def act(self, client: Client, key: ItemKey, action: str, shown: Mapping[str, str]) -> str:
        rollout = read(Rollout, await client.get(ROLLOUTS, key.name, key.namespace))
        if action not in ("approve", "pause", "resume", "abort"):
            raise ActionRefused(f"a rollout has no action {action}; there are: approve, pause, resume, abort")
        _expect_shown(rollout, action, shown)
        try:
            match action:
                case "approve":
                    stage = rollout.status.stage
                    return await directing.approve(client, rollout, stage, manager=_MANAGER, as_read=True)
                case "resume":
                    return await directing.resume(client, rollout, manager=_MANAGER, as_read=True)
                case "pause":
                    return await directing.pause(client, rollout, manager=_MANAGER)
                case _:
                    return await directing.abort(client, rollout, manager=_MANAGER)
        except OrderRefused as refused:
            raise ActionRefused(str(refused)) from None


class RolloutPart(ClusterPart):
    """The rollouts under way that have admitted a cluster."""

    kinds = (_ROLLOUTS, _SLICES)
    order = 60

    def nodes(self, objects: FleetObjects, cluster: ClusterNames, now: float) -> Iterable[TreeNode]:
        slices = objects.all(_SLICES, PlacementDecision)
        admitted = {
            part.metadata.labels.get(Label.DECISION_KEY, "")
            for part in slices
            if any(one.cluster_profile_ref.name in cluster.names for one in part.decisions)
        }
        for one in objects.all(_ROLLOUTS, Rollout):
            if one.metadata.name in admitted and one.status.phase not in ENDED:
                yield _node(one)


def _node(rollout: Rollout) -> TreeNode:
    if rollout.status.phase in ENDED:
        return TreeNode(
            kind=ROLLOUTS.kind,
            name=rollout.metadata.name,
            namespace=rollout.metadata.namespace,
            standing=_standing(rollout),
            state=rollout.status.phase,
            note=message_of(rollout),
            path=(_NAME, "rollout", rollout.metadata.namespace, rollout.metadata.name),
            conditions=rollout.status.conditions,
        )
    row = RolloutRows().row(RolloutSubject(rollout))
    return node_of(row, page=_NAME, note=message_of(rollout), conditions=rollout.status.conditions)


def _standing(rollout: Rollout) -> str:
    """One that was ended by somebody is well: nobody has to act."""
    if rollout.status.phase in ENDED:
        return "well" if rollout.status.phase == RolloutPhase.SUCCEEDED else "unknown"
    return STANDINGS[RolloutRows().row(RolloutSubject(rollout)).standing]


def _detail(rollout: Rollout, node: TreeNode) -> list[Block]:
    change, status = rollout.spec.change, rollout.status
    facts: list[tuple[str, Cell]] = [
        ("Change", f"{change.kind} of {change.subject}"),
        ("Versions", f"{change.from_ or 'any'} to {change.to}"),
        ("Policy", rollout.spec.policy_name or "none"),
        ("Started", TimeCell(status.started_at or "")),
        ("Ends about", TimeCell(status.estimated_end or "" if status.phase not in ENDED else "")),
        ("Ended", TimeCell(status.ended_at or "")),
        ("Owner of the next step", node.owner or OWNERS[Actor.NOBODY]),
    ]
    failures: list[list[Cell]] = [[one.cluster, one.stage, one.message] for one in status.failures]
    return [
        FactList("Change", facts),
        Bars("Stages", _bars(rollout), "No stage has a cluster yet."),
        Grid("Failing clusters", ("Cluster", "Stage", "Because"), failures, "None."),
    ]


def _bars(rollout: Rollout, *, prefix: str = "") -> list[Bar]:
    shown = [one for one in rollout.status.stages if one.clusters or one.name != UNSELECTED]
    return [_bar(one, prefix, waits=_waits(rollout, one)) for one in shown]


def _bar(stage: StageStatus, prefix: str, *, waits: bool) -> Bar:
    parts = (
        BarPart("done", "well", stage.succeeded),
        BarPart("in work", "running", stage.running),
        BarPart("failed", "failed", stage.failed),
        BarPart("left out", "unknown", stage.skipped),
        BarPart("waiting", "waiting", stage.pending),
    )
    note = WAITS_FOR_APPROVAL if waits else "ended" if stage.ended else ""
    return Bar(f"{prefix}stage {stage.name}: {stage.succeeded} of {stage.clusters}", parts, note)


def _waits(rollout: Rollout, stage: StageStatus) -> bool:
    return rollout.status.stage == stage.name and WAITS_FOR_APPROVAL in message_of(rollout)


def _actions(rollout: Rollout) -> list[Action]:
    """The orders that fit the state. What a viewer may not do is left out by the dashboard."""
    metadata = rollout.metadata
    patches = AccessNeed("patch", ROLLOUTS, metadata.namespace, metadata.name)
    approves = AccessNeed("approve", ROLLOUTS, metadata.namespace, metadata.name)
    if is_over(rollout) or rollout.status.phase in ENDED:
        return []
    halted = rollout.status.halts > rollout.spec.resumes
    found, shown = [], _shown(rollout)
    if WAITS_FOR_APPROVAL in message_of(rollout):
        found.append(Action("approve", f"Approve stage {rollout.status.stage}", (patches, approves), shown=shown))
    if halted or rollout.spec.state == "Pause":
        warning = "Resume after a halt? The failures so far no longer count." if halted else ""
        found.append(Action("resume", "Resume", (patches, approves) if halted else (patches,), warning, shown))
    if rollout.spec.state != "Pause":
        found.append(Action("pause", "Pause", (patches,), shown=shown))
    found.append(Action("abort", "Abort", (patches,), f"Abort rollout {metadata.name}? It cannot be resumed.", shown))
    return found


def _shown(rollout: Rollout) -> tuple[tuple[str, str], ...]:
    """The rollout as its page shows it: the first two facts identify it, the others explain a difference."""
    metadata, change, status = rollout.metadata, rollout.spec.change, rollout.status
    return (
        ("uid", metadata.uid),
        ("resourceVersion", metadata.resource_version),
        ("change", f"{change.subject} to {change.to}"),
        ("phase", status.phase or RolloutPhase.PENDING),
        ("stage", status.stage),
        ("failing clusters", str(len(status.failures))),
        ("halts", str(status.halts)),
    )


def _expect_shown(rollout: Rollout, action: str, shown: Mapping[str, str]) -> None:
    """Raises ActionRefused where a button was drawn for another rollout, or for one that has changed since.

    A rollout under way changes all the time; that must not keep anybody from a pause or its end.
    """
    name, changed = rollout.metadata.name, {fact: now for fact, now in _shown(rollout) if shown.get(fact) != now}
    if "uid" in changed:
        raise ActionRefused(f"rollout {name} is another one than was shown: look at it before you {action}")
    if action in ("approve", "resume") and changed.pop("resourceVersion", None) is not None:
        seen = "; ".join(f"{fact} {shown.get(fact, '')[:100]} is now {now}" for fact, now in changed.items())
        raise ActionRefused(
            f"rollout {name} has changed since the page was drawn: {seen or 'a part that its page does not show'}. "
            f"Look at it before you {action}"
        )
