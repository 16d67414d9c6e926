"""The order in which objects are applied; pruning goes the other way.

What others need comes first: namespaces and definitions, then accounts, configuration, storage, permissions, services,
workloads, routes; objects of kinds that nobody here knows after those; webhooks last, because a webhook whose workload
does not run yet refuses everything. The kinds' order is the one that helm's users know.
"""

from __future__ import annotations

from hortus.kube.objects import Resource

_ORDER = """
Namespace CustomResourceDefinition
PriorityClass NetworkPolicy ResourceQuota LimitRange PodDisruptionBudget
ServiceAccount Secret ConfigMap StorageClass PersistentVolume PersistentVolumeClaim
ClusterRole ClusterRoleBinding Role RoleBinding
Service DaemonSet Pod ReplicationController ReplicaSet Deployment HorizontalPodAutoscaler StatefulSet Job CronJob
IngressClass Ingress APIService
"""
_LAST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_RANKS = {kind: rank for rank, kind in enumerate(_ORDER.split())}
_UNKNOWN = len(_RANKS)
_BUILT_IN = ("", "apps", "batch", "autoscaling", "policy", "apiextensions.k8s.io", "apiregistration.k8s.io")

FOUNDATIONS = frozenset(("Namespace", "CustomResourceDefinition"))
"""Kinds that must be there, and ready, before anything else is applied."""


def rank(resource: Resource) -> int:
    """Lower is applied earlier."""
    group, kind = resource.group, resource.kind
    if kind in _LAST:
        return _UNKNOWN + 1
    if group in _BUILT_IN or group.endswith(".k8s.io"):
        return _RANKS.get(kind, _UNKNOWN)
    return _UNKNOWN


def stage(resource: Resource) -> int:
    """Lower is deleted earlier; what is of one stage is deleted together.

    The reverse of applying but for definitions: they go right after the objects of kinds that nobody here knows, while
    what may have to finalize or convert these still runs.
    """
    return 1 - 2 * _UNKNOWN if is_definition(resource) else -2 * rank(resource)


def is_definition(resource: Resource) -> bool:
    return (resource.group, resource.kind) == ("apiextensions.k8s.io", "CustomResourceDefinition")


def is_foundation(resource: Resource) -> bool:
    return resource.kind in FOUNDATIONS and resource.group in ("", "apiextensions.k8s.io")
