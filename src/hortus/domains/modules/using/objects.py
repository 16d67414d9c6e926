"""The objects of a community module, applied to a cluster and deleted from it by the user's own account."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from hortus.domains.modules.kyma.documents import CRDS, NAMESPACES
from hortus.domains.modules.manifests.rendering import BadManifest, id_of, parse
from hortus.domains.modules.names import MANAGED_BY_KYMA, Label
from hortus.domains.modules.publishing.sources import DOWNLOADS, BadSource, read_source
from hortus.domains.modules.types import ModuleTemplate
from hortus.domains.modules.using.session import FIELD_MANAGER, NAMESPACE
from hortus.domains.modules.using.waiting import await_condition, await_gone
from hortus.engine import metadata_of
from hortus.kube import Client
from hortus.kube.discovery import Discovery, UnknownResource
from hortus.kube.errors import KubeError, NotFound, NotServed
from hortus.kube.objects import GroupVersionKind, Object, Resource, key_of
from hortus.render.artifacts import TransferSettings
from hortus.terminal import CommandError

RAW_MANIFEST: Final = "rawManifest"
"""Name of the resource of a ModuleTemplate with the manifest's address."""
_SHARED: Final = frozenset((NAMESPACE, "default", "kube-system", "kube-public", "kube-node-lease"))
"""Namespaces that no module owns, whatever its manifest lists."""
_SERVED_WITHIN: Final = 30.0


class PlacedObject(NamedTuple):
    """An object with the resource that serves it."""

    resource: Resource
    obj: Object

    @property
    def name(self) -> str:
        key = key_of(self.obj)
        return f"{self.resource.kind} {key.namespace + '/' if key.namespace else ''}{key.name}"


async def manifest_objects(
    template: ModuleTemplate, manifest: Path | None, *, downloads: TransferSettings = DOWNLOADS
) -> list[Object]:
    """The objects that install a module, from the address in its ModuleTemplate or from a file. Raises CommandError."""
    name = f"{template.metadata.namespace}/{template.metadata.name}"
    link = next((one.link for one in template.spec.resources if one.name == RAW_MANIFEST), "")
    if not link and manifest is None:
        raise CommandError(
            f"ModuleTemplate {name} has no resource {RAW_MANIFEST} with the address of its manifest; name a file with "
            "--manifest"
        )
    if manifest is None and not link.startswith("https://"):
        raise CommandError(f"ModuleTemplate {name}: the address of its manifest, {link}, does not begin with https://")
    try:
        objects = parse(await read_source(RAW_MANIFEST, str(manifest or link), Path(), downloads=downloads))
    except (BadSource, BadManifest) as error:
        advice = "; a file in its place is named by --manifest" if manifest is None else ""
        raise CommandError(f"ModuleTemplate {name}: {error}{advice}") from None
    for number, one in enumerate(objects, 1):
        if not all((id_of(one).kind, id_of(one).version, id_of(one).name)):
            raise CommandError(f"ModuleTemplate {name}: object {number} of its manifest has no kind or no name")
    return objects


