"""The objects of a request in its cluster: one account, and a role with its binding in each place it may work. Pure.

The objects are named after the client and the uid of the request, so that two requests never meet, not even those of
two management clusters. A role by reference is copied: what is bound was checked, whatever becomes of the original.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from hortus.domains.access.coverage import RbacRule
from hortus.domains.access.types import GROUP, MANAGER, AccountSpec, Annotation, ClusterAccess, Label
from hortus.engine.applysets import set_id
from hortus.kube.objects import Object, ObjectKey, Resource

ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_RBAC: Final = "rbac.authorization.k8s.io"
ROLES: Final = Resource(_RBAC, "v1", "roles", "Role")
BINDINGS: Final = Resource(_RBAC, "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES: Final = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_BINDINGS: Final = Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
KINDS: Final = (ACCOUNTS, ROLES, BINDINGS, CLUSTER_ROLES, CLUSTER_BINDINGS)
"""All kinds that this domain writes into clusters."""

ACCOUNT_NAMESPACE: Final = "kube-system"
"""The namespace of accounts unless a request names another: a namespace that every cluster has, and in which no request
may work unless it is allowed."""


def mark_of(access: ClusterAccess) -> str:
    """The mark of a request: the same for its whole life, and nobody else's."""
    return hashlib.sha256(access.metadata.uid.encode()).hexdigest()[:16]


def name_of(access: ClusterAccess) -> str:
    """The name of all objects of a request."""
    return f"access-{access.spec.client}-{mark_of(access)}"


def account_of(access: ClusterAccess) -> ObjectKey:
    """The account of a request."""
    wanted = access.spec.service_account
    return ObjectKey(wanted.namespace, wanted.name) if wanted else ObjectKey(ACCOUNT_NAMESPACE, name_of(access))


def identity_of(access: ClusterAccess) -> str:
    """The id of the set of its objects."""
    return set_id(name=mark_of(access), namespace="", kind="ClusterAccess", group=GROUP)


def objects_of(access: ClusterAccess, rules: Sequence[RbacRule]) -> list[Object]:
    """The account, and a role with its binding for each namespace, or one for the cluster when there are none."""
    name, account = name_of(access), account_of(access)
    subject = {"kind": ACCOUNTS.kind, "name": account.name, "namespace": account.namespace}
    manifests = [rule.manifest() for rule in rules]
    found = [_account(access)]
    for namespace in access.spec.namespaces or ("",):
        role, binding = (ROLES, BINDINGS) if namespace else (CLUSTER_ROLES, CLUSTER_BINDINGS)
        reference = {"apiGroup": _RBAC, "kind": role.kind, "name": name}
        found.append(_object(access, role, namespace, rules=manifests))
        found.append(_object(access, binding, namespace, roleRef=reference, subjects=[subject]))
    return found


def rules_within(rules: Sequence[RbacRule], namespaces: Sequence[str]) -> list[RbacRule]:
    """`rules` of a copied role as a Role can hold them: paths have no namespace."""
    return [rule for rule in rules if not (namespaces and rule.non_resource_urls)]


def _object(access: ClusterAccess, resource: Resource, namespace: str, **content: object) -> Object:
    metadata = _metadata(access, name_of(access), namespace)
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}


def _account(access: ClusterAccess) -> Object:
    """The account as the request describes it."""
    key, wanted = account_of(access), access.spec.service_account
    return {
        "apiVersion": ACCOUNTS.api_version,
        "kind": ACCOUNTS.kind,
        "metadata": _metadata(access, key.name, key.namespace, wanted),
        "automountServiceAccountToken": False,
    }


def _metadata(access: ClusterAccess, name: str, namespace: str, described: AccountSpec | None = None) -> Object:
    """Metadata with the marks of the request, which win over those that are described."""
    labels, annotations = (described.labels, described.annotations) if described is not None else ({}, {})
    return {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "labels": {**labels, Label.REQUEST: mark_of(access), Label.MANAGED_BY: MANAGER},
        "annotations": {**annotations, Annotation.CLIENT: _title(access)},
    }


def _title(access: ClusterAccess) -> str:
    return f"{access.metadata.namespace}/{access.metadata.name} for {access.spec.client}"
