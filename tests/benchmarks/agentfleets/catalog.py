"""The objects of the benchmark of agents: clusters with nodes, keys, an AgentConfiguration and a RolloutPolicy."""

from __future__ import annotations

import base64

from tests.benchmarks.fleet import shoot

from hortus.domains.agents.fleet.changes import AGENT_CHANGE
from hortus.domains.agents.fleet.distribution import DISTRIBUTABLE
from hortus.domains.agents.types import AGENT_CONFIGURATIONS
from hortus.engine.rollouts.types import ROLLOUT_POLICIES
from hortus.kube.objects import Object

FLEET, HOME = "fleet", "kcp-system"
NAME, KEYS = "everywhere", "agent-keys"
AGENT = "instana-agent"
PER_CLUSTER = """\
{
  "zone": {"name": cluster.region},
  "agent": {"pod": {"labels": {"provider": cluster.provider}}}
}
"""


def name_of(number: int) -> str:
    return f"bench-{number}"


def cluster_path(name: str) -> str:
    """The path of a cluster's API on the server."""
    return f"/clusters/shoot--demo--{name}"


def shoot_with(number: int, nodes: int) -> Object:
    """A Shoot with one pool of so many nodes."""
    made = shoot(number)
    made["spec"]["provider"]["workers"][0] |= {"minimum": nodes, "maximum": nodes}
    return made


def key_of_turn(turn: int) -> bytes:
    return f"the-key-of-turn-{turn}".encode()


def keys(turn: int) -> Object:
    data = {"key": base64.b64encode(key_of_turn(turn)).decode()}
    metadata = {"name": KEYS, "namespace": FLEET, "labels": {DISTRIBUTABLE: "true"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def configuration() -> Object:
    agent = {"endpointHost": "backend.example.org", "endpointPort": "443", "keysSecret": KEYS}
    return {
        "apiVersion": AGENT_CONFIGURATIONS.api_version,
        "kind": AGENT_CONFIGURATIONS.kind,
        "metadata": {"name": NAME, "namespace": FLEET},
        "spec": {"clusterSelector": {}, "template": {"agent": agent}, "perCluster": PER_CLUSTER},
    }


def policy(concurrency: int) -> Object:
    return {
        "apiVersion": ROLLOUT_POLICIES.api_version,
        "kind": ROLLOUT_POLICIES.kind,
        "metadata": {"name": "agents", "namespace": FLEET},
        "spec": {
            "changes": [{"kind": AGENT_CHANGE, "subjects": ["*"]}],
            "stages": [{"name": "all", "maxConcurrency": concurrency}],
        },
    }
