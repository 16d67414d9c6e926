"""The way from the operator of 2.0.x, which installed agents as releases of Helm, without an interruption.

The finalizer of that operator says that there is a release. The new objects are applied first; when they are available
what the release made besides is deleted, then its records, then the finalizer. Helm itself would delete what we have
just taken over.

A workload whose selector differs cannot be changed into the new one. Of a DaemonSet the pods get the labels that the
new one selects and stay as orphans; the new one adopts them and replaces them at the pace of its update strategy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from hortus.domains.agents.operating.applying import AgentApplier
from hortus.domains.agents.operating.context import AgentContext
from hortus.domains.agents.operating.dependents import Dependent, dependent_of
from hortus.domains.agents.operating.errors import AgentError, AgentPhase, AgentReason, ObjectFailure
from hortus.domains.agents.operating.helm import (
    HELM_FINALIZER,
    SELECTOR,
    STORAGE,
    BadRecord,
    Installed,
    installed,
)
from hortus.domains.agents.operating.objects import AgentObjects, resource_of
from hortus.domains.agents.ownership import AgentMarking, is_of_release
from hortus.engine import Actor, StepError
from hortus.engine.applysets import DiscoveredKinds
from hortus.engine.deputies import Deputies
from hortus.engine.owners import controller_of
from hortus.engine.typed import metadata_of
from hortus.kube import Client, Propagation
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import Object, Resource

PODS: Final = Resource("", "v1", "pods", "Pod")
_STAYING: Final = ("Namespace", "CustomResourceDefinition")
"""Kinds that are never deleted with a release: what is in them is not the release's."""


class _Selector(msgspec.Struct, rename="camel"):
    match_labels: dict[str, str] = {}


class _Spec(msgspec.Struct):
    selector: _Selector = msgspec.field(default_factory=_Selector)


