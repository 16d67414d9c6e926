"""The state that a plan comes to, compared with the state that a fleet came to, object by object.

Left open are identities, times, random parts of names, and what `_FREE` and `_born` name with their reasons.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from tests.cli.plan.edits.shape import GARDEN, member, name_of

from hortus.apiserver.clusters.born import born_objects
from hortus.simulation.plan.building import change_of
from hortus.simulation.plan.building import name_of as opened_name_of
from hortus.simulation.plan.composing import PlanRun
from hortus.simulation.plan.differences import differences
from hortus.simulation.plan.grouping import opened_text
from hortus.simulation.plan.snapshot import ForkSnapshot, StateChange

_WHOLE = 1 << 20
_DECISIONS = "root/multicluster.x-k8s.io/placementdecisions"
_LEFTOVERS = "fleet.hortus.dev/leftovers"
_BORN = born_objects(created=0.0, identity=str(UUID(int=0)), address="127.0.0.1", port=1, versions=())
"""The objects that every cluster has from the start; in a new one of a fork they are not stored."""
_ISSUED = re.compile(rb"BEGIN [A-Z ]*(?:CERTIFICATE|KEY)|\btoken:|^eyJ|kind: Config|\"kind\": ?\"Config\"")
"""In the content of Secrets: what is issued, and differs each time."""
_AUTHORITY = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()[:-2]
_FREE: Mapping[str, tuple[str, ...]] = {
    "tenancy.hortus.dev/logicalclusters": ("status.url",),
    _LEFTOVERS: ("status.conditions[Settled].message",),
}
"""The port of a server, and the first of items whose order is random."""
_RUN = re.compile(r"\bcn-[0-9a-z]{6}\b")
"""The name of a run of the canary: its time, in other digits."""
_SET = re.compile(r"\bapplyset-[-\w]{43}-v1\b")
"""The name of an apply set: a digest of that of its parent."""
_SILENCE = re.compile(
    r"(?:https?://)?[\d.]+:\d+(?:/clusters/[-\w]+)?: (?:the connection broke[^;\"]*|it could not be read for the plan)"
)
"""The ways in which a cluster that sleeps does not answer."""
_BOOK = re.compile(r"\d+\.\d+")
"""Times in the book of the canary, which is a text."""


class Missed(NamedTuple):
    """One object of which plan and reality differ."""

    place: str
    """Cluster, kind, namespace and name."""
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


class Comparison(NamedTuple):
    missed: tuple[Missed, ...]
    """Objects that the plan or reality changed."""
    apart: tuple[Missed, ...]
    """Objects that neither changed: they were different before."""


def compared(run: PlanRun, before: ForkSnapshot, live: ForkSnapshot) -> Comparison:
    """`before` and `live` are the live states before and after the change."""
    missed, apart = list[Missed](), list[Missed]()
    asleep = _asleep(run.after)
    states = tuple(map(_with_whole_records, (run.before, run.after, before, live)))
    found = [one for one in states[1].changes(states[3], {}) if one.cluster not in asleep and _is_compared(run, one)]
    pairs, lonely = _paired(found)
    for one in pairs:
        if fields := _fields(run, one):
            place = f"{one.cluster}/{one.suffix} {one.namespace}/{one.name}"
            (missed if _moved(one.key, states) else apart).append(Missed(place, str(fields)))
    for one in lonely:
        place = f"{one.cluster}/{one.suffix} {one.namespace}/{one.name}"
        alone = Missed(place, "not planned" if one.before is None else "planned only")
        (missed if _moved(one.key, states) else apart).append(alone)
    return Comparison(tuple(missed), tuple(apart))


def unread(run: PlanRun, before: ForkSnapshot, live: ForkSnapshot) -> Iterator[Missed]:
    """The objects that reality changed, of kinds that the plan never read; without those of a deleted cluster."""
    left_out = _asleep(run.after) | _clusters(run.before) - _clusters(run.after)
    for one in before.changes(live, {}):
        bucket = f"{one.cluster}/{one.suffix}"
        if bucket in run.after.buckets or _is_born(one) or one.cluster in left_out:
            continue
        if (change := change_of(one)) is None:
            continue
        yield Missed(f"{bucket} {one.namespace}/{one.name}", f"not read by the plan, and {change.action}")


def _with_whole_records(state: ForkSnapshot) -> ForkSnapshot:
    """The state with one record of admitted clusters for each rollout: which of its slices has one is up to chance."""
    whole: dict[str, Any] = {}
    for _, value in sorted(state.buckets.get(_DECISIONS, {}).items()):
        part = orjson.loads(value)
        rollout = part["metadata"]["labels"]["multicluster.x-k8s.io/decision-key"]
        known = whole.setdefault(rollout, {**part, "decisions": []})
        known["decisions"] += part["decisions"]
    records = {}
    for rollout, known in whole.items():
        decisions = sorted(known["decisions"], key=lambda one: str(one["clusterProfileRef"]["name"]))
        metadata = {**known["metadata"], "name": rollout}
        records[f"{metadata['namespace']}/{rollout}"] = orjson.dumps(
            {**known, "metadata": metadata, "decisions": decisions}
        )
    return ForkSnapshot({**state.buckets, _DECISIONS: records})


def changed(run: PlanRun, since: ForkSnapshot) -> int:
    """The number of objects that the plan changes after `since`, without those that are written again anyhow."""
    found = since.changes(run.after, run.fork.store.initial)
    return sum(one.key not in run.activity.repeated and change_of(one) is not None for one in found)


def _asleep(state: ForkSnapshot) -> set[str]:
    """The clusters that are hibernated: the live ones do not answer."""
    shoots = [orjson.loads(value) for value in state.buckets.get(f"{GARDEN}/core.gardener.cloud/shoots", {}).values()]
    return {member(name_of(one)) for one in shoots if (one["spec"].get("hibernation") or {}).get("enabled")}


def _clusters(state: ForkSnapshot) -> set[str]:
    return {name.lstrip("/") for name in state.buckets.get("root/tenancy.hortus.dev/logicalclusters", {})}


def _is_compared(run: PlanRun, one: StateChange) -> bool:
    return f"{one.cluster}/{one.suffix}" in run.after.buckets and not _is_born(one)


def _is_born(one: StateChange) -> bool:
    """True for an object of a new cluster that the live side alone shows."""
    return one.before is None and f"{one.namespace}/{one.name}" in _BORN.get(one.suffix, {})


def _paired(found: list[StateChange]) -> tuple[list[StateChange], list[StateChange]]:
    """Objects of both sides, those with random names put together by the rest of their names; and the others."""
    pairs = [one for one in found if one.before is not None and one.after is not None]
    planned: dict[tuple[str, ...], list[StateChange]] = {}
    real: dict[tuple[str, ...], list[StateChange]] = {}
    for one in found:
        if one.before is None or one.after is None:
            pattern = (one.cluster, one.suffix, one.namespace, str(_open(opened_name_of(one))))
            (real if one.before is None else planned).setdefault(pattern, []).append(one)
    lonely: list[StateChange] = []
    for pattern in {**planned, **real}:
        left, right = (sorted(side.get(pattern, []), key=_content) for side in (planned, real))
        pairs += [_named_alike(a, b) for a, b in zip(left, right, strict=False)]
        lonely += [*left[len(right) :], *right[len(left) :]]
    return pairs, lonely


def _named_alike(planned: StateChange, real: StateChange) -> StateChange:
    """Both as one object, where the names differ by their random parts: objects name themselves in lists."""
    text = orjson.dumps(planned.before).decode().replace(planned.name, real.name)
    return planned._replace(before=orjson.loads(text), after=real.after)


def _content(one: StateChange) -> str:
    """The object as text, without its own name and the server's bookkeeping."""
    metadata = {part: one.either["metadata"].get(part) for part in ("labels", "annotations", "ownerReferences")}
    text = orjson.dumps({**one.either, "metadata": metadata}, option=orjson.OPT_SORT_KEYS).decode()
    return str(_open(text.replace(one.name, "*")))


