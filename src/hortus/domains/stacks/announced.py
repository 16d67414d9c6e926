"""Problems that were announced by Events, so that each is announced once and not with every reconcile.

An Event is a write. A problem that stays, such as a release with a name that cannot be read, makes none at rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hortus.domains.stacks.context import StackContext
from hortus.kube.objects import ObjectKey


class AnnouncedProblems:
    """The problems of the objects of one controller, as this process has announced them."""

    def __init__(self) -> None:
        self._known: dict[ObjectKey, dict[str, tuple[str, frozenset[str]]]] = {}

    def warn(self, context: StackContext[Any], reason: str, problems: Iterable[str]) -> None:
        """Record a Warning for each problem that the object did not have at its last reconcile."""
        uid, found = context.object.metadata.uid, frozenset(problems)
        of_object = self._known.setdefault(context.key, {})
        known_uid, before = of_object.get(reason, ("", frozenset()))
        for problem in sorted(found - (before if known_uid == uid else frozenset())):
            context.warn(reason, problem)
        of_object[reason] = uid, found

    def forget(self, key: ObjectKey) -> None:
        """The object is gone."""
        self._known.pop(key, None)


__all__ = ["AnnouncedProblems"]