class ModuleObjects:
    """Applies and deletes objects of kinds that the cluster may come to serve meanwhile."""

    def __init__(self, client: Client, *, seconds: float) -> None:
        """`seconds` is the time for one object to become what it should."""
        self._client = client
        self._seconds = seconds
        self._served: Discovery | None = None

    async def apply(self, objects: Sequence[Object]) -> list[str]:
        """Apply all, definitions first; after a failure delete those that were created. Raises CommandError."""
        created: list[PlacedObject] = []
        lines = []
        try:
            for obj in _definitions_first(objects):
                one = await self._placed(obj)
                exists = await self._exists(one)
                await self._client.apply(one.resource, one.obj, field_manager=FIELD_MANAGER)
                if not exists:
                    created.append(one)
                if one.resource == CRDS:
                    await await_condition(self._client, CRDS, one.obj, "Established", seconds=_SERVED_WITHIN)
                    self._served = None
                lines.append(f"{one.name} {'configured' if exists else 'created'}")
        except (KubeError, CommandError) as error:
            undone = await self._undo(created)
            raise CommandError(f"{error}; {undone}") from None
        return lines

    async def delete(self, objects: Sequence[Object]) -> list[str]:
        """Delete all, in reverse, and return once they are gone. Raises CommandError, KubeError."""
        lines = []
        for obj in reversed(list(_definitions_first(objects))):
            try:
                one = await self._placed(obj)
            except UnservedKind:
                continue
            if reason := await self._reason_to_keep(one):
                lines.append(f"{one.name} kept: {reason}")
                continue
            if await self._deleted(one):
                lines.append(f"{one.name} deleted")
        return lines

    async def of_kind(self, kind: GroupVersionKind) -> list[PlacedObject]:
        """All objects of a kind; none where it is not served."""
        try:
            resource = await self._resource(kind)
            found = (await self._client.list(resource)).items
        except (UnservedKind, NotServed):
            return []
        return [
            PlacedObject(resource, {"apiVersion": resource.api_version, "kind": resource.kind, **obj}) for obj in found
        ]

    async def _deleted(self, one: PlacedObject) -> bool:
        key = key_of(one.obj)
        try:
            await self._client.delete(one.resource, key.name, key.namespace)
        except (NotFound, NotServed):
            return False
        await await_gone(self._client, one.resource, one.obj, seconds=self._seconds)
        return True

    async def _undo(self, created: Sequence[PlacedObject]) -> str:
        if not created:
            return "nothing was changed"
        left = []
        for one in reversed(created):
            try:
                await self._deleted(one)
            except (KubeError, CommandError) as error:
                left.append(f"{one.name} ({error})")
        if left:
            return f"not all that was created could be deleted again: {', '.join(left)}"
        return f"what was created is deleted again: {', '.join(one.name for one in created)}"

    async def _reason_to_keep(self, one: PlacedObject) -> str:
        key = key_of(one.obj)
        if one.resource == NAMESPACES and key.name in _SHARED:
            return "the namespace is not the module's alone"
        try:
            found = await self._client.get(one.resource, key.name, key.namespace, metadata_only=True)
        except (NotFound, NotServed):
            return ""
        managed = metadata_of(found).labels.get(Label.MANAGED_BY) == MANAGED_BY_KYMA
        return "it belongs to a module that Kyma manages" if managed else ""

    async def _exists(self, one: PlacedObject) -> bool:
        key = key_of(one.obj)
        try:
            await self._client.get(one.resource, key.name, key.namespace, metadata_only=True)
        except NotFound:
            return False
        return True

    async def _placed(self, obj: Object) -> PlacedObject:
        identity = id_of(obj)
        resource = await self._resource(GroupVersionKind(identity.group, identity.version, identity.kind))
        namespace = (identity.namespace or "default") if resource.namespaced else ""
        metadata = {**msgspec.convert(obj, _WithMetadata).metadata, "namespace": namespace}
        if not namespace:
            del metadata["namespace"]
        return PlacedObject(resource, {**obj, "metadata": metadata})

    async def _resource(self, kind: GroupVersionKind) -> Resource:
        if self._served is None:
            self._served = await Discovery.look(self._client)
        try:
            return self._served.kind(kind).resource
        except UnknownResource as error:
            raise UnservedKind(str(error)) from None


class _WithMetadata(msgspec.Struct):
    metadata: Object


class UnservedKind(CommandError):
    """A kind that the cluster does not serve."""


def is_custom(kind: GroupVersionKind) -> bool:
    """Reports whether a kind may be a module's own; the kinds of Kubernetes itself hold objects of everybody."""
    return "." in kind.group and not kind.group.endswith(".k8s.io")


def _definitions_first(objects: Sequence[Object]) -> Iterator[Object]:
    first = (NAMESPACES.kind, CRDS.kind)
    yield from (obj for obj in objects if id_of(obj).kind in first)
    yield from (obj for obj in objects if id_of(obj).kind not in first)
