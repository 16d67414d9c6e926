"""The Secrets of requests on the management cluster: created, changed and deleted, and never anybody else's.

A Secret is ours by its owner, a uid, and not by its name: creation fails where one is there, and each change carries
the uid of the Secret that was looked at. What is returned and kept holds checksums in place of values.
"""

from __future__ import annotations

from hortus.domains.access import service
from hortus.domains.access.types import MANAGER, Reason
from hortus.engine import Cache, StepError
from hortus.engine.kubeconfigs import sealed
from hortus.engine.remote import SECRETS
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from hortus.kube.objects import Object

_FOREIGN_PAUSE = 60.0
"""Seconds until a Secret that is not ours, and so not watched, is looked at again."""


class Vault:
    """Raises KubeError, and Setback where a Secret is somebody else's."""

    def __init__(self, client: Client, cache: Cache) -> None:
        self._client = client
        self._cache = cache

    async def find(self, access: Object) -> Object | None:
        """The request's Secret. Raises Setback when another one has its name."""
        key = service.secret_key(access)
        found = self._cache.get(key)
        if found is None and ((access.get("status") or {}).get("secret") or {}).get("name") == key.name:
            # It was there: either it is gone, or somebody took its labels off.
            found = await self._read(key.name, key.namespace)
        if found is not None and not service.is_ours(access, found):
            raise self._taken(key.name)
        return found

    async def store(self, access: Object, secret: Object | None, issued: service.Issued) -> Object:
        """Put the kubeconfig into the request's Secret, `secret` if it is there."""
        if secret is not None:
            return await self._amend(secret, service.replaced_content(access, secret, issued))
        key = service.secret_key(access)
        try:
            made = await self._client.create(SECRETS, service.new_secret(access, issued), field_manager=MANAGER)
        except AlreadyExists:
            found = await self._read(key.name, key.namespace)
            if found is None:
                raise StepError(f"secret {key.namespace}/{key.name} came and went", after=1.0) from None
            if not service.is_ours(access, found):
                raise self._taken(key.name) from None
            return await self._amend(found, service.replaced_content(access, found, issued))
        return self._learn(made)

    async def mend(self, access: Object, secret: Object) -> Object:
        """Give the Secret back its labels and owner, where they are amiss."""
        patch = service.mended(access, secret)
        return secret if patch is None else await self._amend(secret, patch)

    async def clear(self, access: Object, *, but: str = "") -> None:
        """Delete the request's Secrets, except the one named `but`."""
        namespace = access["metadata"]["namespace"]
        known = {secret["metadata"]["name"]: secret for secret in self._cache.by("owner", access["metadata"]["uid"])}
        noted = ((access.get("status") or {}).get("secret") or {}).get("name")
        if noted and noted not in known and noted != but:
            found = await self._read(noted, namespace)
            if found is not None and service.is_ours(access, found):
                known[noted] = found
        for name, secret in known.items():
            if name != but:
                await self._delete(secret)

    async def _delete(self, secret: Object) -> None:
        metadata = secret["metadata"]
        try:
            await self._client.delete(SECRETS, metadata["name"], metadata["namespace"], uid=metadata["uid"])
        except (NotFound, Conflict):
            return  # Gone, or another one by now, which is not ours.

    async def _read(self, name: str, namespace: str) -> Object | None:
        try:
            return sealed(await self._client.get(SECRETS, name, namespace))
        except NotFound:
            return None

    async def _amend(self, secret: Object, patch: Object) -> Object:
        metadata = secret["metadata"]
        patch["metadata"]["uid"] = metadata["uid"]
        try:
            written = await self._client.patch(
                SECRETS, metadata["name"], patch, metadata["namespace"], field_manager=MANAGER
            )
        except (NotFound, Conflict, Invalid) as error:
            text = f"secret {metadata['namespace']}/{metadata['name']} was deleted or replaced while it was written"
            raise StepError(text, after=1.0, reason=Reason.SECRET_TAKEN) from error
        return self._learn(written)

    def _learn(self, written: Object) -> Object:
        kept = sealed(written)
        self._cache.learn(kept)
        return kept

    def _taken(self, name: str) -> service.Setback:
        return service.Setback(
            Reason.SECRET_TAKEN,
            f"spec.secret.name: Secret {name} is there already and was not made for this request (requester: name "
            "another one, or delete it)",
            after=_FOREIGN_PAUSE,
        )
