"""One status write per reconcile, and none when nothing changed.

A reconcile drafts: it begins with a copy of the status in the cache, changes that as it goes along, and writes once at
its end. What is sent is the merge patch between what was there and what is wanted, so fields of others stay. A list,
conditions too, goes as a whole: where others write into the same list, `exclusive` sends the resource version along
and a newer object answers Conflict.
"""

from __future__ import annotations

from typing import Protocol

from hortus.engine.cache import Cache, copy_of
from hortus.engine.conditions import (
    ConditionStatus,
    mark_ready,
    mark_reconciling,
    mark_stalled,
    remove_condition,
    set_condition,
)
from hortus.kube import PatchKind
from hortus.kube.clock import Clock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource
from hortus.kube.patches import apply_merge_patch, merge_patch_between


class Patcher(Protocol):
    """The part of `hortus.kube.Client` that writing parts of objects uses."""

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Object,
        namespace: str = "",
        kind: PatchKind = PatchKind.MERGE,
        subresource: str = "",
        field_manager: str = "",
    ) -> Object: ...

    async def apply(
        self, resource: Resource, obj: Object, *, field_manager: str, force: bool = True, subresource: str = ""
    ) -> Object: ...


class StatusDraft:
    """The status of `live` to be, in `fields`; `write` sends what differs."""

    def __init__(self, live: Object, *, clock: Clock) -> None:
        self._live = live
        self._clock = clock
        self._before: Object = live.get("status") or {}
        self.fields: Object = copy_of(self._before)
        self.generation: int | None = live["metadata"].get("generation")

    def condition(self, kind: str, value: ConditionStatus, *, reason: str, message: str = "") -> bool:
        """Set one condition for the generation that was read; returns True when it differs."""
        return set_condition(
            self.fields,
            kind,
            value,
            reason=reason,
            message=message,
            generation=self.generation,
            now=self._clock.now(),
        )

    def without_condition(self, kind: str) -> bool:
        return remove_condition(self.fields, kind)

    def ready(self, *, reason: str, message: str = "") -> bool:
        """Ready; see `mark_ready`."""
        return mark_ready(
            self.fields, reason=reason, message=message, generation=self.generation, now=self._clock.now()
        )

    def reconciling(self, *, reason: str, message: str = "") -> bool:
        """On the way; see `mark_reconciling`."""
        return mark_reconciling(
            self.fields, reason=reason, message=message, generation=self.generation, now=self._clock.now()
        )

    def stalled(self, *, reason: str, message: str) -> bool:
        """Somebody has to act; see `mark_stalled`."""
        return mark_stalled(
            self.fields, reason=reason, message=message, generation=self.generation, now=self._clock.now()
        )

    def rebase(self, live: Object) -> None:
        """Draft the same changes over `live`, a later state of the object."""
        before: Object = live.get("status") or {}
        drafted = merge_patch_between(self._before, self.fields)
        self.fields = apply_merge_patch(copy_of(before), drafted)
        self._live, self._before = live, before

    @property
    def changed(self) -> bool:
        return self.fields != self._before

    def patch(self, *, exclusive: bool = False) -> Object | None:
        """The merge patch that makes the status so, or None when it is so already."""
        if not self.changed:
            return None
        body: Object = {"status": merge_patch_between(self._before, self.fields)}
        if exclusive:
            body["metadata"] = {"resourceVersion": self._live["metadata"]["resourceVersion"]}
        return body

    async def write(
        self,
        client: Patcher,
        resource: Resource,
        *,
        cache: Cache | None = None,
        field_manager: str = "",
        exclusive: bool = False,
    ) -> Object | None:
        """Send the patch when there is one and return the object then; `cache` learns it.

        None when nothing was written: nothing differed, or the object is gone and nobody can read its status.
        """
        body = self.patch(exclusive=exclusive)
        if body is None:
            return None
        metadata = self._live["metadata"]
        try:
            written = await client.patch(
                resource,
                metadata["name"],
                body,
                metadata.get("namespace", ""),
                PatchKind.MERGE,
                "status",
                field_manager,
            )
        except NotFound:
            return None
        self._learn(written, cache)
        return written

    async def apply(
        self, client: Patcher, resource: Resource, *, field_manager: str, cache: Cache | None = None
    ) -> Object | None:
        """The same by server-side apply of the whole status: every field of it has `field_manager` then."""
        if not self.changed:
            return None
        metadata = self._live["metadata"]
        names = {name: metadata[name] for name in ("name", "namespace", "uid") if metadata.get(name)}
        try:
            written = await client.apply(
                resource, {"metadata": names, "status": self.fields}, field_manager=field_manager, subresource="status"
            )
        except NotFound:
            return None
        self._learn(written, cache)
        return written

    def _learn(self, written: Object, cache: Cache | None) -> None:
        # The draft includes the fields that others wrote meanwhile: a later patch must not take them back.
        self._live, self._before = written, written.get("status") or {}
        self.fields = copy_of(self._before)
        if cache is not None:
            cache.learn(written)
