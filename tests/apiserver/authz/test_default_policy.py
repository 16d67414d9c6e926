"""The default policy holds together: every binding refers to a role that is there, in its own namespace."""

from __future__ import annotations

from hortus.apiserver.authz.policy import default_policy
from hortus.kube.objects import Object


def _place(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def test_every_binding_refers_to_a_role_of_the_policy() -> None:
    found: dict[str, dict[tuple[str, str], Object]] = {}
    for obj in default_policy():
        found.setdefault(obj["kind"], {})[_place(obj)] = obj
    assert found.keys() == {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        for (namespace, name), binding in found[kind].items():
            assert bool(namespace) == (kind == "RoleBinding"), name
            reference = binding["roleRef"]
            where = namespace if reference["kind"] == "Role" else ""
            assert (where, reference["name"]) in found[reference["kind"]], name
    assert all(namespace for namespace, _ in found["Role"])
    assert not any(namespace for namespace, _ in found["ClusterRole"])


def test_roles_and_bindings_of_namespaces_are_where_kubernetes_has_them() -> None:
    """A selection of kubernetes/kubernetes, plugin/pkg/auth/authorizer/rbac/bootstrappolicy/namespace_policy.go."""
    places = {(obj["kind"], *_place(obj)) for obj in default_policy()}
    assert ("Role", "kube-system", "extension-apiserver-authentication-reader") in places
    assert ("Role", "kube-system", "system::leader-locking-kube-scheduler") in places
    assert ("Role", "kube-public", "system:controller:bootstrap-signer") in places
    assert ("RoleBinding", "kube-system", "system::leader-locking-kube-scheduler") in places
    assert ("RoleBinding", "kube-public", "system:controller:bootstrap-signer") in places
    assert all(obj["metadata"].keys() <= {"name", "namespace", "labels", "annotations"} for obj in default_policy())
