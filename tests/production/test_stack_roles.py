"""The roles of people for cluster stacks: the provider's catalog, and users who write Clusters alone."""

from __future__ import annotations

from hortus.cli.install import contents
from hortus.engine.rbac import policy_rules
from hortus.kube import Client, Resource
from hortus.testing.apiserver import running_apiserver

ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
STACKS, CAPI = "clusterstack.x-k8s.io", "cluster.x-k8s.io"
BOUND = {"provider": {"catalog": "stack-provider"}, "user": {"catalog": "stack-catalog", "team": "stack-user"}}


MAY = {
    ("provider", "create", STACKS, "clusterstacks", "catalog"): True,
    ("provider", "create", "", "secrets", "catalog"): True,
    ("provider", "list", STACKS, "clusterstackreleases", "catalog"): True,
    ("provider", "delete", STACKS, "clusterstackreleases", "catalog"): False,
    ("provider", "create", CAPI, "clusters", "team"): False,
    ("user", "create", CAPI, "clusters", "team"): True,
    ("user", "list", STACKS, "clusteraddons", "team"): True,
    ("user", "update", STACKS, "clusteraddons", "team"): False,
    ("user", "list", STACKS, "clusterstackreleases", "catalog"): True,
    ("user", "get", CAPI, "clusterclasses", "catalog"): True,
    ("user", "create", STACKS, "clusterstacks", "catalog"): False,
    ("user", "get", "", "secrets", "catalog"): False,
}


async def bind(client: Client, user: str, namespace: str, role: str) -> None:
    metadata = {"name": user, "namespace": namespace}
    await client.create(ROLES, {"metadata": metadata, "rules": policy_rules(contents.PEOPLE[role])})
    subject = {"kind": "User", "name": user, "apiGroup": ROLES.group}
    reference = {"kind": "Role", "name": user, "apiGroup": ROLES.group}
    await client.create(BINDINGS, {"metadata": metadata, "subjects": [subject], "roleRef": reference})


async def test_each_role_permits_what_its_page_says() -> None:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        for namespace in ("catalog", "team"):
            await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        for user, places in BOUND.items():
            for namespace, role in places.items():
                await bind(client, user, namespace, role)
        found = {}
        for asked in MAY:
            user, verb, group, resource, namespace = asked
            attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
            review = await client.create(REVIEWS, {"spec": {"user": user, "resourceAttributes": attributes}})
            found[asked] = review["status"]["allowed"]
    assert found == MAY
