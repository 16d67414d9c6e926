"""Objects of the control plane that each cluster gets a copy of: the CRDs and the Secret for pulling images."""

from __future__ import annotations

from hortus.domains.modules.kyma.copies import CopySet
from hortus.domains.modules.kyma.documents import CRDS, crd_copies, secret_copy
from hortus.domains.modules.kyma.remote import COPIED_CRDS
from hortus.domains.modules.settings import Settings
from hortus.engine import Actor, Manager, StepError, without_managed_fields
from hortus.engine.remote import SECRETS
from hortus.kube.objects import Object, ObjectKey


class CopiedCrds:
    """The CRDs that each cluster gets, as they are in the control plane."""

    def __init__(self, manager: Manager) -> None:
        self.caches = [
            manager.cache(CRDS, fields=f"metadata.name={name}", transform=without_managed_fields)
            for name in COPIED_CRDS
        ]
        self._known: tuple[list[Object], CopySet] | None = None

    def copies(self) -> CopySet:
        """The copies for a cluster. Raises StepError while a CRD is missing."""
        found = [cache.get(ObjectKey("", name)) for name, cache in zip(COPIED_CRDS, self.caches, strict=True)]
        crds = [crd for crd in found if crd is not None]
        if len(crds) < len(COPIED_CRDS):
            missing = ", ".join(name for name, crd in zip(COPIED_CRDS, found, strict=True) if crd is None)
            raise StepError(
                f"the control plane lacks the CRDs {missing}; install them", reason="CrdMissing", actor=Actor.OPERATOR
            )
        if self._known is None or any(old is not new for old, new in zip(self._known[0], crds, strict=True)):
            self._known = crds, crd_copies(crds)
        return self._known[1]


class PullSecret:
    """The Secret for pulling images that each cluster gets."""

    def __init__(self, manager: Manager, namespace: str, settings: Settings) -> None:
        self._key = ObjectKey(namespace, settings.pull_secret)
        self._target = settings.sync_namespace
        self.cache = manager.cache(
            SECRETS,
            namespace=namespace,
            fields=f"metadata.name={settings.pull_secret}",
            transform=without_managed_fields,
        )
        self._known: tuple[Object, CopySet] | None = None

    def copies(self) -> CopySet:
        """The copy for a cluster. Raises StepError while the Secret is missing."""
        secret = self.cache.get(self._key)
        if secret is None:
            raise StepError(
                f"Secret {self._key} of --skr-image-pull-secret does not exist; create it",
                reason="PullSecretMissing",
                actor=Actor.OPERATOR,
            )
        if self._known is None or self._known[0] is not secret:
            self._known = secret, secret_copy(secret, SECRETS, self._target)
        return self._known[1]
