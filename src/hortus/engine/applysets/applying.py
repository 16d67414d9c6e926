"""Making a cluster hold a set of objects, and nothing that was of the set before.

One run: load the inventory, look at what is there, remember the union, apply in order, prune in stages, remember what
is left. Each step may be repeated, and the process killed after any of them (`inventory` says why nothing is lost). A
set at rest, with its members watched, costs the one read of its parent, or none where the parent is cached.

A plan is the same run with every write sent as a dry run and the parent left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

import structlog

from hortus.engine.apply import Applier
from hortus.engine.applysets.adoption import (
    LARGEST_UNDO,
    AdoptionClaim,
    ForeignObject,
    FoundObjects,
    holder_of,
    is_bootstrapping,
    undo_of,
)
from hortus.engine.applysets.clients import ClusterClient, SetClient
from hortus.engine.applysets.drift import FieldDrift, drift
from hortus.engine.applysets.inventory import Inventory, InventoryEntry, Member, entry_of, member_of
from hortus.engine.applysets.live import Live, ServerLive
from hortus.engine.applysets.ordering import rank
from hortus.engine.applysets.parallel import each
from hortus.engine.applysets.parents import Parent
from hortus.engine.applysets.policy import Conflicts, Policy
from hortus.engine.applysets.pruning import Pruning, not_whole
from hortus.engine.applysets.readiness import readiness
from hortus.engine.applysets.report import ApplyReport, ObjectAction, ObjectOutcome
from hortus.engine.applysets.resources import DiscoveredKinds, Kinds, UnknownKind
from hortus.engine.applysets.wanted import BINDINGS, ROLES, Wanted, wanted_of
from hortus.engine.scope import current_scope
from hortus.engine.within import within
from hortus.kube import Client
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.errors import ApiError, KubeError, NotFound
from hortus.kube.objects import Object, Resource

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_SERVED_PAUSE = 0.1
"""Seconds between two looks for a kind whose definition is Established: discovery has no watch."""


class _Accepted(NamedTuple):
    """An object that may be applied."""

    wanted: Wanted
    live: Object | None
    entry: InventoryEntry
    """The entry to store before it is applied: without a uid as long as it is not marked as ours."""
    taken_over: bool = False
    """True for one that was somebody else's until now."""


