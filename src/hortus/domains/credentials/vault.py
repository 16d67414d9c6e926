"""The kubeconfig Secrets on the API server: read, created, changed and deleted, with what is learnt told to the cache.

Changes go out as patches of what differs. The Go system's Role lets its controller update Secrets and not patch them,
and whoever changes the operator keeps that Role: then the Secret is read and replaced, against its resource version.
"""

from __future__ import annotations

import structlog

from hortus.domains.credentials.ownership import SecretReference
from hortus.engine import Cache, StepError
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.kube import Client
from hortus.kube.errors import Conflict, Forbidden, NotFound
from hortus.kube.objects import Object
from hortus.kube.patches import apply_merge_patch

FIELD_MANAGER = "infrastructure-manager"
_ATTEMPTS = 4
"""How often somebody may be faster than a replacement before it is left to the back-off."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Vault:
    """Everything it returns is sealed (see `secrets`). Raises KubeError."""

    def __init__(self, client: Client, cache: Cache) -> None:
        self._client = client
        self._cache = cache
        self._may_patch = True

    async def read(self, reference: SecretReference) -> Object | None:
        try:
            return sealed(await self._client.get(SECRETS, reference.name, reference.namespace))
        except NotFound:
            return None

    async def create(self, secret: Object) -> Object:
        return self._learn(await self._client.create(SECRETS, secret, field_manager=FIELD_MANAGER))

    async def amend(self, secret: Object, patch: Object) -> Object | None:
        """The Secret after the merge patch; None when it has gone meanwhile."""
        name, namespace = secret["metadata"]["name"], secret["metadata"]["namespace"]
        try:
            if self._may_patch:
                try:
                    return self._learn(
                        await self._client.patch(SECRETS, name, patch, namespace, field_manager=FIELD_MANAGER)
                    )
                except Forbidden:
                    written = await self._replace(name, namespace, patch)
                    _log.info("secrets may not be patched here, so they are replaced")
                    self._may_patch = False
                    return written
            return await self._replace(name, namespace, patch)
        except NotFound:
            return None

    async def delete(self, secret: Object) -> None:
        metadata = secret["metadata"]
        try:
            await self._client.delete(SECRETS, metadata["name"], metadata["namespace"], uid=metadata["uid"])
        except NotFound:
            return
        _log.info("deleted the secret of a cluster that is gone", secret=f"{metadata['namespace']}/{metadata['name']}")

    async def _replace(self, name: str, namespace: str, patch: Object) -> Object:
        for _ in range(_ATTEMPTS):
            live = await self._client.get(SECRETS, name, namespace)
            try:
                changed = apply_merge_patch(live, patch)
                return self._learn(await self._client.replace(SECRETS, changed, field_manager=FIELD_MANAGER))
            except Conflict:
                continue
        raise StepError(
            f"secret {namespace}/{name} is being changed by somebody else all the time", reason="SecretBusy"
        )

    def _learn(self, written: Object) -> Object:
        self._cache.learn(written)
        return sealed(written)
