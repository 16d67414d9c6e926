"""The changes that have Kymas reconciled: those of the control plane's own objects, and those in their clusters."""

from __future__ import annotations

from collections.abc import Iterator

from hortus.domains.modules.kyma.changes import MODULE, WAITS
from hortus.domains.modules.kyma.fanout import BY_CLUSTER, CatalogChanges, ReleaseChanges, kymas_of_template
from hortus.domains.modules.kyma.modules import manifest_matters
from hortus.domains.modules.kyma.parts import ClusterParts, KymaParts
from hortus.domains.modules.types import KYMAS
from hortus.engine import Cache, Priority, Source, Watch, metadata_of, spec_or_metadata_changed, to_owner
from hortus.engine.remote import LostWatches, RemoteStates
from hortus.kube.objects import ObjectKey


def cluster_sources(parts: KymaParts, inside: ClusterParts) -> list[Source]:
    """The Kymas that a change in their clusters, of the way into them or of what is copied concerns."""
    clusters, remotes, kymas = inside.clusters, inside.remotes, parts.caches.kymas
    copied = [*inside.crds.caches, *([inside.secret.cache] if inside.secret is not None else [])]
    return [
        # The objects that the initial reconciles read are listed first.
        Watch(clusters.secrets, to=clusters.kymas_of),
        *(Watch(cache, to=lambda found: list(kymas), priority=Priority.RETRY) for cache in copied),
        *control_sources(parts),
        CatalogChanges(
            (parts.caches.releases, parts.caches.templates), kymas, period=parts.settings.kyma.requeue.success
        ),
        remotes.watch,
        RemoteStates(clusters.pool, to=remotes.kymas_at),
        LostWatches(remotes.watch, to=lambda kyma: (kyma,)),
    ]


def control_sources(parts: KymaParts) -> list[Source]:
    """The Kymas that a change of the control plane's own objects concerns."""
    caches = parts.caches
    return [
        Watch(
            caches.templates,
            to=kymas_of_template(caches.kymas),
            when=lambda change: not change.initial,
            priority=Priority.RETRY,
        ),
        ReleaseChanges(
            caches.releases,
            caches.kymas,
            longest=parts.settings.kyma.rollout_delay,
            governs=lambda module: parts.gate.governs(MODULE, module),
        ),
        # Reports of modules come after the edits of users, and several of one Kyma are one reconcile.
        Watch(caches.manifests, to=to_owner(KYMAS), when=manifest_matters, priority=Priority.RETRY),
        parts.gate.source(
            MODULE,
            keys_of=lambda cluster: caches.kymas.keys_by(BY_CLUSTER, cluster),
            waiting=lambda: _waiting(caches.manifests),
        ),
        *_configured(parts),
        Watch(caches.kymas, when=spec_or_metadata_changed),
    ]


def _configured(parts: KymaParts) -> list[Source]:
    """All Kymas, since a selector may match any, when central configuration changes."""
    configurations, kymas = parts.central.cache, parts.caches.kymas
    return (
        [Watch(configurations, to=lambda found: list(kymas), priority=Priority.RETRY)]
        if configurations is not None
        else []
    )


def _waiting(manifests: Cache) -> Iterator[ObjectKey]:
    """The Kymas with a module that waits for a rollout."""
    for manifest in manifests.values():
        if WAITS in metadata_of(manifest).annotations:
            yield from to_owner(KYMAS)(manifest)
