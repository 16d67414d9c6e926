"""The sections of a plan after its changes, in words: stages, problems, loops, gaps. Equal entries are one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from hortus.simulation.plan.grouping import OWN
from hortus.simulation.plan.model import MISSING, FleetPlan, Ongoing, PlannedProblem, StagePlan, WaitingKind
from hortus.simulation.plan.texts import NAMES, clusters_title, duration, side

_FIX: Final = "install its CRD (those of Hortus: `hortus install`), or turn off the part of Hortus that needs it"
STAGES: Final = "stages"
PROBLEMS: Final = "what needs somebody"
_LOOPS: Final = "what never rests"
FIRST: Final = frozenset({PROBLEMS, _LOOPS})
"""The titles of sections that a page has before the changes."""


class SectionEntry(NamedTuple):
    """One entry of a section: a title, and lines about it."""

    title: str
    lines: Sequence[str] = ()


def sections(plan: FleetPlan) -> Iterator[tuple[str, Sequence[SectionEntry]]]:
    """The sections after the changes, each with its title. Sections without an entry are left out."""
    found = {
        STAGES: [_stage(one) for one in plan.stages],
        PROBLEMS: [*_problems(plan.problems)],
        _LOOPS: [_loop(one) for one in plan.ongoing if one.how == "loop"],
        "controllers that wait": [*_waits(plan.waits)],
        "unknown, since it could not be read": [
            SectionEntry(f"{side(one.where)}: {', '.join(one.kinds)}", [one.reason, *([one.fix] if one.fix else [])])
            for one in plan.unknown
        ],
        "renewed again and again, with or without the change": [
            *_renewed([one for one in plan.ongoing if one.how == "recurring"])
        ],
    }
    return ((title, entries) for title, entries in found.items() if entries)


def _stage(one: StagePlan) -> SectionEntry:
    rest = [f"{count} {word}" for count, word in ((one.failed, "failed"), (one.skipped, "left out")) if count]
    rest += [duration(one.seconds) if one.seconds is not None else "does not end"]
    rest += [f"soaks for {duration(one.soak)}"] if one.soak else []
    rest += ["once somebody approves"] if one.approved else []
    return SectionEntry(f"{one.rollout} {one.stage}: {one.succeeded} of {one.clusters} done, {', '.join(rest)}")


def _problems(problems: Sequence[PlannedProblem]) -> Iterator[SectionEntry]:
    """Problems that differ in the cluster alone are one entry."""
    found: dict[tuple[str, ...], list[PlannedProblem]] = {}
    for one in problems:
        found.setdefault(tuple(_open(text, one.cluster) for text in _texts(one)), []).append(one)
    for opened, equal in found.items():
        title, state, owner, message, step = opened if len(equal) > 1 else _texts(equal[0])
        more = f", {clusters_title([one.cluster for one in equal])}" if len(equal) > 1 else ""
        lines = [message, f"next step, {owner}: {step}" if step else f"next step: {owner}"]
        yield SectionEntry(f"{title}: {state}{more}", [line for line in lines if line])


def _texts(one: PlannedProblem) -> tuple[str, ...]:
    return (f"{one.kind} {one.namespace}/{one.name}", one.state, one.owner, one.message or one.reason, one.step)


def _open(text: str, cluster: str) -> str:
    return re.sub(rf"(?<![0-9a-zA-Z]){re.escape(cluster)}(?![0-9a-zA-Z])", OWN, text) if cluster else text


def _loop(one: Ongoing) -> SectionEntry:
    managers = " and ".join(one.managers)
    paths = ", ".join(field.path for field in one.fields[:3])
    return SectionEntry(
        f"{one.kind} {one.name} ({side(one.where)}) goes in circles: {managers} wrote {paths} {one.writes} times"
    )


def _waits(waits: Sequence[WaitingKind]) -> Iterator[SectionEntry]:
    """Kinds for which the same controllers wait are one entry."""
    found: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for one in waits:
        found.setdefault((one.where, one.reason, one.controllers), []).append(f"{one.kind} {one.version}")
    for (where, reason, controllers), kinds in found.items():
        names = f"of {', '.join(controllers)}" if controllers else "that needs it"
        fix = [_FIX] if reason == MISSING else []
        yield SectionEntry(f"{side(where)}: {', '.join(kinds)}", [f"{reason}: nothing {names} is planned", *fix])


def _renewed(found: Sequence[Ongoing]) -> Iterator[SectionEntry]:
    """Objects of one kind are one entry."""
    by_kind: dict[tuple[str, str], list[Ongoing]] = {}
    for one in found:
        by_kind.setdefault((one.kind, side(one.where)), []).append(one)
    for (kind, at), equal in by_kind.items():
        names = ", ".join(one.name for one in equal[:NAMES])
        more = f" and {len(equal) - NAMES} more" if len(equal) > NAMES else ""
        shortest, longest = (duration(limit(one.period for one in equal)) for limit in (min, max))
        yield SectionEntry(
            f"{kind} {names}{more} ({at}) every {shortest if shortest == longest else f'{shortest} to {longest}'}"
        )
