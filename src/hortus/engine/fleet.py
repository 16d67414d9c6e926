"""Rows of `hortus top` and `hortus problems`: the part that each domain has in the picture of the fleet.

A domain's `fleet_views` returns views. A view names the kinds that it reads, pairs the objects that make one row (a
Runtime with its GardenerCluster, its Secret and its Shoot), and makes the row of them. The program keeps the objects
current by watches and asks for a row again only after one of its objects changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cache
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from hortus.engine.outcomes import Actor
from hortus.engine.typed import NotReadable, read
from hortus.kube.objects import Object, ObjectKey, Resource, format_time, key_of, parse_time
from hortus.schema import Condition, Kind, ObjectMeta

S = TypeVar("S", bound=tuple[Any, ...])
P = TypeVar("P")

_TURNOVER: Final = 1000
"""Rows made until those that were not used since are forgotten."""
OWNERS: Final[Mapping[Actor, str]] = {
    Actor.NOBODY: "nobody",
    Actor.USER: "cluster owner",
    Actor.OPERATOR: "operator",
    Actor.PROVIDER: "garden or provider",
}
"""Owners of the next step as people read them."""


class RowStanding(IntEnum):
    """The order of rows, worst first."""

    FAILED = 0
    """Somebody has to act."""
    WAITING = 1
    """On its way: the next step comes by itself."""
    WELL = 2


class FleetRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line: an object, its state, and the owner of the next step."""

    kind: str
    namespace: str
    name: str
    standing: RowStanding
    state: str
    """In the words of the kind."""
    reason: str = ""
    message: str = ""
    owner: Actor = Actor.NOBODY
    """The owner of the next step."""
    step: str = ""
    """The next step, as advice."""
    since: float | None = None
    """Time of the last change of the state, in seconds since 1970."""
    expires: float | None = None
    """The end of the credential."""
    provider: str = ""
    region: str = ""
    version: str = ""
    """The version of Kubernetes."""
    labels: Mapping[str, str] = {}
    """Labels of the object, for those who choose rows by them."""


class Unreadable(NamedTuple):
    """An object that does not have the shape of its kind."""

    resource: Resource
    key: ObjectKey
    problem: str


class FleetKind(NamedTuple):
    """Objects that a view reads. Equal ones of several views are read once."""

    resource: Resource
    part: Callable[[Object], object]
    """Makes of an object the value that the view reads; raises NotReadable."""
    labels: str = ""
    garden: bool = False
    """True for objects in the project of the garden."""
    metadata_only: bool = False

    def taken(self, obj: Object) -> object:
        """The value of an object, Unreadable for one without the shape of its kind."""
        try:
            return self.part(obj)
        except NotReadable as error:
            return Unreadable(self.resource, key_of(obj), str(error))


class FleetObjects(NamedTuple):
    """The present values of all kinds."""

    values: Mapping[FleetKind, Mapping[ObjectKey, object]]

    def all(self, kind: FleetKind, type: type[P]) -> Collection[P]:
        return [value for value in self.values[kind].values() if isinstance(value, type)]

    def get(self, kind: FleetKind, key: ObjectKey, type: type[P]) -> P | None:
        found = self.values[kind].get(key)
        return found if isinstance(found, type) else None


class FleetView(ABC, Generic[S]):
    """The rows of one domain. The subject of a row is the tuple of values that it is made of."""

    kinds: Sequence[FleetKind] = ()
    page: str = ""
    """Name of the page of the dashboard that shows the rows; empty for none."""
    order: int = 9
    """Among rows that are equally well those of a view with a smaller number come first."""

    @abstractmethod
    def subjects(self, objects: FleetObjects) -> Iterable[S]:
        """The subjects of all rows."""

    @abstractmethod
    def row(self, subject: S) -> FleetRow:
        """The row of one subject: a function of it alone, so that the program may keep the row."""


class WideFacts(NamedTuple):
    """Facts about one object that `hortus get -o wide` shows besides the columns of its kind."""

    expires: float | None = None
    """The end of the credential, in seconds since 1970."""
    version: str = ""
    """The version of Kubernetes."""
    region: str = ""


class WideColumns(NamedTuple):
    """The facts about the objects of one kind, and the kinds of objects that they come from."""

    kinds: Sequence[FleetKind]
    facts: Callable[[FleetObjects], Mapping[ObjectKey, WideFacts]]


class KeptRows(Generic[S]):
    """The rows of a view, each made again only when a value of its subject is another one.

    Several sets of objects may take turns, such as those of viewers who see different parts of one fleet. A row that
    none of them needed while `_TURNOVER` others were made is forgotten.
    """

    def __init__(self, view: FleetView[S]) -> None:
        self._view = view
        self._known: dict[Hashable, tuple[S, FleetRow]] = {}
        self._older: dict[Hashable, tuple[S, FleetRow]] = {}
        self._made = 0

    def rows(self, objects: FleetObjects) -> list[FleetRow]:
        known, older, found = self._known, self._older, []
        for subject in self._view.subjects(objects):
            # The subject is kept with its row, so no other value can get the identity of one of its values.
            place = tuple(map(id, subject))
            if (kept := known.get(place)) is None:
                if (kept := older.get(place)) is None:
                    kept = subject, self._view.row(subject)
                    self._made += 1
                known[place] = kept
            found.append(kept[1])
        if self._made > _TURNOVER:
            self._older, self._known, self._made = known, {}, 0
        return found


@cache
def reading(kind: type[Kind]) -> Callable[[Object], object]:
    """The `part` of a kind that is read as its struct; the same for all views of the kind."""
    return lambda obj: read(kind, obj)


def changed_at(metadata: ObjectMeta, condition: Condition | None) -> float | None:
    """Time of a condition's last transition; without one, that of the object's creation."""
    return seconds_of(metadata.creation_timestamp if condition is None else condition.last_transition_time)


def seconds_of(time: str | None) -> float | None:
    """A time of the API as seconds since 1970; None for none, and for a text that is no time."""
    try:
        return parse_time(time) if time else None
    except ValueError:
        return None


def document_of(row: FleetRow) -> dict[str, Any]:
    """A row for programs: times are RFC 3339, and what is empty is left out."""
    found = {
        "kind": row.kind,
        "namespace": row.namespace,
        "name": row.name,
        "standing": row.standing.name.lower(),
        "state": row.state,
        "reason": row.reason,
        "message": row.message,
        "owner": OWNERS[row.owner],
        "step": row.step,
        "since": format_time(row.since) if row.since is not None else "",
        "expires": format_time(row.expires) if row.expires is not None else "",
        "provider": row.provider,
        "region": row.region,
        "version": row.version,
    }
    return {name: value for name, value in found.items() if value}


def until(time: float | None, now: float) -> str:
    """The time that is left; `expired` after it."""
    return "" if time is None else length(time - now) if time > now else "expired"


def length(seconds: float) -> str:
    """A length of time as in kubectl's tables: `45s`, `12m`, `3h20m`, `5d`."""
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if hours < 3:
        return f"{minutes}m"
    if hours < 8 and minutes % 60:
        return f"{hours}h{minutes % 60}m"
    return f"{hours}h" if days < 2 else f"{days}d"
