"""One cluster whose modules are installed without a control plane: what is there, and the set of a module's objects."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from hortus.domains.modules.direct.packages import ModulePackage
from hortus.domains.modules.direct.records import NAMESPACE, ModuleRecord, Records
from hortus.domains.modules.kyma.manifests import manifest_name
from hortus.domains.modules.manifests.placing import check_places, scopes_of
from hortus.domains.modules.manifests.rendering import BadManifest, id_of, parse
from hortus.domains.modules.manifests.synced import SyncedInventory, policy
from hortus.domains.modules.manifests.transforms import BadObject, Transformation, place, transform
from hortus.domains.modules.names import MANAGED_BY_KYMA, REMOTE_KYMA, FieldOwner, Label
from hortus.domains.modules.types import KYMAS, MANIFESTS, Kyma, SyncedObject
from hortus.engine import read
from hortus.engine.applysets import ApplySet, ClusterClient, DiscoveredKinds, UnknownKind
from hortus.engine.applysets.resources import gvk_of
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import GroupVersionKind, Object, Resource, key_of
from hortus.terminal import CommandError

FORBIDDEN: Final = frozenset(("kube-system", "kube-public", "kube-node-lease"))
"""The default of --module-forbidden-namespaces."""
_WAIT: Final = 30.0
"""Seconds to wait for namespaces and definitions in one pass."""
_NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


class DirectCluster:
    """The cluster of a kubeconfig."""

    def __init__(self, client: Client, *, take_over: bool = False) -> None:
        """`take_over` takes objects that a control plane has marked as its own."""
        self.client = client
        self.records = Records(client)
        self.kinds = DiscoveredKinds(client)
        self._take_over = take_over
        self._owners: frozenset[str] = frozenset()

    async def open(self) -> None:
        """Learn which owners of objects there are on this cluster. Raises KubeError, CommandError."""
        found = {one.record.identity for one in await self.records.all()}
        if await self._serves(MANIFESTS):
            found |= {"/".join(key_of(one)) for one in (await self.client.list(MANIFESTS, metadata_only=True)).items}
        self._owners = frozenset(found)

    async def check_unmanaged(self, module: str) -> None:
        """Raises CommandError for a module that a Kyma of this cluster lists."""
        if not await self._serves(KYMAS):
            return
        try:
            kyma = read(Kyma, await self.client.get(KYMAS, REMOTE_KYMA, NAMESPACE))
        except NotFound:
            return
        listed = {one.name for one in kyma.spec.modules} | {one.name for one in kyma.status.modules}
        if module in listed:
            raise CommandError(
                f"module {module} is managed by Kyma {NAMESPACE}/{REMOTE_KYMA} of this cluster: use hortus module add, "
                "remove or unmanage"
            )

    async def objects_of(self, package: ModulePackage) -> list[Object]:
        """The objects of a module as they are applied. Raises CommandError, KubeError."""
        namespace, name = self.identity(package).split("/")
        try:
            objects = parse(package.manifest)
            transform(objects, Transformation(name=name, namespace=namespace, images=package.images))
            place(objects, await scopes_of(objects, self.kinds))
            check_places(objects, FORBIDDEN)
        except (BadManifest, BadObject) as error:
            raise CommandError(f"module {package.name} {package.version}: {error}") from None
        if not objects:
            raise CommandError(f"module {package.name} {package.version}: {package.origin} holds no object")
        # The namespace of modules belongs to all of them: it is made once, and never deleted.
        return [obj for obj in objects if id_of(obj)[1:] != (NAMESPACE, "", "v1", "Namespace")]

    def identity(self, package: ModulePackage) -> str:
        """The owner that marks the objects: the Manifest that a Kyma `default` in the cluster itself would have."""
        return f"{NAMESPACE}/{manifest_name(REMOTE_KYMA, package.component or package.name, package.name)}"

    def apply_set(self, inventory: SyncedInventory) -> ApplySet:
        """The set of a module's objects."""

        def exists(owner: str) -> bool:
            if owner == inventory.identity or owner in self._owners:
                return True
            # The Manifest of another cluster's control plane cannot be seen from here.
            return not owner.startswith(f"{NAMESPACE}/") and not self._take_over

        return ApplySet(
            ClusterClient(self.client),
            inventory,
            kinds=self.kinds,
            field_manager=FieldOwner.MODULE_RESOURCES,
            policy=msgspec.structs.replace(policy(exists), wait=_WAIT),
        )

    async def kind_of(self, obj: Object) -> Resource | None:
        """The kind of an object as it is served; None where it is not. Raises KubeError, CommandError."""
        try:
            return await self._resource(gvk_of(obj))
        except ValueError as error:
            raise CommandError(f"default resource: {error}") from None

    async def kind_of_entry(self, one: SyncedObject) -> Resource | None:
        """The kind of an entry of an inventory; None where it is served no more. Raises KubeError."""
        return await self._resource(GroupVersionKind(one.group, one.version, one.kind))

    async def ensure_namespace(self) -> None:
        """Create the namespace of modules where it is missing. Raises KubeError."""
        try:
            await self.client.get(_NAMESPACES, NAMESPACE)
        except NotFound:
            labels = {Label.MANAGED_BY: MANAGED_BY_KYMA}
            with suppress(AlreadyExists):
                await self.client.create(_NAMESPACES, {"metadata": {"name": NAMESPACE, "labels": labels}})

    async def _resource(self, gvk: GroupVersionKind) -> Resource | None:
        for fresh in (False, True):
            try:
                return await self.kinds.resource(gvk, fresh=fresh)
            except UnknownKind:
                continue
        return None

    async def _serves(self, resource: Resource) -> bool:
        return await self._resource(resource.gvk) is not None


def installed_versions(records: Sequence[ModuleRecord]) -> dict[str, str]:
    """The versions that are installed completely, by module."""
    return {one.record.module: one.record.installed for one in records if one.record.installed}
