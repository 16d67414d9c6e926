"""Permissions for the deputies of namespaces, as an administrator of a management cluster grants them."""

from __future__ import annotations

from collections.abc import Sequence

from hortus.engine.deputies import ACCOUNT, Action
from hortus.kube import Client, Resource
from hortus.kube.objects import Object

_GROUP = "rbac.authorization.k8s.io"


async def grant(client: Client, deputy: str, *actions: Action) -> None:
    """Lets objects of the namespace `deputy` have these actions done: everywhere where they name no namespace."""
    for one in actions:
        names = [one.name] if one.name else []
        await grant_verbs(client, deputy, one.group, one.resource, one.verb, where=one.namespace, names=names)


async def grant_verbs(
    client: Client, deputy: str, group: str, resource: str, *verbs: str, where: str = "", names: Sequence[str] = ()
) -> str:
    """Gives the deputy of a namespace these verbs in the namespace `where`, or everywhere; returns the binding's name.

    `resource` is plural, with its subresource after a slash.
    """
    kind = "Role" if where else "ClusterRole"
    name = "-".join((deputy, *resource.split("/"), *verbs, *names))
    rule: Object = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    if names:
        rule["resourceNames"] = list(names)
    metadata = {"name": name, **({"namespace": where} if where else {})}
    subjects = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": deputy}]
    reference = {"apiGroup": _GROUP, "kind": kind, "name": name}
    await client.create(_resource(kind), {"metadata": metadata, "rules": [rule]})
    await client.create(_resource(f"{kind}Binding"), {"metadata": metadata, "roleRef": reference, "subjects": subjects})
    return name


async def take_back(client: Client, binding: str, *, where: str = "") -> None:
    """Deletes a binding that `grant_verbs` made."""
    await client.delete(_resource("RoleBinding" if where else "ClusterRoleBinding"), binding, where)


def reads_secret(namespace: str, name: str) -> Action:
    """The action of reading one Secret."""
    return Action("get", "", "secrets", namespace, name)


def _resource(kind: str) -> Resource:
    return Resource(_GROUP, "v1", f"{kind.lower()}s", kind, namespaced=not kind.startswith("Cluster"))
