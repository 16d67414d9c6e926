"""The objects of the fleets that are planned for, and of the changes."""

from __future__ import annotations

from collections.abc import Iterator

from hortus.domains.agents.fleet.distribution import DISTRIBUTABLE
from hortus.engine.rollouts.types import ROLLOUT_POLICIES
from hortus.kube.objects import Object, Resource

AGENTS = Resource("fleet.hortus.dev", "v1alpha1", "agentconfigurations", "AgentConfiguration")
STACKS = Resource("clusterstack.x-k8s.io", "v1alpha1", "clusterstacks", "ClusterStack")
CLUSTERS = Resource("cluster.x-k8s.io", "v1beta1", "clusters", "Cluster")
CLUSTER_ADDONS = Resource("clusterstack.x-k8s.io", "v1alpha1", "clusteraddons", "ClusterAddon")
SECRETS = Resource("", "v1", "secrets", "Secret")
FLEET, STACK_NAMESPACE = "fleet", "stacks"
CANARY = {"matchLabels": {"fleet.hortus.dev/provider": "gcp"}}


def policy(name: str, change: str, *, soak: str = "0s") -> Object:
    """A canary of one provider, then all others, a fifth at a time."""
    return {
        "apiVersion": ROLLOUT_POLICIES.api_version,
        "kind": ROLLOUT_POLICIES.kind,
        "metadata": {"name": name, "namespace": FLEET},
        "spec": {
            "changes": [{"kind": change}],
            "stages": [
                {
                    "name": "canary",
                    "clusters": CANARY,
                    "maxConcurrency": "10%",
                    "minSuccessTime": soak,
                    "approval": "After",
                },
                {"name": "rest", "maxConcurrency": "20%"},
            ],
        },
    }


def keys() -> Object:
    """The Secret of the agents."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "agent-keys", "namespace": FLEET, "labels": {DISTRIBUTABLE: "true"}},
        "stringData": {"key": "a-key"},
    }


def agents(memory: str) -> Object:
    """Agents on all clusters."""
    agent = {
        "endpointHost": "ingress.example.org",
        "endpointPort": "443",
        "keysSecret": "agent-keys",
        "pod": {"requests": {"memory": memory}},
    }
    return {
        "apiVersion": AGENTS.api_version,
        "kind": AGENTS.kind,
        "metadata": {"name": "everywhere", "namespace": FLEET},
        "spec": {
            "clusterSelector": {},
            "template": {"agent": agent, "cluster": {"name": "here"}, "zone": {"name": "here"}},
        },
    }


def stack(*versions: str) -> Object:
    """The sample stack with these releases."""
    return {
        "apiVersion": STACKS.api_version,
        "kind": STACKS.kind,
        "metadata": {"name": "sample-1-34", "namespace": STACK_NAMESPACE},
        "spec": {
            "provider": "docker",
            "name": "sample",
            "kubernetesVersion": "1.34",
            "noProvider": True,
            "autoSubscribe": False,
            "versions": [*versions],
        },
    }


def clusters(count: int, version: str) -> Iterator[Object]:
    """Clusters of a release of the sample stack."""
    for number in range(1, count + 1):
        yield {
            "apiVersion": CLUSTERS.api_version,
            "kind": CLUSTERS.kind,
            "metadata": {"name": f"shop-{number}", "namespace": STACK_NAMESPACE},
            "spec": {"topology": {"class": f"docker-sample-1-34-{version}", "version": "v1.34.1"}},
        }
