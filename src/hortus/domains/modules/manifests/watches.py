"""Watches of modules on their clusters: one of Deployments for each cluster, shared by all of its modules.

An event that matters reconciles the Manifest that the Deployment's mark names, if that Manifest is of this cluster.
Objects of other kinds are compared from time to time, since each further watch of each cluster costs a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from hortus.domains.modules.clusters import KymaClusters
from hortus.domains.modules.manifests.outline import change_matters, edition, outline, owner_of
from hortus.domains.modules.manifests.resting import Resting
from hortus.domains.modules.manifests.settling import Settling
from hortus.domains.modules.names import ACCESS_KEY, MANAGED_BY_KYMA, Label
from hortus.domains.modules.types import Kyma
from hortus.engine import Cache, Change, NotReadable, Selection, Trigger, Watch, by_label, labels_changed, read
from hortus.engine.kubeconfigs import KubeconfigSecret
from hortus.engine.remote import KubeconfigRef, LostWatches, RemoteStates, RemoteWatch
from hortus.engine.sources import Source
from hortus.kube.objects import Object, ObjectKey, Resource, key_of

DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
MODULE_SELECTOR: Final = f"{Label.MANAGED_BY}={MANAGED_BY_KYMA}"
_KYMA_INDEX: Final = "kyma-name"
"""The Kyma controller files Manifests under "kyma", by another value."""


class _ControlWatches:
    """The part that follows objects of the control plane. Each event ends the rest of the Manifests it concerns."""

    def __init__(self, manifests: Cache, kymas: Cache) -> None:
        self._manifests = manifests
        self._kymas = kymas
        self._resting: Resting | None = None
        self._settling: Settling | None = None
        manifests.add_index(_KYMA_INDEX, by_label(Label.KYMA_NAME))

    def disturbs(self, resting: Resting) -> None:
        """Makes events end the rest of Manifests."""
        self._resting = resting

    def unsettles(self, settling: Settling) -> None:
        """Makes edits of workloads end the memory of what was applied."""
        self._settling = settling

    def _matters(self, change: Change) -> bool:
        if self._settling is not None and change.old is not None and (key := owner_of(change.old)) is not None:
            self._settling.seen(key, edition(change.new) if change.new is not None else None)
        return change_matters(change)

    def configured_by(self, configurations: Cache | None) -> list[Source]:
        """The sources of central configuration: its objects, and the labels of Kymas by which they are selected."""
        if configurations is None:
            return []
        return [
            Watch(configurations, to=lambda found: self._disturbed(list(self._manifests))),
            Watch(self._kymas, to=self._manifests_of_kyma, when=labels_changed),
        ]

    def _manifests_of_kyma(self, kyma: Object) -> Iterable[ObjectKey]:
        return self._of(key_of(kyma))

    def _of(self, kyma: ObjectKey) -> list[ObjectKey]:
        keys = [key for key in self._manifests.keys_by(_KYMA_INDEX, kyma.name) if key.namespace == kyma.namespace]
        return self._disturbed(keys)

    def _disturbed(self, keys: list[ObjectKey]) -> list[ObjectKey]:
        if self._resting is not None:
            for key in keys:
                self._resting.disturb(key)
        return keys


class ModuleWatches(_ControlWatches):
    """The further sources of the Manifest controller, where modules are on the clusters of Kymas."""

    def __init__(
        self,
        clusters: KymaClusters,
        manifests: Cache,
        kymas: Cache,
        *,
        holds: Callable[[ObjectKey], bool] | None = None,
    ) -> None:
        super().__init__(manifests, kymas)
        self._clusters = clusters
        self._recreated = Trigger()
        clusters.pool.on_recreated(self._cluster_recreated)
        self.deployments = RemoteWatch(
            clusters.pool,
            clusters.secrets,
            place=_place_of,
            selection=Selection(DEPLOYMENTS, labels=MODULE_SELECTOR),
            transform=outline,
            to=self._manifest_of,
            when=self._matters,
            holds=holds,
        )

    def is_current(self, place: KubeconfigRef) -> bool:
        """Reports whether the watch of a cluster shows it as it is."""
        member = ObjectKey(place.namespace, place.name)
        cache = self.deployments.cache(member)
        return cache is not None and cache.has_synced and self.deployments.problem(member) is None

    def sources(self) -> list[Source]:
        return [
            Watch(self._kymas, to=self._manifests_of_kyma, when=_listing_changed),
            Watch(self._clusters.secrets, to=self._manifests_of_secret, when=_access_changed),
            self.deployments,
            RemoteStates(self._clusters.pool, to=self._manifests_at),
            LostWatches(self.deployments, to=self._manifests_of_member),
            self._recreated,
        ]

    def _cluster_recreated(self, place: KubeconfigRef) -> None:
        """Another cluster answers, which has none of the modules."""
        for key in self._manifests_at(place):
            if self._settling is not None:
                self._settling.forget(key)
            self._recreated.fire(key)

    # Keys.

    def _manifest_of(self, member: ObjectKey, deployment: Object) -> Iterable[ObjectKey]:
        """The Manifest that a Deployment names; the cluster is untrusted, so only one of its own Kyma counts."""
        key = owner_of(deployment)
        manifest = self._manifests.get(key) if key is not None else None
        if key is None or manifest is None:
            return ()
        kymas = self._clusters.kymas_of(self._clusters.secrets.get(member))
        return self._disturbed([key] if any(kyma.name in by_label(Label.KYMA_NAME)(manifest) for kyma in kymas) else [])

    def _manifests_of_member(self, member: ObjectKey) -> Iterable[ObjectKey]:
        secret = self._clusters.secrets.get(member)
        return self._manifests_of_secret(secret) if secret is not None else ()

    def _manifests_of_secret(self, secret: Object) -> Iterable[ObjectKey]:
        return [key for kyma in self._clusters.kymas_of(secret) for key in self._of(kyma)]

    def _manifests_at(self, place: KubeconfigRef) -> Iterable[ObjectKey]:
        return [key for kyma in self._clusters.kymas_at(place) for key in self._of(kyma)]


class OwnWatches(_ControlWatches):
    """The further sources where modules are in the cluster of the process."""

    def __init__(self, deployments: Cache, manifests: Cache, kymas: Cache) -> None:
        """`deployments` holds the outlines of those of `MODULE_SELECTOR`."""
        super().__init__(manifests, kymas)
        self._deployments = deployments

    def is_current(self, place: KubeconfigRef) -> bool:
        """Reports whether the watch shows the cluster as it is."""
        return self._deployments.has_synced and self._deployments.problem is None

    def sources(self) -> list[Source]:
        return [
            Watch(self._kymas, to=self._manifests_of_kyma, when=_listing_changed),
            Watch(self._deployments, to=self._manifest_of, when=self._matters),
        ]

    def _manifest_of(self, deployment: Object) -> Iterable[ObjectKey]:
        key = owner_of(deployment)
        return self._disturbed([key] if key is not None and key in self._manifests else [])


def _place_of(secret: Object) -> KubeconfigRef:
    return KubeconfigRef(*key_of(secret), ACCESS_KEY)


def _listing_changed(change: Change) -> bool:
    """Reports whether a Kyma lists other Manifests than before, or other ones with a default resource."""
    return change.old is None or change.new is None or _listed(change.old) != _listed(change.new)


def _listed(kyma: Object) -> frozenset[tuple[str, str, bool]]:
    try:
        modules = read(Kyma, kyma).status.modules
    except NotReadable:
        return frozenset()
    return frozenset(
        (one.manifest.metadata.namespace, one.manifest.metadata.name, one.resource is not None)
        for one in modules
        if one.manifest is not None
    )


def _access_changed(change: Change) -> bool:
    """Reports whether a Secret came, went, or leads elsewhere."""
    if change.old is None or change.new is None:
        return True
    before, after = (read(KubeconfigSecret, one) for one in (change.old, change.new))
    return before.data != after.data or before.labels != after.labels
