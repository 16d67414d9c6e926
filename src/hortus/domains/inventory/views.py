"""Clusters as people see them: one row for each ClusterProfile, with the rollouts that change it now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from hortus.domains.inventory.registry import parse_sources
from hortus.domains.inventory.types import (
    MANAGER,
    ClusterProfile,
    ProfileCondition,
    ProfileLabel,
    ProfileReason,
    Property,
)
from hortus.engine.rollouts.types import ENDED, Label, PlacementDecision, Rollout
from hortus.schema import Condition

HEADS: Final = ("Name", "State", "Version", "Region", "Provider", "Display name")
WIDE: Final = (*HEADS, "Purpose", "Nodes", "Zones", "Manager", "Waves", "Message")
_STAGE = re.compile(r"in stage (\S+)")


class ClusterWave(msgspec.Struct, frozen=True, rename="camel"):
    """A rollout under way that has admitted a cluster."""

    rollout: str
    subject: str
    to: str
    stage: str

    def __str__(self) -> str:
        return f"{self.subject} {self.to}{f' ({self.stage})' if self.stage else ''}"


class ClusterRow(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One cluster; with `-o json` its fields are the output."""

    name: str
    display_name: str
    state: str
    why: str
    """The reason for a state other than Ready, with the owner of the next step; empty when all is well."""
    version: str
    region: str
    provider: str
    purpose: str
    nodes: str
    zones: str
    manager: str
    sources: Sequence[str] = ()
    waves: Sequence[ClusterWave] = ()
    labels: Mapping[str, str] = {}
    properties: Mapping[str, str] = {}

    def cells(self, *, wide: bool) -> list[str]:
        narrow = [self.name, self.state, self.version, self.region, self.provider, self.display_name]
        if not wide:
            return narrow
        return [*narrow, self.purpose, self.nodes, self.zones, self.manager, ", ".join(map(str, self.waves)), self.why]


def row(profile: ClusterProfile, waves: Sequence[ClusterWave] = ()) -> ClusterRow:
    """The row of one profile, of any manager."""
    labels = profile.metadata.labels
    properties = {one.name: one.value for one in profile.status.properties}
    state, why = state_of(profile)
    version = profile.status.version.kubernetes if profile.status.version is not None else ""
    return ClusterRow(
        name=profile.metadata.name,
        display_name=profile.spec.display_name,
        state=state,
        why=why,
        version=version or labels.get(ProfileLabel.KUBERNETES, ""),
        region=labels.get(ProfileLabel.REGION, ""),
        provider=labels.get(ProfileLabel.PROVIDER, ""),
        purpose=labels.get(ProfileLabel.PURPOSE, ""),
        nodes=properties.get(Property.NODES, ""),
        zones=properties.get(Property.ZONES, ""),
        manager=profile.spec.cluster_manager.name,
        sources=[str(origin) for origin, _ in parse_sources(profile.metadata.annotations)],
        waves=waves,
        labels=labels,
        properties=properties,
    )


def state_of(profile: ClusterProfile) -> tuple[str, str]:
    """A word for the state of a cluster, and the message of the condition behind it."""
    conditions = {one.type: one for one in profile.status.conditions}
    joined, healthy, fresh, proven = (
        conditions.get(kind)
        for kind in (
            ProfileCondition.JOINED,
            ProfileCondition.CONTROL_PLANE_HEALTHY,
            ProfileCondition.CREDENTIALS_FRESH,
            ProfileCondition.IDENTITY_PROVEN,
        )
    )
    if profile.metadata.deletion_timestamp is not None or (joined and joined.reason == ProfileReason.LEAVING):
        return "Leaving", joined.message if joined else ""
    if any(one.name == Property.HIBERNATED and one.value == "true" for one in profile.status.properties):
        return "Hibernated", ""
    bad = ((fresh, "NoAccess"), (joined, "Unreachable"), (healthy, "Unhealthy"), (proven, "Disputed"))
    for found, state in bad:
        if _is(found, "False") and found is not None:
            return ("Pending" if found.reason == ProfileReason.NO_KUBECONFIG else state), found.message
    ours = profile.spec.cluster_manager.name == MANAGER
    if _is(joined if ours else healthy, "True"):
        return "Ready", ""
    return ("Connecting" if ours else "Unknown"), joined.message if joined is not None else ""


def waves_of(rollouts: Iterable[Rollout], slices: Iterable[PlacementDecision]) -> dict[str, list[ClusterWave]]:
    """The rollouts under way by the names of the clusters that they have admitted."""
    going = {one.metadata.name: one for one in rollouts if one.status.phase not in ENDED}
    found: dict[str, list[ClusterWave]] = {}
    for part in slices:
        rollout = going.get(part.metadata.labels.get(Label.DECISION_KEY, ""))
        if rollout is None:
            continue
        change = rollout.spec.change
        for one in part.decisions:
            stage = _STAGE.search(one.reason)
            wave = ClusterWave(rollout.metadata.name, change.subject, change.to, stage[1] if stage else "")
            found.setdefault(one.cluster_profile_ref.name, []).append(wave)
    return found


def _is(condition: Condition | None, status: str) -> bool:
    return condition is not None and condition.status == status
