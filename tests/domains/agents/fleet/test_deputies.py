"""AgentConfigurations of a namespace that is not trusted reach the members whose kubeconfig its deputy may read."""

from __future__ import annotations

from tests.domains.agents.fleet.world import AGENT, DAEMON_SETS, FLEET, HOME, AgentWorld, message, ready
from tests.domains.granting import grant, reads_secret

from hortus.engine.deputies import refusal


async def test_a_member_gets_an_agent_only_where_the_deputy_may_read_its_kubeconfig(here: AgentWorld) -> None:
    """A privileged agent is all of the member, as the kubeconfig is."""
    here.trusted = HOME
    await here.keys()
    for name in ("allowed", "other"):
        await here.member(name)
    kubeconfig = reads_secret(HOME, "kubeconfig-allowed")
    await grant(here.client, FLEET, kubeconfig, reads_secret(FLEET, "agent-keys"))
    async with here.controllers():
        await here.configure()
        found = await here.placement("other", lambda obj: ready(obj)[1] == "NotPermitted")
        assert message(found) == refusal(FLEET, kubeconfig._replace(name="kubeconfig-other"))
        await here.run_pods("allowed")
        await here.placement("allowed", lambda obj: ready(obj)[0] == "True")
    assert await here.inside_object("other", DAEMON_SETS, AGENT) is None
