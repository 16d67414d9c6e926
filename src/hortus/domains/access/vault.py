"""The Secrets of requests on the management cluster: created, changed and deleted; no other Secret is touched.

A Secret is a request's own by its owner, a uid, and not by its name: creation fails where one is there, and each change
carries the uid of the Secret that was looked at.
"""

from __future__ import annotations

from hortus.domains.access import service
from hortus.domains.access.types import ClusterAccess, Reason
from hortus.engine import Actor, StepError, TypedCache
from hortus.engine.kubeconfigs import IssuedKubeconfig, KubeconfigSecret, KubeconfigStore
from hortus.kube.errors import AlreadyExists, Conflict
from hortus.kube.objects import Object, ObjectKey

_FOREIGN_PAUSE = 60.0
"""Seconds until a Secret that is not ours, and so not watched, is read again."""


class Vault:
    """Reads and writes the Secrets of requests. Raises KubeError, and StepError where one belongs to somebody else."""

    def __init__(self, store: KubeconfigStore, secrets: TypedCache[KubeconfigSecret]) -> None:
        self._store = store
        self._secrets = secrets

    async def find(self, access: ClusterAccess) -> KubeconfigSecret | None:
        """The request's Secret. Raises StepError when another one has its name."""
        key = service.secret_key(access)
        found = self._secrets.get(key)
        if found is None and access.status.secret is not None and access.status.secret.name == key.name:
            # It was there: either it is gone, or somebody took its labels off.
            found = await self._store.read(key)
        if found is not None and not service.is_ours(access, found):
            raise _taken(key)
        return found

    async def put(
        self, access: ClusterAccess, secret: KubeconfigSecret | None, kubeconfig: IssuedKubeconfig
    ) -> KubeconfigSecret:
        """Put the kubeconfig into the request's Secret, `secret` if it is there."""
        plan = service.plan_of(access)
        if secret is not None:
            return await self._change(secret, plan.renewal(secret, kubeconfig))
        try:
            return await self._store.create(plan.created(kubeconfig))
        except AlreadyExists:
            found = await self._store.read(plan.key)
        if found is None:
            raise StepError(f"secret {plan.key} was deleted while it was read", after=1.0)
        if not service.is_ours(access, found):
            raise _taken(plan.key)
        return await self._change(found, plan.renewal(found, kubeconfig))

    async def repair(self, access: ClusterAccess, secret: KubeconfigSecret) -> KubeconfigSecret:
        """Restore the labels and the owner of the Secret."""
        patch = service.plan_of(access).repair(secret)
        return secret if patch is None else await self._change(secret, patch)

    async def clear(self, access: ClusterAccess, *, but: str = "") -> None:
        """Delete the request's Secrets, except the one named `but`."""
        known = {secret.key.name: secret for secret in self._secrets.by("owner", access.metadata.uid)}
        noted = access.status.secret.name if access.status.secret is not None else ""
        if noted and noted not in known and noted != but:
            found = await self._store.read(ObjectKey(access.metadata.namespace, noted))
            if found is not None and service.is_ours(access, found):
                known[noted] = found
        for name, secret in known.items():
            if name != but:
                await self._store.delete(secret)

    async def _change(self, secret: KubeconfigSecret, patch: Object) -> KubeconfigSecret:
        try:
            written = await self._store.change(secret, patch)
        except Conflict:
            written = None
        if written is None:
            text = f"secret {secret.key} was deleted or replaced while it was written"
            raise StepError(text, reason=Reason.SECRET_TAKEN, after=1.0)
        return written


def _taken(key: ObjectKey) -> StepError:
    return StepError(
        f"spec.secret.name: Secret {key.name} is there already and was not made for this request (requester: name "
        "another one, or delete it)",
        reason=Reason.SECRET_TAKEN,
        actor=Actor.USER,
        after=_FOREIGN_PAUSE,
    )
