"""StackPolicy: the versions of stacks that the provider of a platform has approved, and for whom."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from hortus.domains.stacks.names import FLEET_GROUP, VERSION
from hortus.kube.objects import Resource
from hortus.schema import AGE, Column, Fields, Kind, ListSet, kind

VERSION_PATTERN: Final = r"^v\d+(-\w+\.\w+)?$"


class StackPolicySpec(Fields, frozen=True):
    """The stacks, the versions of them that are approved, and the namespaces that may use these."""

    provider: Annotated[str, Meta(min_length=1)]
    """Provider of the stacks, such as openstack."""
    name: str = ""
    """Name of the stack; empty for all stacks of the provider."""
    kubernetes_version: Annotated[str, Meta(pattern=r"^(\d+\.\d+)?$")] = ""
    """Kubernetes version of the releases, such as 1.27; empty for all."""
    versions: Annotated[tuple[Annotated[str, Meta(pattern=VERSION_PATTERN)], ...], ListSet()] = ()
    """Versions that are approved, such as v2 or v0-sha.hipstsw; none approves no version."""
    namespaces: Annotated[tuple[str, ...], ListSet()] = ()
    """Namespaces whose Clusters may use these versions; none approves them for all namespaces."""


@kind(
    group=FLEET_GROUP,
    version=VERSION,
    plural="stackpolicies",
    singular="stackpolicy",
    short_names=("skp",),
    columns=(
        Column("Provider", ".spec.provider"),
        Column("Stack", ".spec.name"),
        Column("K8s", ".spec.kubernetesVersion"),
        Column("Versions", ".spec.versions"),
        AGE,
    ),
)
class StackPolicy(Kind, frozen=True):
    """Approved versions of stacks. A release for which its namespace has a StackPolicy needs the approval of one."""

    spec: StackPolicySpec
    """The stacks, the versions, and the namespaces that may use these."""


STACK_POLICIES: Final = Resource(FLEET_GROUP, VERSION, "stackpolicies", "StackPolicy")
