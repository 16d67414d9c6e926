"""The objects of a release: its ClusterClass and templates, rendered by helm's rules, applied, compared and removed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from hortus.domains.stacks.inventory import ResourceInventory, policy_of_stacks
from hortus.domains.stacks.names import FIELD_MANAGER, ReleaseName
from hortus.domains.stacks.releases import StackRelease
from hortus.engine.applysets import (
    ApplyReport,
    ApplySet,
    ClusterClient,
    Kinds,
    Live,
    ObjectAction,
    ObjectOutcome,
)
from hortus.engine.deputies import Deputies
from hortus.kube import Client, Clock
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object, Resource, key_of, shaped
from hortus.render.helm import ChartError, ChartRenderer, ChartSource, Release, RenderRequest

CLUSTER_CLASS: Final = "ClusterClass"
_RBAC: Final = "rbac.authorization.k8s.io"
_POLICY: Final = policy_of_stacks(prune=True)


class ClassInvalid(ValueError):
    """The chart of a ClusterClass cannot be used; the message names the release, the file and the fix."""


class _Named(msgspec.Struct):
    name: str


class _Head(msgspec.Struct):
    metadata: _Named
    kind: str = ""


class _ReleaseClient(ClusterClient):
    """The management cluster, where a deputy writes what is outside the release's namespace, and what grants."""

    def __init__(self, client: Client, deputy: Client, namespace: str) -> None:
        super().__init__(client)
        self.apply, self.delete = self._apply, self._delete
        self._deputy = deputy
        self._namespace = namespace

    async def _apply(self, resource: Resource, obj: Object, **options: Any) -> Object:
        return await self._writer(resource, key_of(obj).namespace).apply(resource, obj, **options)

    async def _delete(self, resource: Resource, name: str, namespace: str = "", **options: Any) -> Object:
        return await self._writer(resource, namespace).delete(resource, name, namespace, **options)

    def _writer(self, resource: Resource, namespace: str) -> Client:
        own = resource.namespaced and namespace == self._namespace and resource.group != _RBAC
        return self.client if own else self._deputy


class ClassObjects:
    """Renders and applies the objects of releases. `renderer` may be shared with others."""

    def __init__(
        self,
        client: Client,
        renderer: ChartRenderer,
        *,
        deputies: Deputies,
        kinds: Kinds,
        live: Live | None,
        clock: Clock,
    ) -> None:
        self._client = client
        self._renderer = renderer
        self._deputies = deputies
        self._kinds = kinds
        self._live = live
        self._clock = clock

    async def render(self, release: StackRelease, namespace: str) -> Sequence[Object]:
        """The objects of a release in `namespace`. Raises ClassInvalid, ReleaseError."""
        file, data = release.class_chart_file, await release.class_chart()
        request_of = Release(release.name.stem, namespace)
        try:
            chart = await asyncio.to_thread(ChartSource.from_archive, data, name=file)
            rendered = await self._renderer.render(RenderRequest(chart, release=request_of))
        except ChartError as error:
            raise ClassInvalid(f"release {release.name.tag}: {file}: {error}") from error
        # `helm template` prints hooks as well.
        return [*rendered.objects, *(hook.object for hook in rendered.hooks)]

    async def apply(self, objects: Sequence[Object], inventory: ResourceInventory) -> ApplyReport:
        """Make the cluster hold the objects, and note the outcome of each. Raises KubeError."""
        await inventory.name(objects)
        report = await self._set(inventory).apply(objects, whole=True)
        inventory.note(report)
        return report

    async def try_out(self, objects: Sequence[Object], inventory: ResourceInventory) -> ApplyReport:
        """The report that `apply` would give, by dry runs on the server. Raises KubeError."""
        await inventory.name(objects)
        return await self._set(inventory).plan(objects, whole=True)

    async def delete(self, inventory: ResourceInventory) -> ApplyReport:
        """Delete all objects of the inventory; repeat until the report is complete. Raises KubeError."""
        report = await self._set(inventory).delete()
        inventory.note(report)
        return report

    def _set(self, inventory: ResourceInventory) -> ApplySet:
        return ApplySet(
            _ReleaseClient(self._client, self._deputies.client(inventory.namespace), inventory.namespace),
            inventory,
            kinds=self._kinds,
            live=self._live,
            field_manager=FIELD_MANAGER,
            policy=_POLICY,
            clock=self._clock,
        )


def check_class(objects: Sequence[Object], name: ReleaseName) -> None:
    """Raises ClassInvalid when no ClusterClass has the name that Clusters write."""
    heads = [head for obj in objects if (head := shaped(obj, _Head)) is not None and head.kind == CLUSTER_CLASS]
    if any(head.metadata.name == name.class_name for head in heads):
        return
    found = ", ".join(head.metadata.name for head in heads) or "none"
    raise ClassInvalid(
        f"release {name.tag}: its chart makes no ClusterClass {name.class_name} but {found}; Chart.yaml must have the "
        f"name {name.stem}-cluster-class and the version {name.version.dot}"
    )


def unfinished(report: ApplyReport) -> bool:
    """Reports whether an object could not be applied, or waits for another."""
    return bool(report.of(ObjectAction.FAILED, ObjectAction.WAITING))


def refused(report: ApplyReport) -> list[ObjectOutcome]:
    """The outcomes of objects for which permissions are missing."""
    return [outcome for outcome in report.failures if isinstance(outcome.error, Forbidden)]
