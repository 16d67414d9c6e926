"""Kubeconfig Secrets on the API server: read, created, changed and deleted, each answer given to the cache.

A change is a patch of what differs and carries the uid of the Secret that was looked at, so it reaches no other Secret
of that name. Where a Role allows to update Secrets and not to patch them, as that of Kyma's infrastructure-manager
does, the Secret is read and replaced, against its resource version.
"""

from __future__ import annotations

import structlog

from hortus.engine.cache import Cache
from hortus.engine.kubeconfigs.secrets import SECRETS, KubeconfigSecret, read_secret
from hortus.engine.outcomes import StepError
from hortus.kube import Client
from hortus.kube.errors import Conflict, Forbidden, Invalid, NotFound
from hortus.kube.objects import Object, ObjectKey
from hortus.kube.patches import apply_merge_patch

_ATTEMPTS = 4
"""Replacements that another writer may overtake before the next one is left to the back-off."""
_UID = "metadata.uid"

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class KubeconfigStore:
    """The Secrets of one controller; `cache` is where it looks them up. Raises KubeError."""

    def __init__(self, client: Client, cache: Cache, *, field_manager: str) -> None:
        self._client = client
        self._cache = cache
        self._field_manager = field_manager
        self._may_patch = True

    async def read(self, key: ObjectKey) -> KubeconfigSecret | None:
        """The Secret on the server, for one that no cache shows; None when there is none."""
        try:
            return read_secret(await self._client.get(SECRETS, key.name, key.namespace))
        except NotFound:
            return None

    async def create(self, secret: Object) -> KubeconfigSecret:
        """Raises AlreadyExists."""
        return self._learn(await self._client.create(SECRETS, secret, field_manager=self._field_manager))

    async def change(self, secret: KubeconfigSecret, patch: Object) -> KubeconfigSecret | None:
        """The Secret after the merge patch; None when it is gone or another one has its name."""
        exact = {**patch, "metadata": {**patch.get("metadata", {}), "uid": secret.metadata.uid}}
        try:
            if self._may_patch:
                try:
                    return await self._patch(secret.key, exact)
                except Forbidden:
                    written = await self._replace(secret, exact)
                    _log.info("secrets may not be patched here, so they are replaced")
                    self._may_patch = False
                    return written
            return await self._replace(secret, exact)
        except NotFound:
            return None
        except Invalid as error:
            if _UID in _fields(error):
                return None
            raise

    async def delete(self, secret: KubeconfigSecret) -> bool:
        """Delete this very Secret; returns False when it is gone or another one has its name."""
        try:
            await self._client.delete(SECRETS, secret.key.name, secret.key.namespace, uid=secret.metadata.uid)
        except (NotFound, Conflict):
            return False
        return True

    async def _patch(self, key: ObjectKey, patch: Object) -> KubeconfigSecret:
        return self._learn(
            await self._client.patch(SECRETS, key.name, patch, key.namespace, field_manager=self._field_manager)
        )

    async def _replace(self, secret: KubeconfigSecret, patch: Object) -> KubeconfigSecret | None:
        key = secret.key
        for _ in range(_ATTEMPTS):
            live = await self._client.get(SECRETS, key.name, key.namespace)
            if live["metadata"]["uid"] != secret.metadata.uid:
                return None
            try:
                changed = apply_merge_patch(live, patch)
                return self._learn(await self._client.replace(SECRETS, changed, field_manager=self._field_manager))
            except Conflict:
                continue
        raise StepError(f"secret {key} is being changed by another writer all the time", reason="SecretBusy")

    def _learn(self, written: Object) -> KubeconfigSecret:
        secret = read_secret(written)
        self._cache.learn(written)
        return secret


def _fields(error: Invalid) -> set[str]:
    """The fields that a refusal names."""
    causes = (error.details or {}).get("causes") or ()
    return {str(cause.get("field")) for cause in causes if isinstance(cause, dict)}
