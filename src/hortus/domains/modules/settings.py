"""The operator's choices for modules, read from the values of their flags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.domains.modules.flags import FLAGS
from hortus.engine.backoff import Backoff
from hortus.engine.flags import FlagError

READINESS: Final = ("contract", "workloads", "manager", "resource")
CERTIFICATE_APIS: Final = ("cert-manager.io/v1", "cert.gardener.cloud/v1alpha1", "self")
KINDS: Final = ("Kyma", "Manifest", "ModuleReleaseMeta", "ModuleTemplate", "Watcher")
_NAMES: Final = re.compile(r"^[a-z]+(-[a-z]+)*(,[a-z]+(-[a-z]+)*)*$")


class Intervals(msgspec.Struct, frozen=True):
    """Seconds between two reconciles, by the state of the object."""

    success: float
    error: float
    warning: float
    busy: float


class KymaSettings(msgspec.Struct, frozen=True):
    """Choices for Kymas."""

    workers: int
    mandatory_workers: int
    mandatory_deletion_workers: int
    requeue: Intervals
    mandatory_requeue: float
    mandatory_deletion_requeue: float
    rollout_delay: float
    restricted: frozenset[str]
    downgrades: bool
    window_minimum: float
    window_policy: str
    """File with the maintenance windows."""
    comparison: float
    detach_after: float
    windows_from_cluster: bool


class ManifestSettings(msgspec.Struct, frozen=True):
    """Choices for Manifests."""

    workers: int
    requeue: Intervals
    jitter_probability: float
    jitter_percentage: float
    readiness: str
    """One of READINESS."""
    keep_resource: bool
    forbidden_namespaces: frozenset[str]
    comparison: float
    detach_after: float


class RegistrySettings(msgspec.Struct, frozen=True):
    """The registry of the modules: one of host and credential Secret is set."""

    host: str
    credentials: str
    """Name of a Secret in the control plane's namespace."""
    path: str
    revalidation: float
    cache_folder: str
    hosts: frozenset[str]
    """Hosts of plain manifests."""


class Settings(msgspec.Struct, frozen=True):
    """FLAGS as values; the watcher's are read by `watching.settings`."""

    sync_namespace: str
    configurations: bool
    """Central configuration is served."""
    pull_secret: str
    kyma: KymaSettings
    manifest: ManifestSettings
    registry: RegistrySettings
    backoff: Backoff
    dropped_versions: Mapping[str, frozenset[str]]
    """Versions that no object is stored in any more, by kind."""


def from_flags(values: Mapping[str, Any]) -> Settings:
    """Raises FlagError naming the flag whose value cannot be used."""
    _check(values)
    return Settings(
        sync_namespace=values["sync-namespace"],
        configurations=values["module-configurations"],
        pull_secret=values["skr-image-pull-secret"],
        kyma=KymaSettings(
            workers=values["max-concurrent-kyma-reconciles"],
            mandatory_workers=values["max-concurrent-mandatory-modules-reconciles"],
            mandatory_deletion_workers=values["max-concurrent-mandatory-modules-deletion-reconciles"],
            requeue=_intervals(values, "kyma"),
            mandatory_requeue=values["mandatory-module-requeue-success-interval"],
            mandatory_deletion_requeue=values["mandatory-module-deletion-requeue-success-interval"],
            rollout_delay=values["module-upgrade-rollout-max-delay"],
            restricted=frozenset(name for name in values["restricted-default-modules"].split(",") if name),
            downgrades=values["module-downgrades"],
            window_minimum=values["min-maintenance-window-size"],
            window_policy=values["maintenance-policy-path"],
            comparison=values["kyma-comparison-interval"],
            detach_after=values["kyma-detach-after"],
            windows_from_cluster=values["kyma-windows-from-cluster"],
        ),
        manifest=ManifestSettings(
            workers=values["max-concurrent-manifest-reconciles"],
            requeue=_intervals(values, "manifest"),
            jitter_probability=values["manifest-requeue-jitter-probability"],
            jitter_percentage=values["manifest-requeue-jitter-percentage"],
            readiness=values["module-readiness"],
            keep_resource=values["module-keep-default-resource"],
            forbidden_namespaces=frozenset(name for name in values["module-forbidden-namespaces"].split(",") if name),
            comparison=values["module-comparison-interval"],
            detach_after=values["module-detach-after"],
        ),
        registry=RegistrySettings(
            host=values["oci-registry-host"],
            credentials=values["oci-registry-cred-secret"],
            path=values["modules-repository-subpath"],
            revalidation=values["modules-revalidation-interval"],
            cache_folder=values["modules-cache-directory"],
            hosts=frozenset(host.strip() for host in values["module-manifest-hosts"].split(",") if host.strip()),
        ),
        backoff=_backoff(values["failure-base-delay"], values["failure-max-delay"]),
        dropped_versions=_dropped_versions(values["drop-crd-stored-version-map"]),
    )


def _intervals(values: Mapping[str, Any], kind: str) -> Intervals:
    return Intervals(*(values[f"{kind}-requeue-{name}-interval"] for name in ("success", "error", "warning", "busy")))


def _backoff(first: float, longest: float) -> Backoff:
    if not 0 < first <= longest:
        raise FlagError(
            f"invalid value {first:g}s for flag --failure-base-delay: must be above 0s, at most {longest:g}s"
        )
    return Backoff(first=first, cap=longest)


def _dropped_versions(text: str) -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        kind, _, version = part.partition(":")
        if kind not in KINDS or not version:
            raise FlagError(
                f"invalid value {part!r} for flag --drop-crd-stored-version-map: must be Kind:version, with a kind of "
                f"{', '.join(KINDS)}"
            )
        found[kind] = found.get(kind, frozenset()) | {version}
    return found


def _check(values: Mapping[str, Any]) -> None:
    for flag in FLAGS:
        value = values[flag.name]
        if flag.name.startswith("max-concurrent-") and value <= 0:
            raise FlagError(f"invalid value {value} for flag --{flag.name}: must be more than 0")
        if flag.kind == "duration" and value < 0:
            raise FlagError(f"invalid value {value:g}s for flag --{flag.name}: must not be negative")
    # The Go system's code; its messages name the bounds the other way round.
    _within(values, "manifest-requeue-jitter-probability", 0.05)
    _within(values, "manifest-requeue-jitter-percentage", 1.0)
    _among(values, "module-readiness", READINESS)
    _among(values, "cert-management", CERTIFICATE_APIS)
    if values["self-signed-cert-key-size"] != 4096:
        raise FlagError(
            f"invalid value {values['self-signed-cert-key-size']} for flag --self-signed-cert-key-size: must be 4096"
        )
    if values["restricted-default-modules"] and not _NAMES.match(values["restricted-default-modules"]):
        raise FlagError(
            f"invalid value {values['restricted-default-modules']!r} for flag --restricted-default-modules: must be "
            "names of modules, separated by commas"
        )
    if values["modules"] and bool(values["oci-registry-host"]) == bool(values["oci-registry-cred-secret"]):
        raise FlagError("flag --modules needs one of --oci-registry-host and --oci-registry-cred-secret")


def _within(values: Mapping[str, Any], name: str, most: float) -> None:
    if not 0 <= values[name] <= most:
        raise FlagError(f"invalid value {values[name]:g} for flag --{name}: must be between 0 and {most:g}")


def _among(values: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> None:
    if values[name] not in allowed:
        raise FlagError(f"invalid value {values[name]!r} for flag --{name}: must be one of {', '.join(allowed)}")
