"""The status of a Cluster as Cluster API shows it: phase, readiness in both forms, and conditions."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from hortus.kube.objects import Object, format_time

_CONDITIONS: Final = ("InfrastructureReady", "ControlPlaneInitialized", "ControlPlaneReady")


class ClusterPhase(StrEnum):
    """`status.phase`."""

    PENDING = "Pending"
    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    DELETING = "Deleting"


class StatusOf:
    """The status to be of one Cluster. Fields of both versions of the API are set."""

    def __init__(self, cluster: Object, *, now: float) -> None:
        found = cluster.get("status") or {}
        self._now = format_time(now)
        self._known: dict[str, Object] = {one["type"]: one for one in found.get("conditions") or ()}
        self.fields: dict[str, Any] = {
            "phase": found.get("phase", ClusterPhase.PENDING.value),
            "observedGeneration": cluster["metadata"].get("generation", 1),
        }
        self._conditions = {kind: self._made(kind, "False", "WaitingForObjects") for kind in _CONDITIONS}
        self._conditions["TopologyReconciled"] = self._made("TopologyReconciled", "True", "ReconcileSucceeded")
        self._conditions["Ready"] = self._made("Ready", "False", "NotReady")

    def phase(self, phase: ClusterPhase) -> None:
        self.fields["phase"] = phase.value

    def infrastructure_ready(self) -> None:
        self.fields["infrastructureReady"] = True
        self.fields.setdefault("initialization", {})["infrastructureProvisioned"] = True
        self._set("InfrastructureReady", "True", "Ready")

    def control_plane_ready(self) -> None:
        """The control plane is initialized, which it stays; with the infrastructure the Cluster is provisioned."""
        self.fields["controlPlaneReady"] = True
        self.fields.setdefault("initialization", {})["controlPlaneInitialized"] = True
        self.phase(ClusterPhase.PROVISIONED)
        for kind in ("ControlPlaneInitialized", "ControlPlaneReady"):
            self._set(kind, "True", "Ready")

    def settled(self) -> None:
        """Report Ready: no step is in progress."""
        self._set("Ready", "True", "Ready")

    def upgrading(self, at: str, towards: str) -> None:
        self._set(
            "TopologyReconciled",
            "False",
            "ControlPlaneUpgradePending",
            f"Control plane rollout and upgrade from version {at} to {towards} in progress",
        )

    def held(self, hook: str, message: str) -> None:
        """A hook keeps the upgrade from beginning."""
        text = f'hook "{hook}" is blocking' + (f": {message}" if message else "")
        self._set("TopologyReconciled", "False", "LifecycleHookBlocking", text)

    def blocked(self, reason: str, message: str) -> None:
        self._set("TopologyReconciled", "False", reason, message)

    def differs(self, cluster: Object) -> bool:
        """Finish the conditions, and report whether the Cluster has another status."""
        self.fields["conditions"] = [self._conditions[kind] for kind in sorted(self._conditions)]
        found = cluster.get("status") or {}
        return any(found.get(name) != value for name, value in self.fields.items())

    def _set(self, kind: str, status: str, reason: str, message: str = "") -> None:
        self._conditions[kind] = self._made(kind, status, reason, message)

    def _made(self, kind: str, status: str, reason: str, message: str = "") -> Object:
        found = self._known.get(kind) or {}
        time = found["lastTransitionTime"] if found.get("status") == status else self._now
        return {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": time,
        }
