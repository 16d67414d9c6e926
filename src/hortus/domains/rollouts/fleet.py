"""The clusters of the fleet as rollouts need them: labels, availability and maintenance windows of ClusterProfiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import structlog

from hortus.domains.inventory.types import ClusterProfile, ProfileCondition, Property
from hortus.domains.rollouts.windows import Window, WindowError, window
from hortus.engine import Cache, Change, NotReadable, read

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class FleetCluster(NamedTuple):
    """One cluster."""

    labels: Mapping[str, str]
    unavailable: str = ""
    """The reason for which it cannot change now."""
    window: Window | None = None


UNKNOWN = FleetCluster({})
"""A cluster without a ClusterProfile: it has no labels, and is taken to be available."""


class FleetClusters:
    """The clusters by the names of their profiles, kept current by a cache."""

    def __init__(self, profiles: Cache, *, changed: Callable[[], None]) -> None:
        """`changed` is called when a cluster differs in what matters here."""
        self._clusters: dict[str, FleetCluster] = {}
        self._changed = changed
        profiles.subscribe(self._on_change)

    def get(self, name: str) -> FleetCluster:
        return self._clusters.get(name, UNKNOWN)

    def __contains__(self, name: str) -> bool:
        return name in self._clusters

    def _on_change(self, change: Change) -> None:
        name = change.key.name
        before = self._clusters.get(name)
        if change.new is None:
            self._clusters.pop(name, None)
        else:
            try:
                self._clusters[name] = cluster_of(read(ClusterProfile, change.new))
            except NotReadable as error:
                _log.warning("a cluster profile cannot be read", problem=str(error))
        if self._clusters.get(name) != before:
            self._changed()


def cluster_of(profile: ClusterProfile) -> FleetCluster:
    """The cluster of a profile. A maintenance window that cannot be read counts as none."""
    properties = {one.name: one.value for one in profile.status.properties}
    found: Window | None = None
    if text := properties.get(Property.MAINTENANCE_WINDOW):
        try:
            found = window(text)
        except WindowError as error:
            _log.warning(
                "a cluster has no usable maintenance window", cluster=profile.metadata.name, problem=str(error)
            )
    return FleetCluster(profile.metadata.labels, _unavailable(profile, properties), found)


def _unavailable(profile: ClusterProfile, properties: Mapping[str, str]) -> str:
    if profile.metadata.deletion_timestamp is not None:
        return "the cluster is being deleted"
    if properties.get(Property.HIBERNATED) == "true":
        return "the cluster is hibernated"
    for condition in profile.status.conditions:
        if condition.type == ProfileCondition.CONTROL_PLANE_HEALTHY and condition.status == "False":
            return f"the control plane is not healthy: {condition.reason}"
    return ""
