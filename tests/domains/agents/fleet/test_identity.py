"""Members that say that they are another one, and members that have moved."""

from __future__ import annotations

import asyncio
import base64

from tests.domains.agents.fleet.world import AGENT, DAEMON_SETS, FLEET, HOME, AgentWorld, is_running
from tests.fronts import front
from tests.waiting import until

from hortus.domains.agents.types import AGENT_CONFIGURATIONS
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.leftovers.types import LEFTOVERS
from hortus.kube import Client, yaml
from hortus.kube.objects import Object
from hortus.testing.waiting import wait_for, wait_gone


async def lead(here: AgentWorld, name: str, kubeconfig: Object) -> None:
    data = {"config": base64.b64encode(yaml.dump(kubeconfig).encode()).decode()}
    await here.client.patch(SECRETS, f"kubeconfig-{name}", {"data": data}, HOME)


async def running(here: AgentWorld, name: str) -> Object:
    await here.keys()
    await here.member(name)
    await here.configure()
    await here.run_pods(name)
    return await here.placement(name, is_running)


async def uid_of(client: Client) -> str:
    found: str = (await client.get_raw("/api/v1/namespaces/kube-system"))["metadata"]["uid"]
    return found


async def test_the_uid_of_a_member_does_not_stand_for_what_was_installed_there(here: AgentWorld) -> None:
    other = f"{here.name}-other"
    await asyncio.to_thread(here.server.create_cluster, other)
    async with here.controllers(), here.inside("other") as inside:
        await running(here, "one")
        async with here.inside("one") as real:
            uid = await uid_of(real)
        async with front(here.server, other, uid=uid) as lying:
            await lead(here, "one", lying.kubeconfig)
            await wait_for(inside, DAEMON_SETS, AGENT, AGENT)
        assert await here.inside_object("one", DAEMON_SETS, AGENT), "nothing is taken from the real one"


async def test_a_member_that_is_proven_to_have_moved_gets_nothing_again(here: AgentWorld) -> None:
    async with here.controllers() as manager:
        await running(here, "one")
        await here.at_rest(manager)
        async with front(here.server, f"{here.name}-one") as new:
            await lead(here, "one", new.kubeconfig)
            await until(lambda: any("daemonsets" in path for _, path in new.requests))
            await here.at_rest(manager)
            assert [one for one in new.requests if one[0] != "GET"] == [], "the proof writes by the former address"
            assert new.lists("daemonsets") == 0


async def test_what_is_left_in_a_silent_member_is_recorded_with_the_way_to_it(here: AgentWorld) -> None:
    here.detach_after = 0.2
    async with here.controllers():
        await running(here, "one")
        async with here.inside("one") as inside:
            uid = await uid_of(inside)
        async with front(here.server, f"{here.name}-one") as way:
            await lead(here, "one", way.kubeconfig)
            await until(lambda: any("daemonsets" in path for _, path in way.requests))
        await here.client.delete(AGENT_CONFIGURATIONS, "fleet", FLEET)
        await wait_gone(here.client, AGENT_CONFIGURATIONS, "fleet", FLEET)
    (left,) = (await here.client.list(LEFTOVERS, FLEET)).items
    cluster = left["spec"]["cluster"]
    assert (cluster["identity"], cluster["address"]) == (uid, way.address)
