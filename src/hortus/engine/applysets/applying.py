"""Making a cluster hold a set of objects, and nothing that was of the set before.

One run: load the inventory, look at what is there, remember the union, apply in order, prune in reverse, remember what
is left. Each step may be repeated, and the process killed after any of them (`inventory` says why nothing is lost). A
set at rest, with its members watched, costs the one read of its parent, or none where the parent is cached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Protocol

import structlog

from hortus.engine.apply import Applier
from hortus.engine.applysets.drift import FieldDrift, drift
from hortus.engine.applysets.identity import PART_OF, part_of
from hortus.engine.applysets.inventory import Entry, Inventory, Member, entry_of, member_of
from hortus.engine.applysets.live import Live, ServerLive
from hortus.engine.applysets.ordering import rank
from hortus.engine.applysets.parallel import each
from hortus.engine.applysets.parents import Parent
from hortus.engine.applysets.policy import Conflicts, Policy
from hortus.engine.applysets.pruning import PruneClient, Pruning
from hortus.engine.applysets.readiness import readiness
from hortus.engine.applysets.report import Action, Outcome, Report
from hortus.engine.applysets.resources import DiscoveredKinds, Kinds, UnknownKind
from hortus.engine.applysets.wanted import Wanted, wanted_of
from hortus.engine.scope import current_scope
from hortus.engine.within import within
from hortus.kube import Client
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.errors import ApiError, KubeError, NotFound
from hortus.kube.objects import Object, Resource

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_SERVED_PAUSE = 0.1
"""Seconds between two looks for a kind whose definition is Established: discovery has no watch."""


class SetClient(PruneClient, Protocol):
    """What a set needs of a cluster; `ClusterClient` is one over `hortus.kube.Client`."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...

    async def apply(self, resource: Resource, obj: Object, *, field_manager: str, force: bool = True) -> Object: ...

    async def list_marked(self, resource: Resource, identity: str) -> list[Object]:
        """The metadata of all objects that are marked as part of that set."""

    async def until(self, resource: Resource, obj: Object, holds: Callable[[Object], bool]) -> None:
        """Return when `holds` is true of the object, beginning after the given state of it."""


