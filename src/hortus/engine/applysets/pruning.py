"""Deleting what left a set: only what is provably ours, workloads before what they need, nothing that still holds data.

An object is ours when it carries the label of our set and, where the inventory remembers a uid, has that uid. Anything
else that bears the name of a member was made or taken by somebody else, and is left alone and forgotten.
"""

from __future__ import annotations

from itertools import groupby
from typing import Protocol

from hortus.engine.applysets.identity import part_of
from hortus.engine.applysets.inventory import Entry, Inventory, Member
from hortus.engine.applysets.live import Live
from hortus.engine.applysets.ordering import is_foundation, rank
from hortus.engine.applysets.parallel import each
from hortus.engine.applysets.policy import Policy
from hortus.engine.applysets.readiness import NOT_FOUND, readiness
from hortus.engine.applysets.report import Action, Outcome
from hortus.engine.applysets.resources import Kinds
from hortus.kube import Propagation
from hortus.kube.errors import ApiError, KubeError, NotFound
from hortus.kube.objects import Object, Resource

_BORN_WITH = frozenset(
    (
        ("", "ConfigMap", "kube-root-ca.crt"),
        ("", "ConfigMap", "openshift-service-ca.crt"),
        ("", "ServiceAccount", "default"),
    )
)
"""What every namespace holds by itself."""
_NO_CONTENT = frozenset(
    (("", "Event"), ("events.k8s.io", "Event"), ("", "Endpoints"), ("coordination.k8s.io", "Lease"))
)


class PruneClient(Protocol):
    """What pruning needs of `hortus.kube.Client`."""

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        propagation: Propagation | None = None,
        uid: str = "",
    ) -> Object: ...

    async def list_some(self, resource: Resource, namespace: str, limit: int) -> list[Object]:
        """Up to `limit` objects."""


class Pruning:
    """Prunes for one set."""

    def __init__(self, client: PruneClient, live: Live, kinds: Kinds, *, identity: str, policy: Policy) -> None:
        self._client = client
        self._live = live
        self._kinds = kinds
        self._identity = identity
        self._policy = policy

    async def prune(self, leaving: Inventory) -> tuple[list[Outcome], dict[Member, Entry]]:
        """Delete the members of `leaving` in reverse order; what became of them, and those still to remember."""
        outcomes: list[Outcome] = []
        kept: dict[Member, Entry] = {}

        def place(item: tuple[Member, Entry]) -> int:
            return -rank(item[1].resource(item[0]))

        for _, group in groupby(sorted(leaving.items(), key=lambda item: (place(item), item[0])), key=place):
            items = list(group)
            if self._policy.prune_content and is_foundation(items[0][1].resource(items[0][0])) and _busy(outcomes):
                held = "what it may hold is not gone yet"
                outcomes += [_outcome(member, Action.PRUNING, held) for member, _ in items]
                kept |= items
                continue
            for (member, entry), outcome in zip(
                items, await each(items, self._one, limit=self._policy.parallel), strict=True
            ):
                if outcome is None:
                    continue
                outcomes.append(outcome)
                if outcome.action in (Action.FAILED, Action.PRUNING) or outcome.readiness is not NOT_FOUND:
                    kept[member] = entry
        return outcomes, kept

    async def _one(self, item: tuple[Member, Entry]) -> Outcome | None:
        member, entry = item
        resource = entry.resource(member)
        try:
            live = await self._live.get(resource, member.namespace, member.name)
            if live is None:
                return None
            if (foreign := self._foreign(live, entry)) is not None:
                return _outcome(member, Action.KEPT, foreign)
            if live["metadata"].get("deletionTimestamp"):
                return _outcome(member, Action.PRUNING, "it is being deleted, and its finalizers hold it", live)
            if not self._policy.prune_content and (content := await self._content(member, live)):
                return _outcome(
                    member, Action.KEPT, f"it holds {content}: remove that first, or allow prune_content", live
                )
            answer = await self._client.delete(
                resource,
                member.name,
                member.namespace,
                propagation=self._policy.propagation,
                uid=live["metadata"]["uid"],
            )
        except NotFound:
            return None
        except KubeError as error:
            return Outcome(member=member, action=Action.FAILED, message=f"{member}: not deleted: {error}", error=error)
        if answer.get("kind") == "Status":
            return _outcome(member, Action.PRUNED, "deleted")
        return _outcome(member, Action.PRUNING, "deleted, and its finalizers hold it", answer)

    def _foreign(self, live: Object, entry: Entry) -> str | None:
        found = part_of(live)
        if found != self._identity:
            return "it is part of another set now" if found else "it is not marked as part of this set any more"
        if entry.uid and live["metadata"].get("uid") != entry.uid:
            return "somebody else has made it anew"
        return None

    async def _content(self, member: Member, live: Object) -> str:
        """What a namespace or a definition holds, in words; "" when nothing, and for all other kinds."""
        if (member.group, member.kind) == ("apiextensions.k8s.io", "CustomResourceDefinition"):
            return await self._instances(live)
        if (member.group, member.kind) == ("", "Namespace"):
            return await self._objects_in(member.name)
        return ""

    async def _instances(self, definition: Object) -> str:
        spec = definition["spec"]
        version = next((one["name"] for one in spec["versions"] if one.get("served")), "")
        if not version:
            return ""
        resource = Resource(
            spec["group"], version, spec["names"]["plural"], spec["names"]["kind"], spec["scope"] != "Cluster"
        )
        try:
            found = await self._client.list_some(resource, "", 1)
        except NotFound:
            return ""
        return f"the {resource.kind} {_name(found[0])}" if found else ""

    async def _objects_in(self, namespace: str) -> str:
        for resource in await self._kinds.namespaced():
            if (resource.group, resource.kind) in _NO_CONTENT:
                continue
            try:
                found = await self._client.list_some(resource, namespace, 3)
            except ApiError as error:
                if error.http_code in (404, 405):
                    continue
                raise
            for obj in found:
                if (resource.group, resource.kind, obj["metadata"]["name"]) not in _BORN_WITH and not _is_born(obj):
                    return f"the {resource.kind} {obj['metadata']['name']}"
        return ""


def _busy(outcomes: list[Outcome]) -> bool:
    return any(outcome.action in (Action.PRUNING, Action.FAILED) for outcome in outcomes)


def _is_born(obj: Object) -> bool:
    """Token Secrets of the default account, which old servers make."""
    annotations = obj["metadata"].get("annotations") or {}
    return annotations.get("kubernetes.io/service-account.name") == "default"


def _name(obj: Object) -> str:
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def _outcome(member: Member, action: Action, why: str, live: Object | None = None) -> Outcome:
    return Outcome(member=member, action=action, readiness=readiness(live), message=f"{member}: {why}")
