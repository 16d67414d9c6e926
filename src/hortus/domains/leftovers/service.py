"""Decisions about Leftovers: from what was seen of the items to their states, the phase, and the time of the next look.

No I/O, and no clock but a parameter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

from hortus.engine.leftovers import thing_of
from hortus.engine.leftovers.types import ItemStatus, Leftover, LeftoverItem, LeftoverPhase
from hortus.kube.objects import format_time, parse_time

LOOK_AGAIN = 300.0
"""Seconds from one look at an item to the next where no watch follows it: beyond the number of watches, for ConfigMaps
of the garden, which the account may not read, and for objects of the management cluster that no cache holds."""
ASK_AGAIN = 15.0
"""Seconds until a server that failed is asked again. From the third failure on the pool's probes report a cluster."""


class Sight(NamedTuple):
    """One item as it was just seen."""

    state: Literal["Unknown", "Left", "Gone"]
    message: str = ""
    after: float | None = None
    """Seconds until the next look; None where a watch reports a change."""


class Outlook(NamedTuple):
    """The status to be of a Leftover."""

    phase: str
    items: tuple[ItemStatus, ...]
    left: int
    message: str
    """For the condition."""


def outlook(leftover: Leftover, sights: Mapping[str, Sight], now: float) -> Outlook:
    """The status after a look. A time and a message are those of the first look that found the same state."""
    known = {item.id: item for item in leftover.status.items}
    items = tuple(_item(item, known.get(item.id), sights.get(item.id), now) for item in leftover.spec.items)
    left = sum(item.state != "Gone" for item in items)
    if not left:
        return Outlook(LeftoverPhase.SETTLED, items, 0, "All items were seen to be gone.")
    acknowledged = leftover.spec.acknowledgement is not None
    phase = LeftoverPhase.ACKNOWLEDGED if acknowledged else LeftoverPhase.OPEN
    first = next(item for item in items if item.state != "Gone")
    what = next(thing_of(item) for item in leftover.spec.items if item.id == first.id)
    why = f": {first.message}" if first.message else ""
    return Outlook(phase, items, left, f"{left} of {len(items)} items may be left, such as {what}{why}")


def next_look(sights: Mapping[str, Sight], followed: Collection[str]) -> float | None:
    """Seconds until the next look at the items; None where watches report each change, as of those `followed`."""
    waits = [sight.after for name, sight in sights.items() if sight.after is not None and name not in followed]
    return min(waits, default=None)


def time_kept(leftover: Leftover, keep: float, now: float) -> float:
    """Seconds for which a settled Leftover is still kept."""
    settled = leftover.status.settled_at
    return keep if settled is None else parse_time(settled) + keep - now


def _item(item: LeftoverItem, known: ItemStatus | None, sight: Sight | None, now: float) -> ItemStatus:
    if sight is None:
        return known if known is not None else ItemStatus(id=item.id, state="Unknown", since=format_time(now))
    if known is not None and known.state == sight.state and sight.state == "Left":
        return known
    since = known.since if known is not None and known.state == sight.state else format_time(now)
    return ItemStatus(id=item.id, state=sight.state, since=since, message=sight.message)