class ClusterClient:
    """A cluster as sets see it: the management cluster, or one of a `hortus.engine.remote.RemotePool`."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.get, self.apply, self.delete = client.get, client.apply, client.delete

    async def list_some(self, resource: Resource, namespace: str, limit: int) -> list[Object]:
        page = await anext(self.client.pages(resource, namespace, limit=limit, metadata_only=True))
        return page.items

    async def list_marked(self, resource: Resource, identity: str) -> list[Object]:
        return (await self.client.list(resource, labels=f"{PART_OF}={identity}", metadata_only=True)).items

    async def until(self, resource: Resource, obj: Object, holds: Callable[[Object], bool]) -> None:
        metadata = obj["metadata"]
        watch = self.client.watch(resource, resource_version=metadata["resourceVersion"], name=metadata["name"])
        async with watch as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED") and holds(event.object):
                    return


class ApplySet:
    """One set of objects in one cluster, remembered by its parent."""

    def __init__(
        self,
        client: SetClient,
        parent: Parent,
        *,
        kinds: Kinds,
        live: Live | None = None,
        field_manager: str = "hortus",
        policy: Policy | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`live` is where the set looks before it acts; without one every object is asked of the server."""
        self._client = client
        self._parent = parent
        self._kinds = kinds
        self._live: Live = live if live is not None else ServerLive(client)
        self._field_manager = field_manager
        self._applier = Applier(client, field_manager=field_manager)
        self._policy = policy or Policy()
        self._clock: Clock = clock or SystemClock()

    @classmethod
    def of(
        cls,
        client: Client,
        parent: Parent,
        *,
        live: Live | None = None,
        field_manager: str = "hortus",
        policy: Policy | None = None,
        clock: Clock | None = None,
    ) -> ApplySet:
        """A set in the cluster of `client`, whose kinds are found by discovery."""
        return cls(
            ClusterClient(client),
            parent,
            kinds=DiscoveredKinds(client),
            live=live,
            field_manager=field_manager,
            policy=policy,
            clock=clock,
        )

    async def apply(self, objects: Sequence[Object]) -> Report:
        """Make the cluster hold `objects`. Failures of objects are in the report, and then nothing is pruned.

        Raises KubeError when the parent cannot be read or written, ForeignParent when it is another tool's.
        """
        stored = await self._stored()
        wanted, refused = await wanted_of(
            objects, self._kinds, identity=self._parent.identity, namespace=self._parent.namespace
        )
        report = Report(_refusal(obj, error) for obj, error in refused)
        found = await self._found(wanted)
        accepted = self._accepted(found, stored, report)
        await self._parent.store(stored | {one.member: self._entry(one, live) for one, live in accepted})

        entries = await self._apply_all(accepted, report)
        members = {one.member for one in wanted}
        kept = {member: entry for member, entry in stored.items() if member not in members}
        if self._policy.prune and not report.of(Action.FAILED, Action.WAITING):
            outcomes, kept = await self._pruning().prune(kept)
            report.outcomes += outcomes
        refused_ones = {member: stored[member] for member in members if member in stored and member not in entries}
        await self._parent.store({**refused_ones, **kept, **entries})
        return report

    async def plan(self, objects: Sequence[Object]) -> Report:
        """What `apply` would find, without writing: drift by field, what would be created and pruned."""
        stored = await self._stored()
        wanted, refused = await wanted_of(
            objects, self._kinds, identity=self._parent.identity, namespace=self._parent.namespace
        )
        report = Report(_refusal(obj, error) for obj, error in refused)
        for one, live in self._accepted(await self._found(wanted), stored, report):
            matches = live is not None and self._applier.matches(live, one.config)
            report.outcomes.append(
                Outcome(
                    member=one.member,
                    action=Action.UNCHANGED if matches else Action.PENDING,
                    readiness=readiness(live),
                    drift=self._drift(one, live),
                    message="" if matches else f"{one.member}: would be {'changed' if live else 'created'}",
                )
            )
        members = {one.member for one in wanted}
        for member in sorted(stored):
            if member not in members:
                report.outcomes.append(
                    Outcome(member=member, action=Action.PENDING, message=f"{member}: would be deleted")
                )
        return report

    async def delete(self) -> Report:
        """Delete every object of the set and, when all are gone, forget it. Repeat until `report.complete`."""
        stored = await self._stored()
        outcomes, kept = await self._pruning().prune(stored)
        if kept:
            await self._parent.store(kept)
        else:
            await self._parent.remove()
        return Report(outcomes)

    def _pruning(self) -> Pruning:
        return Pruning(self._client, self._live, self._kinds, identity=self._parent.identity, policy=self._policy)

    # Looking.

    async def _stored(self) -> dict[Member, Entry]:
        """The inventory, and what another tool has marked as part of the set."""
        stored = dict(await self._parent.load())
        for group_kind in self._parent.shared_kinds:
            resource = await self._kinds.named(group_kind)
            if resource is not None:
                for obj in await self._client.list_marked(resource, self._parent.identity):
                    stored.setdefault(member_of(resource, obj), entry_of(resource, obj["metadata"].get("uid", "")))
        return stored

    async def _found(self, wanted: list[Wanted]) -> list[tuple[Wanted, Object | KubeError | None]]:
        return list(zip(wanted, await each(wanted, self._look, limit=self._policy.parallel), strict=True))

    async def _look(self, one: Wanted) -> Object | KubeError | None:
        try:
            return await self._live.get(one.resource, one.member.namespace, one.member.name)
        except NotFound:
            return None
        except KubeError as error:
            return error

    def _accepted(
        self, found: list[tuple[Wanted, Object | KubeError | None]], stored: Inventory, report: Report
    ) -> list[tuple[Wanted, Object | None]]:
        """Those that may be applied; the others are reported."""
        accepted: list[tuple[Wanted, Object | None]] = []
        for one, live in found:
            if isinstance(live, KubeError):
                report.outcomes.append(_failure(one.member, live))
            elif live is not None and (problem := self._foreign(one, live, stored)):
                report.outcomes.append(
                    Outcome(
                        member=one.member,
                        action=Action.FAILED,
                        readiness=readiness(live),
                        message=f"{one.member}: {problem}",
                    )
                )
            else:
                accepted.append((one, live))
        return accepted

    def _foreign(self, one: Wanted, live: Object, stored: Inventory) -> str:
        found = part_of(live)
        if found and found != self._parent.identity:
            return f"it is part of the set {found}: remove it from there first"
        if not found and not self._policy.adopt and one.member not in stored:
            return "it exists and is part of no set: delete it, or allow adopt"
        return ""

    def _entry(self, one: Wanted, live: Object | None) -> Entry:
        """What to remember before applying: the uid of what is ours already, none for what may come to be."""
        ours = live is not None and part_of(live) == self._parent.identity
        return entry_of(one.resource, live["metadata"].get("uid", "") if live is not None and ours else "")

    def _drift(self, one: Wanted, live: Object | None) -> tuple[FieldDrift, ...]:
        if live is None:
            return ()
        return tuple(drift(live, one.config, field_manager=self._field_manager))

    # Applying.

    async def _apply_all(self, accepted: list[tuple[Wanted, Object | None]], report: Report) -> dict[Member, Entry]:
        """Apply in order; returns what to remember of each."""
        entries = {one.member: self._entry(one, live) for one, live in accepted}
        missing: list[Wanted] = []
        for _, group in groupby(accepted, key=lambda item: rank(item[0].resource)):
            ready, waiting = _divided(list(group), missing)
            report.outcomes += waiting
            results = await each(ready, self._apply_one, limit=self._policy.parallel)
            for (one, _), (outcome, live) in zip(ready, results, strict=True):
                if live is not None:
                    entries[one.member] = entry_of(one.resource, live["metadata"].get("uid", ""))
                report.outcomes.append(outcome)
            foundations = [
                (one, outcome, live) for (one, _), (outcome, live) in zip(ready, results, strict=True) if one.foundation
            ]
            missing += await self._not_ready(foundations)
        return entries

    async def _apply_one(self, item: tuple[Wanted, Object | None]) -> tuple[Outcome, Object | None]:
        one, live = item
        if live is not None and live["metadata"].get("deletionTimestamp"):
            message = f"{one.member}: it is being deleted; it is made again when it is gone"
            return Outcome(member=one.member, action=Action.WAITING, readiness=readiness(live), message=message), None
        if live is not None and self._applier.matches(live, one.config):
            return Outcome(member=one.member, action=Action.UNCHANGED, readiness=readiness(live)), live
        try:
            written = await self._client.apply(
                one.resource,
                one.config,
                field_manager=self._field_manager,
                force=self._policy.conflicts is Conflicts.FORCE,
            )
        except KubeError as error:
            return _failure(one.member, error, self._drift(one, live)), None
        self._live.learn(one.resource, written)
        found = Outcome(
            member=one.member, action=Action.APPLIED, readiness=readiness(written), drift=self._drift(one, live)
        )
        return found, written

    async def _not_ready(self, foundations: list[tuple[Wanted, Outcome, Object | None]]) -> list[Wanted]:
        """Wait for namespaces and definitions; returns those that are not ready in time."""
        if not foundations:
            return []
        return [one for one in await each(foundations, self._awaited, limit=self._policy.parallel) if one is not None]

    async def _awaited(self, item: tuple[Wanted, Outcome, Object | None]) -> Wanted | None:
        one, outcome, live = item
        if live is None:
            return one
        if outcome.action is Action.UNCHANGED and outcome.readiness.ready:
            return None
        scope = current_scope()
        if scope is not None and scope.step_aside is not None:
            scope.step_aside()
        try:
            await within(self._clock, self._policy.wait, self._until_usable(one, live))
        except (TimeoutError, KubeError) as error:
            _log.info("a set waits for what it needs", object=str(one.member), error=str(error))
            return one
        return None

    async def _until_usable(self, one: Wanted, live: Object) -> None:
        if not readiness(live).ready:
            await self._client.until(one.resource, live, lambda obj: readiness(obj).ready)
        if one.member.kind != "CustomResourceDefinition":
            return
        spec = one.config["spec"]
        for version in spec["versions"]:
            if version.get("served", True):
                await self._served(Resource(spec["group"], version["name"], "", spec["names"]["kind"]))

    async def _served(self, resource: Resource) -> None:
        while True:
            try:
                await self._kinds.resource(resource.gvk, fresh=True)
                return
            except UnknownKind:
                await self._clock.sleep(_SERVED_PAUSE)


