"""The memory of the objects that an agent has had: a history by version and generation, and the algebra of its keys.

The ConfigMap `<name>-dependents` has one key for each pair of operator version and generation, with the objects that
were built then. A key is written before its objects are applied and removed when the objects that later sets lack are
gone, so that a process may be killed anywhere and no object is forgotten. Where the set changes within one generation
the former one is kept under the key with `-dirty`; it joins what is there, since that may not be pruned yet.

The form is that of instana/instana-agent-operator (`pkg/k8s/object/transformations`), whose entries are read as they
are, also those of releases that had no version (`v0.0.1-dev`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from hortus.kube.objects import Object

DIRTY: Final = "-dirty"


class Dependent(NamedTuple):
    """One object; two versions of one kind name the same object."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


Entries = Mapping[Dependent, str]
"""Objects with the version of their API group by which they were applied last."""
History = Mapping[str, Entries]


class _Metadata(msgspec.Struct, omit_defaults=True):
    name: str
    namespace: str = ""


class _Entry(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    metadata: _Metadata


_DECODER: Final = msgspec.json.Decoder(list[_Entry])


class Recorded(NamedTuple):
    """The data of a dependents ConfigMap, read."""

    history: History
    unreadable: tuple[str, ...] = ()
    """Keys whose value is no list of objects; they are dropped with the next write."""


def history_key(operator_version: str, generation: int) -> str:
    """The key of the present set."""
    return f"{operator_version}_{generation}"


def dependent_of(obj: Object) -> Dependent:
    """The identity of an object."""
    return _identity(msgspec.convert(obj, _Entry))


def entries_of(objects: Iterable[Object]) -> dict[Dependent, str]:
    """The entries of a set of objects."""
    read = (msgspec.convert(obj, _Entry) for obj in objects)
    return {_identity(entry): entry.api_version for entry in read}


def decode(data: Mapping[str, str]) -> Recorded:
    """The history in the data of a ConfigMap."""
    history: dict[str, Entries] = {}
    unreadable: list[str] = []
    for key, value in data.items():
        try:
            found = _DECODER.decode(value)
        except msgspec.DecodeError:
            unreadable.append(key)
            continue
        history[key] = {_identity(entry): entry.api_version for entry in found}
    return Recorded(history, tuple(sorted(unreadable)))


def encode(history: History, before: Mapping[str, str]) -> dict[str, str]:
    """The data for a history; a value that says the same in other words stays as it is in `before`."""
    known = decode(before).history
    return {
        key: before[key] if known.get(key) == entries else _text(entries) for key, entries in sorted(history.items())
    }


def recorded(history: History, key: str, wanted: Entries) -> History:
    """The history once `wanted` is about to be applied: it never holds less than what may exist."""
    former = history.get(key)
    if former == wanted:
        return history
    after = {**history, key: wanted}
    if former:
        after[f"{key}{DIRTY}"] = {**history.get(f"{key}{DIRTY}", {}), **former}
    return after


def members_of(history: History) -> set[Dependent]:
    """The objects of all sets."""
    return {one for entries in history.values() for one in entries}


def settled(history: History, key: str, remaining: Iterable[Dependent]) -> History:
    """The history once all left-over objects but `remaining` are gone: the present key, and keys that name those."""
    held = frozenset(remaining)
    return {one: entries for one, entries in history.items() if one == key or not held.isdisjoint(entries)}


def _identity(entry: _Entry) -> Dependent:
    group = entry.api_version.rpartition("/")[0]
    return Dependent(group, entry.kind, entry.metadata.namespace, entry.metadata.name)


def _text(entries: Entries) -> str:
    found = [_Entry(version, one.kind, _Metadata(one.name, one.namespace)) for one, version in sorted(entries.items())]
    return msgspec.json.encode(found).decode()
