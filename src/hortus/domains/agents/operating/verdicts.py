"""The conditions of both kinds, and the fields of their status, as pure functions.

Types, reasons and messages are those of instana/instana-agent-operator (`pkg/k8s/operator/status`). The Go operator
looks at the last sensor Deployment alone, and reports one that is switched off as an error; here all are looked at, and
the condition of a sensor that is switched off is removed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from hortus.domains.agents.operating.availability import all_available
from hortus.engine import FALSE, TRUE, UNKNOWN, ConditionStatus
from hortus.engine.typed import metadata_of
from hortus.kube.objects import Object
from hortus.schema import ObjectMeta

RECONCILED: Final = "ReconcileSucceeded"
AGENTS_AVAILABLE: Final = "AllAgentsAvailable"
SENSORS_AVAILABLE: Final = "AllK8sSensorsAvailable"
CONFIGURED: Final = "ConfigurationComplete"
"""False while the agent is built otherwise than its spec asks for; absent where there is nothing to say."""

RUNNING, FAILED = "Running", "Failed"
_SEMANTIC: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")


class AgentCondition(NamedTuple):
    """A condition that is drafted; one whose status is None is removed."""

    type: str
    status: ConditionStatus | None
    reason: str = ""
    message: str = ""


class Workload(NamedTuple):
    """A workload that was built, and as it is in the cluster; `live` is None where it was not found."""

    name: str
    live: Object | None


class Words(NamedTuple):
    """The words in which the two kinds differ."""

    kind: str
    """The workload of the agent."""
    succeeded: str
    available: str
    unavailable: str
    unknown: str
    """Reason of a workload that is not found."""
    looked_up: str


AGENT: Final = Words(
    kind="DaemonSet",
    succeeded="most recent reconcile of agent CR completed without issue",
    available="All desired Instana Agents are available and using up-to-date configuration",
    unavailable="Not all desired Instana agents are available or some Agents are not using up-to-date configuration",
    unknown="AgentDaemonsetInfoUnavailable",
    looked_up="Agent Daemonset",
)
REMOTE: Final = Words(
    kind="Deployment",
    succeeded="most recent reconcile of instana agent remote CR completed without issue",
    available="All desired Instana Agent Remote are available and using up-to-date configuration",
    unavailable=(
        "Not all desired Instana Agent Remote are available or some Agents are not using up-to-date configuration"
    ),
    unknown="AgentDeploymentInfoUnavailable",
    looked_up="Agent Deployment",
)


def reconciled(words: Words, error: str) -> AgentCondition:
    """ReconcileSucceeded, by the text of the failure; empty for none."""
    if error:
        return AgentCondition(RECONCILED, FALSE, "ReconcileFailed", error)
    return AgentCondition(RECONCILED, TRUE, RECONCILED, words.succeeded)


def agents_available(words: Words, workloads: tuple[Workload, ...]) -> AgentCondition:
    """AllAgentsAvailable. An InstanaAgent without any DaemonSet has it True, as in the Go operator, a Remote False."""
    for workload in workloads:
        if workload.live is None:
            message = f"failed to retrieve status of {words.looked_up}: {workload.name} due to error: not found"
            return AgentCondition(AGENTS_AVAILABLE, UNKNOWN, words.unknown, message)
    found = [workload.live for workload in workloads if workload.live is not None]
    if all_available(words.kind, found) and (found or words is AGENT):
        return AgentCondition(AGENTS_AVAILABLE, TRUE, "AllDesiredAgentsAvailable", words.available)
    return AgentCondition(AGENTS_AVAILABLE, FALSE, "NotAllDesiredAgentsAvailable", words.unavailable)


def sensors_available(workloads: tuple[Workload, ...], *, enabled: bool) -> AgentCondition:
    """AllK8sSensorsAvailable, over the Deployments of all backends."""
    if not enabled:
        return AgentCondition(SENSORS_AVAILABLE, None)
    if not workloads:
        message = "k8sensor deployment has not been configured for this agent"
        return AgentCondition(SENSORS_AVAILABLE, UNKNOWN, "K8sensorDeploymentNotConfigured", message)
    for workload in workloads:
        if workload.live is None:
            message = f"failed to retrieve status of k8sensor deployment: {workload.name} due to error: not found"
            return AgentCondition(SENSORS_AVAILABLE, UNKNOWN, "K8sensorDeploymentInfoUnavailable", message)
    if all_available("Deployment", [workload.live for workload in workloads if workload.live is not None]):
        message = "All desired k8sensors are available and using up-to-date configuration"
        return AgentCondition(SENSORS_AVAILABLE, TRUE, "AllDesiredK8sensorsAvailable", message)
    message = "Not all desired k8sensors are available or some k8sensors are not using up-to-date configuration"
    return AgentCondition(SENSORS_AVAILABLE, FALSE, "NotAllDesiredK8sensorsAvailable", message)


def configured(problems: Mapping[str, str]) -> AgentCondition:
    """ConfigurationComplete, by the problems of a spec: messages by reason, the first of which is the condition's."""
    if not problems:
        return AgentCondition(CONFIGURED, None)
    return AgentCondition(CONFIGURED, FALSE, next(iter(problems)), "; ".join(problems.values()))


def info_of(live: Object | None) -> dict[str, str]:
    """Name and UID of an object of the status; both empty for one that is not there, since the schema wants both."""
    metadata = metadata_of(live) if live is not None else ObjectMeta()
    return {"name": metadata.name, "uid": metadata.uid}


def semantic_version(operator_version: str) -> str:
    """The operator's version as the status has it: without the v; empty for one that is no semantic version."""
    return operator_version.removeprefix("v") if _SEMANTIC.fullmatch(operator_version) else ""


def old_versions_updated(*, before: bool, observed: int | None, generation: int, seen: str, running: str) -> bool:
    """Reports whether another generation or another operator has been at work on this object; once true, always true.

    `observed` and `seen` are of the status so far, 0 or None and "" where it has none.
    """
    if before:
        return True
    version = semantic_version(running)
    return bool(observed and observed != generation) or bool(
        seen and (not version or seen.removeprefix("v") != version)
    )
