"""Objects of InstanaAgentRemote: one agent in a Deployment, for what runs outside of the cluster.

There is one Deployment however many backends there are. Its liveness probe asks the pod itself; the Go operator's asks
the loopback of the node, where another agent may answer, and stays where such a Deployment is taken over.
"""

from __future__ import annotations

import re
from typing import Final

from hortus.domains.agents.builders import additions, environment, names, pods, volumes
from hortus.domains.agents.builders.daemonset import DEFAULT_MODE
from hortus.domains.agents.builders.facts import LOOPBACK, InstanaFacts
from hortus.domains.agents.builders.metadata import REMOTE, common_labels, namespaced, pod_labels, selector_labels
from hortus.domains.agents.types import InstanaAgentRemote
from hortus.kube.objects import Object

_LONGEST_HOSTNAME: Final = 63
_NOT_IN_HOSTNAMES: Final = re.compile(r"[^a-z0-9-]")


def deployment(agent: InstanaAgentRemote, facts: InstanaFacts) -> Object | None:
    """The Deployment of the agent; None where key or zone are missing."""
    wanted = agent.spec.agent
    if not ((wanted.key or wanted.keys_secret) and agent.spec.zone.name):
        return None
    name = names.base(agent)
    labels = pod_labels(agent, REMOTE, wanted.mode or DEFAULT_MODE)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": namespaced(agent, name, common_labels(agent, REMOTE, facts.operator_version)),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": selector_labels(agent, REMOTE)},
            "strategy": {"type": "RollingUpdate"},
            "template": pods.template(labels, additions.pod_annotations(agent, facts), _pod(agent, facts, name)),
        },
    }


def hostname(agent: InstanaAgentRemote) -> str:
    """The host name under which the agent reports: that of the CR or one of its name, made a valid label."""
    wanted = agent.spec.hostname.name or f"{names.base(agent)}-{agent.metadata.namespace}"
    text = _NOT_IN_HOSTNAMES.sub("-", wanted.lower())
    if text[0] == "-":
        text = f"a{text}"
    if text[-1] == "-":
        text = f"{text}0"
    cut = text[:_LONGEST_HOSTNAME]
    return f"{cut[:-1]}0" if cut[-1] == "-" else cut


def _pod(agent: InstanaAgentRemote, facts: InstanaFacts, name: str) -> Object:
    wanted = agent.spec.agent
    mounted = pods.mounts_of(volumes.of_remote(agent, facts), wanted.pod)
    tolerations = additions.tolerations(wanted.pod.tolerations, facts.options)
    probed = "" if facts.corrected.get(name, True) else LOOPBACK
    container: Object = {
        "name": agent.metadata.name,
        "image": pods.image(wanted.image),
        "imagePullPolicy": wanted.image.pull_policy,
        "env": environment.of_remote(agent),
        "livenessProbe": pods.liveness(wanted.pod, probed),
        "resources": pods.resources(additions.with_storage(wanted.pod, facts.options)),
        "volumeMounts": mounted.mounts,
    }
    return {
        "serviceAccountName": names.REMOTE_ACCOUNT,
        "hostname": hostname(agent),
        "dnsPolicy": "ClusterFirstWithHostNet",
        **pods.placement(wanted.pod),
        **pods.filled({"imagePullSecrets": names.pull_secrets(agent), "tolerations": tolerations}),
        "affinity": wanted.pod.affinity or {},
        "containers": [additions.probes(container, facts.options, wanted.pod, probed)],
        "volumes": mounted.volumes,
    }
