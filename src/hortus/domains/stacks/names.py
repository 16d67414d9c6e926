"""Versions of cluster stacks, and the names of releases, tags and ClusterClasses that are made of them.

A version is `v2` in the stable channel and `v1-alpha.1` or `v0-sha.hipstsw` in others. Tags and API objects write a
dash in place of the dot, ClusterClasses keep the dot. Names are therefore compared as parsed values, never as text.
The grammar is that of SovereignCloudStack/cluster-stack-operator, `pkg/version/version.go` and
`pkg/clusterstack/clusterstack.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

GROUP: Final = "clusterstack.x-k8s.io"
VERSION: Final = "v1alpha1"
INFRASTRUCTURE_GROUP: Final = "infrastructure.clusterstack.x-k8s.io"
FLEET_GROUP: Final = "fleet.hortus.dev"

STABLE: Final = "stable"
CUSTOM: Final = "custom"

INSTANCE_LABEL: Final = f"{GROUP}/instance"
OWNED: Final = "owned"
"""Value of the label on every object that a release brings."""
STAGE_ANNOTATION: Final = "ClusterAddonStage"
"""Annotation of a ClusterAddon, without a domain: `created` or `upgraded`."""
RELEASE_FINALIZER: Final = f"clusterstackrelease.{GROUP}"
ADDON_FINALIZER: Final = f"clusteraddon.{GROUP}"
FIELD_MANAGER: Final = "kubectl"
"""Field manager of applied objects. The Go operator applies with it, so that either can follow the other."""
LEASE: Final = GROUP
PROVIDER_LEASE: Final = f"openstack.provider.{GROUP}"
CONTROL_NAMESPACE: Final = "cso-system"

_DOT: Final = re.compile(r"v(\d{1,18})(?:-(\w+)\.(\w+))?", re.ASCII)
_DASH: Final = re.compile(r"v(\d{1,18})(?:-(\w+)-(\w+))?", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,18}", re.ASCII)
"""Go's int has 18 digits and part of a 19th; Python refuses to read thousands of them."""
_MINOR: Final = re.compile(r"v?(\d{1,18})\.(\d{1,18})(?:\..*)?", re.ASCII)


class BadName(ValueError):
    """A text is no version or no name of a release; the message holds the text and the form that is expected."""


class StackVersion(NamedTuple):
    """Version of a cluster stack, of its addons or of its node images."""

    major: int
    channel: str = STABLE
    patch: str = ""

    @property
    def dot(self) -> str:
        """The form in `spec.versions`, in metadata.yaml and in names of ClusterClasses."""
        return f"v{self.major}-{self.channel}.{self.patch}" if self.patch else f"v{self.major}"

    @property
    def dash(self) -> str:
        """The form in tags and in names of objects."""
        return f"v{self.major}-{self.channel}-{self.patch}" if self.patch else f"v{self.major}"

    @property
    def is_stable(self) -> bool:
        return self.channel == STABLE

    def in_channel(self, channel: str) -> bool:
        """Reports whether a ClusterStack on `channel` takes this version: `custom` takes all that are not stable."""
        return self.is_stable == (channel == STABLE)

    @property
    def order(self) -> tuple[int, str, int, int, str]:
        """The sort key: by number, then channel, then patch, which is compared as a number where it is one."""
        numeric = _NUMBER.fullmatch(self.patch) is not None
        return self.major, self.channel, numeric, int(self.patch) if numeric else 0, self.patch

    def __lt__(self, other: object) -> bool:
        return self.order < other.order if isinstance(other, StackVersion) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self.order > other.order if isinstance(other, StackVersion) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.order <= other.order if isinstance(other, StackVersion) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self.order >= other.order if isinstance(other, StackVersion) else NotImplemented


class ReleaseName(NamedTuple):
    """The name of a release, taken apart."""

    provider: str
    stack: str
    kubernetes: tuple[int, int]
    version: StackVersion

    @property
    def stem(self) -> str:
        """The name without the version, such as `docker-ferrol-1-27`; helm's release name of the class chart."""
        return f"{self.provider}-{self.stack}-{self.kubernetes[0]}-{self.kubernetes[1]}"

    @property
    def tag(self) -> str:
        """The name of the release, of its tag, its assets' directory, its ClusterStackRelease and provider object."""
        return f"{self.stem}-{self.version.dash}"

    @property
    def class_name(self) -> str:
        """The name of the ClusterClass."""
        return f"{self.stem}-{self.version.dot}"

    @property
    def series(self) -> tuple[str, str, tuple[int, int]]:
        """The part that all releases of one ClusterStack share."""
        return self.provider, self.stack, self.kubernetes


