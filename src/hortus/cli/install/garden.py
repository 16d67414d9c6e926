"""The account by which Hortus works in the garden, with what the controllers declare as permissions; its kubeconfig."""

from __future__ import annotations

from pathlib import Path

from hortus.cli.install import contents
from hortus.engine.rbac import Permission, policy_rules
from hortus.kube import Client, Resource
from hortus.kube.kubeconfig import document, write
from hortus.kube.objects import Object
from hortus.kube.secret import Secret

ACCOUNT = "hortus"
_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
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


async def write_kubeconfig(client: Client, project: str, path: Path, seconds: int) -> str:
    """Write a kubeconfig with a new token of the account, mode 0600; returns the time at which the token expires.

    The garden may grant a shorter time than `seconds`. Raises KubeError, OSError.
    """
    namespace = f"garden-{project}"
    request: Object = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    }
    issued = await client.create_subresource(_ACCOUNTS, ACCOUNT, "token", request, namespace)
    status, access = issued["status"], client.access
    token = Secret(status["token"])
    write(path, document(namespace, access.server, ca=access.ca, user=ACCOUNT, token=token, namespace=namespace))
    return str(status["expirationTimestamp"])


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
