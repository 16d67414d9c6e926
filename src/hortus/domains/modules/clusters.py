"""The cluster of a Kyma: its kubeconfig lies in the one Secret that carries the Kyma's name in a label."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, Protocol

from hortus.domains.modules.names import ACCESS_KEY, Label
from hortus.engine import Actor, Cache, Change, StepError, by_label, read
from hortus.engine.applysets import DiscoveredKinds
from hortus.engine.deputies import Deputies, secret_reading
from hortus.engine.kubeconfigs import KubeconfigSecret
from hortus.engine.remote import KubeconfigRef, MemberIdentity, RemotePool, RemoteState, RemoteUnavailable
from hortus.kube import Client
from hortus.kube.errors import Unauthorized
from hortus.kube.objects import Object, ObjectKey, key_of

SECRET_SELECTOR: Final = Label.KYMA_NAME
"""Selects the Secrets with kubeconfigs."""
_INDEX: Final = "kyma"
_MOST_KINDS: Final = 64
"""Clusters whose discovery is kept: it is some 50 KB each, and needed only while something is applied."""


class AccessSecretMissing(StepError):
    """No Secret leads to the cluster of a Kyma: there is none yet, or the cluster is gone."""


def is_unauthorized(error: Exception) -> bool:
    """Reports whether a cluster does not take the credential: by its answer, or by one of before."""
    if isinstance(error, RemoteUnavailable):
        return error.state.reason == "CredentialRefused"
    return isinstance(error, Unauthorized)


class ModuleClusters(Protocol):
    """The clusters of Kymas as the controller of Manifests uses them."""

    def place(self, kyma: str, namespace: str) -> KubeconfigRef:
        """The place of the way into the cluster of a Kyma. Raises StepError."""

    async def permit(self, place: KubeconfigRef) -> None:
        """Raises StepError where the objects of a namespace may not act in the cluster there."""

    def client(self, place: KubeconfigRef) -> Client:
        """A client of the cluster there."""

    def kinds(self, place: KubeconfigRef) -> DiscoveredKinds:
        """The kinds that the cluster serves, as far as they are known."""

    def state(self, place: KubeconfigRef) -> RemoteState:
        """The state of the connection."""

    def identity(self, place: KubeconfigRef) -> MemberIdentity:
        """The cluster that answered there last, as long as it is known."""


class KymaClusters:
    """Clients of the clusters of Kymas. `secrets` holds the Secrets of `SECRET_SELECTOR`, without their values."""

    def __init__(self, pool: RemotePool, secrets: Cache, deputies: Deputies) -> None:
        self.pool = pool
        self.secrets = secrets
        self._deputies = deputies
        self._kinds: OrderedDict[KubeconfigRef, DiscoveredKinds] = OrderedDict()
        secrets.add_index(_INDEX, by_label(Label.KYMA_NAME))
        secrets.subscribe(self._secret_changed)
        pool.on_recreated(self._recreated)

    def place(self, kyma: str, namespace: str) -> KubeconfigRef:
        """The place of the kubeconfig. Raises AccessSecretMissing, and StepError when there is more than one."""
        found = [key for key in self.secrets.keys_by(_INDEX, kyma) if key.namespace == namespace]
        selector = f"{Label.KYMA_NAME}={kyma}"
        if not found:
            raise AccessSecretMissing(
                f"access secret not found: no Secret in namespace {namespace} has the label {selector}",
                reason="AccessSecretMissing",
                actor=Actor.OPERATOR,
            )
        if len(found) > 1:
            names = ", ".join(sorted(key.name for key in found)[:5])
            raise StepError(
                f"more than one access secret found: Secrets {names} in namespace {namespace} have the label "
                f"{selector}; delete all but one",
                reason="AccessSecretAmbiguous",
                actor=Actor.OPERATOR,
            )
        return KubeconfigRef(namespace, found[0].name, ACCESS_KEY)

    async def permit(self, place: KubeconfigRef) -> None:
        """Raises StepError unless the namespace may read the kubeconfig, which is worth all of the cluster."""
        await self._deputies.require(place.namespace, secret_reading(place.namespace, place.name))

    def client(self, place: KubeconfigRef) -> Client:
        """A client of the cluster whose kubeconfig lies there; nothing is connected yet."""
        return self.pool.at(place)

    def kinds(self, place: KubeconfigRef) -> DiscoveredKinds:
        """The kinds that the cluster serves, as far as they are known."""
        found = self._kinds.pop(place, None) or DiscoveredKinds(self.client(place))
        self._kinds[place] = found
        while len(self._kinds) > _MOST_KINDS:
            self._kinds.popitem(last=False)
        return found

    def state(self, place: KubeconfigRef) -> RemoteState:
        """The state of the connection."""
        return self.pool.state(place)

    def identity(self, place: KubeconfigRef) -> MemberIdentity:
        """The cluster that answered there last, as long as it is known."""
        return self.pool.identity(place)

    def kymas_at(self, place: KubeconfigRef) -> Iterable[ObjectKey]:
        """The Kyma whose cluster is reached by the Secret at `place`, if the Secret is known."""
        return self.kymas_of(self.secrets.get(ObjectKey(place.namespace, place.name)))

    def kymas_of(self, secret: Object | None) -> Iterable[ObjectKey]:
        """The Kyma that a Secret names."""
        if secret is None:
            return ()
        key = key_of(secret)
        return tuple(ObjectKey(key.namespace, name) for name in by_label(Label.KYMA_NAME)(secret))

    def _recreated(self, place: KubeconfigRef) -> None:
        """Another cluster answers, which may serve other kinds."""
        self._kinds.pop(place, None)

    def _secret_changed(self, change: Change) -> None:
        """Has the cluster connected again: the pool's own cache need not hold this Secret."""
        place = KubeconfigRef(change.key.namespace, change.key.name, ACCESS_KEY)
        before = _checksum(change.old)
        if before != _checksum(change.new):
            self._kinds.pop(place, None)
            if place in self.pool.places():
                self.pool.remote(place).credential_changed()


def _checksum(secret: Object | None) -> str | None:
    return None if secret is None else read(KubeconfigSecret, secret).data.get(ACCESS_KEY)
