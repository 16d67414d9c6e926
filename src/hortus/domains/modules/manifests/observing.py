"""The state of an installed module, as its workloads on the cluster report it."""

from __future__ import annotations

from typing import Final

from hortus.domains.modules.manifests.context import ManifestContext
from hortus.domains.modules.manifests.installing import resource_kind
from hortus.domains.modules.manifests.outline import edition, outline
from hortus.domains.modules.manifests.readiness import (
    deployment_state,
    judged,
    pod_selector,
    resource_state,
    stateful_set_state,
)
from hortus.domains.modules.manifests.rendering import id_of
from hortus.domains.modules.manifests.transforms import title
from hortus.domains.modules.names import State
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource, key_of

_DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
_STATEFUL_SETS: Final = Resource("apps", "v1", "statefulsets", "StatefulSet")
_PODS: Final = Resource("", "v1", "pods", "Pod")


class Observing:
    """Reads the workloads that count by `--module-readiness`."""

    def __init__(self, readiness: str) -> None:
        self._readiness = readiness

    def are_watched(self, context: ManifestContext) -> bool:
        """Returns whether the watch of the cluster shows all that the state depends on: Deployments alone."""
        found = judged(context.rendered, readiness=self._readiness, manager=context.spec.manager)
        return not self._counts_resource(context) and all(id_of(obj).kind == "Deployment" for obj in found)

    async def states(self, context: ManifestContext) -> dict[str, State]:
        """The state of each object that counts, by kind and name. Raises KubeError, StepError."""
        found = judged(context.rendered, readiness=self._readiness, manager=context.spec.manager)
        states = {title(obj): await self._workload(context, obj) for obj in found}
        if context.resource is not None and self._counts_resource(context):
            states[title(context.resource)] = await self._resource(context, context.resource)
        return states

    def _counts_resource(self, context: ManifestContext) -> bool:
        return (self._readiness == "resource" or context.is_external) and context.resource is not None

    async def _workload(self, context: ManifestContext, obj: Object) -> State:
        identity = id_of(obj)
        kind = _DEPLOYMENTS if identity.kind == "Deployment" else _STATEFUL_SETS
        try:
            live = await context.client.get(kind, identity.name, identity.namespace)
        except NotFound:
            return State.ERROR
        if kind is _DEPLOYMENTS:
            context.editions.add(edition(outline(live)))
            return deployment_state(live, now=context.now)
        return stateful_set_state(live, await _pods(context, live), now=context.now)

    async def _resource(self, context: ManifestContext, resource: Object) -> State:
        kind = await resource_kind(context, resource)
        if kind is None:
            return State.PROCESSING
        key = key_of(resource)
        try:
            live = await context.client.get(kind, key.name, key.namespace if kind.namespaced else "")
        except NotFound:
            return State.PROCESSING
        return resource_state(live)


async def _pods(context: ManifestContext, stateful_set: Object) -> list[Object]:
    """The pods that the selector of a StatefulSet finds, by name."""
    selector = pod_selector(stateful_set)
    if not selector:
        return []
    listed = await context.client.list(_PODS, key_of(stateful_set).namespace, labels=selector)
    return sorted(listed.items, key=key_of)
