"""Configurations that select the same clusters say so, both of them, with the one that rules."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from tests.domains.agents.fleet.test_selection import clusters, configuration, configurations
from tests.domains.agents.fleet.world import AgentWorld, ready

from hortus.domains.agents.fleet.explaining import explained
from hortus.domains.agents.fleet.overlaps import OVERLAPS, OverlapReason, overlaps
from hortus.domains.agents.fleet.selection import in_order, selected
from hortus.domains.agents.types import AgentConfiguration
from hortus.engine import find_condition
from hortus.kube.objects import Object

FLEET = {"one": {"a": "1"}, "two": {"a": "2"}, "three": {}}
ONE = {"matchLabels": {"a": "1"}}


def found(one: AgentConfiguration, *others: AgentConfiguration) -> tuple[str, str] | None:
    overlap = overlaps(one, in_order([one, *others]), FLEET)
    return None if overlap is None else (overlap.reason, overlap.message)


def test_both_name_the_two_and_the_one_that_rules() -> None:
    common, special = configuration("common"), configuration("special", clusterSelector=ONE, priority=-1)
    text = "AgentConfigurations common and special select cluster one: common rules, by priority 0 over -1"
    assert found(common, special) == ("Overrules", text)
    assert found(special, common) == ("Overruled", text)
    assert found(special, configuration("other", clusterSelector={"matchLabels": {"a": "2"}})) is None


def test_of_equal_priorities_the_later_name_rules() -> None:
    alpha, beta = configuration("alpha"), configuration("beta")
    text = (
        "AgentConfigurations beta and alpha select 3 clusters, one, three, two: beta rules, by its name, which is the "
        "later one, at the same priority"
    )
    assert (found(alpha, beta), found(beta, alpha)) == (("Overruled", text), ("Overrules", text))


def test_two_agents_of_different_names_are_ruled_by_nobody() -> None:
    one, two = configuration("one"), configuration("two", agentName="second", clusterSelector=ONE)
    reason, text = found(one, two) or ("", "")
    assert reason == "TwoAgents"
    assert "AgentConfigurations two and one select cluster one: neither rules" in text
    assert "instana-agent/second and instana-agent/instana-agent" in text
    lines = list(explained("one", FLEET["one"], [one, two], []))
    expected = (
        "AgentConfigurations one and two give it two agents, instana-agent/instana-agent and instana-agent/second"
    )
    assert [line for line in lines if line.startswith(expected)], lines


def test_a_message_names_a_few() -> None:
    many = [configuration(f"c{number}", priority=number) for number in range(9)]
    fleet: Any = {f"cluster-{number}": {} for number in range(20)}
    overlap = overlaps(many[4], in_order(many), fleet)
    assert overlap is not None and overlap.reason == "Overruled"
    assert "cluster-0, cluster-1, cluster-10, cluster-11, cluster-12 and 15 more" in overlap.message
    assert overlap.message.endswith("; and with 3 more")


@settings(deadline=None, max_examples=100)
@given(configurations, clusters)
def test_a_configuration_is_overruled_where_another_one_is_placed(
    given_: list[AgentConfiguration], fleet: dict[str, dict[str, str]]
) -> None:
    ordered = in_order(given_)
    for one in ordered:
        overlap = overlaps(one, ordered, fleet)
        overruled = selected(one, ordered, fleet).overruled
        assert bool(overruled) == (overlap is not None and overlap.reason == OverlapReason.OVERRULED)


async def test_the_conditions_come_and_go_with_the_overlap(here: AgentWorld) -> None:
    def overlapping(reason: str) -> Any:
        def says(obj: Object) -> bool:
            return (find_condition(obj, OVERLAPS) or {}).get("reason", "") == reason

        return says

    await here.keys()
    await here.member("one", labels={"stage": "test"})
    await here.configure("common")
    async with here.controllers():
        await here.configuration(lambda obj: ready(obj)[1] and overlapping("")(obj), "common")
        await here.configure("special", priority=1)
        common = await here.configuration(overlapping("Overruled"), "common")
        special = await here.configuration(overlapping("Overrules"), "special")
        expected = "AgentConfigurations special and common select cluster one: special rules, by priority 1 over 0"
        assert {(find_condition(one, OVERLAPS) or {}).get("message") for one in (common, special)} == {expected}
        await here.change("special", clusterSelector={"matchLabels": {"stage": "live"}})
        for name in ("common", "special"):
            after = await here.configuration(overlapping(""), name)
            assert find_condition(after, OVERLAPS) is None
