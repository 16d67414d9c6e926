"""Deleting what left a set: only what is provably ours, and in stages, so that what finalizes an object outlives it.

An object is ours when the server says so at this moment, not a cache: it carries the label of our set and, where the
inventory remembers a uid, has that uid. Anything else that bears the name of a member was made or taken by somebody
else, and is left alone and forgotten. The delete carries the uid and the version that were looked at.

A stage begins when all of the one before is gone. Custom resources and definitions go before the workloads that may
have to finalize them, workloads before what they need, namespaces last.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import orjson

from hortus.engine.applysets.adoption import is_bootstrapping
from hortus.engine.applysets.clients import SetClient
from hortus.engine.applysets.content import Contents
from hortus.engine.applysets.inventory import Inventory, InventoryEntry, Member
from hortus.engine.applysets.ordering import is_definition
from hortus.engine.applysets.parallel import each
from hortus.engine.applysets.policy import Policy
from hortus.engine.applysets.readiness import readiness
from hortus.engine.applysets.report import ObjectAction, ObjectOutcome
from hortus.engine.applysets.resources import Kinds, UnreadableKinds
from hortus.engine.scope import current_scope
from hortus.engine.within import within
from hortus.kube.clock import Clock
from hortus.kube.errors import Conflict, KubeError, NotFound, NotServed
from hortus.kube.objects import Object, Resource

_LOOKS = 5
"""Attempts in one run for an object that changes between the look and its deletion."""
_REMEMBERED = (ObjectAction.FAILED, ObjectAction.HELD, ObjectAction.PENDING, ObjectAction.PRUNING, ObjectAction.WAITING)
"""A later run has to come back to these."""


class Pruning:
    """Prunes for one set; with `dry_run` it asks the server for everything and has it do nothing."""

    def __init__(
        self, client: SetClient, kinds: Kinds, *, identity: str, policy: Policy, clock: Clock, dry_run: bool = False
    ) -> None:
        self._client = client
        self._kinds = kinds
        self._contents = Contents(client, kinds)
        self._identity = identity
        self._policy = policy
        self._clock = clock
        self._dry_run = dry_run

    async def prune(self, leaving: Inventory) -> tuple[list[ObjectOutcome], dict[Member, InventoryEntry]]:
        """Delete the members of `leaving` stage by stage; what became of them, and those still to remember."""
        outcomes: list[ObjectOutcome] = []
        before: Member | None = None
        """A member that is not gone yet: later stages wait, because it may need them to go."""

        def place(item: tuple[Member, InventoryEntry]) -> int:
            return self._policy.stage(item[1].resource(item[0]))

        for _, group in groupby(sorted(leaving.items(), key=lambda item: (place(item), item[0])), key=place):
            items = list(group)
            if before is not None and not self._dry_run:
                outcomes += [
                    _outcome(member, ObjectAction.WAITING, f"it is deleted when {before} is gone")
                    for member, _ in items
                ]
                continue
            found = [one for one in await each(items, self._one, limit=self._policy.parallel) if one is not None]
            outcomes += found if before is None else [_put_off(one, before) for one in found]
            before = before or next((one.member for one in found if one.action in _REMEMBERED and one.blocks), None)
        return outcomes, {one.member: leaving[one.member] for one in outcomes if one.action in _REMEMBERED}

    async def _one(self, item: tuple[Member, InventoryEntry]) -> ObjectOutcome | None:
        """The outcome for one member; None when it is gone already."""
        member, entry = item
        try:
            for _ in range(_LOOKS):
                try:
                    return await self._attempt(member, entry)
                except Conflict:
                    continue  # it was changed since we looked: it may be another's by now
            return await self._attempt(member, entry)
        except KubeError as error:
            if isinstance(error, NotFound) and not isinstance(error, NotServed):
                return None
            return ObjectOutcome(
                member=member, action=ObjectAction.FAILED, message=f"{member}: not deleted: {error}", error=error
            )

    async def _attempt(self, member: Member, entry: InventoryEntry) -> ObjectOutcome | None:
        resource, live = await self._find(member, entry)
        if live is None:
            return None
        if (foreign := self._foreign(live, entry)) is not None:
            return _outcome(member, ObjectAction.KEPT, foreign)
        if live["metadata"].get("deletionTimestamp"):
            return _outcome(member, ObjectAction.PRUNING, "it is being deleted, and its finalizers hold it", live)
        if entry.undo:
            return await self._restored(member, entry, resource, live)
        if not self._policy.prune_content and (content := await self._contents.of(member, live)) is not None:
            why = f"it holds {content.text}: remove that first, or allow prune_content"
            return _outcome(member, ObjectAction.HELD, why, live, blocks=content.finalized)
        metadata = live["metadata"]
        answer = await self._client.delete(
            resource,
            member.name,
            member.namespace,
            propagation=self._policy.propagation,
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
            dry_run=self._dry_run,
        )
        # kube-apiserver returns a deleted Service, ServiceAccount and some others in their last state, not a Status.
        gone = answer.get("kind") == "Status" or not answer["metadata"].get("deletionTimestamp")
        if self._dry_run:
            return _outcome(
                member, ObjectAction.PENDING, "would be deleted", live, blocks=bool(metadata.get("finalizers"))
            )
        if gone or (is_definition(resource) and await self._goes(resource, answer)):
            return _outcome(member, ObjectAction.PRUNED, "deleted")
        return _outcome(member, ObjectAction.PRUNING, "deleted, and its finalizers hold it", answer)

    async def _restored(self, member: Member, entry: InventoryEntry, resource: Resource, live: Object) -> ObjectOutcome:
        """Give an object that was there before the set what it had."""
        if self._dry_run:
            return _outcome(member, ObjectAction.PENDING, "would get back what it had before", live, blocks=False)
        former = orjson.loads(entry.undo)
        former.setdefault("metadata", {})["resourceVersion"] = live["metadata"]["resourceVersion"]
        await self._client.patch(resource, member.name, former, member.namespace)
        return _outcome(member, ObjectAction.RESTORED, "it stays, with what it had before", live)

    async def _find(self, member: Member, entry: InventoryEntry) -> tuple[Resource, Object | None]:
        """The object as the server has it now, where its kind is served now; None when it is known to be gone."""
        resource = entry.resource(member)
        try:
            return resource, await self._client.get(resource, member.name, member.namespace)
        except NotServed:
            pass  # its version is served no more, or its server is away
        except NotFound:
            return resource, None
        kind = f"{member.kind}.{member.group}" if member.group else member.kind
        served = await self._kinds.named(kind, fresh=True)
        if served is None:
            return resource, None
        if served == resource:
            raise UnreadableKinds(f"the server says that it serves {kind} in {served.version}, and does not")
        return served, await self._client.get(served, member.name, member.namespace)

    def _foreign(self, live: Object, entry: InventoryEntry) -> str | None:
        if is_bootstrapping(live):
            return "Kubernetes itself keeps it"
        marking = self._policy.marking
        found = marking.owner(live)
        if found != self._identity and (found or marking.required):
            return "it is part of another set now" if found else "it is not marked as part of this set any more"
        if entry.uid and live["metadata"].get("uid") != entry.uid:
            return "somebody else has created it again"
        return None

    async def _goes(self, resource: Resource, definition: Object) -> bool:
        """True when a definition is gone soon, which the server sees to by itself when nothing holds its objects."""
        scope = current_scope()
        if scope is not None and scope.step_aside is not None:
            scope.step_aside()
        try:
            await within(self._clock, self._policy.wait, self._client.until_gone(resource, definition))
        except (OSError, KubeError):
            return False
        return True


def not_whole(leaving: Iterable[Member], given: int, held: int) -> list[ObjectOutcome]:
    """The outcomes of members that are left alone because what was given may be only a part of what is wanted."""
    why = f"it stays: the set has {held} members and was given {given} objects; if that is all of it, say whole=True"
    return [_outcome(member, ObjectAction.HELD, why) for member in sorted(leaving)]


def _put_off(outcome: ObjectOutcome, before: Member) -> ObjectOutcome:
    if outcome.action is not ObjectAction.PENDING:
        return outcome
    return _outcome(outcome.member, ObjectAction.PENDING, f"would be deleted, when {before} is gone")


def _outcome(
    member: Member, action: ObjectAction, why: str, live: Object | None = None, *, blocks: bool = True
) -> ObjectOutcome:
    return ObjectOutcome(
        member=member, action=action, readiness=readiness(live), message=f"{member}: {why}", blocks=blocks
    )
