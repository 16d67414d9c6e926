"""Versions of this domain's kinds that no object is stored in any more are removed from their CRDs' status.

Owns nothing. Watches the CRDs that --drop-crd-stored-version-map names, and patches `status.storedVersions` of those
that list a version to be dropped. It never drops the version that a CRD stores now, and deletes no version of a CRD:
that is part of the installation of the next CRD, which the API server refuses while a version is listed as stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from hortus.domains.modules.kyma.documents import CRDS
from hortus.domains.modules.types import KYMAS, MANIFESTS, MODULE_RELEASE_METAS, MODULE_TEMPLATES, WATCHERS
from hortus.engine import Cache, Manager, Result, Watch, without_managed_fields
from hortus.kube import Client, PatchKind
from hortus.kube.errors import Conflict, Invalid, NotFound
from hortus.kube.objects import Object, ObjectKey, shaped

NAME: Final = "stored-versions"
"""The controller's name in metrics, logs and events."""
_CRD_NAMES: Final = {
    resource.kind: f"{resource.plural}.{resource.group}"
    for resource in (KYMAS, MANIFESTS, MODULE_RELEASE_METAS, MODULE_TEMPLATES, WATCHERS)
}


class _CrdVersion(msgspec.Struct):
    name: str
    storage: bool = False


class _CrdSpec(msgspec.Struct):
    versions: list[_CrdVersion] = []


class _CrdStatus(msgspec.Struct, rename="camel"):
    stored_versions: list[str] = []


class _Crd(msgspec.Struct):
    spec: _CrdSpec = msgspec.field(default_factory=_CrdSpec)
    status: _CrdStatus = msgspec.field(default_factory=_CrdStatus)


def kept_versions(crd: Object, dropped: Iterable[str]) -> tuple[list[str], list[str]]:
    """The stored versions of a CRD as they are, and those to be kept: the version that it stores now always is."""
    found = shaped(crd, _Crd) or _Crd()
    gone = set(dropped) - {version.name for version in found.spec.versions if version.storage}
    stored = found.status.stored_versions
    return stored, [version for version in stored if version not in gone]


class StoredVersions:
    """Reconciles one CRD at a time; see the module's head."""

    def __init__(self, client: Client, caches: Mapping[str, Cache], dropped: Mapping[str, frozenset[str]]) -> None:
        """`caches` and the versions to drop are by the names of CRDs."""
        self._client = client
        self._caches = caches
        self._dropped = dropped

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Patch the status of the CRD unless it lists nothing to drop."""
        crd = self._caches[key.name].get(key)
        if crd is None:
            return None
        stored, kept = kept_versions(crd, self._dropped[key.name])
        if not kept or kept == stored:
            return None
        patch: list[dict[str, Any]] = [
            {"op": "test", "path": "/status/storedVersions", "value": stored},
            {"op": "replace", "path": "/status/storedVersions", "value": kept},
        ]
        try:
            await self._client.patch(CRDS, key.name, patch, kind=PatchKind.JSON, subresource="status")
        except (Conflict, Invalid, NotFound):
            # Another one has changed or deleted the CRD; what it is now decides.
            return Result(requeue_after=60.0)
        return None


def add_stored_versions(manager: Manager, client: Client, versions: Mapping[str, frozenset[str]]) -> None:
    """Add the controller to `manager`, unless there is nothing to drop; `versions` are those to drop, by kind."""
    if not versions:
        return
    dropped = {_CRD_NAMES[kind]: found for kind, found in versions.items()}
    caches = {
        name: manager.cache(CRDS, fields=f"metadata.name={name}", transform=without_managed_fields) for name in dropped
    }
    manager.controller(
        NAME, StoredVersions(client, caches, dropped), sources=[Watch(cache) for cache in caches.values()]
    )
