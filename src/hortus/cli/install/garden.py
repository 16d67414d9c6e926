"""The account by which Hortus works in the garden: no more than what the controllers declare."""

from __future__ import annotations

from hortus.cli.install import contents
from hortus.engine.rights import policy_rules
from hortus.kube.objects import Object

ACCOUNT = "hortus"


def account(project: str) -> list[Object]:
    """A ServiceAccount in the project's namespace, and the role that it has there."""
    metadata: Object = {"name": ACCOUNT, "namespace": f"garden-{project}"}
    group = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {
            "apiVersion": f"{group}/v1",
            "kind": "Role",
            "metadata": metadata,
            "rules": policy_rules(contents.GARDEN),
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": metadata["namespace"]}],
        },
    ]
