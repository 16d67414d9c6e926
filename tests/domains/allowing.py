"""Permissions for the deputies of namespaces, as an administrator of a management cluster grants them."""

from __future__ import annotations

from hortus.engine.deputies import ACCOUNT, Action
from hortus.kube import Client, Resource

_GROUP = "rbac.authorization.k8s.io"


async def grant(client: Client, deputy: str, *actions: Action) -> None:
    """Lets objects of the namespace `deputy` have these actions done: everywhere where they name no namespace."""
    for action in actions:
        kind = "Role" if action.namespace else "ClusterRole"
        name = f"{deputy}-{action.verb}-{action.resource.replace('/', '-')}-{action.name or 'all'}"
        metadata = {"name": name, **({"namespace": action.namespace} if action.namespace else {})}
        rule = {"apiGroups": [action.group], "resources": [action.resource], "verbs": [action.verb]}
        if action.name:
            rule["resourceNames"] = [action.name]
        reference = {"apiGroup": _GROUP, "kind": kind, "name": name}
        subjects = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": deputy}]
        for suffix, body in (("", {"rules": [rule]}), ("Binding", {"roleRef": reference, "subjects": subjects})):
            await client.create(_resource(f"{kind}{suffix}"), {"metadata": metadata, **body})


def _resource(kind: str) -> Resource:
    return Resource(_GROUP, "v1", f"{kind.lower()}s", kind, namespaced=not kind.startswith("Cluster"))


def reads_secret(namespace: str, name: str) -> Action:
    """The action of reading one Secret."""
    return Action("get", "", "secrets", namespace, name)
