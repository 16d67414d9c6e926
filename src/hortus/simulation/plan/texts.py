"""The words of a plan: the rows of its tables and the lines of its text, for terminals, Markdown and HTML alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec
import orjson

from hortus.simulation.plan.grouping import counted
from hortus.simulation.plan.model import ClusterGroup, FieldChange, FleetPlan, ObjectChange

SIGNS: Final = {"Created": "+", "Changed": "~", "Replaced": "±", "Deleted": "-"}
NAMES: Final = 6
"""Clusters of a group that are named in its title."""
_FOLDED: Final = 3
"""Names of many objects of a kind that come or go."""
_FIELDS: Final = 6
"""Fields of an object that are shown; JSON has all of them."""
_VALUE: Final = 60
_CONTEXT: Final = 12
"""Characters before the first that differs."""


def duration(seconds: float) -> str:
    """A duration in its two largest units, as `2d 3h`."""
    left = round(seconds)
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if left >= size or (unit == "s" and not parts):
            parts.append(f"{left // size}{unit}")
            left %= size
    return " ".join(parts[:2])


def headline(plan: FleetPlan) -> str:
    sums = plan.sums
    parts = [
        f"{count} {word}"
        for count, word in (
            (sums.created, "created"),
            (sums.changed, "changed"),
            (sums.replaced, "replaced"),
            (sums.deleted, "deleted"),
        )
        if count
    ]
    place = amount(sums.clusters, "cluster") if sums.clusters else "Fleet-wide only"
    text = f"{place}: {', '.join(parts)}" if parts else "No change"
    notes = [amount(sums.rolls, "workload rolls", "workloads roll")] if sums.rolls else []
    notes += [amount(sums.data, "deletion takes data along", "deletions take data along")] if sums.data else []
    notes += [amount(len(plan.problems), "object needs somebody", "objects need somebody")] if plan.problems else []
    loops = sum(one.how == "loop" for one in plan.ongoing)
    notes += [amount(loops, "loop never rests", "loops never rest")] if loops else []
    notes += ["cut short: the budget of time was spent"] if plan.ended == "Budget" else []
    return f"{'; '.join((text, *notes))}."


def amount(count: int, one: str, several: str = "") -> str:
    return f"{count} {one if count == 1 else several or f'{one}s'}"


def facts(plan: FleetPlan) -> list[tuple[str, str]]:
    """The sums with their titles."""
    found = [("change", one) for one in plan.change] or [("change", "none: time alone")]
    found += [
        ("until", _end(plan)),
        ("controllers", f"{amount(plan.sums.calls, 'call')}, {plan.sums.writes} of them writes"),
        ("live side", f"{amount(plan.sums.reads, 'list')} read, nothing written"),
    ]
    if plan.chosen is not None:
        found.insert(
            len(plan.change) or 1, ("clusters", f"{plan.chosen[0]} of {plan.chosen[1]}, as if there were no others")
        )
    if not plan.settled:
        found.append(("note", "the fleet did not rest before the change: other work may be among this"))
    if waiting := {name for one in plan.waits for name in one.controllers}:
        count = amount(len(waiting), "controller waits", "controllers wait")
        found.append(
            (
                "note",
                f"{count} for kinds that are missing or could not be read, see below: nothing of theirs is planned",
            )
        )
    if clusters := len({one.where for one in plan.unknown}):
        count = amount(clusters, "API server", "API servers")
        found.append(("note", f"parts of {count} could not be read, see below: what happens there is not planned"))
    return found


def _end(plan: FleetPlan) -> str:
    since = "after the change" if plan.change else "after the start"
    last = f"{duration(plan.seconds)} {since}"
    if plan.ended == "Rest":
        return f"everything rests, {last}"
    what = "the horizon" if plan.ended == "Horizon" else "the budget of time was spent before everything rested"
    return f"{what}, {duration(plan.passed)} {since}; the last write came {last}"


def group_title(group: ClusterGroup) -> str:
    return clusters_title(group.clusters)


def clusters_title(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return f"{amount(len(names), 'cluster')}: {', '.join(names[:NAMES])}{more}"


def group_time(group: ClusterGroup) -> str:
    shortest, longest = map(duration, group.seconds)
    times = shortest if shortest == longest else f"{shortest} to {longest}"
    return times if group.count == 1 else f"{times} each"


def group_rows(group: ClusterGroup) -> Iterator[tuple[ObjectChange, int]]:
    """The rows of a group."""
    return rows_of(counted(group))


def rows_of(changes: Iterable[tuple[ObjectChange, int]]) -> Iterator[tuple[ObjectChange, int]]:
    """Changes with their numbers as people look at them: what takes data along, then members, management and garden.

    Many objects of a kind that come or go are one row.
    """
    order = {"root": 1, "garden": 2}
    ordered = sorted(
        changes, key=lambda row: (not row[0].data, order.get(row[0].where, 0), row[0].kind, row[0].action, row[0].name)
    )
    for _, found in groupby(ordered, key=lambda row: (row[0].data, row[0].where, row[0].kind, row[0].action)):
        rows = [*found]
        if len(rows) <= NAMES or any(change.fields for change, _ in rows):
            yield from rows
            continue
        names = ", ".join(f"{one.namespace}/{one.name}".lstrip("/") for one, _ in rows[:_FOLDED])
        total = sum(count for _, count in rows)
        folded = f"({total}): {names} and {len(rows) - _FOLDED} more"
        yield msgspec.structs.replace(rows[0][0], namespace="", name=folded), 1


def place(change: ObjectChange) -> str:
    name = f"{change.namespace}/{change.name}" if change.namespace else change.name
    return f"{change.kind} {name}"


def where(change: ObjectChange) -> str:
    return side(change.where) if change.where in ("root", "garden") else "in the cluster"


def side(cluster: str) -> str:
    """An API server as people call it: the management cluster, the garden, or a member by its name."""
    return "management" if cluster == "root" else cluster


def remarks(change: ObjectChange, count: int) -> str:
    found = [f"{count} times"] if count > 1 else []
    found += ["pods are replaced"] if change.rolls else []
    found += ["takes data along"] if change.data else []
    return ", ".join(found)


def field_lines(fields: Sequence[FieldChange]) -> Iterator[str]:
    """The fields in the order in which people look: the spec before metadata, and the status last.

    Where both values read alike, as masked ones do, only fields of the spec are shown.
    """
    shown = [one for one in fields if one.before != one.after or one.path.startswith("spec.")]
    ordered = sorted(shown, key=lambda one: (one.path.startswith("status"), one.path.startswith("metadata"), one.path))
    for one in ordered[:_FIELDS]:
        yield f"{one.path}: {' -> '.join(values(one.before, one.after))}"
    if len(ordered) > _FIELDS:
        yield f"... {amount(len(ordered) - _FIELDS, 'more field')}"


def values(before: Any, after: Any) -> tuple[str, str]:
    """Both values, cut where they are long: where texts begin alike, from there on."""
    alike = 0
    if isinstance(before, str) and isinstance(after, str) and max(len(before), len(after)) > _VALUE:
        differing = (number for number, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1])
        alike = max(next(differing, min(len(before), len(after))) - _CONTEXT, 0)
    if not alike:
        return value(before), value(after)
    return f"…{value(before[alike:])}", f"…{value(after[alike:])}"


def value(found: Any) -> str:
    if found is None:
        return "(none)"
    text = found if isinstance(found, str) else orjson.dumps(found).decode()
    return f"{text[:_VALUE]}…" if len(text) > _VALUE else text or '""'
