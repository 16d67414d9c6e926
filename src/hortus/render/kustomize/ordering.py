"""The order of the result: as it came, or by kind as `kustomize build` has it when nobody says otherwise."""

from __future__ import annotations

from functools import cmp_to_key

from hortus.render.kustomize.documents import SortOptions
from hortus.render.kustomize.errors import KustomizeError
from hortus.render.kustomize.resources import Resource

_FIRST = (
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
)
_LAST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
ORDERS = ("legacy", "fifo")


def sorted_by(resources: list[Resource], options: SortOptions, place: str) -> list[Resource]:
    """`resources` in the order that `options` ask for. Raises KustomizeError."""
    if options.order not in ORDERS:
        raise KustomizeError(place, f"sortOptions.order: {options.order[:80]!r} is not one of {', '.join(ORDERS)}")
    legacy = options.legacy_sort_options
    if options.order == "fifo":
        if legacy is not None:
            raise KustomizeError(place, "sortOptions: legacySortOptions need order: legacy")
        return resources
    first, last = (_FIRST, _LAST) if legacy is None else (legacy.order_first, legacy.order_last)
    ranks = {kind: place - len(first) for place, kind in enumerate(first)}
    ranks |= {kind: place + 1 for place, kind in enumerate(last)}

    def compare(one: Resource, two: Resource) -> int:
        return _compare(one, two, ranks)

    return sorted(resources, key=cmp_to_key(compare))


def kind_rank(group: str, version: str, kind: str) -> tuple[int, str]:
    """A key that puts kinds into the default order."""
    rank = _FIRST.index(kind) - len(_FIRST) if kind in _FIRST else 0
    rank = _LAST.index(kind) + 1 if kind in _LAST else rank
    return rank, f"{group or '~G'}_{version or '~V'}_{kind or '~K'}"


def _compare(one: Resource, two: Resource, ranks: dict[str, int]) -> int:
    a, b = one.current, two.current
    if a[:3] == b[:3]:
        return _order(_place(one), _place(two))
    ranked = _order(ranks.get(a.kind, 0), ranks.get(b.kind, 0))
    if ranked:
        return ranked
    by_name = _order(kind_rank(*a[:3])[1], kind_rank(*b[:3])[1])
    namespaces = a.kind == b.kind == "Namespace" and not (a.group and b.group)
    return -by_name if namespaces else by_name


def _place(resource: Resource) -> str:
    """Namespace and name as one text; the separator takes part in the order."""
    return f"{resource.namespace or '~X'}|{resource.name or '~N'}"


def _order(a: str | int, b: str | int) -> int:
    return (a > b) - (a < b)  # type: ignore[operator]
