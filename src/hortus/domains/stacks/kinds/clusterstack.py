"""ClusterStack: the releases of one stack, for one Kubernetes minor and one channel, that a namespace offers."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from msgspec import Meta

from hortus.domains.stacks.kinds.shared import REASON_AND_MESSAGE, Flag, ObjectRef, SeverityCondition
from hortus.domains.stacks.names import CUSTOM, GROUP, STABLE, VERSION
from hortus.kube.objects import Resource
from hortus.schema import AGE, Column, Fields, Kind, Values, kind


class ClusterStackSpec(Fields, frozen=True):
    """The stack, and the versions of it to offer."""

    provider: Annotated[str, Meta(min_length=1)]
    """Provider of the stack, the first part of the names of its releases."""
    name: Annotated[str, Meta(min_length=1)]
    """Name of the stack, the second part of the names of its releases."""
    kubernetes_version: Annotated[str, Meta(pattern=r"^\d\.\d+$")]
    """Kubernetes version of the releases, major and minor, such as 1.27."""
    channel: Annotated[str, Values(STABLE, CUSTOM)] = STABLE
    """stable for versions such as v2; custom for all others, such as v0-sha.hipstsw."""
    versions: tuple[str, ...] = ()
    """Versions to offer, such as v1 or v1-alpha.1. One that a Cluster uses stays until no Cluster uses it."""
    auto_subscribe: bool = True
    """Offer the latest release of the channel as soon as it is published."""
    no_provider: Flag = False
    """The stack has no part of its own for the provider, so that there is no template."""
    provider_ref: ObjectRef = None
    """The template of the provider's objects, one of which is made for each release."""


class ReleaseSummary(Fields, frozen=True):
    """The state of one release."""

    name: str
    """Version of the release, with dashes."""
    ready: bool
    """True once Clusters can use it."""
    phase: str
    """The current work on it: downloading release assets, provider-specific work, applying objects, or done."""
    message: str = ""
    """The cause for which it is not ready."""


class ClusterStackStatus(Fields, frozen=True):
    """The releases as observed."""

    latest_release: str = ""
    """The latest release that is ready: its ClusterClass and Kubernetes version."""
    usable_versions: str = ""
    """Versions of all releases that are ready, separated by commas."""
    summary: tuple[ReleaseSummary, ...] = ()
    """The state of each release."""
    conditions: tuple[SeverityCondition, ...] = ()
    """Ready, which sums up the others."""


@kind(
    group=GROUP,
    version=VERSION,
    status=True,
    short_names=("csk",),
    columns=(
        Column("Provider", ".spec.provider"),
        Column("ClusterStack", ".spec.name"),
        Column("K8s", ".spec.kubernetesVersion"),
        Column("Channel", ".spec.channel"),
        Column("Autosubscribe", ".spec.autoSubscribe"),
        Column("Usable", ".status.usableVersions"),
        Column("Latest", ".status.latestRelease"),
        AGE,
        *REASON_AND_MESSAGE,
    ),
)
class ClusterStack(Kind, frozen=True):
    """A cluster stack: which releases of it the Clusters of a namespace can use."""

    __schema__: ClassVar[dict[str, Any]] = {"required": []}

    spec: ClusterStackSpec
    """The stack, and the versions of it to offer."""
    status: ClusterStackStatus = ClusterStackStatus()
    """The releases as observed."""


CLUSTER_STACKS: Final = Resource(GROUP, VERSION, "clusterstacks", "ClusterStack")