class ApplySet:
    """One set of objects in one cluster, remembered by its parent."""

    def __init__(
        self,
        client: SetClient,
        parent: Parent,
        *,
        kinds: Kinds,
        policy: Policy,
        live: Live | None = None,
        field_manager: str = "hortus",
        clock: Clock | None = None,
    ) -> None:
        """`live` is where the set looks before it acts; without one every object is asked of the server."""
        self._client = client
        self._parent = parent
        self._kinds = kinds
        self._live: Live = live if live is not None else ServerLive(client)
        self._field_manager = field_manager
        self._applier = Applier(client, field_manager=field_manager)
        self._policy = policy
        self._clock: Clock = clock or SystemClock()

    @classmethod
    def of(
        cls,
        client: Client,
        parent: Parent,
        *,
        policy: Policy,
        live: Live | None = None,
        field_manager: str = "hortus",
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

    async def apply(self, objects: Sequence[Object], *, whole: bool = False) -> ApplyReport:
        """Make the cluster hold `objects`. Failures of objects are in the report, and then nothing is pruned.

        `whole` says that `objects` are all there are, however few: without it nothing is pruned when they are none, or
        less than half of the set, as after a file that was cut off. Raises KubeError when the parent or what the
        cluster serves cannot be read, ForeignParent when the parent is somebody else's.
        """
        return await self._run(objects, whole=whole, dry_run=False)

    async def plan(self, objects: Sequence[Object], *, whole: bool = False) -> ApplyReport:
        """The report that `apply` would give, with drift by field; nothing is written."""
        return await self._run(objects, whole=whole, dry_run=True)

    async def _run(self, objects: Sequence[Object], *, whole: bool, dry_run: bool) -> ApplyReport:
        stored = await self._stored()
        wanted, refused = await self._wanted(objects)
        report = ApplyReport(_refusal(obj, error) for obj, error in refused)
        accepted = self._accepted(await self._found(wanted), stored, report)
        failed = {outcome.member for outcome in report.failures}
        denied = [one for one in wanted if one.member in failed and (one.foundation or one.member.kind in ROLES)]
        if self._policy.try_first and not dry_run:
            trial = ApplyReport(report.outcomes)
            await self._apply_all(accepted, denied, trial, dry_run=True)
            if trial.failures:
                trial.tried_only = True
                return trial
        before = {item.wanted.member: item.entry for item in accepted}
        if not dry_run:
            await self._parent.store(stored | before)

        entries = await self._apply_all(accepted, denied, report, dry_run=dry_run)
        members = {one.member for one in wanted}
        kept = {member: entry for member, entry in stored.items() if member not in members}
        if not (whole or not kept or (objects and 2 * len(objects) >= len(stored))):
            report.outcomes += not_whole(kept, len(objects), len(stored))
        elif self._policy.prune and not report.of(ObjectAction.FAILED, ObjectAction.WAITING):
            outcomes, kept = await self._pruning(dry_run=dry_run).prune(kept)
            report.outcomes += outcomes
        refused_ones = {member: stored[member] for member in members if member in stored and member not in entries}
        if not dry_run:
            await self._parent.store({**refused_ones, **kept, **entries})
        return report

    async def prune(self, objects: Sequence[Object]) -> ApplyReport:
        """Delete what is not among `objects` and apply nothing, for a contract that prunes first.

        Nothing is deleted as long as one of `objects` cannot be applied: it may be a member under another name.
        """
        stored = await self._stored()
        wanted, refused = await self._wanted(objects)
        if refused:
            return ApplyReport(_refusal(obj, error) for obj, error in refused)
        staying = {one.member for one in wanted}
        outcomes, kept = await self._pruning(dry_run=False).prune(
            {member: entry for member, entry in stored.items() if member not in staying}
        )
        await self._parent.store({**{member: stored[member] for member in stored if member in staying}, **kept})
        return ApplyReport(outcomes)

    async def delete(self) -> ApplyReport:
        """Delete every object of the set and, when all are gone, forget it. Repeat until `report.complete`."""
        stored = await self._stored()
        outcomes, kept = await self._pruning(dry_run=False).prune(stored)
        if kept:
            await self._parent.store(kept)
        else:
            await self._parent.remove()
        return ApplyReport(outcomes)

    async def _wanted(self, objects: Sequence[Object]) -> tuple[list[Wanted], list[tuple[Object, Exception]]]:
        return await wanted_of(
            objects,
            self._kinds,
            identity=self._parent.identity,
            namespace=self._parent.namespace,
            marking=self._policy.marking,
        )

    def _pruning(self, *, dry_run: bool) -> Pruning:
        return Pruning(
            self._client,
            self._kinds,
            identity=self._parent.identity,
            policy=self._policy,
            clock=self._clock,
            dry_run=dry_run,
        )

    # Looking.

    async def _stored(self) -> dict[Member, InventoryEntry]:
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
        self, found: list[tuple[Wanted, Object | KubeError | None]], stored: Inventory, report: ApplyReport
    ) -> list[_Accepted]:
        """The objects that may be applied, each with what to remember of it; the others are reported."""
        there = {one.member: live for one, live in found if live is not None and not isinstance(live, KubeError)}
        accepted: list[_Accepted] = []
        for one, live in found:
            if isinstance(live, KubeError):
                report.outcomes.append(_failure(one.member, live))
            elif live is None:
                accepted.append(_Accepted(one, None, entry_of(one.resource, "")))
            else:
                answer = self._judge(one, live, stored.get(one.member), there)
                if isinstance(answer, _Accepted):
                    accepted.append(answer)
                else:
                    report.outcomes.append(answer)
        return accepted

    def _judge(
        self, one: Wanted, live: Object, entry: InventoryEntry | None, there: FoundObjects
    ) -> _Accepted | ObjectOutcome:
        """The object with its entry, when it is ours or becomes so; else the outcome for one that stays another's."""
        uid = live["metadata"].get("uid", "")
        if is_bootstrapping(live):
            return _foreign(one.member, live, "it is a default of Kubernetes itself: choose another name")
        owner = self._policy.marking.owner(live)
        if owner == self._parent.identity or (not owner and self._remembers(entry, uid)):
            undo = entry.undo if entry is not None and entry.uid == uid else ""
            return _Accepted(one, live, entry_of(one.resource, uid, undo=undo))
        match self._policy.adopt.claim(one.member, live, owner, there):
            case AdoptionClaim.OURS:
                return _Accepted(one, live, entry_of(one.resource, ""), taken_over=True)
            case AdoptionClaim.GRANTED:
                undo = undo_of(live, one.config)
                if len(undo) > LARGEST_UNDO:
                    problem = f"what it holds could not be put back: {len(undo)} bytes of at most {LARGEST_UNDO}"
                    return _foreign(one.member, live, problem)
                return _Accepted(one, live, entry_of(one.resource, uid, undo=undo), taken_over=True)
            case AdoptionClaim.USED:
                return ObjectOutcome(member=one.member, action=ObjectAction.UNCHANGED, readiness=readiness(live))
        if owner:
            problem = f"it is part of {self._policy.marking.title(owner)}: remove it from there first"
        else:
            problem = f"it exists and {holder_of(live)}: {self._policy.adopt.remedy(one.member)}"
        return _foreign(one.member, live, problem)

    def _remembers(self, entry: InventoryEntry | None, uid: str) -> bool:
        """True for an object of the inventory, which has lost its mark."""
        if entry is None:
            return False
        return entry.uid == uid if entry.uid else self._policy.by_name

    def _drift(self, one: Wanted, live: Object | None) -> tuple[FieldDrift, ...]:
        if live is None:
            return ()
        return tuple(drift(live, one.config, field_manager=self._field_manager))

    # Applying.

    async def _apply_all(
        self, accepted: list[_Accepted], denied: list[Wanted], report: ApplyReport, *, dry_run: bool
    ) -> dict[Member, InventoryEntry]:
        """Apply in order, but nothing that needs one of `denied`; returns what to remember of each."""
        entries = {item.wanted.member: item.entry for item in accepted}
        missing = list(denied)
        for _, group in groupby(accepted, key=lambda item: rank(item.wanted.resource)):
            ready, waiting = _divided(list(group), missing)
            report.outcomes += [self._postponed(*item, dry_run=dry_run) for item in waiting]
            results = await each(ready, partial(self._apply_one, dry_run=dry_run), limit=self._policy.parallel)
            done = [(item.wanted, outcome, live) for item, (outcome, live) in zip(ready, results, strict=True)]
            for one, outcome, live in done:
                if live is not None:
                    uid, before = live["metadata"].get("uid", ""), entries[one.member]
                    entries[one.member] = entry_of(one.resource, uid, undo=before.undo if before.uid == uid else "")
                report.outcomes.append(outcome)
            failed = [one for one, outcome, _ in done if outcome.action is ObjectAction.FAILED]
            missing += [one for one in failed if one.member.kind in ROLES]
            foundations = [found for found in done if found[0].foundation]
            if dry_run:
                missing += [one for one, outcome, _ in foundations if not _usable(outcome)]
            else:
                missing += await self._not_ready(foundations)
        return entries

    def _postponed(self, one: Wanted, live: Object | None, foundation: Wanted, *, dry_run: bool) -> ObjectOutcome:
        """The outcome of an object whose namespace or definition is not ready, or, in a plan, would come first."""
        if dry_run and live is not None and self._applier.matches(live, one.config):
            return ObjectOutcome(member=one.member, action=ObjectAction.UNCHANGED, readiness=readiness(live))
        if dry_run:
            message = f"{one.member}: would be {'changed' if live else 'created'}, after {foundation.member}"
            return self._planned(one, live, message)
        message = f"{one.member}: waits for {foundation.member}"
        return ObjectOutcome(member=one.member, action=ObjectAction.WAITING, readiness=readiness(live), message=message)

    def _planned(self, one: Wanted, live: Object | None, message: str, *, takes_over: bool = False) -> ObjectOutcome:
        return ObjectOutcome(
            member=one.member,
            action=ObjectAction.PENDING,
            readiness=readiness(live),
            drift=self._drift(one, live),
            message=message,
            takes_over=takes_over,
        )

    async def _apply_one(self, item: _Accepted, *, dry_run: bool) -> tuple[ObjectOutcome, Object | None]:
        one, live = item.wanted, item.live
        if live is not None and live["metadata"].get("deletionTimestamp"):
            message = f"{one.member}: it is being deleted; it is made again when it is gone"
            return ObjectOutcome(
                member=one.member, action=ObjectAction.WAITING, readiness=readiness(live), message=message
            ), None
        if live is not None and self._applier.matches(live, one.config):
            return ObjectOutcome(member=one.member, action=ObjectAction.UNCHANGED, readiness=readiness(live)), live
        planned = self._planned(one, live, f"{one.member}: would be {_verb(item)}", takes_over=item.taken_over)
        try:
            written = await self._client.apply(
                one.resource,
                one.config if live is None else _with_uid(one.config, live),
                field_manager=self._field_manager,
                # Nothing is taken by force from an object that somebody makes after we looked.
                force=live is not None and self._policy.conflicts is Conflicts.FORCE,
                dry_run=dry_run,
            )
        except KubeError as error:
            if dry_run and one.member.kind in BINDINGS and isinstance(error, NotFound):
                return planned, live  # the server looks for the role, which comes first
            return _failure(one.member, error, self._drift(one, live)), None
        if dry_run:
            return planned, live
        if live is None and not self._is_created(written):
            await self._client.apply(one.resource, _bare(written), field_manager=self._field_manager, force=False)
            return _foreign(one.member, written, "somebody has made it just now"), None
        self._live.learn(one.resource, written)
        found = ObjectOutcome(
            member=one.member, action=ObjectAction.APPLIED, readiness=readiness(written), drift=self._drift(one, live)
        )
        return found, written

    def _is_created(self, written: Object) -> bool:
        """True when nobody else has fields in the answer to a first apply."""
        entries = written["metadata"].get("managedFields") or ()
        return all(one.get("manager") == self._field_manager or one.get("subresource") for one in entries)

    async def _not_ready(self, foundations: list[tuple[Wanted, ObjectOutcome, Object | None]]) -> list[Wanted]:
        """Wait for namespaces and definitions; returns those that are not ready in time."""
        if not foundations:
            return []
        return [one for one in await each(foundations, self._awaited, limit=self._policy.parallel) if one is not None]

    async def _awaited(self, item: tuple[Wanted, ObjectOutcome, Object | None]) -> Wanted | None:
        one, outcome, live = item
        if live is None:
            return one
        if _usable(outcome):
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


