"""No builder is asked for a CR that the schema refuses: not when it is sent, and not when it is stored all the same."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.domains.agents.builders import crs
from tests.domains.agents.operating.world import CRDS, HOME, AgentsWorld, base, condition

from hortus.domains.agents import builders
from hortus.domains.agents.operating import agents, remotes
from hortus.domains.agents.types import INSTANA_AGENTS, INSTANA_AGENTS_REMOTE, InstanaAgent, InstanaAgentRemote
from hortus.kube.errors import Invalid
from hortus.kube.objects import Object, Resource
from hortus.schema import Kind, crd

LAX: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the CRs that builders are asked for by the controllers."""
    names = set()

    def spied(build: Any) -> Any:
        def built(agent: Any, facts: Any) -> Any:
            names.add(agent.metadata.name)
            return build(agent, facts)

        return built

    monkeypatch.setattr(agents, "build_agent", spied(builders.build_agent))
    monkeypatch.setattr(remotes, "build_remote", spied(builders.build_remote))
    return names


def mistakes(kind: type[Kind]) -> list[tuple[str, Any]]:
    schema = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return list(crs.each_mistake(schema))


@pytest.mark.parametrize(
    ("kind", "resource"), [(InstanaAgent, INSTANA_AGENTS), (InstanaAgentRemote, INSTANA_AGENTS_REMOTE)]
)
async def test_a_mistake_in_any_field_is_refused_before_a_builder_is_asked(
    here: AgentsWorld, asked: set[str], kind: type[Kind], resource: Resource
) -> None:
    found = mistakes(kind)
    assert len(found) > 500
    good: Object = {"cluster": {"name": "demo"}, "zone": {"name": "one"}, "agent": base()}
    if kind is InstanaAgentRemote:
        del good["cluster"]
    async with here.controllers():
        await here.create(resource, "good", spec=good)
        for number, (path, spec) in enumerate(found):
            with pytest.raises(Invalid) as refused:
                await here.create(resource, f"wrong-{number}", spec=spec)
            assert "spec" in str(refused.value), path
        await here.reconciled("good", resource=resource)
        await here.at_rest()
        assert asked == {"good"}


async def test_a_cr_of_another_shape_from_the_days_of_a_laxer_crd_is_reported_and_not_built(
    here: AgentsWorld, asked: set[str]
) -> None:
    lax = crd(InstanaAgent)
    lax["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = LAX
    await here.client.apply(CRDS, lax, field_manager="test", force=True)
    # Every eighth field of the agent itself: each costs a reconcile with its status and event.
    own = [spec for path, spec in mistakes(InstanaAgent) if re.fullmatch(r"\.agent\.\w+", path)]
    wrong = own[::8]
    assert len(wrong) >= 4
    for number, spec in enumerate(wrong):
        await here.create(INSTANA_AGENTS, f"wrong-{number}", spec=spec)
    await here.agent()
    async with here.controllers():
        await here.reconciled()
        for number, spec in enumerate(wrong):
            name = f"wrong-{number}"
            agent = await here.until(lambda obj: condition(obj, "ReconcileSucceeded")[0] == "False", name)
            assert f"InstanaAgent {HOME}/{name}" in agent["status"]["reason"], spec
        # One that cannot be read keeps no other from being served.
        agent = await here.until(lambda obj: condition(obj, "ReconcileSucceeded")[0] == "True")
        assert condition(agent, "ConfigurationComplete") == ("", "")
        assert asked == {HOME}
