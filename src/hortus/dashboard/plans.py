"""The page of plans: a file of `hortus plan --save` is opened, and compared with the fleet as its viewer sees it.

A plan is kept in the memory of the process, for the viewer who opened it, and goes with that viewer's last session. Its
page is made once, in a thread, with bounds for rows and characters, whatever the file holds.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
from msgspec.structs import replace

from hortus.dashboard.bounding import ROWS, bounded, title_of
from hortus.dashboard.composing import Reading, ReadPage
from hortus.dashboard.viewers import TooManyAtOnce, Viewer
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
    TimeCell,
    moment,
)
from hortus.engine.planfile import PlanFile, PlanFileError, drift, understood
from hortus.engine.rollouts.types import ROLLOUTS
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError
from hortus.simulation.plan import texts
from hortus.simulation.plan.model import FleetPlan, ObjectChange
from hortus.simulation.plan.sections import sections

LARGEST: Final = 16 << 20
"""Bytes of a file."""
KIND: Final = "plan"
_KEPT: Final = 4
"""Plans of one user; the oldest makes room."""
_KEPT_IN_ALL: Final = 64
"""Plans of all users; the oldest makes room."""
_LARGEST_KEPT: Final = 1 << 18
"""Bytes of the objects that are compared."""
_COMPARED: Final = 200
"""Objects that are compared with the fleet, one GET each."""
_AT_ONCE: Final = 8
_GROUPS: Final = 40
_FACTS: Final = 100
_LONGEST: Final = 1000
"""Characters of a text of a file."""
_COMPARE: Final = "compare"
_NONE_LEFT: Final = "None: the fleet is on the planned way."


class _Comparison(NamedTuple):
    at: float
    left: Sequence[str]
    """Objects that have left the planned way."""
    problem: str = ""
    """The reason why some were not compared; empty if all were."""


class _OpenPlan(NamedTuple):
    """A plan as its page shows it. Of the file itself nothing is kept but the objects that are compared."""

    name: str
    file: PlanFile
    objects: int
    """The number of objects in the file; those that are kept are compared."""
    made: TimeCell
    headline: str
    facts: Sequence[tuple[str, Cell]]
    blocks: Sequence[Block]
    standing: str
    state: str
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
        self._users: dict[str, str] = {}
        """The users of open plans, the oldest first."""
        self._uploading: set[str] = set()
        self._reading = asyncio.Lock()

    @contextmanager
    def one_at_a_time(self, viewer: Viewer) -> Iterator[None]:
        """Holds the one upload of a user. Raises TooManyAtOnce."""
        if viewer.username in self._uploading:
            raise TooManyAtOnce("another plan of yours is being opened: wait for it")
        self._uploading.add(viewer.username)
        try:
            yield
        finally:
            self._uploading.discard(viewer.username)

    async def open(self, viewer: Viewer, name: str, content: bytes) -> ItemKey:
        """Opens a file for a viewer; returns the address of its page. Raises PlanFileError."""
        async with self._reading:
            opened = await asyncio.to_thread(_read, content, name[:80] or "the file", self._clock.now())
        opened = opened._replace(compared=await self._compare(opened, viewer.client))
        self._make_room(viewer.username)
        key = secrets.token_urlsafe(12)
        self._open.setdefault(viewer.client, {})[key] = opened
        self._users[key] = viewer.username
        return ItemKey(KIND, "", key)

    def _make_room(self, user: str) -> None:
        """Forgets the oldest plan of a user, or of all, where there are too many."""
        known = {key: plans for plans in self._open.values() for key in plans}
        self._users = {key: whose for key, whose in self._users.items() if key in known}
        own = [key for key, whose in self._users.items() if whose == user]
        for keys, most in ((own, _KEPT), ([*self._users], _KEPT_IN_ALL)):
            if len(keys) >= most:
                oldest = keys[0]
                del known[oldest][oldest], self._users[oldest]
                return

    async def read(self, viewer: Viewer, key: ItemKey | None, now: float) -> Reading:
        known = self._open.get(viewer.client, {})
        if key is not None:
            found = known.get(key.name) if key.kind == KIND else None
            return Reading(item=None if found is None else _item(found))
        rows: list[list[Cell]] = [
            [
                PageLink(one.name, (self.name, KIND, "-", name)),
                one.headline,
                one.made,
            ]
            for name, one in known.items()
        ]
        return Reading([Grid("Open plans", ("File", "Plan", "Made"), rows, "No plan is open.")])

    async def act(self, client: Client, key: ItemKey, action: str, shown: Mapping[str, str]) -> str:
        known = self._open.get(client, {})
        found = known.get(key.name)
        if found is None or action != _COMPARE:
            raise ActionRefused("this plan is not open any more: open its file again")
        known[key.name] = found._replace(compared=await self._compare(found, client))
        return "compared with the fleet as it is now"

    async def _compare(self, opened: _OpenPlan, client: Client) -> _Comparison:
        """Compares with the viewer's own credential."""
        gate, problems, left = asyncio.Semaphore(_AT_ONCE), list[str](), list[str]()
        file = opened.file

        async def one(planned: PlanFile) -> None:
            async with gate:
                try:
                    left.extend(await drift(planned, client))
                except KubeError as error:
                    problems.append(str(error))

        await asyncio.gather(*(one(replace(file, objects=(each,))) for each in file.objects))
        problem = f"{len(problems)} objects could not be compared: {_short(problems[0])}" if problems else ""
        if (more := opened.objects - len(file.objects)) > 0:
            problem = "; ".join(filter(None, (f"{more} further objects are not compared", problem)))
        return _Comparison(self._clock.now(), sorted(map(_short, left)), problem)