def _divided(
    items: list[tuple[Wanted, Object | None]], missing: list[Wanted]
) -> tuple[list[tuple[Wanted, Object | None]], list[Outcome]]:
    """Those that can be applied now, and the outcomes of those whose namespace or definition is not ready."""
    ready: list[tuple[Wanted, Object | None]] = []
    waiting: list[Outcome] = []
    for one, live in items:
        needed = next((foundation for foundation in missing if one.needs(foundation)), None)
        if needed is None:
            ready.append((one, live))
        else:
            message = f"{one.member}: waits for {needed.member}"
            waiting.append(
                Outcome(member=one.member, action=Action.WAITING, readiness=readiness(live), message=message)
            )
    return ready, waiting


def _refusal(obj: Object, error: Exception) -> Outcome:
    metadata = obj.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    member = Member(group, str(obj.get("kind") or ""), str(names.get("namespace") or ""), str(names.get("name") or ""))
    message = str(error) if str(member) in str(error) or not isinstance(error, UnknownKind) else f"{member}: {error}"
    return Outcome(member=member, action=Action.FAILED, message=message, error=error)


def _failure(member: Member, error: KubeError, found: tuple[FieldDrift, ...] = ()) -> Outcome:
    text = str(error)
    if member.kind == "Secret" and isinstance(error, ApiError):
        # The server quotes values.
        fields = [str(cause.get("field", "")) for cause in error.details.get("causes") or ()]
        text = f"{error.status_reason}: {', '.join(fields) or 'see the API server'}"
    return Outcome(member=member, action=Action.FAILED, drift=found, message=f"{member}: {text}", error=error)


__all__ = ["ApplySet", "ClusterClient", "SetClient"]