def parse_dot(text: str) -> StackVersion:
    """Raises BadName."""
    return _version(_DOT, text, "v1 or v1-alpha.1")


def parse_dash(text: str) -> StackVersion:
    """Raises BadName."""
    return _version(_DASH, text, "v1 or v1-alpha-1")


def parse_tag(text: str) -> ReleaseName:
    """Parse the name of a release, whose version has dashes. Raises BadName."""
    parts = text.split("-")
    if len(parts) not in (5, 7):
        raise BadName(_MALFORMED.format(text, "docker-ferrol-1-27-v1 or docker-ferrol-1-27-v1-alpha-1"))
    return _release(text, parts, parse_dash)


def parse_class(text: str) -> ReleaseName:
    """Parse the name of a ClusterClass, whose version has a dot. Raises BadName."""
    parts = text.split("-")
    if len(parts) not in (5, 6):
        raise BadName(_MALFORMED.format(text, "docker-ferrol-1-27-v1 or docker-ferrol-1-27-v1-alpha.1"))
    return _release(text, parts, parse_dot)


def parse_either(text: str) -> ReleaseName | None:
    """The release that a name of either notation stands for; None for another name."""
    try:
        return parse_class(text) if "." in text else parse_tag(text)
    except BadName:
        return None


def tag_of_class(class_name: str) -> str:
    """The name of the release of a ClusterClass: its single dot is a dash there; any other text stays as it is."""
    return class_name.replace(".", "-") if class_name.count(".") == 1 else class_name


def parse_minor(text: str) -> tuple[int, int]:
    """Major and minor of a Kubernetes version such as `1.27` or `v1.27.3`. Raises BadName."""
    found = _MINOR.fullmatch(text)
    if found is None:
        raise BadName(f"Kubernetes version {text!r} does not have the form 1.27 or v1.27.3")
    return int(found[1]), int(found[2])


def latest(
    candidates: Iterable[ReleaseName], published: Mapping[ReleaseName, float] | None = None
) -> ReleaseName | None:
    """The latest of releases of one series; None where there is none.

    Within a channel, patches that are numbers are compared as numbers and all others, such as parts of a hash, by the
    time of publication. Between channels the number of the version decides, then the time of the channel's latest.
    """
    times = published or {}
    best: dict[str, ReleaseName] = {}
    for name in candidates:
        channel = name.version.channel
        if channel not in best or _within(name, times) > _within(best[channel], times):
            best[channel] = name
    return max(best.values(), key=lambda name: (name.version.major, times.get(name, 0.0), name.version), default=None)


_MALFORMED: Final = (
    "release name {0!r} does not have the form <provider>-<stack>-<major>-<minor>-<version>, such as {1}"
)


def _within(name: ReleaseName, times: Mapping[ReleaseName, float]) -> tuple[int, int, float, StackVersion]:
    major, _, _, number, _ = name.version.order
    numeric = _NUMBER.fullmatch(name.version.patch) is not None
    return major, number, 0.0 if numeric else times.get(name, 0.0), name.version


def _version(pattern: re.Pattern[str], text: str, form: str) -> StackVersion:
    found = pattern.fullmatch(text)
    if found is None:
        raise BadName(f"version {text!r} does not have the form {form}")
    return StackVersion(int(found[1]), found[2] or STABLE, found[3] or "")


def _release(text: str, parts: list[str], parse: Callable[[str], StackVersion]) -> ReleaseName:
    provider, stack, major, minor, *version = parts
    if not provider or not stack:
        raise BadName(f"release name {text!r} lacks the name of the provider or of the stack")
    if not (_NUMBER.fullmatch(major) and _NUMBER.fullmatch(minor)):
        raise BadName(f"release name {text!r}: Kubernetes version {major}-{minor} must be two numbers, such as 1-27")
    try:
        found = parse("-".join(version))
    except BadName as error:
        raise BadName(f"release name {text!r}: {error}") from None
    return ReleaseName(provider, stack, (int(major), int(minor)), found)
