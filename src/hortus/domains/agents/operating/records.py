"""The inventory of one agent's objects as the Go operator keeps it: the ConfigMap `<name>-dependents`.

It lies next to the agent, where others write too, and it knows no uids. So it says what to look for, and never that an
object is ours: the mark on the object does (`hortus.domains.agents.ownership`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from hortus.domains.agents.operating import dependents
from hortus.domains.agents.operating.dependents import Dependent, dependent_of
from hortus.domains.agents.operating.errors import AgentError, AgentPhase, ObjectFailure
from hortus.domains.agents.operating.objects import CONFIG_MAPS, FIELD_MANAGER, AgentObjects, resource_of
from hortus.domains.agents.ownership import AgentMarking
from hortus.engine.apply import Applier
from hortus.engine.applysets import ForeignObject, Inventory, InventoryEntry, Member
from hortus.engine.applysets.adoption import holder_of
from hortus.engine.typed import metadata_of
from hortus.kube import Client
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey
from hortus.kube.patches import apply_merge_patch

Spared = Callable[[Dependent], bool]
"""True for an object that leaves the set and must not be deleted."""


class _Record(msgspec.Struct):
    data: dict[str, str] | None = None


class FixedInventory:
    """The inventory of objects that are remembered elsewhere, or not at all."""

    shared_kinds: tuple[str, ...] = ()

    def __init__(self, identity: str, namespace: str, members: Iterable[Dependent] = ()) -> None:
        self.identity = identity
        self.namespace = namespace
        self._members = inventory_of(members)

    async def load(self) -> Inventory:
        return self._members

    async def store(self, inventory: Inventory) -> None:
        """Has no effect."""

    async def remove(self) -> None:
        """Has no effect."""


class DependentsRecord:
    """The record of one agent, and the set of the present reconcile."""

    shared_kinds: tuple[str, ...] = ()

    def __init__(
        self,
        client: Client,
        objects: AgentObjects,
        record: Object,
        *,
        marking: AgentMarking,
        spared: Spared,
        key: str = "",
        wanted: Sequence[Object] = (),
    ) -> None:
        """`record` is the ConfigMap without data; `key` is that of the set `wanted`, which is recorded before its
        objects exist; what `spared` names is neither deleted nor remembered."""
        self._client = client
        self._objects = objects
        self._applier = Applier(client, field_manager=FIELD_MANAGER)
        self._record = record
        self.identity = marking.identity
        self.namespace = metadata_of(record).namespace
        self._marking = marking
        self._spared = spared
        self._key = key
        self._wanted = dependents.entries_of(wanted)
        self._live: Object | None = None
        self._history: dependents.History = {}

    async def read(self) -> set[Dependent]:
        """All objects that the history names. Raises AgentError, also for a record of somebody else."""
        self._live = await self._find()
        if self._live is not None and self._marking.owner(self._live) != self.identity:
            one = dependent_of(self._record)
            problem = f"it exists and {holder_of(self._live)}: delete it, or rename the agent"
            raise AgentError([ObjectFailure(AgentPhase.RECORD, one, ForeignObject(str(one), problem))])
        self._history = dependents.decode(_data(self._live)).history
        return dependents.members_of(self._history)

    async def load(self) -> Inventory:
        return inventory_of(one for one in await self.read() if not self._spared(one))

    async def store(self, inventory: Inventory) -> None:
        """Record the present set, and what former ones had as long as `inventory` has it too. Raises AgentError."""
        remaining = [Dependent(*member) for member in inventory]
        history = dependents.recorded(self._history, self._key, self._wanted)
        former = [one for one in remaining if one not in self._wanted]
        self._history = dependents.settled(history, self._key, former)
        config = {**self._record, "data": dependents.encode(self._history, _data(self._live))}
        if self._live is not None:
            if self._applier.matches(self._live, config):
                return
            config = apply_merge_patch(config, {"metadata": {"uid": metadata_of(self._live).uid}})
        try:
            self._live = await self._client.apply(CONFIG_MAPS, config, field_manager=FIELD_MANAGER)
        except KubeError as error:
            raise AgentError([ObjectFailure(AgentPhase.RECORD, dependent_of(self._record), error)]) from error
        self._objects.caches[CONFIG_MAPS].learn(self._live)

    async def remove(self) -> None:
        """Has no effect: the agent is the owner of its record."""

    async def _find(self) -> Object | None:
        found = self._objects.live(self._record)
        if found is not None:
            return found
        metadata = metadata_of(self._record)
        try:
            return await self._client.get(CONFIG_MAPS, metadata.name, metadata.namespace)
        except NotFound:
            return None
        except KubeError as error:
            raise AgentError([ObjectFailure(AgentPhase.READ, dependent_of(self._record), error)]) from error


def known(objects: AgentObjects, record: ObjectKey) -> set[Dependent]:
    """All objects that the history of another agent names, as the cache has it."""
    live = objects.get(CONFIG_MAPS, record.namespace, record.name)
    return dependents.members_of(dependents.decode(_data(live)).history)


def inventory_of(found: Iterable[Dependent]) -> Inventory:
    """The members of a set; kinds that no agent has now are left out."""
    named = ((one, resource_of(one)) for one in found)
    return {
        Member(*one): InventoryEntry(resource.version, resource.plural, "")
        for one, resource in named
        if resource is not None
    }


def _data(live: Object | None) -> dict[str, str]:
    return msgspec.convert(live, _Record).data or {} if live is not None else {}


__all__ = ["DependentsRecord", "FixedInventory", "Spared", "inventory_of", "known"]
