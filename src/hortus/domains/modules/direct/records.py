"""The record of a module that was installed without a control plane: one ConfigMap for each, with its inventory.

The record is written before the objects: it never lists less than the cluster holds, so each command can be repeated
after it was killed. Every write names the version that was read, so two commands on one module do not mix.
"""

from __future__ import annotations

from typing import Final

import msgspec

from hortus.domains.modules.names import GROUP, Label, State
from hortus.domains.modules.types import SyncedObject
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, Conflict, NotFound
from hortus.kube.objects import Object, Resource, key_of, shaped
from hortus.kube.shapes import decode_json
from hortus.terminal import CommandError

NAMESPACE: Final = "kyma-system"
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
RECORD_LABEL: Final = f"installation.{GROUP}/record"
"""Label of records; an addition of Hortus."""
FIELD_MANAGER: Final = "hortus-cli"
_PREFIX: Final = "hortus-module-"


class InstallRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One module: the version that is wanted, the version that was completed last, and their origin."""

    module: str
    version: str
    identity: str
    """Namespace and name that mark the objects: those of the Manifest of an in-cluster Kyma `default`."""
    origin: str
    digest: str
    state: str = State.PROCESSING.value
    installed: str = ""
    """The version that was installed completely; empty before the first."""
    component: str = ""
    resource: Object | None = None
    """The default resource, where it was created; it is deleted with the module."""


class ModuleRecord(msgspec.Struct, frozen=True):
    """A record as the cluster has it."""

    record: InstallRecord
    synced: tuple[SyncedObject, ...] = ()
    version: str = ""
    """Resource version of the ConfigMap; empty for a record that is not written yet."""


class _Data(msgspec.Struct):
    record: str
    synced: str = "[]"


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str


class _ConfigMap(msgspec.Struct):
    metadata: _Metadata
    data: _Data


class Records:
    """The records of one cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, module: str) -> ModuleRecord | None:
        """The record of a module; None where there is none. Raises CommandError, KubeError."""
        try:
            found = await self._client.get(CONFIG_MAPS, _PREFIX + module, NAMESPACE)
        except NotFound:
            return None
        return _stored(found)

    async def all(self) -> list[ModuleRecord]:
        """All records, by module. Raises CommandError, KubeError."""
        listed = await self._client.list(CONFIG_MAPS, NAMESPACE, labels=RECORD_LABEL)
        return sorted((_stored(one) for one in listed.items), key=lambda one: one.record.module)

    async def save(self, stored: ModuleRecord) -> ModuleRecord:
        """Write a record that was read or is new; returns it as it is stored. Raises CommandError, KubeError."""
        record = stored.record
        name = _PREFIX + record.module
        data = {
            "record": msgspec.json.encode(record).decode(),
            "synced": msgspec.json.encode(stored.synced).decode(),
        }
        labels = {RECORD_LABEL: "true", Label.MODULE_NAME: record.module}
        metadata: Object = {"name": name, "namespace": NAMESPACE, "labels": labels}
        try:
            if not stored.version:
                made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
                written = await self._client.create(CONFIG_MAPS, made, field_manager=FIELD_MANAGER)
            else:
                patch = {"metadata": {"resourceVersion": stored.version, "labels": labels}, "data": data}
                written = await self._client.patch(CONFIG_MAPS, name, patch, NAMESPACE, field_manager=FIELD_MANAGER)
        except (AlreadyExists, Conflict):
            raise CommandError(
                f"somebody else works on module {record.module}: ConfigMap {NAMESPACE}/{name} has changed; try again"
            ) from None
        return _stored(written)

    async def remove(self, module: str) -> None:
        """Forget a module. Raises KubeError."""
        try:
            await self._client.delete(CONFIG_MAPS, _PREFIX + module, NAMESPACE)
        except NotFound:
            return


def _stored(obj: Object) -> ModuleRecord:
    found = shaped(obj, _ConfigMap)
    try:
        if found is None:
            raise msgspec.ValidationError("data.record is missing")
        record = decode_json(found.data.record, InstallRecord)
        synced = decode_json(found.data.synced, tuple[SyncedObject, ...])
    except msgspec.MsgspecError as error:
        raise CommandError(
            f"ConfigMap {key_of(obj)} is no record of a module: {error}; delete it, and install the module again"
        ) from None
    return ModuleRecord(record, synced, found.metadata.resource_version)