def _usable(foundation: ObjectOutcome) -> bool:
    return foundation.action is ObjectAction.UNCHANGED and foundation.readiness.ready


def _divided(
    items: list[_Accepted], missing: list[Wanted]
) -> tuple[list[_Accepted], list[tuple[Wanted, Object | None, Wanted]]]:
    """The objects that can be applied now; the others, each with the foundation or role that is not there for it."""
    ready: list[_Accepted] = []
    waiting: list[tuple[Wanted, Object | None, Wanted]] = []
    for item in items:
        needed = next((one for one in missing if item.wanted.needs(one)), None)
        if needed is None:
            ready.append(item)
        else:
            waiting.append((item.wanted, item.live, needed))
    return ready, waiting


def _verb(item: _Accepted) -> str:
    if item.live is None:
        return "created"
    return "taken over" if item.taken_over else "changed"


def _with_uid(config: Object, live: Object) -> Object:
    """The configuration for the object that was judged, and for no other of its name."""
    return {**config, "metadata": {**config["metadata"], "uid": live["metadata"]["uid"]}}


def _bare(written: Object) -> Object:
    """The configuration without a field, which gives up all that an unforced apply has added."""
    metadata = {field: written["metadata"].get(field) for field in ("name", "namespace", "uid")}
    identity = {field: written[field] for field in ("apiVersion", "kind")}
    return {**identity, "metadata": {field: value for field, value in metadata.items() if value}}


