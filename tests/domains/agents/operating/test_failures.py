"""Failures: each names phase and object, shows no value of a Secret, and is tried again as its class says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.domains.agents.operating.world import HOME, NAMESPACES, AgentsWorld, condition, is_reconciled
from tests.production.test_permissions import kubeconfig_of

from hortus.domains.agents import rbac
from hortus.domains.agents.operating.dependents import Dependent
from hortus.domains.agents.operating.errors import AgentError, AgentPhase, AgentReason, ObjectFailure
from hortus.domains.agents.operating.objects import ACCOUNTS, CLUSTER_BINDINGS, CLUSTER_ROLES
from hortus.domains.agents.types import INSTANA_AGENTS
from hortus.engine.rbac import EVENTS, Permission, policy_rules
from hortus.kube import Client
from hortus.kube.errors import ApiError, Conflict, Forbidden, Invalid, KubeError, TooManyRequests

MAP, SECRET = Dependent("", "ConfigMap", "home", "map"), Dependent("", "Secret", "home", "keys")


@pytest.mark.parametrize(
    ("error", "reason", "after"),
    [
        (Invalid("no"), AgentReason.REFUSED, 300.0),
        (Forbidden("no"), AgentReason.FORBIDDEN, 60.0),
        (Conflict("no"), AgentReason.CONFLICT, None),
        (TooManyRequests("no", retry_after=7.0), AgentReason.UNREACHABLE, 7.0),
        (ApiError("no"), AgentReason.UNREACHABLE, None),
    ],
)
def test_a_failure_is_tried_again_as_its_class_says(error: KubeError, reason: str, after: float | None) -> None:
    failure = AgentError([ObjectFailure(AgentPhase.DRY_RUN, MAP, error)])
    assert (failure.reason, failure.after) == (reason, after)
    assert failure.message == "dry run of ConfigMap home/map: no"


def test_several_failures_are_listed_under_the_heading_of_the_go_operator() -> None:
    failure = AgentError(
        [ObjectFailure(AgentPhase.APPLY, MAP, Invalid("a")), ObjectFailure(AgentPhase.APPLY, MAP, Conflict("b"))]
    )
    assert failure.message == "Multiple Errors:\napply of ConfigMap home/map: a\napply of ConfigMap home/map: b"
    assert failure.after is None  # what passes by itself decides


def test_the_refusal_of_a_secret_shows_fields_and_no_value() -> None:
    details = {"causes": [{"field": "data[key]", "message": "Invalid value: some-key"}]}
    failure = ObjectFailure(AgentPhase.DRY_RUN, SECRET, Invalid("Invalid value: some-key", details=details))
    assert failure.text == "dry run of Secret home/keys: Invalid: data[key]"


async def account(here: AgentsWorld, *permissions: Permission) -> None:
    """An account of the cluster with exactly these permissions."""
    await here.client.apply(NAMESPACES, {"metadata": {"name": "hortus"}}, field_manager="test")
    await here.client.apply(ACCOUNTS, {"metadata": {"name": "hortus", "namespace": "hortus"}}, field_manager="test")
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "hortus"}
    subjects = [{"kind": "ServiceAccount", "name": "hortus", "namespace": "hortus"}]
    made = {"metadata": {"name": "hortus"}, "rules": policy_rules(permissions)}
    await here.client.apply(CLUSTER_ROLES, made, field_manager="test")
    binding = {"metadata": {"name": "hortus"}, "roleRef": role, "subjects": subjects}
    await here.client.apply(CLUSTER_BINDINGS, binding, field_manager="test")


DECLARED = (*rbac.CONTROL, *rbac.WIDE, EVENTS)


async def test_an_object_that_may_not_be_made_is_named_and_nothing_is_half_applied(
    here: AgentsWorld, tmp_path: Path
) -> None:
    budgets = ("poddisruptionbudgets",)
    others = [one for one in DECLARED if one.resources != budgets]
    await account(here, *others, Permission("policy", budgets, ("get", "list", "watch"), "reads"))
    await here.agent(k8s_sensor={"podDisruptionBudget": {"enabled": True}})
    path = await kubeconfig_of(here.client, "hortus", "hortus", tmp_path / "account")
    async with Client.from_kubeconfig(path) as client, here.controllers(client):
        agent = await here.until(lambda obj: condition(obj, "ReconcileSucceeded")[0] == "False")
        assert "dry run of PodDisruptionBudget" in agent["status"]["reason"]
        assert agent["status"]["status"] == "Failed"
        assert await here.owned() == {}


async def test_the_declared_permissions_suffice_for_a_life(here: AgentsWorld, tmp_path: Path) -> None:
    await account(here, *DECLARED)
    await here.agent(k8s_sensor={"podDisruptionBudget": {"enabled": True}})
    path = await kubeconfig_of(here.client, "hortus", "hortus", tmp_path / "account")
    async with Client.from_kubeconfig(path) as client, here.controllers(client):
        agent = await here.until(lambda obj: is_reconciled(obj) or condition(obj, "ReconcileSucceeded")[0] == "False")
        assert "reason" not in agent["status"]
        await here.client.delete(INSTANA_AGENTS, HOME, HOME)
        await here.gone(INSTANA_AGENTS, HOME)
