"""The page of plans: a file of `hortus plan --save` is opened, and compared with the fleet as its viewer sees it.

A plan is kept in the memory of the process, for the viewer who opened it, and goes with that viewer's last session.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
from msgspec.structs import replace

from hortus.dashboard.composing import Reading, ReadPage
from hortus.dashboard.viewers import Viewer
from hortus.engine.fleet import seconds_of
from hortus.engine.pages import (
    Action,
    ActionRefused,
    Block,
    Cell,
    FactList,
    Grid,
    Item,
    ItemKey,
    PageLink,
    StateMark,
    moment,
)
from hortus.engine.planfile import PlanFile, PlanFileError, drift, understood
from hortus.engine.rollouts.types import ROLLOUTS
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError
from hortus.simulation.plan import texts
from hortus.simulation.plan.model import FleetPlan, ObjectChange
from hortus.simulation.plan.sections import PROBLEMS, STAGES, sections

LARGEST: Final = 16 << 20
"""Bytes of a file."""
KIND: Final = "plan"
_KEPT: Final = 4
"""Plans of one viewer; the oldest makes room."""
_COMPARED: Final = 200
"""Objects that are compared with the fleet, one GET each."""
_AT_ONCE: Final = 8
_GROUPS: Final = 40
_ROWS: Final = 200
_COMPARE: Final = "compare"


class _Comparison(NamedTuple):
    at: float
    left: Sequence[str]
    """Objects that have left the planned way."""
    problem: str = ""
    """The reason why some were not compared; empty if all were."""


class _OpenPlan(NamedTuple):
    name: str
    file: PlanFile
    plan: FleetPlan
    compared: _Comparison


class PlansPage(ReadPage):
    """The plans that a viewer has opened, and a form for another."""

    name = "plans"
    title = "Plans"
    order = 15
    intro = "What a change will make of the fleet: open a file of `hortus plan --save FILE`."
    upload = "Saved plan"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: WeakKeyDictionary[Client, dict[str, _OpenPlan]] = WeakKeyDictionary()

    async def open(self, viewer: Viewer, name: str, content: bytes) -> ItemKey:
        """Opens a file for a viewer; returns the address of its page. Raises PlanFileError."""
        file, plan = await asyncio.to_thread(_read, content, name[:80] or "the file")
        opened = _OpenPlan(name[:80], file, plan, await self._compare(file, viewer.client))
        known = self._open.setdefault(viewer.client, {})
        while len(known) >= _KEPT:
            del known[next(iter(known))]
        key = secrets.token_urlsafe(12)
        known[key] = opened
        return ItemKey(KIND, "", key)

    async def read(self, viewer: Viewer, key: ItemKey | None, now: float) -> Reading:
        known = self._open.get(viewer.client, {})
        if key is not None:
            found = known.get(key.name) if key.kind == KIND else None
            return Reading(item=None if found is None else _item(found))
        rows: list[list[Cell]] = [
            [
                PageLink(one.name, (self.name, KIND, "-", name)),
                texts.headline(one.plan),
                moment(seconds_of(one.plan.began)),
            ]
            for name, one in known.items()
        ]
        return Reading([Grid("Open plans", ("File", "Plan", "Made"), rows, "No plan is open.")])

    async def act(self, client: Client, key: ItemKey, action: str, shown: Mapping[str, str]) -> str:
        known = self._open.get(client, {})
        found = known.get(key.name)
        if found is None or action != _COMPARE:
            raise ActionRefused("this plan is not open any more: open its file again")
        known[key.name] = found._replace(compared=await self._compare(found.file, client))
        return "compared with the fleet as it is now"

    async def _compare(self, file: PlanFile, client: Client) -> _Comparison:
        """Compares with the viewer's own credential."""
        gate, problems, left = asyncio.Semaphore(_AT_ONCE), list[str](), list[str]()

        async def one(planned: PlanFile) -> None:
            async with gate:
                try:
                    left.extend(await drift(planned, client))
                except KubeError as error:
                    problems.append(str(error))

        await asyncio.gather(*(one(replace(file, objects=(each,))) for each in file.objects[:_COMPARED]))
        problem = f"{len(problems)} objects could not be compared: {problems[0]}" if problems else ""
        if (more := len(file.objects) - _COMPARED) > 0:
            problem = "; ".join(filter(None, (f"{more} further objects are not compared", problem)))
        return _Comparison(self._clock.now(), sorted(left), problem)


