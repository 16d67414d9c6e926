"""Permissions for the deputy of a namespace, given by RBAC objects."""

from __future__ import annotations

from collections.abc import Sequence

from hortus.engine.deputies import ACCOUNT
from hortus.kube import Client, Resource
from hortus.kube.objects import Object

_GROUP = "rbac.authorization.k8s.io"
_CLUSTER_ROLES = Resource(_GROUP, "v1", "clusterroles", "ClusterRole", namespaced=False)
_CLUSTER_BINDINGS = Resource(_GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
_ROLES = Resource(_GROUP, "v1", "roles", "Role")
_BINDINGS = Resource(_GROUP, "v1", "rolebindings", "RoleBinding")


async def grant(
    client: Client, namespace: str, group: str, resource: str, *verbs: str, where: str = "", names: Sequence[str] = ()
) -> str:
    """Gives the deputy of `namespace` these verbs in the namespace `where`, or everywhere; returns the binding's name.

    `resource` is plural, with its subresource after a slash.
    """
    roles, bindings = (_ROLES, _BINDINGS) if where else (_CLUSTER_ROLES, _CLUSTER_BINDINGS)
    name = "-".join((namespace, *resource.split("/"), *verbs, *names))
    rule: Object = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    if names:
        rule["resourceNames"] = list(names)
    metadata = {"name": name, **({"namespace": where} if where else {})}
    await client.create(roles, {"metadata": metadata, "rules": [rule]})
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    reference = {"apiGroup": _GROUP, "kind": roles.kind, "name": name}
    await client.create(bindings, {"metadata": metadata, "roleRef": reference, "subjects": [subject]})
    return name


async def take_back(client: Client, binding: str, *, where: str = "") -> None:
    """Deletes a binding that `grant` made."""
    await client.delete(_BINDINGS if where else _CLUSTER_BINDINGS, binding, where)
