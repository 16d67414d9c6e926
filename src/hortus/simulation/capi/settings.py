"""The durations of the simulated Cluster API."""

from __future__ import annotations

import msgspec


class CapiSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that each part takes; in a real cluster they are minutes."""

    infrastructure: float = 0.3
    """Until the infrastructure of a new Cluster is provisioned."""
    control_plane: float = 0.5
    """From then until its control plane is initialized."""
    upgrade: float = 0.5
    """The upgrade of a control plane by one version."""
    retry: float = 1.0
    """Until a hook that failed is called again; Cluster API backs off."""
    nodes: bool = True
    """Nodes join the workload clusters."""
    keeps_kubeconfigs: bool = False
    """A kubeconfig that there is stays as it is, wherever it leads: its cluster is not the simulation's."""
    hook_wait: float = 1.0
    """Factor for the seconds after which a hook asks to be called again."""
    workers: int = 10
