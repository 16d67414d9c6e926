"""Decisions about the releases of a ClusterStack: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from hortus.domains.stacks.catalog.reasons import CatalogCondition
from hortus.domains.stacks.names import ReleaseName, parse_dot, parse_either, parse_minor
from hortus.domains.stacks.types import ClusterStackRelease, ClusterStackSpec, ReleaseSummary
from hortus.engine.conditions import FALSE, READY, TRUE


class ReleasePhase:
    """Phases of a release in the summary."""

    NONE: Final = ""
    DOWNLOADING: Final = "downloading release assets"
    PROVIDER: Final = "provider-specific work"
    APPLYING: Final = "applying objects"
    DONE: Final = "done"


class ReleasePlan(NamedTuple):
    """The releases that a ClusterStack keeps or creates, by version, and the ones that it deletes."""

    wanted: Sequence[ReleaseName]
    unwanted: Sequence[ReleaseName]


def plan(
    existing: Iterable[ReleaseName],
    *,
    latest: ReleaseName | None,
    latest_ready: ReleaseName | None,
    in_spec: Iterable[ReleaseName],
    in_use: Iterable[ReleaseName],
) -> ReleasePlan:
    """Keep what is latest, ready last, listed or used; create what is latest or listed; delete the rest."""
    present = set(existing)
    created = {*in_spec, *([latest] if latest is not None else [])}
    kept = created | {*in_use, *([latest_ready] if latest_ready is not None else [])}
    return ReleasePlan(in_order((present & kept) | created), in_order(present - kept))


def in_order(names: Iterable[ReleaseName]) -> list[ReleaseName]:
    """The names by version; a Kubernetes minor comes before a later one."""
    return sorted(names, key=lambda name: (name.provider, name.stack, name.version.order, name.kubernetes))


def listed(spec: ClusterStackSpec) -> list[ReleaseName]:
    """The releases of spec.versions. Raises BadName for a version that cannot be read."""
    minor = parse_minor(spec.kubernetes_version)
    return [ReleaseName(spec.provider, spec.name, minor, parse_dot(version)) for version in spec.versions]


def matching(names: Iterable[ReleaseName], spec: ClusterStackSpec) -> list[ReleaseName]:
    """The releases of a ClusterStack's series and channel. Raises BadName."""
    series = spec.provider, spec.name, parse_minor(spec.kubernetes_version)
    return [name for name in names if name.series == series and name.version.in_channel(spec.channel)]


def ready_releases(releases: Mapping[ReleaseName, ClusterStackRelease]) -> list[ReleaseName]:
    """The releases that are ready, by version."""
    return in_order(name for name, release in releases.items() if release.status.ready)


def latest_release(name: ReleaseName, release: ClusterStackRelease) -> str:
    """The text of status.latestRelease."""
    return f"{name.class_name} | {release.status.kubernetes_version}"


def usable_versions(ready: Iterable[ReleaseName]) -> str:
    """The text of status.usableVersions."""
    return ", ".join(name.version.dot for name in ready)


def summary_of(name: ReleaseName, release: ClusterStackRelease | None) -> ReleaseSummary:
    """The entry for a release; an empty one for a release that is not there yet."""
    found = {one.type: one for one in release.status.conditions} if release is not None else {}
    states = {kind: one.status for kind, one in found.items()}
    if states.get(READY) == TRUE:
        return ReleaseSummary(name=name.version.dash, ready=True, phase=ReleasePhase.DONE)
    phase = ReleasePhase.NONE
    if states.get(CatalogCondition.PROVIDER_READY) == TRUE:
        phase = ReleasePhase.APPLYING
    elif states.get(CatalogCondition.DOWNLOADED) == TRUE:
        phase = ReleasePhase.PROVIDER
    elif states.get(CatalogCondition.DOWNLOADED) == FALSE:
        phase = ReleasePhase.DOWNLOADING
    message = found[READY].reason if states.get(READY) == FALSE else ""
    return ReleaseSummary(name=name.version.dash, ready=False, phase=phase, message=message)


def named(releases: Iterable[ClusterStackRelease]) -> dict[ReleaseName, ClusterStackRelease]:
    """The releases by their names; objects whose names are no names of releases are left out."""
    pairs = ((parse_either(release.metadata.name), release) for release in releases)
    return {name: release for name, release in pairs if name is not None}