def _read(content: bytes, name: str, now: float) -> _OpenPlan:
    """Reads a file, and makes what its page shows of it. Raises PlanFileError."""
    file = understood(content, name)
    try:
        plan = msgspec.convert(file.plan, FleetPlan)
        # Groups and objects have what is shown; the plan of each cluster again would only take memory.
        plan = replace(plan, clusters=())
        blocks = bounded([*_parts(plan), *_groups(plan)])
        facts = [(title.capitalize(), _short(text)) for title, text in texts.facts(plan)[:_FACTS]]
    except ValueError as error:  # msgspec's are among them
        raise PlanFileError(f"{name} was saved by another version: {_short(str(error))}; plan again") from None
    made, server = moment(seconds_of(plan.began)), _short(file.server)
    kept = PlanFile(server=server, objects=file.objects[:_COMPARED], plan={})
    if len(msgspec.json.encode(kept)) > _LARGEST_KEPT:
        raise PlanFileError(f"{name} has objects with names that no object has; plan again")
    standing = "failed" if plan.fails else "well"
    state = "fails" if plan.fails else "changes" if plan.changes_something else "no change"
    headline, count = texts.headline(plan), len(file.objects)
    shown: list[tuple[str, Cell]] = [("In sum", headline), *facts, ("Made", made), ("Management cluster", server)]
    return _OpenPlan(name, kept, count, made, headline, shown, blocks, standing, state, _Comparison(now, []))


def _item(one: _OpenPlan) -> Item:
    left, problem = one.compared.left, one.compared.problem
    unsure = one.standing == "well" and bool(left or problem)
    return Item(
        title=one.name,
        standing="waiting" if unsure else one.standing,
        state="left" if left and one.standing == "well" else one.state,
        note=f"{len(left)} objects have left the plan: plan again" if left else problem,
        blocks=[
            FactList("Plan", [*one.facts, ("Compared", moment(one.compared.at))]),
            _table("Objects that have left the plan", ("Object",), [[text] for text in left], _NONE_LEFT),
            *one.blocks,
        ],
        actions=(Action(_COMPARE, "Compare with the fleet again", ()),),
    )


def _parts(plan: FleetPlan) -> Iterator[Block]:
    if plan.problems:
        yield _table(
            "What will need somebody",
            ("Object", "State", "Because", "Next step of", "Next step"),
            (
                [f"{one.kind} {one.namespace}/{one.name}", StateMark("failed", _short(one.state)),
                 one.message or one.reason, one.owner, one.step]
                for one in plan.problems
            ),
            total=len(plan.problems),
        )  # fmt: skip
    if plan.stages:
        yield _table(
            "Stages",
            ("Stage", "Done", "Failed", "Left out", "Takes", "Approval"),
            (
                [f"{one.rollout}, stage {one.stage}", f"{one.succeeded} of {one.clusters}", one.failed, one.skipped,
                 texts.duration(one.seconds) if one.seconds is not None else "does not end",
                 "once somebody approves" if one.approved else ""]
                for one in plan.stages
            ),
            total=len(plan.stages),
        )  # fmt: skip
    for title, entries in sections(replace(plan, stages=(), problems=())):
        rows = ([one.title, "; ".join(one.lines)] for one in entries)
        yield _table(title.capitalize(), ("Object", "Because"), rows, total=len(entries))


def _groups(plan: FleetPlan) -> Iterator[Block]:
    for group in plan.groups[:_GROUPS]:
        yield _changes(f"{texts.group_title(group)}; {texts.group_time(group)}", texts.group_rows(group))
    if (more := len(plan.groups) - _GROUPS) > 0:
        titles = ([texts.group_title(one)] for one in plan.groups[_GROUPS:])
        yield _table("More groups", ("Group",), titles, total=more)
    if plan.shared:
        yield _changes("Fleet-wide", texts.rows_of((one, 1) for one in plan.shared))


def _changes(title: str, changes: Iterable[tuple[ObjectChange, int]]) -> Grid:
    known = list(changes)
    rows = (
        [_object(change), change.action, texts.where(change), _fields(change), texts.remarks(change, count)]
        for change, count in known
    )
    return _table(_short(title), ("Object", "Change", "Where", "Fields", "Note"), rows, total=len(known))


def _table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]], empty: str = "None.", *, total: int = 0
) -> Grid:
    """A table of the first of `total` rows; further ones are not made."""
    found: list[list[Cell]] = [
        [_short(cell) if isinstance(cell, str) else cell for cell in row] for row in islice(rows, ROWS)
    ]
    return Grid(title_of(title, len(found), max(total, len(found))), heads, found, empty)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _object(change: ObjectChange) -> Cell:
    """The object, with a link where it has a page with buttons."""
    text = _short(texts.place(change))
    if (change.kind, change.where) == (ROLLOUTS.kind, "root") and len(text) < _LONGEST:
        return PageLink(text, ("rollouts", "rollout", change.namespace, change.name))
    return text


def _fields(change: ObjectChange) -> str:
    return "; ".join(texts.field_lines(change.fields)).replace(" -> ", " → ")
