"""Identity and permissions: reviews, impersonation, roles, tokens of ServiceAccounts."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.apiserver.wire import Answer, Wire
from tests.conformance.api.transcripts import RecordedWire

AUTHZ = "/apis/authorization.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def _attributes(verb: str, resource: str, namespace: str = "", **more: str) -> dict[str, str]:
    return {"verb": verb, "resource": resource, "namespace": namespace, **more}


def _as(user: str, *groups: str) -> dict[str, Any]:
    return {"headers": {"Impersonate-User": user, **({"Impersonate-Group": groups[0]} if groups else {})}}


async def _role(wire: Wire, namespace: str, user: str, *rules: dict[str, Any]) -> None:
    path = f"{RBAC}/namespaces/{namespace}"
    assert (await wire.post(f"{path}/roles", {"metadata": {"name": "r"}, "rules": list(rules)})).code == 201
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    binding = {"metadata": {"name": "b"}, "subjects": [subject], "roleRef": role}
    assert (await wire.post(f"{path}/rolebindings", binding)).code == 201


async def _in_force(wire: RecordedWire, user: str, attributes: dict[str, str], *, allowed: bool = True) -> Answer:
    """A question about somebody, once the roles that were just written are in force."""
    spec = {"resourceAttributes": attributes, "user": user}
    ask = lambda: wire.post(f"{AUTHZ}/subjectaccessreviews", {"spec": spec})  # noqa: E731
    return await wire.until(ask, lambda answer: answer.body["status"]["allowed"] is allowed)


async def test_a_role_allows_what_it_says(wire: RecordedWire, namespace: str) -> None:
    await _role(wire, namespace, "vera", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]})
    await _in_force(wire, "vera", _attributes("get", "configmaps", namespace))
    for attributes in (
        _attributes("delete", "configmaps", namespace),
        _attributes("get", "secrets", namespace),
        _attributes("get", "configmaps", "default"),
        _attributes("get", "configmaps"),
        _attributes("get", "configmaps", namespace, subresource="status"),
    ):
        spec = {"resourceAttributes": attributes, "user": "vera"}
        answer = await wire.post(f"{AUTHZ}/subjectaccessreviews", {"spec": spec})
        assert (answer.code, answer.body["status"]["allowed"]) == (201, False)
    configmaps = f"/api/v1/namespaces/{namespace}/configmaps"
    assert (await wire.get(configmaps, **_as("vera"))).code == 200
    refused = await wire.delete(f"{configmaps}/a", **_as("vera"))
    assert (refused.code, refused.message) == (
        403,
        f'configmaps "a" is forbidden: User "vera" cannot delete resource "configmaps" in API group "" in the '
        f'namespace "{namespace}"',
    )
    everywhere = await wire.get("/api/v1/configmaps", **_as("vera"))
    assert everywhere.message.endswith('in API group "" at the cluster scope')


async def test_one_may_ask_about_oneself(wire: RecordedWire, namespace: str) -> None:
    spec = {"resourceAttributes": _attributes("create", "pods", namespace)}
    assert (await wire.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": spec})).body["status"]["allowed"] is True
    local = f"{AUTHZ}/namespaces/{namespace}/localsubjectaccessreviews"
    asked = {"metadata": {"namespace": namespace}, "spec": {**spec, "user": "nobody"}}
    assert (await wire.post(local, asked)).body["status"]["allowed"] is False
    elsewhere = {"resourceAttributes": _attributes("get", "x", "other"), "user": "nobody"}
    wrong = {"metadata": {"namespace": namespace}, "spec": elsewhere}
    assert (await wire.post(local, wrong)).code == 422
    assert (await wire.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": {}})).code == 422
    assert (await wire.post(f"{AUTHZ}/subjectaccessreviews", {"spec": spec})).code == 422
    with wire.unrecorded():
        # Several bindings allow it, and each server names another one.
        await _public(wire)


async def _public(wire: RecordedWire) -> None:
    paths = {"nonResourceAttributes": {"path": "/version", "verb": "get"}, "user": "nobody"}
    answer = await wire.post(f"{AUTHZ}/subjectaccessreviews", {"spec": {**paths, "groups": ["system:authenticated"]}})
    assert answer.body["status"]["allowed"] is True


async def test_rules_are_listed_for_oneself(wire: RecordedWire, namespace: str) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["one"]}
    await _role(wire, namespace, "lister", rule)
    await _in_force(wire, "lister", _attributes("get", "configmaps", namespace, name="one"))
    with wire.unrecorded():
        # The default roles of releases differ.
        answer = await wire.post(
            f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {"namespace": namespace}}, **_as("lister")
        )
    assert (answer.code, answer.body["status"]["incomplete"]) == (201, False)
    assert rule in answer.body["status"]["resourceRules"]


@pytest.mark.allows("SelfSubjectReviews carry no time", "*/body/metadata/creationTimestamp")
async def test_one_may_act_as_another(wire: RecordedWire, namespace: str) -> None:
    body = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    who = await wire.post(path, body, **_as("jane", "gardeners"))
    assert who.body["status"]["userInfo"] == {"username": "jane", "groups": ["gardeners", "system:authenticated"]}
    account = await wire.post(path, body, **_as(f"system:serviceaccount:{namespace}:robot"))
    assert f"system:serviceaccounts:{namespace}" in account.body["status"]["userInfo"]["groups"]


@pytest.mark.differs("Impersonation headers that name no user")
async def test_impersonation_needs_a_user(wire: RecordedWire) -> None:
    assert (await wire.get("/version", headers={"Impersonate-Group": "g"})).code == 400


async def test_nobody_gives_what_he_has_not(wire: RecordedWire, namespace: str) -> None:
    roles = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["create"]}
    await _role(wire, namespace, "clerk", roles)
    await _in_force(wire, "clerk", _attributes("create", "roles", namespace, group="rbac.authorization.k8s.io"))
    path = f"{RBAC}/namespaces/{namespace}"
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    refused = await wire.post(f"{path}/roles", {"metadata": {"name": "more"}, "rules": rules}, **_as("clerk"))
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "clerk"}
    binding = {"metadata": {"name": "up"}, "subjects": [subject], "roleRef": role}
    refused = await wire.post(f"{path}/rolebindings", binding, **_as("clerk"))
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    moved = await wire.merge(f"{path}/rolebindings/b", {"roleRef": {**role, "name": "view"}})
    assert moved.code == 422


@pytest.mark.allows("Rules that are gathered into a ClusterRole", "*/body/metadata/managedFields")
@pytest.mark.usefixtures("controllers")
async def test_roles_are_gathered_by_label(wire: RecordedWire, slug: str) -> None:
    selector = {"clusterRoleSelectors": [{"matchLabels": {f"{slug}.example/to": "sum"}}]}
    with wire.unrecorded():
        made = await wire.post(
            f"{RBAC}/clusterroles", {"metadata": {"name": f"{slug}-sum"}, "aggregationRule": selector}
        )
        revision = made.body["metadata"]["resourceVersion"]
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
        labels = {f"{slug}.example/to": "sum"}
        query = f"watch=true&resourceVersion={revision}&fieldSelector=metadata.name%3D{slug}-sum"
        async with wire.watch(f"{RBAC}/clusterroles?{query}") as events:
            await wire.post(
                f"{RBAC}/clusterroles", {"metadata": {"name": f"{slug}-part", "labels": labels}, "rules": rules}
            )
            while (await events.next())["object"].get("rules") != rules:
                pass
    found = (await wire.get(f"{RBAC}/clusterroles/{slug}-sum")).body
    assert found["rules"] == rules
    for name in ("part", "sum"):
        await wire.delete(f"{RBAC}/clusterroles/{slug}-{name}")


@pytest.mark.allows("TokenRequests", "/1/body/metadata/managedFields", "/1/body/metadata/uid")
@pytest.mark.allows("A TokenReview does not report", "*/body/status/error")
async def test_a_token_is_asked_for_and_reviewed(wire: RecordedWire, namespace: str) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert (await wire.post(accounts, {"metadata": {"name": "robot"}})).code == 201
    request = {"spec": {"audiences": ["vault"], "expirationSeconds": 3600}}
    made = await wire.post(f"{accounts}/robot/token", request)
    assert made.code == 201
    token = made.body["status"]["token"]
    reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
    with wire.unrecorded():
        # Each server names the node, the pod and the credential in its own words.
        seen = await wire.post(reviews, {"spec": {"token": token, "audiences": ["vault"]}})
    status = seen.body["status"]
    assert (status["authenticated"], status["audiences"]) == (True, ["vault"])
    assert status["user"]["username"] == f"system:serviceaccount:{namespace}:robot"
    other = await wire.post(reviews, {"spec": {"token": token, "audiences": ["elsewhere"]}})
    assert other.body["status"].get("authenticated", False) is False
    forged = await wire.post(reviews, {"spec": {"token": "no.such.token"}})
    assert forged.body["status"].get("authenticated", False) is False
    short = await wire.post(f"{accounts}/robot/token", {"spec": {"audiences": [], "expirationSeconds": 5}})
    assert short.code == 422
    assert (await wire.post(f"{accounts}/none/token", request)).code == 404


async def test_tokens_can_be_verified_by_those_who_only_know_the_issuer(wire: RecordedWire, namespace: str) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    with wire.unrecorded():
        await wire.post(accounts, {"metadata": {"name": "robot"}})
        token = (await wire.post(f"{accounts}/robot/token", {"spec": {}})).body["status"]["token"]
        configuration = (await wire.get("/.well-known/openid-configuration")).body
        keys = (await wire.get("/openid/v1/jwks")).body["keys"]
    header, claims = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in token.split(".")[:2])
    assert claims["iss"] == configuration["issuer"]
    assert configuration["jwks_uri"].endswith("/openid/v1/jwks")
    assert header["kid"] in [key["kid"] for key in keys]
    assert header["alg"] in configuration["id_token_signing_alg_values_supported"]
    assert (await wire.get("/openid/v1/jwks", **_as("nobody"))).code == 403
    account = _as(f"system:serviceaccount:{namespace}:robot")
    with wire.unrecorded():
        assert (await wire.get("/openid/v1/jwks", **account)).code == 200


@pytest.mark.parametrize(
    "path",
    [
        "clusterroles/system:discovery",
        "clusterroles/system:aggregate-to-view",
        "clusterroles/system:controller:replicaset-controller",
        "clusterrolebindings/system:controller:replicaset-controller",
        "clusterrolebindings/system:public-info-viewer",
        "clusterrolebindings/cluster-admin",
        "namespaces/kube-system/roles/extension-apiserver-authentication-reader",
        "namespaces/kube-system/roles/system:controller:token-cleaner",
        "namespaces/kube-system/rolebindings/system:controller:token-cleaner",
        "namespaces/kube-public/rolebindings/system:controller:bootstrap-signer",
    ],
)
async def test_the_default_policy_is_there_whole(wire: RecordedWire, path: str) -> None:
    with wire.unrecorded():
        found = (await wire.get(f"{RBAC}/{path}")).body
    metadata = found["metadata"]
    assert ("namespace" in metadata) is ("namespaces/" in path)
    assert metadata["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
    assert metadata["annotations"] == {"rbac.authorization.kubernetes.io/autoupdate": "true"}
    if "roleRef" in found:
        kind = "ClusterRole" if "clusterrolebindings" in path else "Role"
        assert found["roleRef"] == {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": kind,
            "name": metadata["name"],
        }
        assert found["subjects"]
    else:
        assert found["rules"]


async def test_a_sum_picks_roles_by_every_operator(wire: RecordedWire, slug: str) -> None:
    mine = f"{slug}.example/of"
    chosen = {
        "in": ("In", ["a", "b"], "a"),
        "not-in": ("NotIn", ["a", "b"], "c"),
        "exists": ("Exists", [], "x"),
    }
    roles = f"{RBAC}/clusterroles"
    with wire.unrecorded():
        for name, (operator, values, label) in chosen.items():
            only = {"key": f"{slug}.example/sort", "operator": "In", "values": [name]}
            wanted = {"key": mine, "operator": operator, **({"values": values} if values else {})}
            selectors = {"clusterRoleSelectors": [{"matchExpressions": [only, wanted]}]}
            sums = {"metadata": {"name": f"{slug}-sum-{name}"}, "aggregationRule": selectors}
            assert (await wire.post(roles, sums)).code == 201
            for part, value in (
                ("yes", label),
                ("no", None if operator == "Exists" else "a" if name == "not-in" else "c"),
            ):
                labels = {f"{slug}.example/sort": name, **({mine: value} if value else {})}
                rule = {"apiGroups": [""], "resources": [part], "verbs": ["get"]}
                body = {"metadata": {"name": f"{slug}-{name}-{part}", "labels": labels}, "rules": [rule]}
                assert (await wire.post(roles, body)).code == 201
    with wire.unrecorded():
        expected = [{"apiGroups": [""], "resources": ["yes"], "verbs": ["get"]}]
        for name in chosen:
            read = lambda name=name: wire.get(f"{roles}/{slug}-sum-{name}")  # noqa: E731
            await wire.until(read, lambda answer: answer.body.get("rules") == expected)
        for name in chosen:
            for part in ("sum-" + name, f"{name}-yes", f"{name}-no"):
                await wire.delete(f"{roles}/{slug}-{part}")