class _Workload(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


class HelmMigration:
    """Takes over what a release of Helm has installed."""

    def __init__(
        self, client: Client, *, deputies: Deputies, applier: AgentApplier, objects: AgentObjects, driver: str
    ) -> None:
        """`driver` is secret or configmap, as HELM_DRIVER says it."""
        self._deputies = deputies
        self._applier = applier
        self._objects = objects
        self._records = STORAGE[driver]
        self._kinds = DiscoveredKinds(client)

    async def make_way(self, context: AgentContext[Any], marking: AgentMarking) -> None:
        """Detach the workloads that the new ones cannot be applied over. Raises KubeError, AgentError."""
        if not _is_due(context):
            return
        namespace = context.key.namespace
        client = self._deputies.client(namespace)
        found = [(obj, await self._obstacle(client, obj, namespace)) for obj in context.wanted]
        former = [(obj, live) for obj, live in found if live is not None]
        if not former:
            return
        replaced = {dependent_of(obj) for obj, _ in former}
        # Nothing is detached unless all that follows is accepted; those in the way are tried under another name.
        trials = [_renamed(obj) if dependent_of(obj) in replaced else obj for obj in context.wanted]
        await self._applier.check(trials, namespace, marking)
        for obj, live in former:
            await self._detach(client, obj, live)

    async def finish(self, context: AgentContext[Any], *, available: bool) -> None:
        """Drop what the release made besides, its records and the finalizer, once the new agents are `available`."""
        if not _is_due(context) or not available:
            return
        await self._drop(context, {dependent_of(obj) for obj in context.wanted})

    async def uninstall(self, context: AgentContext[Any]) -> None:
        """Drop the release of an agent that is deleted."""
        if _is_due(context):
            await self._drop(context, set())

    async def _obstacle(self, client: Client, obj: Object, namespace: str) -> Object | None:
        """The workload of the release whose selector differs from that of `obj`, which cannot be changed."""
        one = dependent_of(obj)
        resource = resource_of(one)
        if resource is None or resource.group != "apps" or self._objects.find(one) is not None:
            return None
        try:
            live = await client.get(resource, one.name, one.namespace)
        except NotFound:
            return None
        return live if is_of_release(live, namespace) and _selector(live) != _selector(obj) else None

    async def _detach(self, client: Client, obj: Object, live: Object) -> None:
        one, metadata = dependent_of(obj), metadata_of(live)
        resource = resource_of(one)
        assert resource is not None, "an obstacle is of a known kind"
        if one.kind != "DaemonSet":
            await _remove(client, resource, one, metadata.uid, Propagation.BACKGROUND)
            return
        await _relabel(client, one.namespace, _selector(live), _selector(obj))
        await _remove(client, resource, one, metadata.uid, Propagation.ORPHAN)
        # Pods that the old one made in between.
        await _relabel(client, one.namespace, _selector(live), _selector(obj))

    async def _drop(self, context: AgentContext[Any], taken_over: set[Dependent]) -> None:
        namespace = context.key.namespace
        client = self._deputies.client(namespace)
        records = (await client.list(self._records, namespace, labels=SELECTOR)).items
        try:
            found = installed(records)
        except BadRecord as error:
            raise StepError(str(error), reason=AgentReason.BAD_RELEASE, actor=Actor.USER) from error
        await self._delete(client, found, namespace, taken_over)
        for record in records:
            metadata = metadata_of(record)
            one = Dependent("", self._records.kind, namespace, metadata.name)
            await _remove(client, self._records, one, metadata.uid, Propagation.BACKGROUND)
        await context.remove_finalizer(HELM_FINALIZER)

    async def _delete(
        self, client: Client, found: Iterable[Installed], namespace: str, taken_over: set[Dependent]
    ) -> None:
        """Delete the objects of a release but those that are kept or taken over. Raises AgentError."""
        failures: list[ObjectFailure] = []
        for one in found:
            group = one.api_version.rpartition("/")[0]
            resource = resource_of(Dependent(group, one.kind, "", one.name))
            if resource is None:
                resource = await self._kinds.named(f"{one.kind}.{group}" if group else one.kind)
            if one.kept or one.kind in _STAYING or resource is None:
                continue
            place = (one.namespace or namespace) if resource.namespaced else ""
            identity = Dependent(group, one.kind, place, one.name)
            if identity in taken_over:
                continue
            try:
                await _remove_installed(client, resource, identity, namespace)
            except KubeError as error:
                failures.append(ObjectFailure(AgentPhase.MIGRATE, identity, error))
        if failures:
            raise AgentError(failures)


async def _relabel(client: Client, namespace: str, former: dict[str, str], wanted: dict[str, str]) -> None:
    """Give the pods of the former DaemonSet the labels by which the new one adopts them."""
    selector = ",".join(f"{key}={value}" for key, value in sorted(former.items()))
    for pod in (await client.list(PODS, namespace, labels=selector)).items:
        metadata = metadata_of(pod)
        owner = controller_of(pod)
        of_set = owner is None or owner.items() >= {"kind": "DaemonSet"}.items()
        if of_set and not wanted.items() <= metadata.labels.items():
            await client.patch(PODS, metadata.name, {"metadata": {"labels": wanted}}, namespace)


async def _remove_installed(client: Client, resource: Resource, one: Dependent, namespace: str) -> None:
    """Delete an object of the release in `namespace`, unless it is Helm's no more, or of another release."""
    try:
        live = await client.get(resource, one.name, one.namespace)
    except NotFound:
        return
    metadata = metadata_of(live)
    if is_of_release(live, namespace) and not metadata.deletion_timestamp:
        await _remove(client, resource, one, metadata.uid, Propagation.BACKGROUND)


async def _remove(client: Client, resource: Resource, one: Dependent, uid: str, propagation: Propagation) -> None:
    try:
        await client.delete(resource, one.name, one.namespace, propagation=propagation, uid=uid)
    except NotFound:
        return


def _is_due(context: AgentContext[Any]) -> bool:
    return HELM_FINALIZER in metadata_of(context.raw).finalizers


def _selector(workload: Object) -> dict[str, str]:
    return msgspec.convert(workload, _Workload).spec.selector.match_labels


def _renamed(obj: Object) -> Object:
    """The same workload under a name that nothing has, for a dry run."""
    one = dependent_of(obj)
    metadata: Any = {"name": f"{one.name[:240]}-dry-run", "namespace": one.namespace}
    return {**obj, "metadata": metadata}


__all__ = ["HelmMigration"]
