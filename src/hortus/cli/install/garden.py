"""The account by which Hortus works in the garden: no more than what the controllers declare."""

from __future__ import annotations

from hortus.cli.install import contents
from hortus.engine.rbac import Permission, policy_rules
from hortus.kube.objects import Object

ACCOUNT = "hortus"
_RBAC = "rbac.authorization.k8s.io"


def account(project: str) -> list[Object]:
    """A ServiceAccount in the project's namespace, and what it may do there and in the whole garden."""
    metadata: Object = {"name": ACCOUNT, "namespace": f"garden-{project}"}
    wide: Object = {"name": f"{ACCOUNT}-{project}"}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        *_bound("Role", metadata, metadata["namespace"], contents.GARDEN),
        *_bound("ClusterRole", wide, metadata["namespace"], contents.GARDEN_WIDE),
    ]


def _bound(kind: str, metadata: Object, namespace: str, permissions: tuple[Permission, ...]) -> list[Object]:
    """A role with these permissions, and its binding to the account."""
    version = f"{_RBAC}/v1"
    return [
        {"apiVersion": version, "kind": kind, "metadata": metadata, "rules": policy_rules(permissions)},
        {
            "apiVersion": version,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        },
    ]
