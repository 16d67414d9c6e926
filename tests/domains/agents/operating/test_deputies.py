"""Agents of a namespace that is not trusted have what the deputy of their namespace may make, and no more."""

from __future__ import annotations

from tests.domains.agents.operating.world import HOME, AgentsWorld, condition
from tests.domains.granting import grant

from hortus.domains.agents.types import INSTANA_AGENTS
from hortus.engine.deputies import Action, deputy_of

_RBAC = "rbac.authorization.k8s.io"
_VERBS = ("get", "create", "patch", "delete")
_MADE = (
    ("", "configmaps"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("policy", "poddisruptionbudgets"),
    ("", "resourcequotas"),
)


async def test_an_agent_gets_no_object_that_the_deputy_may_not_make(here: AgentsWorld) -> None:
    """Neither roles are written, nor the privileged DaemonSet next to the agent."""
    here.trusted = "kcp-system"
    async with here.controllers():
        await here.agent()
        found = await here.until(lambda obj: condition(obj, "ReconcileSucceeded")[0] == "False")
        [failed] = [one for one in found["status"]["conditions"] if one["type"] == "ReconcileSucceeded"]
        assert f'User "{deputy_of(HOME)}" cannot' in failed["message"]
        assert await here.owned() == {}
        await here.client.delete(INSTANA_AGENTS, HOME, HOME)
        await here.gone(INSTANA_AGENTS, HOME)


async def test_an_agent_gets_what_the_deputy_may_make_and_goes_without_it(here: AgentsWorld) -> None:
    """The permissions may be gone when the agent is deleted: what carries its mark was made for it."""
    here.trusted = "kcp-system"
    await grant(here.client, HOME, *(Action(verb, group, kind, HOME) for group, kind in _MADE for verb in _VERBS))
    kinds = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
    await grant(here.client, HOME, *(Action(verb, _RBAC, kind) for kind in kinds for verb in _VERBS))
    for kind in ("clusterroles", "roles"):
        await grant(here.client, HOME, Action("escalate", _RBAC, kind), Action("bind", _RBAC, kind))
    async with here.controllers():
        await here.agent()
        await here.reconciled()
        made = await here.owned()
        assert f"ClusterRole /{HOME}" in made
        await here.take_grants_back()
        await here.client.delete(INSTANA_AGENTS, HOME, HOME)
        await here.gone(INSTANA_AGENTS, HOME)
        assert await here.owned() == {}
