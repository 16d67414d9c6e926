"""Who is cluster-admin in the cluster: one ClusterRoleBinding for each administrator of the Runtime (section 2.3b).

Only bindings with our label are looked at; those of customers are never touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from hortus.domains.clusters.types import MANAGER
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource

BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
LABEL: Final = "reconciler.kyma-project.io/managed-by"
"""Another prefix than everywhere else; the Go system's."""
ROLE: Final = "cluster-admin"


class Changes(NamedTuple):
    remove: list[Object]
    add: list[Object]


def changes(present: Sequence[Object], administrators: Sequence[str]) -> Changes:
    """What to remove of the labelled bindings, and what to add, for exactly these administrators."""
    remove = [binding for binding in present if _outdated(binding, administrators)]
    gone = {binding["metadata"]["name"] for binding in remove}
    bound = {
        name
        for binding in present
        if binding["metadata"]["name"] not in gone and _grants(binding)
        for name in _names(binding)
    }
    wanted = dict.fromkeys(name for name in administrators if name not in bound)
    return Changes(remove, [binding_for(name) for name in wanted])


def binding_for(administrator: str) -> Object:
    return {
        "apiVersion": BINDINGS.api_version,
        "kind": BINDINGS.kind,
        "metadata": {"generateName": "admin-", "labels": {LABEL: MANAGER}},
        "subjects": [{"kind": "User", "name": administrator, "apiGroup": BINDINGS.group}],
        "roleRef": {"kind": "ClusterRole", "name": ROLE, "apiGroup": BINDINGS.group},
    }


async def bind_administrators(cluster: Client, runtime: Object) -> None:
    """Raises KubeError."""
    present = (await cluster.list(BINDINGS, labels=f"{LABEL}={MANAGER}")).items
    found = changes(present, runtime["spec"]["security"]["administrators"])
    for binding in found.add:
        await cluster.create(BINDINGS, binding)
    for binding in found.remove:
        with suppress(NotFound):
            await cluster.delete(BINDINGS, binding["metadata"]["name"])


def _outdated(binding: Object, administrators: Sequence[str]) -> bool:
    """It names a user, and nobody who is an administrator; others' roles are none of our business."""
    users = any(subject.get("kind") == "User" for subject in binding.get("subjects") or ())
    return users and _grants(binding) and not _names(binding) & set(administrators)


def _grants(binding: Object) -> bool:
    # The Go system takes "or" for "and" here and so removes bindings to other roles, too (section 10).
    role = binding["roleRef"]
    return bool(role["kind"] == "ClusterRole" and role["name"] == ROLE)


def _names(binding: Object) -> set[str]:
    return {subject["name"] for subject in binding.get("subjects") or ()}
