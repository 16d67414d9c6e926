"""Workloads of simulated clusters run: Deployments, DaemonSets, StatefulSets, and the resources of modules."""

from hortus.simulation.workloads.behaviour import BEHAVIOUR, BROKEN, settled
from hortus.simulation.workloads.mirror import PODS
from hortus.simulation.workloads.pods import KubeletPace
from hortus.simulation.workloads.running import DAEMON_SETS, DEPLOYMENTS, NODES, RunningWorkloads
from hortus.simulation.workloads.serving import MODULE_GROUP, STATEFUL_SETS, SimulatedWorkloads, follow

__all__ = [
    "BEHAVIOUR",
    "BROKEN",
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "MODULE_GROUP",
    "NODES",
    "PODS",
    "STATEFUL_SETS",
    "KubeletPace",
    "RunningWorkloads",
    "SimulatedWorkloads",
    "follow",
    "settled",
]
