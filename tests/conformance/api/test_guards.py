"""No form of a request gives more permissions: other scopes, other names, permissions and identities of others."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.api.transcripts import RecordedWire

AUTHZ = "/apis/authorization.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
_GROUP = "rbac.authorization.k8s.io"


def _as(user: str) -> dict[str, Any]:
    return {"headers": {"Impersonate-User": user}}


def _rule(verbs: str, group: str, resources: str, *names: str) -> dict[str, Any]:
    rule = {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}
    return {**rule, "resourceNames": list(names)} if names else rule


async def _may(wire: RecordedWire, user: str, *rules: dict[str, Any], namespace: str = "", name: str = "") -> None:
    """Give a user these permissions, and wait until they are in force."""
    path = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
    cluster, kind = ("", "Role") if namespace else ("cluster", "ClusterRole")
    name = name or user
    with wire.unrecorded():
        made = await wire.post(f"{path}/{cluster}roles", {"metadata": {"name": name}, "rules": list(rules)})
        assert made.code == 201, made.body
        subject = {"apiGroup": _GROUP, "kind": "User", "name": user}
        binding = {"metadata": {"name": name}, "subjects": [subject], "roleRef": {"kind": kind, "name": name}}
        made = await wire.post(
            f"{path}/{cluster}rolebindings", {**binding, "roleRef": {"apiGroup": _GROUP, **binding["roleRef"]}}
        )
        assert made.code == 201, made.body
        # All rules of one role come into force together.
        resource, _, sub = rules[0]["resources"][0].partition("/")
        attributes = {
            "verb": rules[0]["verbs"][0],
            "group": rules[0]["apiGroups"][0],
            "resource": resource,
            "subresource": sub,
            "namespace": namespace,
            "name": rules[0].get("resourceNames", [""])[0],
        }
        asked = {"spec": {"user": user, "resourceAttributes": attributes}}
        ask = lambda: wire.post(f"{AUTHZ}/subjectaccessreviews", asked)  # noqa: E731
        await wire.until(ask, lambda answer: bool(answer.body["status"]["allowed"]))


_FORMS = ("", "/watch")


@pytest.mark.parametrize("form", _FORMS, ids=["plain", "watch"])
async def test_what_is_not_namespaced_is_not_below_a_namespace(
    wire: RecordedWire, slug: str, namespace: str, form: str
) -> None:
    user, victim = f"u-{slug}", f"v-{slug}"
    await _may(wire, user, _rule("*", "*", "*"), namespace=namespace)
    with wire.unrecorded():
        assert (await wire.post("/api/v1/namespaces", {"metadata": {"name": victim}})).code == 201
    core, rbac = f"/api/v1{form}/namespaces/{namespace}", f"{RBAC}{form}/namespaces/{namespace}"
    for path in (f"{core}/namespaces", f"{core}/nodes", f"{rbac}/clusterroles"):
        for user_options in (_as(user), {}):
            assert (await wire.get(path, **user_options)).code == 404
            assert (await wire.delete(f"{path}/{victim}", **user_options)).code == 404
            assert (await wire.get(f"{path}/{victim}", **user_options)).code == 404
    with wire.unrecorded():
        assert (await wire.get(f"/api/v1/namespaces/{victim}")).body["status"]["phase"] == "Active"


async def _secrets(wire: RecordedWire, namespace: str, *names: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    with wire.unrecorded():
        for name in names:
            assert (await wire.post(path, {"metadata": {"name": name}, "stringData": {"a": name}})).code == 201
    return path


async def test_a_watch_of_one_object_shows_that_object_alone(wire: RecordedWire, slug: str, namespace: str) -> None:
    secrets = await _secrets(wire, namespace, "hidden", "open")
    await _may(wire, f"u-{slug}", _rule("watch", "", "secrets", "open"), namespace=namespace)
    path = f"/api/v1/watch/namespaces/{namespace}/secrets/open"
    async with wire.watch(path, headers=_as(f"u-{slug}")["headers"]) as events:
        assert await events.take(1) == [("ADDED", "open")]
        with wire.unrecorded():
            assert (await wire.merge(f"{secrets}/hidden", {"stringData": {"a": "new"}})).code == 200
            assert (await wire.merge(f"{secrets}/open", {"stringData": {"a": "new"}})).code == 200
        assert await events.take(1) == [("MODIFIED", "open")]
    for selector in ("metadata.name%3Dhidden", "metadata.name!%3Dopen", "type%3DOpaque"):
        assert (await wire.get(f"{path}?fieldSelector={selector}")).code == 400


async def test_a_right_to_one_name_is_none_to_a_collection(wire: RecordedWire, slug: str, namespace: str) -> None:
    secrets, user = await _secrets(wire, namespace, "hidden", "open"), f"u-{slug}"
    verbs = "list watch create deletecollection"
    await _may(wire, user, _rule(verbs, "", "secrets", "open"), namespace=namespace)
    assert (await wire.get(f"{secrets}?fieldSelector=metadata.name%3Dopen", **_as(user))).code == 200
    watch = f"/api/v1/watch/namespaces/{namespace}/secrets"
    named = "?fieldSelector=metadata.name%3Dopen"
    other = "?fieldSelector=metadata.name%3Dhidden"
    for path in (secrets, f"{secrets}?watch=1", secrets + other, watch, watch + named):
        assert (await wire.get(path, **_as(user))).code == 403
    assert (await wire.post(secrets, {"metadata": {"name": "open"}}, **_as(user))).code == 403
    for query in ("", named):
        assert (await wire.delete(secrets + query, **_as(user))).code == 403


async def test_the_form_for_watches_is_for_reading_alone(wire: RecordedWire, namespace: str) -> None:
    for path in (f"/api/v1/watch/namespaces/{namespace}/secrets", f"/api/v1/watch/namespaces/{namespace}"):
        for method in ("POST", "PUT", "DELETE"):
            assert (await wire.send(method, path, {"metadata": {"name": "a"}})).code == 405
    assert (await wire.get("/api/v1/watch/secrets/open")).code == 404


async def test_a_namespace_is_finalized_by_a_put_alone(wire: RecordedWire, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/finalize"
    assert (await wire.get(path)).code == 405
    assert (await wire.merge(path, {"spec": {"finalizers": []}})).code == 405
    assert (await wire.delete(path)).code == 405


REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
_ADMISSION = "admissionregistration.k8s.io"


def _policy(name: str, kind: str, api_version: str = "v1") -> dict[str, Any]:
    rule = {"apiGroups": ["none.example"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    validations = [{"expression": "true"}]
    constraints = {"resourceRules": [rule]}
    param_kind = {"apiVersion": api_version, "kind": kind}
    spec = {"matchConstraints": constraints, "validations": validations, "paramKind": param_kind}
    return {"metadata": {"name": name}, "spec": spec}


async def test_who_writes_a_policy_may_read_its_parameters(wire: RecordedWire, slug: str) -> None:
    user, path = f"u-{slug}", f"{REGISTRATION}/validatingadmissionpolicies"
    await _may(wire, user, _rule("create patch get update", _ADMISSION, "validatingadmissionpolicies"))
    dry = f"{path}?dryRun=All"
    for kind, version in (("Secret", "v1"), ("Gone", "example.com/v1"), ("ConfigMap", "v1")):
        assert (await wire.post(dry, _policy(f"p-{slug}", kind, version), **_as(user))).code == 422
    await _may(wire, user, _rule("get", "", "configmaps"), name=f"x-{slug}")
    assert (await wire.post(path, _policy(f"p-{slug}", "ConfigMap"), **_as(user))).code == 201
    secrets = {"spec": {"paramKind": {"apiVersion": "v1", "kind": "Secret"}}}
    assert (await wire.merge(f"{path}/p-{slug}", secrets, **_as(user))).code == 422
    with wire.unrecorded():
        assert (await wire.merge(f"{path}/p-{slug}", secrets)).code == 200
    labels = {"metadata": {"labels": {"a": "b"}}}
    assert (await wire.merge(f"{path}/p-{slug}", labels, **_as(user))).code == 200
    with wire.unrecorded():
        await wire.delete(f"{path}/p-{slug}")


async def test_who_binds_a_policy_may_read_what_it_names(wire: RecordedWire, slug: str, namespace: str) -> None:
    user, path = f"u-{slug}", f"{REGISTRATION}/validatingadmissionpolicybindings"
    policy, name = f"p-{slug}", f"b-{slug}"
    await _may(wire, user, _rule("create patch get update", _ADMISSION, "validatingadmissionpolicybindings"))
    await _may(wire, user, _rule("get", "", "secrets", "open"), namespace=namespace, name=f"r-{slug}")

    def binding(of: str = policy, **reference: Any) -> dict[str, Any]:
        param = {"parameterNotFoundAction": "Allow", **reference}
        return {
            "metadata": {"name": name},
            "spec": {"policyName": of, "paramRef": param, "validationActions": ["Warn"]},
        }

    with wire.unrecorded():
        policies = f"{REGISTRATION}/validatingadmissionpolicies"
        assert (await wire.post(policies, _policy(policy, "Secret"))).code == 201
        assert (await wire.post(policies, _policy(f"q-{slug}", "Gone", "example.com/v1"))).code == 201
    for refused in (
        binding(name="hidden", namespace=namespace),
        binding(name="open", namespace="default"),
        binding(name="open"),
        binding(selector={}, namespace=namespace),
        binding(of=f"none-{slug}", name="open", namespace=namespace),
        binding(of=f"q-{slug}", name="open", namespace=namespace),
    ):
        assert (await wire.post(f"{path}?dryRun=All", refused, **_as(user))).code == 422
    assert (await wire.post(path, binding(name="open", namespace=namespace), **_as(user))).code == 201
    moved = {"spec": {"paramRef": {"name": "hidden"}}}
    assert (await wire.merge(f"{path}/{name}", moved, **_as(user))).code == 422
    with wire.unrecorded():
        await wire.delete(f"{path}/{name}")
        await wire.delete(f"{policies}/{policy}")
        await wire.delete(f"{policies}/q-{slug}")


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_namespaces_of_the_system_are_nobodys_to_delete(wire: RecordedWire, name: str) -> None:
    path = f"/api/v1/namespaces/{name}"
    for query in ("", "?dryRun=All", "?propagationPolicy=Foreground"):
        assert (await wire.delete(path + query)).code == 403
    with wire.unrecorded():
        assert (await wire.get(path)).body["status"]["phase"] == "Active"


_SELECTED = {"selector": {"matchLabels": {"a": "b"}}}
_POD = {"containers": [{"name": "c", "image": "i"}]}
_RULE = {"apiGroups": ["none.example"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
_STATUSES: dict[str, dict[str, Any]] = {
    "/api/v1/namespaces/{}/pods": _POD,
    "/api/v1/namespaces/{}/services": {"ports": [{"port": 80}], "clusterIP": "None"},
    "/apis/apps/v1/namespaces/{}/deployments": {
        **_SELECTED,
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": _POD},
    },
    "/apis/policy/v1/namespaces/{}/poddisruptionbudgets": {**_SELECTED, "minAvailable": 1},
    "/apis/storage.k8s.io/v1/volumeattachments": {
        "attacher": "example.com",
        "nodeName": "n",
        "source": {"persistentVolumeName": "x"},
    },
    f"{REGISTRATION}/validatingadmissionpolicies": {
        "validations": [{"expression": "true"}],
        "matchConstraints": {"resourceRules": [_RULE]},
    },
}


_KEPT = {
    "pods": {"ownerReferences"},
    "deployments": {"labels"},
    "volumeattachments": {"annotations", "finalizers", "labels", "ownerReferences"},
    "validatingadmissionpolicies": {"annotations", "finalizers", "labels", "ownerReferences"},
}


@pytest.mark.parametrize("path", _STATUSES, ids=lambda path: path.rpartition("/")[2])
async def test_how_far_the_right_to_a_status_reaches(wire: RecordedWire, slug: str, namespace: str, path: str) -> None:
    collection, name = path.format(namespace), f"s-{slug}"
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "none", "uid": "7"}
    changed = {"labels": {"a": "c"}, "annotations": {"a": "b"}, "finalizers": ["a.b/c"], "ownerReferences": [owner]}
    with wire.unrecorded():
        made = {"metadata": {"name": name, "labels": {"a": "b"}}, "spec": _STATUSES[path]}
        before = await wire.post(collection, made)
        assert before.code == 201, before.body
        after = await wire.merge(f"{collection}/{name}/status?dryRun=All", {"metadata": changed})
        assert after.code == 200
        await wire.delete(f"{collection}/{name}")
    kept = {key for key in changed if after.body["metadata"].get(key) == before.body["metadata"].get(key)}
    assert kept == _KEPT.get(path.rpartition("/")[2], set())
