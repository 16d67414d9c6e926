"""Secrets that users name in agents: watched without their values, read when they changed.

The cache of all Secrets keeps checksums, so that no credential of anybody else is in memory; release records of Helm,
which may be a megabyte each, are left out by their type.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

import msgspec

from hortus.engine import Cache, Manager
from hortus.engine.deputies import Deputies
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.engine.typed import metadata_of
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey

MANAGED: Final = "app.kubernetes.io/managed-by=instana-agent-operator"
"""Selects the objects that controllers of agents made."""
_OTHERS: Final = "app.kubernetes.io/managed-by!=instana-agent-operator"
_NO_RELEASES: Final = "type!=helm.sh/release.v1"


class _Secret(msgspec.Struct):
    data: dict[str, str] | None = None


def secret_outlines(manager: Manager, namespace: str) -> Cache:
    """The cache of the Secrets that no controller of agents made, with checksums in place of values."""
    return manager.cache(SECRETS, namespace=namespace, labels=_OTHERS, fields=_NO_RELEASES, transform=sealed)


class NamedSecrets:
    """The data of Secrets by name; each state of one is read once, with the permissions of its own namespace."""

    def __init__(self, deputies: Deputies, outlines: Cache, owned: Cache) -> None:
        self._deputies = deputies
        self._outlines = outlines
        self._owned = owned
        self._known: dict[ObjectKey, tuple[str, Mapping[str, bytes]]] = {}

    def exists(self, key: ObjectKey) -> bool:
        """True when there is a Secret of that name."""
        return key in self._outlines or key in self._owned

    async def data(self, key: ObjectKey) -> Mapping[str, bytes] | None:
        """The values of a Secret, None where there is none. Raises KubeError."""
        outline = self._outlines.get(key) or self._owned.get(key)
        if outline is None:
            self._known.pop(key, None)
            return None
        version = metadata_of(outline).resource_version
        known = self._known.get(key)
        if known is None or known[0] != version:
            try:
                live = await self._deputies.client(key.namespace).get(SECRETS, key.name, key.namespace)
            except NotFound:
                return None
            known = self._known[key] = (metadata_of(live).resource_version, _values(live))
        return known[1]

    async def live(self, key: ObjectKey) -> Mapping[str, bytes] | None:
        """The values that a Secret has now, at the cost of a request; None where there is none. Raises KubeError."""
        try:
            return _values(await self._deputies.client(key.namespace).get(SECRETS, key.name, key.namespace))
        except NotFound:
            return None

    def forget(self, key: ObjectKey) -> None:
        """Drop the values of a Secret that no agent names any more."""
        self._known.pop(key, None)


def _values(secret: Object) -> Mapping[str, bytes]:
    data = msgspec.convert(secret, _Secret).data or {}
    return {name: base64.b64decode(value) for name, value in data.items()}
