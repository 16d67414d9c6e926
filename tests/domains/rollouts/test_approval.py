"""Approval as a verb, judged by our API server and by a real kube-apiserver."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.oracles.controlplane import RealServer

from hortus.cli.install import contents
from hortus.domains.inventory.types import CLUSTER_PROFILES
from hortus.domains.rollouts.approval import POLICIES, name_of
from hortus.engine.rbac import policy_rules
from hortus.engine.rollouts.types import PLACEMENT_DECISIONS, ROLLOUT_POLICIES, ROLLOUTS, Rollout, RolloutPolicy
from hortus.kube import Client, Resource
from hortus.kube.access import Access, Credentials, Secret
from hortus.kube.errors import Forbidden, NotFound
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.testing import wait_gone
from hortus.testing.apiserver import TestServer

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
POLICY, BINDING = (
    Resource("admissionregistration.k8s.io", "v1", plural, kind, namespaced=False)
    for plural, kind in (
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    )
)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
FLEET = "fleet"
TERMS = {"stages": [{"name": "canary", "approval": "After"}]}


@pytest.fixture
async def admin(either_server: TestServer | RealServer) -> AsyncIterator[Client]:
    """The administrator of a cluster with the policy, a rollout `ours`, an editor and an approver."""
    async with Client.from_kubeconfig(either_server.kubeconfig) as client:
        for resource, obj in _setup():
            await client.apply(resource, obj, field_manager="test", force=True)
        await _served(client)
        yield client
        await client.delete(ROLLOUTS, "ours", FLEET)


def _setup() -> list[tuple[Resource, Object]]:
    kinds = {POLICY.kind: POLICY, BINDING.kind: BINDING}
    made: list[tuple[Resource, Object]] = [
        (CRDS, crd(Rollout)),
        (CRDS, crd(RolloutPolicy)),
        (NAMESPACES, {"metadata": {"name": FLEET}}),
        *((kinds[obj["kind"]], obj) for obj in POLICIES),
    ]
    for name, rules in (("editor", contents.PEOPLE_EDIT), ("approver", contents.PEOPLE["approver"])):
        reference = {"apiGroup": ROLES.group, "kind": "ClusterRole", "name": name}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": FLEET}
        metadata = {"name": name, "namespace": FLEET}
        made += [
            (ACCOUNTS, {"metadata": metadata}),
            (ROLES, {"metadata": {"name": name}, "rules": policy_rules(rules)}),
            (BINDINGS, {"metadata": metadata, "roleRef": reference, "subjects": [subject]}),
        ]
    return made


async def _served(client: Client) -> None:
    """Return when the kind is served and the policy is in force: a binding is followed by a watch."""
    while True:
        try:
            await client.apply(ROLLOUTS, rollout("ours", policy=TERMS), field_manager="test", force=True)
            await client.apply(ROLLOUT_POLICIES, policy("ours"), field_manager="test", force=True)
        except NotFound:
            continue
        break
    async with await person(client, "editor") as editor:
        while True:
            try:
                await editor.create(ROLLOUTS, rollout("tried", approved=["canary"]), dry_run=True)
            except Forbidden as error:
                if "may not approve" in str(error):
                    break
        while True:
            try:
                await editor.create(ROLLOUT_POLICIES, policy("tried"), dry_run=True)
            except Forbidden as error:
                if "which asks for approval" in str(error):
                    return


async def person(client: Client, name: str) -> Client:
    """A client with a token of this account."""
    issued = await client.create_subresource(ACCOUNTS, name, "token", {"spec": {"expirationSeconds": 3600}}, FLEET)
    access = client.access
    credentials = Credentials(token=Secret(issued["status"]["token"]))
    return Client(Access(server=access.server, ca=access.ca, credentials=credentials))


def rollout(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": ROLLOUTS.api_version,
        "kind": "Rollout",
        "metadata": {"name": name, "namespace": FLEET},
        "spec": {"change": {"kind": "appliance", "subject": "press", "to": "2"}, **spec},
    }


def policy(name: str, approval: str = "After") -> Object:
    return {
        "apiVersion": ROLLOUT_POLICIES.api_version,
        "kind": "RolloutPolicy",
        "metadata": {"name": name, "namespace": FLEET},
        "spec": {"changes": [{"kind": "appliance"}], "stages": [{"name": "canary", "approval": approval}]},
    }


@pytest.mark.parametrize(
    "spec",
    [
        {"approved": ["canary"]},
        {"resumes": 1},
        {"policy": {"stages": [{"name": "canary", "approval": "None"}]}},
        {"policy": None},
    ],
)
async def test_only_the_verb_approve_lets_somebody_approve_resume_or_change_the_terms(
    admin: Client, spec: Object
) -> None:
    async with await person(admin, "editor") as editor, await person(admin, "approver") as approver:
        with pytest.raises(Forbidden) as refused:
            await editor.patch(ROLLOUTS, "ours", {"spec": spec}, FLEET)
        assert (
            "user system:serviceaccount:fleet:editor may not approve or resume rollout ours, or set its terms "
            "(spec.policy): this needs the verb approve on rollouts.fleet.hortus.dev in namespace fleet, as the "
            "ClusterRole hortus-approver gives it"
        ) in str(refused.value)
        assert name_of(ROLLOUTS) in str(refused.value)
        changed = await approver.patch(ROLLOUTS, "ours", {"spec": spec}, FLEET)
        assert "policy" in spec or spec.items() <= changed["spec"].items()


async def test_an_editor_may_start_pause_and_abort(admin: Client) -> None:
    async with await person(admin, "editor") as editor:
        await editor.create(ROLLOUTS, rollout("another", policyName="waves"))
        for state in ("Pause", "Run", "Abort"):
            changed = await editor.patch(ROLLOUTS, "another", {"spec": {"state": state}}, FLEET)
            assert changed["spec"]["state"] == state
        await editor.delete(ROLLOUTS, "another", FLEET)


async def test_neither_an_approval_nor_terms_can_be_brought_along(admin: Client) -> None:
    async with await person(admin, "editor") as editor:
        for spec in ({"approved": ["canary"]}, {"resumes": 1}, {"policy": {"stages": [{"name": "all"}]}}):
            with pytest.raises(Forbidden, match="may not approve or resume rollout brought"):
                await editor.create(ROLLOUTS, rollout("brought", **spec))


async def test_terms_cannot_be_set_before_the_controller_copies_them(admin: Client) -> None:
    async with await person(admin, "editor") as editor:
        await editor.create(ROLLOUTS, rollout("another"))
        with pytest.raises(Forbidden, match="set its terms"):
            await editor.patch(ROLLOUTS, "another", {"spec": {"policy": {"stages": [{"name": "all"}]}}}, FLEET)
        await editor.delete(ROLLOUTS, "another", FLEET)


async def test_a_policy_that_asks_for_approval_is_written_only_with_the_verb(admin: Client) -> None:
    async with await person(admin, "editor") as editor:
        with pytest.raises(Forbidden) as refused:
            await editor.create(ROLLOUT_POLICIES, policy("mine"))
        assert (
            "user system:serviceaccount:fleet:editor may not write rollout policy mine, which asks for approval: this "
            "needs the verb approve on rolloutpolicies.fleet.hortus.dev in namespace fleet, as the ClusterRole "
            "hortus-approver gives it"
        ) in str(refused.value)
        for change in ({"stages": [{"name": "canary"}]}, {"changes": [{"kind": "other"}]}, {"paused": True}):
            with pytest.raises(Forbidden, match="which asks for approval"):
                await editor.patch(ROLLOUT_POLICIES, "ours", {"spec": change}, FLEET)
        with pytest.raises(Forbidden, match="which asks for approval"):
            await editor.delete(ROLLOUT_POLICIES, "ours", FLEET)
        await editor.create(ROLLOUT_POLICIES, policy("mine", "None"))
        with pytest.raises(Forbidden, match="which asks for approval"):
            await editor.patch(ROLLOUT_POLICIES, "mine", policy("mine"), FLEET)
        await editor.delete(ROLLOUT_POLICIES, "mine", FLEET)


async def test_a_namespace_ends_with_its_policies(admin: Client) -> None:
    await admin.create(NAMESPACES, {"metadata": {"name": "ending"}})
    made = policy("ours")
    await admin.create(ROLLOUT_POLICIES, {**made, "metadata": {"name": "ours", "namespace": "ending"}})
    await admin.delete(NAMESPACES, "ending")
    await wait_gone(admin, NAMESPACES, "ending")


async def test_an_approver_may_neither_start_nor_delete_rollouts(admin: Client) -> None:
    async with await person(admin, "approver") as approver:
        with pytest.raises(Forbidden):
            await approver.create(ROLLOUTS, rollout("mine"))
        with pytest.raises(Forbidden):
            await approver.delete(ROLLOUTS, "ours", FLEET)


async def test_an_editor_cannot_admit_clusters_or_move_them_between_stages(admin: Client) -> None:
    async with await person(admin, "editor") as editor:
        for resource in (PLACEMENT_DECISIONS, CLUSTER_PROFILES):
            with pytest.raises(Forbidden):
                await editor.create(resource, {"metadata": {"name": "mine", "namespace": FLEET}})