def _fields(run: PlanRun, one: StateChange) -> list[tuple[str, Any, Any]]:
    assert one.before is not None and one.after is not None
    before, after = one.before, one.after
    if one.suffix == "core/secrets":
        before, after = _readable(before), _readable(after)
    elif one.suffix == _LEFTOVERS:
        before, after = _ordered(before), _ordered(after)
    repeated = run.activity.repeated.get(one.key, frozenset())
    return [
        (field.path, field.before, field.after)
        for field in differences(before, after, longest=_WHOLE)
        if field.path not in repeated
        and not field.path.startswith(_FREE.get(one.suffix, ()))
        and _opened(field.path, field.before) != _opened(field.path, field.after)
    ]


def _opened(path: str, value: Any) -> Any:
    if path == "metadata.name":
        return None
    if isinstance(value, str) and value.startswith(_AUTHORITY):
        return "issued"
    if path == "data.book":
        value = _BOOK.sub("*", str(value))
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            return _open(orjson.dumps(orjson.loads(value), option=orjson.OPT_SORT_KEYS).decode())
        except orjson.JSONDecodeError:
            pass
    return _open(value)


def _open(value: Any) -> Any:
    """A text without times, identities, addresses and random parts; any other value as it is."""
    if not isinstance(value, str):
        return value
    return _RUN.sub("*", _SET.sub("*", opened_text(_SILENCE.sub("no answer", value))))


def _readable(secret: Mapping[str, Any]) -> Mapping[str, Any]:
    """A Secret as an object that is compared as it is, with what was issued left open."""
    content = {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}
    shown = {key: "issued" if _ISSUED.search(value) else value.decode("latin1") for key, value in content.items()}
    return {**secret, "kind": "Content", "data": shown}


def _ordered(leftover: Mapping[str, Any]) -> Mapping[str, Any]:
    """A Leftover with its items by their content: their order is that of their IDs, which are digests of identities."""
    return {**leftover, **{part: _by_content(leftover.get(part) or {}) for part in ("spec", "status")}}


def _by_content(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**part, "items": sorted(part.get("items") or (), key=lambda item: str(_open(orjson.dumps(item).decode())))}


def _moved(key: tuple[str, str], states: Sequence[ForkSnapshot]) -> bool:
    """True where plan or reality changed the object at all: else it was different to begin with."""
    before, after, live_before, live = (state.buckets.get(key[0], {}).get(key[1]) for state in states)
    return before != after or _wanted_of(live_before) != _wanted_of(live)


def _wanted_of(value: bytes | None) -> Any:
    if value is None:
        return None
    obj = orjson.loads(value)
    obj["metadata"] = {name: obj["metadata"].get(name) for name in ("labels", "annotations", "finalizers")}
    return obj
