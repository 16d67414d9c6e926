"""Options of agents through the controller: their facts, their changes, their refusal."""

from __future__ import annotations

import base64
from typing import Any

from tests.domains.agents.operating.world import HOME, AgentsWorld, condition

from hortus.domains.agents.operating.objects import CONFIG_MAPS, DAEMON_SETS, POLICIES, SECRETS
from hortus.domains.agents.options import CONFIG_LABEL, OPTIONS_ANNOTATION
from hortus.domains.agents.types import INSTANA_AGENTS
from hortus.kube.objects import Object, Resource
from hortus.testing.waiting import wait_for

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


def asking(text: str | None) -> Object:
    return {"metadata": {"annotations": {OPTIONS_ANNOTATION: text}}}


async def node(here: AgentsWorld, name: str, **labels: str) -> None:
    await here.client.apply(NODES, {"metadata": {"name": name, "labels": labels}}, field_manager="test")


async def test_an_option_is_served_when_the_annotation_changes_and_withdrawn_with_it(here: AgentsWorld) -> None:
    await here.agent()
    async with here.controllers():
        await here.reconciled()
        await here.change(INSTANA_AGENTS, HOME, asking("sensorNetwork: {enabled: true}"))
        await wait_for(here.client, POLICIES, f"{HOME}-k8sensor", HOME)
        await here.change(INSTANA_AGENTS, HOME, asking(None))
        await here.gone(POLICIES, f"{HOME}-k8sensor")


async def test_a_zone_is_made_when_its_first_node_comes(here: AgentsWorld) -> None:
    await node(here, "one", zone="a")
    await here.agent()
    await here.change(INSTANA_AGENTS, HOME, asking("zoneLabel: zone"))
    async with here.controllers():
        await wait_for(here.client, DAEMON_SETS, f"{HOME}-a", HOME)
        assert await here.get(DAEMON_SETS, HOME) is None
        await node(here, "two", zone="b")
        await wait_for(here.client, DAEMON_SETS, f"{HOME}-b", HOME)


def configuration(secret: Object) -> str:
    return base64.b64decode(secret["data"].get("configuration.yaml", "")).decode()


async def test_a_labelled_configuration_is_merged_when_it_changes(here: AgentsWorld) -> None:
    await here.agent()
    await here.change(INSTANA_AGENTS, HOME, asking("mergeConfigurations: true"))
    async with here.controllers():
        await here.reconciled()
        labels = {"labels": {CONFIG_LABEL: "true"}}
        await here.create(CONFIG_MAPS, "extra", metadata=labels, data={"configuration_yaml": "a: 1"})
        name = f"{HOME}-config"
        await wait_for(here.client, SECRETS, name, HOME, until=lambda obj: configuration(obj) == "a: 1\n")
        await here.change(CONFIG_MAPS, "extra", {"data": {"configuration_yaml": "a: 2"}})
        await wait_for(here.client, SECRETS, name, HOME, until=lambda obj: configuration(obj) == "a: 2\n")


async def test_options_that_cannot_be_used_change_no_object_until_they_are_mended(here: AgentsWorld) -> None:
    await here.agent()
    async with here.controllers():
        await here.reconciled()
        await here.at_rest()
        before = await here.owned()
        await here.change(INSTANA_AGENTS, HOME, asking("probes: true"))

        def failed(obj: Object) -> Any:
            return condition(obj, "ReconcileSucceeded")[0] == "False"

        agent = await here.until(failed)
        assert (
            "InstanaAgent instana-agent/instana-agent: Object contains unknown field `probes`"
            in agent["status"]["reason"]
        )
        assert await here.owned() == before
        await here.change(INSTANA_AGENTS, HOME, asking("{}"))
        await here.reconciled()
