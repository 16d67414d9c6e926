"""The power that authors of agents have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hortus.domains.agents.types import (
    AGENT_CONFIGURATIONS,
    AGENT_PLACEMENTS,
    INSTANA_AGENTS,
    INSTANA_AGENTS_REMOTE,
)
from hortus.engine.powers import Effect, Power
from hortus.kube.objects import Resource

_AGENT: Final = Power(
    "A privileged DaemonSet and the roles of agents on the management cluster.",
    "What the deputy may create: workloads, Secrets and roles, with the API server's escalation checks. Secrets "
    "that the agent names are read as the deputy.",
)
_IN_MEMBERS: Final = (
    "The same where the deputy may get the Secret with the cluster's kubeconfig, and the Secrets that the template "
    "names."
)
POWERS: Final[Mapping[Resource, Power]] = {
    INSTANA_AGENTS: _AGENT,
    INSTANA_AGENTS_REMOTE: _AGENT,
    AGENT_CONFIGURATIONS: Power(
        "A privileged DaemonSet in every cluster that it selects, and copies there of Secrets that their owner "
        "labelled for it.",
        _IN_MEMBERS,
        (
            Effect(
                ("patch", "delete"),
                AGENT_PLACEMENTS.group,
                AGENT_PLACEMENTS.plural,
                "records the clusters that it selects; each is judged by itself",
            ),
            Effect(
                ("patch",),
                AGENT_PLACEMENTS.group,
                f"{AGENT_PLACEMENTS.plural}/status",
                "reports the state of each",
            ),
        ),
    ),
    AGENT_PLACEMENTS: Power("The agent of its AgentConfiguration in one cluster.", _IN_MEMBERS),
}
