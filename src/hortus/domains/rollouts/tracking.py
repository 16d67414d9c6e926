"""The objects in which changes are seen, followed by watches, one tracker for each ChangeKind.

A tracker evaluates an object's identity once for each of its versions, and its view when a rollout asks for it. What
changes is announced by kind and subject; nothing is read from the server besides the watches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from hortus.domains.rollouts.changekinds import CompiledKind, ExpressionError, Identity, ObjectView
from hortus.engine import Cache, Change
from hortus.kube.objects import Object, ObjectKey

_NONE: Collection[ObjectKey] = ()

Announce = Callable[[str, str], None]
"""Takes the name of a ChangeKind and a subject of which an object changed."""


class ChangeTracker:
    """The objects of one ChangeKind, by subject."""

    def __init__(self, kind: CompiledKind, cache: Cache, announce: Announce) -> None:
        self.kind = kind
        self.cache = cache
        self.problems: dict[ObjectKey, str] = {}
        """Objects on which an expression failed; they take part in no rollout."""
        self._announce = announce
        self._identities: dict[ObjectKey, Identity] = {}
        self._subjects: dict[str, dict[ObjectKey, None]] = {}
        self._views: dict[ObjectKey, tuple[Object, dict[str, ObjectView]]] = {}
        self._sets: dict[ObjectKey, tuple[Object, str, bool]] = {}
        self.detach = cache.subscribe(self._on_change)

    @property
    def subjects(self) -> Collection[str]:
        return self._subjects.keys()

    def objects(self, subject: str) -> Iterator[tuple[ObjectKey, Identity]]:
        """The objects of a subject."""
        for key in self._subjects.get(subject, _NONE):
            yield key, self._identities[key]

    def view(self, key: ObjectKey, to: str) -> ObjectView | None:
        """An object with regard to version `to`; None when it is gone, or an expression fails on it."""
        obj = self.cache.get(key)
        if obj is None:
            return None
        known = self._views.get(key)
        if known is None or known[0] is not obj:
            known = self._views[key] = obj, {}
        if (found := known[1].get(to)) is not None:
            return found
        try:
            found = known[1][to] = self.kind.view(obj, to)
        except ExpressionError as error:
            self.problems[key] = str(error)
            return None
        return found

    def sets(self, key: ObjectKey, to: str) -> bool:
        """True when the patch to version `to` changes the object."""
        obj, known = self.cache.get(key), self._sets.get(key)
        if obj is None:
            return False
        if known is None or known[0] is not obj or known[1] != to:
            known = self._sets[key] = obj, to, self.kind.sets(obj, to)
        return known[2]

    def _on_change(self, change: Change) -> None:
        key, before = change.key, self._identities.get(change.key)
        self.problems.pop(key, None)
        after = None
        if change.new is None:
            self._views.pop(key, None)
            self._sets.pop(key, None)
        else:
            try:
                after = self.kind.identify(change.new)
            except ExpressionError as error:
                self.problems[key] = str(error)
        self._file(key, before, after)
        for subject in {one.subject for one in (before, after) if one is not None}:
            self._announce(self.kind.name, subject)

    def _file(self, key: ObjectKey, before: Identity | None, after: Identity | None) -> None:
        if before is not None and (after is None or after.subject != before.subject):
            keys = self._subjects[before.subject]
            del keys[key]
            if not keys:
                del self._subjects[before.subject]
        if after is None:
            self._identities.pop(key, None)
        else:
            self._identities[key] = after
            self._subjects.setdefault(after.subject, {})[key] = None
