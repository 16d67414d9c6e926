"""The modules of a cluster as they run: those of its Kyma, community modules, and core modules that no Kyma lists.

A module that no Kyma lists is installed where the workload of its ModuleTemplate (`spec.manager`) is there in the
template's version. A workload that does not say its version is that of the only template of its module.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hortus.domains.modules.manifests.rendering import id_of
from hortus.domains.modules.types import Kyma, ModuleStatus, ModuleTemplate, TrackedMetadata, TrackedObject
from hortus.domains.modules.using.installed import (
    NOT_RUNNING,
    UNKNOWN,
    InstalledModule,
    found_module,
    installed,
    state_of,
)
from hortus.domains.modules.using.objects import ModuleObjects, PlacedObject
from hortus.domains.modules.using.offers import is_community, module_of
from hortus.domains.modules.using.session import NAMESPACE, ModuleSession, gvk
from hortus.domains.modules.using.standing import is_of, workload_state
from hortus.kube import Client
from hortus.kube.discovery import Discovery, UnknownResource
from hortus.kube.errors import NotFound, NotServed
from hortus.kube.objects import GroupVersionKind, Object, Resource

_AT_ONCE = 8
"""Requests under way at once."""


class ModulesHere(NamedTuple):
    """The modules of a cluster."""

    core: list[InstalledModule]
    community: list[InstalledModule]


class FoundModule(NamedTuple):
    """A ModuleTemplate whose workload is in the cluster."""

    template: ModuleTemplate
    workload: Object


async def modules_here(session: ModuleSession) -> ModulesHere:
    """All installed modules; in a cluster with community modules and without a Kyma those alone.

    Raises CommandError for a cluster with neither, KubeError.
    """
    templates = await session.templates()
    optional = any(is_community(one) for one in templates)
    kyma = await session.kyma_if_any() if optional else await session.kyma()
    cluster = _Cluster(session.client, await Discovery.look(session.client))
    core = installed(kyma, await cluster.resource_states(kyma.status.modules, templates)) if kyma else []
    known = {row.name for row in core}
    unlisted = [one for one in templates if is_community(one) or (kyma and module_of(one) not in known)]
    found = await cluster.found(unlisted)
    states = await cluster.states(one.template for one in found)
    here = ModulesHere(core, [])
    for one, state in zip(found, states, strict=True):
        rows = here.community if is_community(one.template) else here.core
        rows.append(
            found_module(module_of(one.template), one.template.spec.version, workload_state(one.workload), state)
        )
    return ModulesHere(sorted(here.core), sorted(here.community))


async def installed_version(session: ModuleSession, name: str) -> str:
    """The version of a core module that is installed although the Kyma does not list it; empty if it is not there."""
    templates = [one for one in await session.templates() if not is_community(one) and module_of(one) == name]
    cluster = _Cluster(session.client, await Discovery.look(session.client))
    found = await cluster.found(templates)
    return found[0].template.spec.version if found else ""


async def resources_of(session: ModuleSession, kyma: Kyma, name: str) -> list[PlacedObject]:
    """All resources of the kind of a module's default resource."""
    status = next((one for one in kyma.status.modules if one.name == name), None)
    version = status.version if status is not None else ""
    for template in await session.templates():
        if not is_community(template) and (module_of(template), template.spec.version) == (name, version):
            data = template.spec.data
            if data is not None:
                found = id_of(data)
                kind = GroupVersionKind(found.group, found.version, found.kind)
                return await ModuleObjects(session.client, seconds=0).of_kind(kind)
    return []


class _Cluster:
    """Reads objects of any kind, a few at a time."""

    def __init__(self, client: Client, served: Discovery) -> None:
        self._client = client
        self._served = served
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def found(self, templates: Iterable[ModuleTemplate]) -> list[FoundModule]:
        """The templates whose workload is there, in their version."""
        asked = [template for template in templates if template.spec.manager is not None and module_of(template)]
        versions = Counter(map(module_of, asked))
        workloads = await asyncio.gather(*(self._get(_manager(template)) for template in asked))
        return [
            FoundModule(template, workload)
            for template, workload in zip(asked, workloads, strict=True)
            if workload is not None and is_of(template, workload, alone=versions[module_of(template)] == 1)
        ]

    async def states(self, templates: Iterable[ModuleTemplate]) -> Sequence[str]:
        """The state of the default resource of each template's module."""
        return await asyncio.gather(*(self._state(_default_resource(template)) for template in templates))

    async def resource_states(
        self, modules: Sequence[ModuleStatus], templates: Iterable[ModuleTemplate]
    ) -> dict[str, str]:
        """The state of each module's default resource, by the module's name.

        The Kyma names the resources that Kyma manages; for the others the template of the module does.
        """
        by_name = {one.metadata.name: one for one in templates if not is_community(one)}
        places = {module.name: module.resource or _of_template(module, by_name) for module in modules}
        states = await asyncio.gather(*(self._state(place) for place in places.values()))
        return dict(zip(places, states, strict=True))

    async def _state(self, place: TrackedObject | None) -> str:
        if place is None or self._resource(place) is None:
            return UNKNOWN
        found = await self._get(place)
        return NOT_RUNNING if found is None else state_of(found)

    async def _get(self, place: TrackedObject) -> Object | None:
        resource = self._resource(place)
        if resource is None:
            return None
        namespace = place.metadata.namespace if resource.namespaced else ""
        async with self._turns:
            try:
                return await self._client.get(resource, place.metadata.name, namespace)
            except (NotFound, NotServed):
                return None

    def _resource(self, place: TrackedObject) -> Resource | None:
        try:
            return self._served.kind(gvk(place.api_version, place.kind)).resource
        except UnknownResource:
            return None


def _of_template(module: ModuleStatus, templates: dict[str, ModuleTemplate]) -> TrackedObject | None:
    template = templates.get(f"{module.name}-{module.version}")
    return _default_resource(template) if template is not None else None


def _default_resource(template: ModuleTemplate) -> TrackedObject | None:
    if template.spec.data is None:
        return None
    found = id_of(template.spec.data)
    return _place(found.group, found.version, found.kind, found.name, found.namespace)


def _manager(template: ModuleTemplate) -> TrackedObject:
    manager = template.spec.manager
    assert manager is not None
    return _place(manager.group, manager.version, manager.kind, manager.name, manager.namespace)


def _place(group: str, version: str, kind: str, name: str, namespace: str) -> TrackedObject:
    return TrackedObject(
        api_version=f"{group}/{version}" if group else version,
        kind=kind,
        metadata=TrackedMetadata(name=name, namespace=namespace or NAMESPACE),
    )