def _read(content: bytes, name: str) -> tuple[PlanFile, FleetPlan]:
    """Raises PlanFileError."""
    file = understood(content, name)
    try:
        plan = msgspec.convert(file.plan, FleetPlan)
    except msgspec.ValidationError as error:
        raise PlanFileError(f"{name} was saved by another version: {error}; plan again") from None
    # Groups and objects have what is shown; the plan of each cluster again would only take memory.
    return replace(file, plan={}), replace(plan, clusters=())


def _item(one: _OpenPlan) -> Item:
    plan, compared = one.plan, one.compared
    standing = "failed" if plan.fails else "waiting" if compared.left or compared.problem else "well"
    state = "fails" if plan.fails else "left" if compared.left else "changes" if plan.changes_something else "no change"
    note = f"{len(compared.left)} objects have left the plan: plan again" if compared.left else compared.problem
    return Item(
        title=one.name,
        standing=standing,
        state=state,
        note=note,
        blocks=[*_facts(one), *_parts(plan), *_groups(plan)],
        actions=(Action(_COMPARE, "Compare with the fleet again", ()),),
    )


def _facts(one: _OpenPlan) -> Iterable[Block]:
    plan = one.plan
    facts: list[tuple[str, Cell]] = [
        ("In sum", texts.headline(plan)),
        *((title.capitalize(), text) for title, text in texts.facts(plan)),
        ("Made", moment(seconds_of(plan.began))),
        ("Management cluster", one.file.server),
        ("Compared", moment(one.compared.at)),
    ]
    yield FactList("Plan", facts)
    left: list[list[Cell]] = [[text] for text in one.compared.left]
    yield Grid("Objects that have left the plan", ("Object",), left, "None: the fleet is on the planned way.")


def _parts(plan: FleetPlan) -> Iterable[Block]:
    if plan.problems:
        problems: list[list[Cell]] = [
            [f"{one.kind} {one.namespace}/{one.name}", StateMark("failed", one.state), one.message or one.reason,
             one.owner, one.step]
            for one in plan.problems
        ]  # fmt: skip
        yield Grid("What will need somebody", ("Object", "State", "Because", "Next step of", "Next step"), problems)
    if plan.stages:
        stages: list[list[Cell]] = [
            [f"{one.rollout}, stage {one.stage}", f"{one.succeeded} of {one.clusters}", one.failed, one.skipped,
             texts.duration(one.seconds) if one.seconds is not None else "does not end",
             "once somebody approves" if one.approved else ""]
            for one in plan.stages
        ]  # fmt: skip
        yield Grid("Stages", ("Stage", "Done", "Failed", "Left out", "Takes", "Approval"), stages)
    for title, entries in sections(plan):
        if title not in (PROBLEMS, STAGES):
            rows: list[list[Cell]] = [[one.title, "; ".join(one.lines)] for one in entries]
            yield Grid(title.capitalize(), ("Object", "Because"), rows)


def _groups(plan: FleetPlan) -> Iterable[Block]:
    for group in plan.groups[:_GROUPS]:
        yield _changes(f"{texts.group_title(group)}; {texts.group_time(group)}", texts.group_rows(group))
    if len(plan.groups) > _GROUPS:
        yield Grid("More groups", ("Group",), [[texts.group_title(one)] for one in plan.groups[_GROUPS:]])
    if plan.shared:
        yield _changes("Fleet-wide", texts.rows_of((one, 1) for one in plan.shared))


def _changes(title: str, changes: Iterable[tuple[ObjectChange, int]]) -> Grid:
    rows: list[list[Cell]] = [
        [_object(change), change.action, texts.where(change), _fields(change),
         texts.remarks(change, count)]
        for change, count in changes
    ]  # fmt: skip
    shown = title if len(rows) <= _ROWS else f"{title}: the first {_ROWS} of {len(rows)} changes"
    return Grid(shown, ("Object", "Change", "Where", "Fields", "Note"), rows[:_ROWS])


def _object(change: ObjectChange) -> Cell:
    """The object, with a link where it has a page with buttons."""
    if (change.kind, change.where) == (ROLLOUTS.kind, "root"):
        return PageLink(texts.place(change), ("rollouts", "rollout", change.namespace, change.name))
    return texts.place(change)


def _fields(change: ObjectChange) -> str:
    return "; ".join(texts.field_lines(change.fields)).replace(" -> ", " → ")