def _foreign(member: Member, live: Object, problem: str) -> ObjectOutcome:
    error = ForeignObject(str(member), problem)
    return ObjectOutcome(
        member=member, action=ObjectAction.FAILED, readiness=readiness(live), message=str(error), error=error
    )


def _refusal(obj: Object, error: Exception) -> ObjectOutcome:
    metadata = obj.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    member = Member(group, str(obj.get("kind") or ""), str(names.get("namespace") or ""), str(names.get("name") or ""))
    message = str(error) if str(member) in str(error) or not isinstance(error, UnknownKind) else f"{member}: {error}"
    return ObjectOutcome(member=member, action=ObjectAction.FAILED, message=message, error=error)


def _failure(member: Member, error: KubeError, found: tuple[FieldDrift, ...] = ()) -> ObjectOutcome:
    text = str(error)
    if member.kind == "Secret" and isinstance(error, ApiError):
        # The server quotes values.
        fields = [str(cause.get("field", "")) for cause in error.details.get("causes") or ()]
        text = f"{error.status_reason}: {', '.join(fields) or 'see the API server'}"
    return ObjectOutcome(
        member=member, action=ObjectAction.FAILED, drift=found, message=f"{member}: {text}", error=error
    )


__all__ = ["ApplySet", "ClusterClient", "SetClient"]
