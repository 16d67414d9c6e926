"""AgentPlacements, and the places of their clusters, as they are kept between reconciles."""

from __future__ import annotations

from hortus.domains.agents.fleet.changes import AGENT_CHANGE
from hortus.domains.agents.fleet.known import CONFIGURATION_INDEX, KnownPlacements
from hortus.domains.agents.fleet.members import AgentMembers
from hortus.domains.agents.types import AgentPlacement
from hortus.engine import Cache, TypedCache
from hortus.engine.remote import KubeconfigRef, RemotePool, SecretCredentials
from hortus.engine.rollouts.types import WANTS
from hortus.kube import Client
from hortus.kube.access import Access
from hortus.kube.objects import Object, ObjectKey
from hortus.testing import FakeClock

ONE = ObjectKey("fleet", "instana-agent.one")
CONFIGURATION = ObjectKey("fleet", "everywhere")


def placement(version: str, number: int, **annotations: str) -> Object:
    return {
        "apiVersion": AgentPlacement.FACTS.api_version,
        "kind": "AgentPlacement",
        "metadata": {**ONE._asdict(), "resourceVersion": str(number), "annotations": annotations},
        "spec": {
            "cluster": "one",
            "agentNamespace": "instana-agent",
            "agentName": "instana-agent",
            "configuration": "everywhere",
            "version": version,
        },
    }


def test_a_placement_is_decoded_once_for_each_of_its_states() -> None:
    cache = Cache("placements")
    cache.add_index(CONFIGURATION_INDEX, lambda obj: [f"fleet/{obj['spec']['configuration']}"])
    known = KnownPlacements(TypedCache(AgentPlacement, cache))
    cache.put(placement("a", 1))
    first = known.get(ONE)
    assert first is not None and first is known.get(ONE)
    assert known.of(CONFIGURATION) == [first]
    cache.put(placement("b", 2, **{f"{WANTS}{AGENT_CHANGE}": "b"}))
    second = known.get(ONE)
    assert second is not None
    assert (first.placement.spec.version, first.waits) == ("a", False)
    assert (second.placement.spec.version, second.waits) == ("b", True)
    cache.drop(ONE)
    assert known.get(ONE) is None
    assert known.of(CONFIGURATION) == []


def test_the_placements_at_a_place_are_those_that_entered_there_last() -> None:
    client = Client(Access(server="https://example.org"))
    members = AgentMembers(RemotePool(SecretCredentials(client, Cache("secrets"))), clock=FakeClock())
    here, there = (KubeconfigRef("kcp-system", name, "config") for name in ("here", "there"))
    two = ObjectKey("fleet", "other-agent.one")
    for key in (ONE, two):
        members.enter(key, here)
    assert set(members.keys_at(here)) == {ONE, two}
    members.enter(ONE, there)
    assert (set(members.keys_at(here)), set(members.keys_at(there))) == ({two}, {ONE})
    members.leave(two)
    members.leave(two)
    assert (set(members.keys_at(here)), set(members.keys_at(there))) == (set(), {ONE})
