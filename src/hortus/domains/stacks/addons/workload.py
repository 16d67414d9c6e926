"""The workload clusters of Clusters: reached by the Secret `<cluster>-kubeconfig`, key `value`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from hortus.domains.stacks.addons.reasons import CONTROL_PLANE_NOT_READY, SILENT_AGAIN, WATCHED_AGAIN, AddonCondition
from hortus.domains.stacks.capi import CAPI_GROUP, KUBECONFIG_KEY, kubeconfig_secret
from hortus.domains.stacks.conditions import Severity
from hortus.domains.stacks.context import ConditionError
from hortus.engine import Actor, Cache, Change, read
from hortus.engine.applysets import DiscoveredKinds
from hortus.engine.kubeconfigs import KubeconfigSecret
from hortus.engine.remote import CredentialMissing, KubeconfigRef, RemotePool, RemoteUnavailable
from hortus.engine.remote.states import Phase
from hortus.kube import Client
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, ObjectKey, key_of

SECRET_SELECTOR: Final = f"{CAPI_GROUP}/cluster-name"
"""Selects the Secrets of Clusters, by the label that Cluster API puts on them."""
_SUFFIX: Final = "-kubeconfig"
_MOST_KINDS: Final = 64
"""Clusters whose discovery is kept: it is some 50 KB each, and needed only while addons are applied."""


class StackWorkloads:
    """Clients of workload clusters. `secrets` holds the Secrets of `SECRET_SELECTOR`, without their values."""

    def __init__(self, pool: RemotePool, secrets: Cache) -> None:
        self._pool = pool
        self.secrets = secrets
        self._kinds: OrderedDict[KubeconfigRef, DiscoveredKinds] = OrderedDict()
        secrets.subscribe(self._secret_changed)
        pool.on_recreated(self._forget)

    async def connect(self, cluster: ObjectKey) -> Client:
        """A client of a cluster that has just answered. Raises ConditionError."""
        place = KubeconfigRef(cluster.namespace, kubeconfig_secret(cluster.name), KUBECONFIG_KEY)
        client = self._pool.at(place)
        try:
            await client.request("GET", "/readyz")
        except KubeError as error:
            missing = isinstance(error, CredentialMissing) or (
                isinstance(error, RemoteUnavailable) and error.state.phase is Phase.NO_CREDENTIAL
            )
            raise ConditionError(
                f"workload cluster of Cluster {cluster}: {error}",
                condition=AddonCondition.CLUSTER_READY,
                reason=CONTROL_PLANE_NOT_READY,
                severity=Severity.WARNING if missing else Severity.INFO,
                actor=Actor.PROVIDER,
                # A Secret that has just come may not have been tried yet: then the pool's state follows as an event.
                after=WATCHED_AGAIN if missing and self._is_awaited(cluster) else SILENT_AGAIN,
            ) from error
        return client

    def kinds(self, cluster: ObjectKey, client: Client) -> DiscoveredKinds:
        """The kinds that a cluster serves, as far as they are known."""
        place = KubeconfigRef(cluster.namespace, kubeconfig_secret(cluster.name), KUBECONFIG_KEY)
        found = self._kinds.pop(place, None) or DiscoveredKinds(client)
        self._kinds[place] = found
        while len(self._kinds) > _MOST_KINDS:
            self._kinds.popitem(last=False)
        return found

    def _is_awaited(self, cluster: ObjectKey) -> bool:
        """Reports whether the watch has yet to show the Secret of a cluster."""
        return ObjectKey(cluster.namespace, kubeconfig_secret(cluster.name)) not in self.secrets

    def _forget(self, place: KubeconfigRef) -> None:
        """Another cluster answers, which may serve other kinds."""
        self._kinds.pop(place, None)

    def _secret_changed(self, change: Change) -> None:
        """Has the cluster connected again: the pool's own cache need not hold this Secret."""
        place = KubeconfigRef(change.key.namespace, change.key.name, KUBECONFIG_KEY)
        if _checksum(change.old) != _checksum(change.new):
            self._forget(place)
            if place in self._pool.places():
                self._pool.remote(place).credential_changed()


def clusters_of(secret: Object) -> Iterable[ObjectKey]:
    """The Cluster whose kubeconfig a Secret is, by its name."""
    key = key_of(secret)
    return clusters_at(KubeconfigRef(key.namespace, key.name, KUBECONFIG_KEY))


def clusters_at(place: KubeconfigRef) -> Iterable[ObjectKey]:
    """The Cluster whose kubeconfig lies there, by the name of the Secret; none for a key of another kind."""
    if place.key != KUBECONFIG_KEY or not place.name.endswith(_SUFFIX):
        return []
    return [ObjectKey(place.namespace, place.name.removesuffix(_SUFFIX))]


def _checksum(secret: Object | None) -> str | None:
    return None if secret is None else read(KubeconfigSecret, secret).data.get(KUBECONFIG_KEY)
