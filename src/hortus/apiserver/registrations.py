"""The APIServices of the groups that this server serves itself, and their order in discovery.

kube-apiserver registers its own groups with its aggregator, so that clients find every group among the APIServices. The
numbers are those of kubernetes/kubernetes, cmd/kube-apiserver/app/aggregator.go and
pkg/controlplane/apiserver/aggregator.go; a group of CRDs gets those of
pkg/controlplane/controller/crdregistration.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from hortus.kube.objects import Object, format_time

API_GROUP: Final = "apiregistration.k8s.io"
API_VERSION: Final = f"{API_GROUP}/v1"
SUFFIX: Final = f"{API_GROUP}/apiservices"
MANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
"""The label of APIServices that a server writes itself: `onstart` or `true`."""
LOCAL_CONDITION: Final = {
    "type": "Available",
    "status": "True",
    "reason": "Local",
    "message": "Local APIServices are always available",
}


class VersionPriority(NamedTuple):
    """The place of a version in discovery: groups with a higher number first, and versions within their group."""

    group: int
    version: int


_GROUPS: Final = {
    API_GROUP: 20000,
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "admissionregistration.k8s.io": 16700,
    "apiextensions.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
}
_VERSIONS: Final = {("", "v1"): 1, ("autoscaling", "v2"): 30, ("flowcontrol.apiserver.k8s.io", "v1"): 21}
_USUAL_VERSION: Final = 15
CUSTOM: Final = VersionPriority(1000, 100)
"""The place of groups that are not built in; their versions are in the order of their names."""


def priority(group: str, version: str) -> VersionPriority:
    """The place of a version that this server serves itself."""
    of_group = _GROUPS.get(group)
    return CUSTOM if of_group is None else VersionPriority(of_group, _VERSIONS.get((group, version), _USUAL_VERSION))


def registration(group: str, version: str, *, managed: str) -> Object:
    """A local APIService; `managed` is the value of the label `MANAGED`."""
    place = priority(group, version)
    return {
        "apiVersion": API_VERSION,
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}", "labels": {MANAGED: managed}},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": place.group,
            "versionPriority": place.version,
        },
    }


def own_registrations(versions: Iterable[tuple[str, str]], created: float) -> Iterable[Object]:
    """The APIServices of the built-in `versions`, pairs of group and version; their own group has none."""
    for group, version in sorted(set(versions)):
        if group in _GROUPS and group != API_GROUP:
            condition = {**LOCAL_CONDITION, "lastTransitionTime": format_time(created)}
            yield {**registration(group, version, managed="onstart"), "status": {"conditions": [condition]}}
