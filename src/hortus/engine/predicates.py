"""Filters of changes: those that lead to a reconcile.

A predicate answers for changes of an object that was there before and still is; what is new or gone always passes,
because a controller that is level-based has to see it. Combine with `|`, `&` and `~`.
"""

from __future__ import annotations

from collections.abc import Callable

from hortus.engine.cache import Change
from hortus.kube.objects import Object


class Predicate:
    """Passes a change when it is a creation or deletion, or when `test(old, new)` holds."""

    __slots__ = ("_test",)

    def __init__(self, test: Callable[[Object, Object], bool]) -> None:
        self._test = test

    def __call__(self, change: Change) -> bool:
        _, old, new, _ = change
        return old is None or new is None or self._test(old, new)

    def __or__(self, other: Predicate) -> Predicate:
        one, two = self._test, other._test
        return Predicate(lambda old, new: one(old, new) or two(old, new))

    def __and__(self, other: Predicate) -> Predicate:
        one, two = self._test, other._test
        return Predicate(lambda old, new: one(old, new) and two(old, new))

    def __invert__(self) -> Predicate:
        test = self._test
        return Predicate(lambda old, new: not test(old, new))


def _metadata_differs(field: str) -> Callable[[Object, Object], bool]:
    return lambda old, new: (old["metadata"].get(field) or None) != (new["metadata"].get(field) or None)


def _generation_differs(old: Object, new: Object) -> bool:
    before, after = old["metadata"], new["metadata"]
    return any(before.get(field) != after.get(field) for field in ("generation", "uid", "deletionTimestamp"))


generation_changed = Predicate(_generation_differs)
"""The spec changed, deletion began, or it is another object of the same name. Status updates do not pass."""

labels_changed = Predicate(_metadata_differs("labels"))
annotations_changed = Predicate(_metadata_differs("annotations"))
finalizers_changed = Predicate(_metadata_differs("finalizers"))

spec_or_metadata_changed = generation_changed | labels_changed | annotations_changed | finalizers_changed
"""Changes that people make; one's own status writes do not pass."""


def annotation_changed(name: str) -> Predicate:
    """One annotation came, went or has another value."""

    def test(old: Object, new: Object) -> bool:
        before = (old["metadata"].get("annotations") or {}).get(name)
        after = (new["metadata"].get("annotations") or {}).get(name)
        return bool(before != after)

    return Predicate(test)


def fields_changed(*fields: str) -> Predicate:
    """One of these top-level fields differs, such as `data` of a Secret."""
    return Predicate(lambda old, new: any(old.get(field) != new.get(field) for field in fields))
