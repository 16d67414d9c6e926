"""The webhooks as the Go operator registers them (SovereignCloudStack/cluster-stack-operator, config/webhook).

Clusters are named in v1beta2 as well: a server that serves that version alone would ask for none of them otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hortus.domains import ValidatingWebhook
from hortus.domains.stacks.capi import CLUSTERS
from hortus.domains.stacks.types import CLUSTER_ADDONS, CLUSTER_STACK_RELEASES, CLUSTER_STACKS
from hortus.kube.objects import Object, Resource

CLUSTER_PATH: Final = "/validate-cluster-x-k8s-io-v1beta1-cluster"
ADDON_PATH: Final = "/validate-clusterstack-x-k8s-io-v1alpha1-clusteraddon"
STACK_PATH: Final = "/validate-clusterstack-x-k8s-io-v1alpha1-clusterstack"
RELEASE_PATH: Final = "/validate-clusterstack-x-k8s-io-v1alpha1-clusterstackrelease"
_REVIEWS: Final = ("v1", "v1alpha1")
_PLACE: Final = "namespace"


def _on(resource: Resource, *operations: str, versions: Iterable[str] = ()) -> tuple[Object, ...]:
    rule: Object = {
        "apiGroups": [resource.group],
        "apiVersions": sorted(versions) or [resource.version],
        "operations": list(operations),
        "resources": [resource.plural],
    }
    return (rule,)


WEBHOOKS: Final[Sequence[ValidatingWebhook]] = (
    ValidatingWebhook(
        "validation.cluster.cluster.x-k8s.io",
        CLUSTER_PATH,
        _on(next(iter(CLUSTERS.values())), "CREATE", "UPDATE", versions=CLUSTERS),
        ("v1", "v1beta1"),
        namespace_flag=_PLACE,
    ),
    ValidatingWebhook(
        "validation.clusteraddon.clusterstack.x-k8s.io",
        ADDON_PATH,
        _on(CLUSTER_ADDONS, "CREATE", "UPDATE"),
        _REVIEWS,
        namespace_flag=_PLACE,
    ),
    ValidatingWebhook(
        "validation.clusterstack.clusterstack.x-k8s.io",
        STACK_PATH,
        _on(CLUSTER_STACKS, "CREATE", "UPDATE", "DELETE"),
        _REVIEWS,
        namespace_flag=_PLACE,
    ),
    ValidatingWebhook(
        "validation.clusterstackrelease.clusterstack.x-k8s.io",
        RELEASE_PATH,
        _on(CLUSTER_STACK_RELEASES, "DELETE"),
        _REVIEWS,
        namespace_flag=_PLACE,
    ),
)
"""All fail closed: a release that a Cluster uses is not deleted while nobody can judge."""
