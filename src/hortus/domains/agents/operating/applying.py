"""Applies the objects of one agent: all or none pass a dry run, each is recorded before it exists, then pruned.

Objects that the caches show as they should be cost no call, so that a reconcile without change makes none. A dry run
of the others comes first and collects all refusals; one of them, and nothing is written. The record of dependents
follows, then the objects, then what former sets had and this one lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from hortus.domains.agents.operating import dependents
from hortus.domains.agents.operating.dependents import Dependent, dependent_of
from hortus.domains.agents.operating.errors import AgentError, AgentPhase, ObjectFailure
from hortus.domains.agents.operating.objects import CONFIG_MAPS, FIELD_MANAGER, WITHOUT_CACHE, AgentObjects, resource_of
from hortus.engine.apply import Applier
from hortus.engine.applysets.parallel import each
from hortus.engine.typed import metadata_of
from hortus.kube import Client, Propagation
from hortus.kube.errors import Conflict, KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey, Resource

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
_PARALLEL: Final = 6
"""Calls at once for one agent."""

Spared = Callable[[Dependent], bool]
"""True for an object that leaves the set and must not be deleted."""


class _Record(msgspec.Struct):
    data: dict[str, str] | None = None


class AgentApplier:
    """Makes the cluster hold the objects of agents, and no others of theirs."""

    def __init__(self, client: Client, objects: AgentObjects) -> None:
        self._client = client
        self._objects = objects
        self._applier = Applier(client, field_manager=FIELD_MANAGER)

    # Applying.

    async def provide(self, wanted: Sequence[Object], record: Object, key: str, *, unchecked: Iterable[Object]) -> None:
        """Apply `wanted` and `unchecked`, once all are accepted and `record` holds `wanted` under `key`.

        `record` is the dependents ConfigMap without data; `unchecked` are objects that their owner alone deletes.
        Raises AgentError.
        """
        differing = await self._differing([*wanted, *unchecked])
        await self._each(differing, AgentPhase.DRY_RUN)
        history, before = await self._history(record)
        await self._store(record, dependents.recorded(history, key, dependents.entries_of(wanted)), before)
        await self._each(differing, AgentPhase.APPLY)

    async def _differing(self, objects: Iterable[Object]) -> list[Object]:
        """The objects that the cluster does not hold as they are. Raises AgentError."""
        return [obj for obj in objects if not (self._matches(obj) or await self._matches_uncached(obj))]

    def _matches(self, obj: Object) -> bool:
        live = self._objects.live(obj)
        return live is not None and self._applier.matches(live, obj)

    async def _matches_uncached(self, obj: Object) -> bool:
        """Compares an object of a kind without a cache, at the cost of one request."""
        one = dependent_of(obj)
        resource = self._resource(obj)
        if resource not in WITHOUT_CACHE:
            return False
        try:
            live = await self._client.get(resource, one.name, one.namespace)
        except NotFound:
            return False
        except KubeError as error:
            raise AgentError([ObjectFailure(AgentPhase.READ, one, error)]) from error
        return self._applier.matches(live, obj)

    async def _each(self, objects: Sequence[Object], phase: AgentPhase) -> None:
        """Apply all; raises AgentError with all failures."""

        dry_run = phase is AgentPhase.DRY_RUN
        waves = [[obj for obj in objects if _is_binding(obj) is last] for last in (False, True)]

        async def one(obj: Object) -> ObjectFailure | None:
            try:
                await self._apply(obj, dry_run=dry_run)
            except KubeError as error:
                if dry_run and isinstance(error, NotFound) and _is_binding(obj):
                    return None  # its role is of the same set: it was tried, and is made first
                return ObjectFailure(phase, dependent_of(obj), error)
            return None

        found = [await each(wave, one, limit=_PARALLEL) for wave in waves]
        failures = [failure for wave in found for failure in wave if failure is not None]
        if failures:
            raise AgentError(failures)

    async def _apply(self, obj: Object, *, dry_run: bool) -> None:
        resource = self._resource(obj)
        written = await self._client.apply(resource, obj, field_manager=FIELD_MANAGER, dry_run=dry_run)
        if not dry_run and resource in self._objects.caches:
            self._objects.caches[resource].learn(written)

    def _resource(self, obj: Object) -> Resource:
        resource = resource_of(dependent_of(obj))
        assert resource is not None, "builders make objects of known kinds"
        return resource

    async def check(self, objects: Sequence[Object]) -> None:
        """Try all objects without writing any. Raises AgentError."""
        await self._each(await self._differing(objects), AgentPhase.DRY_RUN)

    async def share(self, obj: Object) -> None:
        """Apply one object that others go on to use. Raises AgentError."""
        if not self._matches(obj):
            await self._each([obj], AgentPhase.APPLY)

    # The record.

    async def _history(self, record: Object) -> tuple[dependents.History, dict[str, str]]:
        """The history as the server has it, and its text. Raises AgentError."""
        live = self._objects.live(record)
        if live is None:
            metadata = metadata_of(record)
            try:
                live = await self._client.get(CONFIG_MAPS, metadata.name, metadata.namespace)
            except NotFound:
                return {}, {}
            except KubeError as error:
                raise AgentError([ObjectFailure(AgentPhase.READ, dependent_of(record), error)]) from error
        before = msgspec.convert(live, _Record).data or {}
        return dependents.decode(before).history, before

    async def _store(self, record: Object, history: dependents.History, before: dict[str, str]) -> None:
        data = dependents.encode(history, before)
        config = {**record, "data": data}
        if not self._matches(config):
            await self._each([config], AgentPhase.RECORD)

    # Pruning.

    async def prune(self, wanted: Iterable[Object], record: Object, key: str, spared: Spared) -> bool:
        """Delete what former sets had and `wanted` lacks; True when nothing of it remains. Raises AgentError.

        What somebody else made under that name stays, and so does what `spared` names; both are forgotten.
        """
        history, before = await self._history(record)
        left = dependents.left_over(history, dependents.entries_of(wanted))
        remaining = await self.delete([one for one in left if not spared(one)])
        settled = dependents.settled(history, key, remaining)
        if settled != history:
            await self._store(record, settled, before)
        return not remaining

    async def recorded(self, record: Object) -> set[Dependent]:
        """All objects that the history names. Raises AgentError."""
        history, _ = await self._history(record)
        if _owner_kind(self._objects.live(record)) not in ("", _owner_kind(record)):
            return set()
        return {one for entries in history.values() for one in entries}

    def known(self, record: ObjectKey) -> set[Dependent]:
        """All objects that the history of another agent names, as the cache has it."""
        live = self._objects.get(CONFIG_MAPS, record.namespace, record.name)
        if live is None:
            return set()
        history = dependents.decode(msgspec.convert(live, _Record).data or {}).history
        return {one for entries in history.values() for one in entries}

    async def delete(self, leaving: Sequence[Dependent]) -> set[Dependent]:
        """Delete these; returns those that are not gone yet, since finalizers hold them. Raises AgentError."""
        failures: list[ObjectFailure] = []

        async def one(leaving_one: Dependent) -> bool:
            try:
                return await self._delete(leaving_one)
            except KubeError as error:
                failures.append(ObjectFailure(AgentPhase.PRUNE, leaving_one, error))
                return True

        gone = await each(leaving, one, limit=_PARALLEL)
        if failures:
            raise AgentError(sorted(failures, key=lambda failure: failure.object))
        return {object_ for object_, is_gone in zip(leaving, gone, strict=True) if not is_gone}

    async def _delete(self, one: Dependent) -> bool:
        """Delete one object unless somebody else made it; True when it is gone, or not ours."""
        resource = resource_of(one)
        if resource is None:
            return True
        for attempt in range(2):
            try:
                live = metadata_of(await self._client.get(resource, one.name, one.namespace))
                if live.labels.get(MANAGED_BY) != FIELD_MANAGER:
                    return True
                if live.deletion_timestamp:
                    return False
                await self._client.delete(
                    resource, one.name, one.namespace, propagation=Propagation.BACKGROUND, uid=live.uid
                )
                after = metadata_of(await self._client.get(resource, one.name, one.namespace))
                return after.uid != live.uid
            except NotFound:
                return True
            except Conflict:
                if attempt:
                    raise
        return False


def _is_binding(obj: Object) -> bool:
    return dependent_of(obj).kind.endswith("RoleBinding")


def _owner_kind(record: Object | None) -> str:
    """The kind of the agent that a record belongs to; empty where it has no owner."""
    owners = metadata_of(record).owner_references if record is not None else ()
    return next((one.kind for one in owners if one.controller), "")


__all__ = ["AgentApplier", "Spared"]
