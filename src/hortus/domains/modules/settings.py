"""The operator's choices for modules. Every command that lists flags loads this module, so it loads little.

Names and defaults are those of the Go system's code (kyma-project/lifecycle-manager, `internal/pkg/flags`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.domains.modules import accepted
from hortus.engine.backoff import Backoff
from hortus.engine.flags import Flag, FlagError

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
_DAY: Final = 86400.0

_CONTROLLERS: Final = (
    Flag("modules", "bool", False, "Serve Kymas, Manifests and Watchers. Needs their CRDs."),
    Flag(
        "in-kcp-mode",
        "bool",
        True,
        "Install modules on other clusters, by their kubeconfigs; false for the cluster that this process runs on.",
    ),
    Flag(
        "module-configurations",
        "bool",
        False,
        "Serve ModuleConfigurations, which take precedence over the users' choices. Needs their CRD.",
    ),
    Flag("max-concurrent-kyma-reconciles", "int", 1, "Kymas reconciled at the same time."),
    Flag("max-concurrent-manifest-reconciles", "int", 1, "Manifests reconciled at the same time."),
    Flag("max-concurrent-watcher-reconciles", "int", 1, "Watchers reconciled at the same time."),
    Flag(
        "max-concurrent-mandatory-modules-reconciles",
        "int",
        1,
        "Kymas whose mandatory modules are installed at the same time.",
    ),
    Flag(
        "max-concurrent-mandatory-modules-deletion-reconciles",
        "int",
        1,
        "Mandatory ModuleReleaseMetas deleted at the same time.",
    ),
    Flag("kyma-requeue-success-interval", "duration", 5 * _MINUTE, "Time between two reconciles of a Ready Kyma."),
    Flag("kyma-requeue-error-interval", "duration", 2.0, "Time between two reconciles of a Kyma in state Error."),
    Flag("kyma-requeue-warning-interval", "duration", 30.0, "Time between two reconciles of a Kyma in state Warning."),
    Flag(
        "kyma-requeue-busy-interval",
        "duration",
        5.0,
        "Time between two reconciles of a Kyma in state Processing that waits for more than its Manifests.",
    ),
    Flag("manifest-requeue-success-interval", "duration", 5 * _MINUTE, "The same of a Ready Manifest."),
    Flag("manifest-requeue-error-interval", "duration", 2.0, "The same of a Manifest in state Error."),
    Flag("manifest-requeue-warning-interval", "duration", 30.0, "The same of a Manifest in state Warning."),
    Flag(
        "manifest-requeue-busy-interval",
        "duration",
        5.0,
        "The same of a Manifest in state Processing that waits for more than Deployments.",
    ),
    Flag(
        "manifest-requeue-jitter-probability", "float", 0.02, "Share of the requeues of Manifests whose time is varied."
    ),
    Flag("manifest-requeue-jitter-percentage", "float", 0.02, "Part of the time by which it is varied at most."),
    Flag(
        "mandatory-module-requeue-success-interval",
        "duration",
        30.0,
        "Time between two reconciles of the mandatory modules of a Kyma.",
    ),
    Flag(
        "mandatory-module-deletion-requeue-success-interval",
        "duration",
        30.0,
        "Time between two reconciles of a mandatory ModuleReleaseMeta.",
    ),
    Flag("watcher-requeue-success-interval", "duration", _MINUTE, "Time between two reconciles of a Watcher."),
    Flag(
        "module-upgrade-rollout-max-delay",
        "duration",
        5 * _MINUTE,
        "Longest delay of a Kyma after a change of a ModuleReleaseMeta that no rollout policy governs; 0s for none.",
    ),
    Flag(
        "kyma-comparison-interval",
        "duration",
        _HOUR,
        "Time between two comparisons of the objects copied to a cluster: namespace, CRDs, pull Secret and catalog.",
    ),
    Flag(
        "kyma-detach-after",
        "duration",
        _HOUR,
        "Time after which a Kyma that is deleted is released although its cluster does not answer.",
    ),
    Flag(
        "kyma-windows-from-cluster",
        "bool",
        False,
        "Take skipMaintenanceWindows from the Kyma in the cluster, as modules and channel are.",
    ),
    Flag(
        "module-downgrades",
        "bool",
        False,
        "Follow a channel to a lower version as well; otherwise the installed version stays, with a Warning.",
    ),
    Flag("failure-base-delay", "duration", 5.0, "Delay of the attempt after the first failure of a Kyma or Manifest."),
    Flag("failure-max-delay", "duration", 30.0, "Longest delay between two attempts that fail."),
    Flag(
        "drop-crd-stored-version-map",
        "string",
        "Manifest:v1beta1,Watcher:v1beta1,ModuleTemplate:v1beta1,Kyma:v1beta1",
        "Versions that are removed from the stored versions of CRDs, as Kind:version, separated by commas.",
    ),
    Flag("sync-namespace", "string", "kyma-system", "Namespace of modules and the Kyma in managed clusters."),
    Flag(
        "skr-image-pull-secret", "string", "", "Secret of the control plane for pulling images, copied to all clusters."
    ),
    Flag(
        "restricted-default-modules",
        "string",
        "",
        "Modules that only the Kymas selected by their ModuleReleaseMeta may use, separated by commas. Experimental.",
    ),
    Flag("min-maintenance-window-size", "duration", 20 * _MINUTE, "Time that must be left of a maintenance window."),
    Flag(
        "maintenance-policy-path",
        "string",
        "/etc/maintenance-policy/policy.json",
        "File with the maintenance windows, by rules on labels of Kymas.",
    ),
    Flag(
        "module-readiness",
        "string",
        "contract",
        "Readiness of a module: contract (its first workload), workloads (all), manager (spec.manager), or resource "
        "(the state of its default resource as well).",
    ),
    Flag(
        "module-keep-default-resource",
        "bool",
        False,
        "Create the default resource of a module again when it was deleted; otherwise it is created once.",
    ),
    Flag(
        "module-forbidden-namespaces",
        "string",
        "kube-system,kube-public,kube-node-lease",
        "Namespaces in which modules may have Roles and RoleBindings only, separated by commas.",
    ),
    Flag(
        "module-comparison-interval",
        "duration",
        6 * _HOUR,
        "Time between two comparisons of all objects of a Ready module that no watch has seen to change.",
    ),
    Flag(
        "module-detach-after",
        "duration",
        _HOUR,
        "Time after which a Manifest that is deleted is released although its cluster does not answer.",
    ),
)
_REGISTRY: Final = (
    Flag("oci-registry-host", "string", "", "Registry of the modules; http:// before it allows plain HTTP."),
    Flag("oci-registry-cred-secret", "string", "", "Secret with the registry's host and credentials, instead."),
    Flag("modules-repository-subpath", "string", "", "Path of the modules in the registry."),
    Flag(
        "module-manifest-hosts",
        "string",
        "",
        "Hosts of plain manifests, which ModuleTemplates link to and no registry has, separated by commas.",
    ),
    Flag(
        "modules-revalidation-interval",
        "duration",
        5 * _MINUTE,
        "Time after which a version of a module is compared with the registry, to see that it was pushed again.",
    ),
    Flag(
        "modules-cache-directory",
        "string",
        "",
        "Folder for layers of modules, of this user alone; empty for one in the folder of temporary files.",
    ),
)
_WATCHER: Final = (
    Flag("kyma-skr-listener-bind-address", "string", ":8082", "Address to which agents report changes; 0 for none."),
    Flag("listener-port-overwrite", "string", "", "Port that agents report to, in place of the Gateway's."),
    Flag(
        "cert-management",
        "string",
        "cert-manager.io/v1",
        "API of certificates: cert-manager.io/v1, cert.gardener.cloud/v1alpha1, or self for certificates that Hortus "
        "issues itself.",
    ),
    Flag("additional-dns-names", "string", "", "Further DNS names in agents' certificates, separated by commas."),
    Flag("istio-namespace", "string", "istio-system", "Namespace of certificates and the gateway's Secrets."),
    Flag("istio-gateway-name", "string", "klm-watcher", "The Gateway that agents connect to."),
    Flag("istio-gateway-namespace", "string", "kcp-system", "Namespace of that Gateway."),
    Flag("istio-gateway-secret-requeue-success-interval", "duration", 5 * _MINUTE, "Time between two looks at the CA."),
    Flag("istio-gateway-secret-requeue-error-interval", "duration", 2.0, "The same after an error."),
    Flag(
        "istio-gateway-server-cert-switch-grace-period",
        "duration",
        4 * _DAY,
        "Time after which the gateway's certificate follows that of a new CA.",
    ),
    Flag(
        "istio-gateway-server-cert-expiry-window",
        "duration",
        14 * _DAY,
        "Time before the end of the gateway's certificate from which it is reported.",
    ),
    Flag("self-signed-cert-duration", "duration", 60 * _DAY, "Lifetime of agents' certificates."),
    Flag("self-signed-cert-renew-before", "duration", 30 * _DAY, "Time before its end at which one is renewed."),
    Flag("self-signed-cert-renew-buffer", "duration", _DAY, "Time after which a renewal is reported as overdue."),
    Flag("self-signed-cert-key-size", "int", 4096, "Size of agents' RSA keys; only 4096."),
    Flag("self-signed-cert-issuer-name", "string", "klm-watcher-selfsigned", "Issuer of agents' certificates."),
    Flag("self-signed-cert-issuer-namespace", "string", "istio-system", "Namespace of that issuer."),
    Flag("skr-watcher-image-name", "string", "runtime-watcher", "Name of the agent's image."),
    Flag("skr-watcher-image-tag", "string", "", "Tag of the agent's image; no agents without one."),
    Flag(
        "skr-watcher-image-registry",
        "string",
        "europe-docker.pkg.dev/kyma-project/prod",
        "Registry and path of the agent's image.",
    ),
    Flag("skr-webhook-memory-limits", "string", "200Mi", "Memory limit of the agent."),
    Flag("skr-webhook-cpu-limits", "string", "0.1", "CPU limit of the agent."),
    Flag(
        "watcher-hortus-agent",
        "bool",
        False,
        "The agent's image is that of Hortus, whose agent keeps events on disk and has health checks.",
    ),
    Flag("watcher-agent-replicas", "int", 1, "Replicas of the agent; with two an event is not lost with a node."),
    Flag(
        "watcher-listener-address",
        "string",
        "",
        "host:port that agents report to without Istio; the listener then asks for their certificates itself.",
    ),
    Flag(
        "watcher-probe-interval",
        "duration",
        _HOUR,
        "Time without an event of a cluster after which one is provoked to see whether it arrives; 0s for never.",
    ),
)
FLAGS: Final[tuple[Flag, ...]] = (*_CONTROLLERS, *_REGISTRY, *_WATCHER, *accepted.FLAGS)

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
