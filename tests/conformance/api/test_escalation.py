"""Nobody grants by a role or binding what they do not hold, whatever the rules say and however they are written."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.conformance.api.test_guards import _GROUP, AUTHZ, RBAC, _as, _may, _rule
from tests.conformance.api.transcripts import RecordedWire

_AGGREGATED = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}


async def test_a_label_that_gives_a_role_to_others_is_escalation(wire: RecordedWire, slug: str) -> None:
    user, role = f"u-{slug}", f"{RBAC}/clusterroles/r-{slug}"
    await _may(wire, user, _rule("get patch update", _GROUP, "clusterroles clusterrolebindings"))
    await _may(wire, f"o-{slug}", _rule("delete", "example.com", "everything"), name=f"r-{slug}")
    labels = {"metadata": {"labels": _AGGREGATED}}
    assert (await wire.merge(role, labels, **_as(user))).code == 403
    assert (await wire.strategic(role, labels, **_as(user))).code == 403
    found = (await wire.get(role, **_as(user))).body
    found["metadata"]["labels"] = _AGGREGATED
    assert (await wire.put(role, found, **_as(user))).code == 403
    applied = {"apiVersion": f"{_GROUP}/v1", "kind": "ClusterRole", **labels}
    media = {"content_type": "application/apply-patch+yaml", **_as(user)}
    assert (await wire.send("PATCH", f"{role}?fieldManager=m", applied, **media)).code == 403
    assert (await wire.merge(role, {"metadata": {"annotations": {"a": "b"}}}, **_as(user))).code == 403
    with wire.unrecorded():
        uid = (await wire.get("/api/v1/namespaces/default")).body["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": uid}
    collected = {"metadata": {"ownerReferences": [owner], "finalizers": ["example.com/f"]}}
    assert (await wire.merge(role, collected, **_as(user))).code == 200
    assert (
        await wire.merge(role, {"metadata": {"finalizers": None, "ownerReferences": None}}, **_as(user))
    ).code == 200
    less = {"rules": [_rule("get", _GROUP, "clusterroles")], **labels}
    assert (await wire.merge(role, less, **_as(user))).code == 200
    with wire.unrecorded():
        await wire.delete(role)


async def test_the_rule_by_which_a_role_gathers_others_is_nobodys_to_take_away(wire: RecordedWire, slug: str) -> None:
    user, role = f"u-{slug}", f"{RBAC}/clusterroles/g-{slug}"
    await _may(wire, user, _rule("create get patch", _GROUP, "clusterroles"))
    with wire.unrecorded():
        gathering = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": slug}}]}}
        assert (await wire.post(f"{RBAC}/clusterroles", {"metadata": {"name": f"g-{slug}"}, **gathering})).code == 201
    assert (await wire.merge(role, {"aggregationRule": None}, **_as(user))).code == 403
    assert (await wire.merge(role, {"metadata": {"labels": {"a": "b"}}}, **_as(user))).code == 403
    with wire.unrecorded():
        # The owner of the rules depends on the controller of aggregation, which may or may not have run yet.
        assert (await wire.merge(role, {"metadata": {"finalizers": ["example.com/f"]}}, **_as(user))).code == 200
        assert (await wire.merge(role, {"metadata": {"finalizers": None}})).code == 200


async def test_a_binding_is_escalation_by_every_sort_of_write(wire: RecordedWire, slug: str, namespace: str) -> None:
    user = f"u-{slug}"
    await _may(wire, user, _rule("create get patch update", _GROUP, "clusterrolebindings rolebindings"))
    reference = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"apiGroup": _GROUP, "kind": "User", "name": user}
    for base in (RBAC, f"{RBAC}/namespaces/{namespace}"):
        plural, kind = (
            ("clusterrolebindings", "ClusterRoleBinding") if base == RBAC else ("rolebindings", "RoleBinding")
        )
        path, name = f"{base}/{plural}", f"b-{slug}"
        binding = {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": {"name": name}, "roleRef": reference}
        assert (await wire.post(path, {**binding, "subjects": [subject]}, **_as(user))).code == 403
        assert (await wire.put(f"{path}/{name}", {**binding, "subjects": [subject]}, **_as(user))).code == 403
        media = {"content_type": "application/apply-patch+yaml", **_as(user)}
        assert (await wire.send("PATCH", f"{path}/{name}?fieldManager=m", binding, **media)).code == 403
        with wire.unrecorded():
            assert (await wire.post(path, binding)).code == 201
        assert (await wire.merge(f"{path}/{name}", {"subjects": [subject]}, **_as(user))).code == 403
        add = [{"op": "add", "path": "/subjects", "value": [subject]}]
        assert (await wire.json_patch(f"{path}/{name}", add, **_as(user))).code == 403
        assert (
            await wire.send("PATCH", f"{path}/{name}?fieldManager=m", {**binding, "subjects": [subject]}, **media)
        ).code == 403
        assert (await wire.merge(f"{path}/{name}", {"metadata": {"labels": {"a": "b"}}}, **_as(user))).code == 403
        assert (
            await wire.merge(f"{path}/{name}", {"metadata": {"finalizers": ["example.com/f"]}}, **_as(user))
        ).code == 200
        with wire.unrecorded():
            await wire.merge(f"{path}/{name}", {"metadata": {"finalizers": None}})
            await wire.delete(f"{path}/{name}")


async def test_escalation_by_name_is_by_that_name(wire: RecordedWire, slug: str) -> None:
    user, path = f"u-{slug}", f"{RBAC}/clusterroles"
    mine, other = f"m-{slug}", f"o-{slug}"
    rights = [_rule("create", _GROUP, "clusterroles"), _rule("escalate patch update get", _GROUP, "clusterroles", mine)]
    await _may(wire, user, *rights)
    wide = [_rule("*", "*", "*")]
    for name in (mine, other):
        assert (await wire.post(path, {"metadata": {"name": name}, "rules": wide}, **_as(user))).code == 403
    assert (await wire.put(f"{path}/{mine}", {"metadata": {"name": mine}, "rules": wide}, **_as(user))).code == 201
    assert (await wire.merge(f"{path}/{mine}", {"metadata": {"labels": {"a": "b"}}}, **_as(user))).code == 200
    with wire.unrecorded():
        await wire.delete(f"{path}/{mine}")


_WORDS: dict[str, list[str]] = {
    "verbs": ["get", "list", "create", "*", "impersonate", "Get"],
    "apiGroups": ["", "apps", "*", "example.com"],
    "resources": ["pods", "pods/log", "*/log", "*", "pods/*", "*/*", "pods/", "deployments/scale", "*/scale", "Pods"],
    "resourceNames": ["a", "b", "*", ""],
    "nonResourceURLs": ["/x", "/x/*", "*", "/*", "/x*", "/x/y", "x", "/healthz"],
}
_ASKED: dict[str, list[str]] = {
    "verb": ["get", "list", "create", "*", "Get", ""],
    "group": ["", "apps", "*", "example.com"],
    "resource": ["pods", "deployments", "*", "Pods"],
    "subresource": ["", "log", "scale", "*"],
    "name": ["", "a", "c", "*"],
    "namespace": ["", "default", "*"],
}
_PATHS = ["/x", "/x/", "/x/y", "/xy", "/", "*", "/x/*", "/healthz"]


def _some_rule(dice: random.Random) -> dict[str, list[str]]:
    """A rule of words that mean something, nothing, or something else than one thinks."""
    fields = ["verbs", "nonResourceURLs"] if dice.random() < 0.25 else ["verbs", "apiGroups", "resources"]
    if len(fields) == 3 and dice.random() < 0.3:
        fields.append("resourceNames")
    return {field: dice.sample(_WORDS[field], dice.randint(1, 2)) for field in fields}


def _some_question(dice: random.Random) -> dict[str, Any]:
    if dice.random() < 0.25:
        return {"nonResourceAttributes": {"path": dice.choice(_PATHS), "verb": dice.choice(_ASKED["verb"])}}
    return {"resourceAttributes": {field: dice.choice(words) for field, words in _ASKED.items()}}


@pytest.mark.parametrize("seed", range(6))
async def test_rules_of_odd_words_allow_and_cover_alike(wire: RecordedWire, slug: str, seed: int) -> None:
    """Both what they let somebody do, and what somebody who holds them may grant."""
    dice, user = random.Random(seed), f"u-{slug}"
    await _may(wire, user, _rule("create", _GROUP, "clusterroles"), *(_some_rule(dice) for _ in range(3)))
    for _ in range(30):
        await wire.post(f"{AUTHZ}/subjectaccessreviews", {"spec": {"user": user, **_some_question(dice)}})
    for number in range(20):
        granted = {"metadata": {"name": f"g-{slug}-{number}"}, "rules": [_some_rule(dice) for _ in range(2)]}
        answer = await wire.post(f"{RBAC}/clusterroles?dryRun=All", granted, **_as(user))
        assert answer.code in (201, 403)
