"""Applies the objects of one agent as an apply set: all or none pass a dry run, each is recorded before it exists.

Objects that the caches show as they should be cost no call, so that a reconcile without change makes none. A dry run
of the others comes first and collects all refusals; one of them, and nothing is written. The record of dependents
follows, then the objects, then what former sets had and this one lacks.

An object that exists and is not the agent's is neither taken over nor deleted: `ownership` decides. Objects are made
with the permissions that the agent's namespace has (`hortus.engine.deputies`), those next to the agent too: a workload
of an agent is privileged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from hortus.domains.agents.operating.dependents import Dependent, dependent_of
from hortus.domains.agents.operating.errors import AgentError, AgentPhase, ObjectFailure
from hortus.domains.agents.operating.objects import FIELD_MANAGER, KINDS, WITHOUT_CACHE, AgentObjects
from hortus.domains.agents.operating.records import FixedInventory
from hortus.domains.agents.ownership import AgentMarking, SiblingAdoption
from hortus.engine.applysets import (
    ApplyReport,
    ApplySet,
    ClusterClient,
    Conflicts,
    ForeignObject,
    KnownKinds,
    Parent,
    Policy,
    ServerLive,
)
from hortus.engine.deputies import Deputies
from hortus.kube import Client
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, Resource

_PARALLEL: Final = 6
"""Calls at once for one agent."""


class _Known:
    """Live objects: from the caches of what agents have, else from the server, which knows those of others too."""

    def __init__(self, client: Client, objects: AgentObjects) -> None:
        self._server = ServerLive(client)
        self._objects = objects

    async def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        found = self._objects.get(resource, namespace, name)
        return found if found is not None else await self._server.get(resource, namespace, name)

    def learn(self, resource: Resource, obj: Object) -> None:
        if resource in self._objects.caches:
            self._objects.caches[resource].learn(obj)


class AgentApplier:
    """Makes the cluster hold the objects of agents, and no others of theirs."""

    def __init__(self, client: Client, deputies: Deputies, objects: AgentObjects) -> None:
        """`client` deletes: what carries an agent's mark was made for it, and goes when its permissions are gone."""
        self._client = client
        self._deputies = deputies
        self._objects = objects

    async def provide(
        self, objects: Sequence[Object], parent: Parent, marking: AgentMarking, siblings: Iterable[str]
    ) -> bool:
        """Make the cluster hold `objects` and nothing else of the parent's; False while finalizers hold something.

        Raises AgentError.
        """
        report = await self._set(parent, marking, siblings).apply(objects, whole=True)
        phase = AgentPhase.DRY_RUN if report.tried_only else AgentPhase.APPLY
        _raise_failures(report, phase, wanted=frozenset(map(dependent_of, objects)))
        return report.complete

    async def check(self, objects: Sequence[Object], namespace: str, marking: AgentMarking) -> None:
        """Try all objects without writing any. Raises AgentError."""
        report = await self._set(FixedInventory(marking.identity, namespace), marking).plan(objects)
        _raise_failures(report, AgentPhase.DRY_RUN)

    async def share(self, obj: Object, namespace: str, marking: AgentMarking) -> None:
        """Apply one object that others go on to use; one of somebody else stays as it is. Raises AgentError."""
        report = await self._set(FixedInventory(marking.identity, namespace), marking).apply([obj])
        report.outcomes = [one for one in report.outcomes if not isinstance(one.error, ForeignObject)]
        _raise_failures(report, AgentPhase.APPLY)

    async def delete(self, parent: Parent, marking: AgentMarking) -> bool:
        """Delete the objects of an inventory that are the agent's; False while finalizers hold one.

        Raises AgentError.
        """
        report = await self._set(parent, marking, client=self._client).delete()
        _raise_failures(report, AgentPhase.PRUNE)
        return report.complete

    def _set(
        self, parent: Parent, marking: AgentMarking, siblings: Iterable[str] = (), *, client: Client | None = None
    ) -> ApplySet:
        client = client or self._deputies.client(parent.namespace)
        return ApplySet(
            ClusterClient(client),
            parent,
            kinds=KnownKinds(KINDS, optional=WITHOUT_CACHE),
            live=_Known(client, self._objects),
            field_manager=FIELD_MANAGER,
            policy=Policy(
                conflicts=Conflicts.FORCE,
                adopt=SiblingAdoption(frozenset(siblings)),
                try_first=True,
                parallel=_PARALLEL,
                marking=marking,
                stage=lambda _: 0,
            ),
        )


def _raise_failures(report: ApplyReport, phase: AgentPhase, *, wanted: Collection[Dependent] | None = None) -> None:
    """Raises AgentError with all failures; those of objects that are not `wanted` are failures of their deletion."""
    failures = []
    for one in report.failures:
        assert isinstance(one.error, KubeError), "builders make objects of known kinds, each once"
        failed = Dependent(*one.member)
        leaves = wanted is not None and failed not in wanted
        failures.append(ObjectFailure(AgentPhase.PRUNE if leaves else phase, failed, one.error))
    if failures:
        raise AgentError(failures)


__all__ = ["AgentApplier"]
