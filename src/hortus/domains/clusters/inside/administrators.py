"""Administrators of the cluster: one ClusterRoleBinding to cluster-admin for each of the Runtime's.

Only bindings with our label are read; those of customers are never touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from hortus.domains.clusters.types import MANAGER
from hortus.engine.typed import metadata_of
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource, key_of, shaped

BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
LABEL: Final = "reconciler.kyma-project.io/managed-by"
"""Another prefix than everywhere else; the Go system's."""
ROLE: Final = "cluster-admin"


class Subject(msgspec.Struct):
    """A user or group that a binding names."""

    kind: str
    name: str


class _RoleRef(msgspec.Struct):
    kind: str
    name: str


class _Binding(msgspec.Struct, rename="camel"):
    role_ref: _RoleRef
    subjects: list[Subject] | None = None


class Changes(NamedTuple):
    remove: list[Object]
    add: list[Object]


def changes(present: Sequence[Object], administrators: Sequence[str]) -> Changes:
    """Returns the labelled bindings to remove and those to add, for exactly these administrators."""
    remove = [binding for binding in present if _outdated(binding, administrators)]
    gone = {key_of(binding) for binding in remove}
    bound = {name for binding in present if key_of(binding) not in gone for name in _names(granted(binding))}
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


async def bind_administrators(cluster: Client, administrators: Sequence[str]) -> None:
    """Raises KubeError."""
    present = (await cluster.list(BINDINGS, labels=f"{LABEL}={MANAGER}")).items
    found = changes(present, administrators)
    for binding in found.add:
        await cluster.create(BINDINGS, binding)
    for binding in found.remove:
        with suppress(NotFound):
            await cluster.delete(BINDINGS, key_of(binding).name, uid=metadata_of(binding).uid)


def granted(binding: Object) -> list[Subject]:
    """The subjects that a binding makes cluster-admin; none for one of another role, or that is no binding at all."""
    # The Go system takes "or" for "and" here and so removes bindings to other roles, too.
    found = shaped(binding, _Binding)
    grants = found is not None and (found.role_ref.kind, found.role_ref.name) == ("ClusterRole", ROLE)
    return found.subjects or [] if found is not None and grants else []


def _outdated(binding: Object, administrators: Sequence[str]) -> bool:
    """Returns true for a cluster-admin binding that names a user and no administrator."""
    subjects = granted(binding)
    return any(subject.kind == "User" for subject in subjects) and not _names(subjects) & set(administrators)


def _names(subjects: Sequence[Subject]) -> set[str]:
    return {subject.name for subject in subjects}
