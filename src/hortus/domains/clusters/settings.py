"""Flags of this domain, under the names of the Go system.

Contract: kyma-project/infrastructure-manager, cmd/main.go. Flags of our own follow at the end and are harmless by
default. `credentials` declares the flags that both controllers share (garden, namespace).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from hortus.domains.clusters.configuration import (
    AuditTenants,
    Configuration,
    ConfigurationError,
    read_configuration,
    read_tenants,
)
from hortus.engine.flags import Flag, FlagError

DEFAULT_CONFIGURATION: Final = "/converter-config/converter_config.json"

FLAGS: tuple[Flag, ...] = (
    Flag("runtime-ctrl-workers-cnt", "int", 25, "Runtimes reconciled at the same time."),
    Flag(
        "converter-config-filepath",
        "string",
        DEFAULT_CONFIGURATION,
        "Configuration of what Runtimes leave open. Without a file at the default path Runtimes are not served.",
    ),
    Flag("audit-log-mandatory", "bool", True, "Refuse a Runtime for whose region there is no audit tenant."),
    Flag("structured-auth-enabled", "bool", False, "OIDC by structured authentication instead of fields of the Shoot."),
    Flag(
        "custom-config-controller-enabled",
        "bool",
        False,
        "Look for CustomConfigs in clusters, and switch their registry cache on and off.",
    ),
    Flag(
        "registry-cache-config-controller-enabled",
        "bool",
        False,
        "Look for RegistryCacheConfigs in clusters, and list their registry caches in the Runtime.",
    ),
    Flag("api-server-acl-enabled", "bool", False, "Serve acl.allowedCIDRs of Runtimes on AWS and Azure."),
    Flag(
        "ignore-removed-zones",
        "bool",
        False,
        "Keep zones that a Runtime lists no more, silently as the Go system does, instead of refusing the change.",
    ),
    Flag(
        "check-cloud-profiles",
        "bool",
        True,
        "Refuse a Runtime that asks for versions, images, machines or zones that the garden's CloudProfile lacks.",
    ),
)


class Settings(msgspec.Struct, frozen=True):
    """The values of FLAGS, and the contents of the files that they name. Times are in seconds."""

    configuration: Configuration
    tenants: AuditTenants
    workers: int
    namespace: str
    cluster_timeout: float
    plain_http: bool
    local_clusters: bool
    audit_log_mandatory: bool
    structured_authentication: bool
    custom_configs: bool
    cache_configs: bool
    acl: bool
    ignore_removed_zones: bool
    check_profiles: bool = True

    @property
    def garden_namespace(self) -> str:
        return self.configuration.converter.gardener.namespace


def served(values: Mapping[str, Any]) -> bool:
    """Returns true if Runtimes are served: a flag names a configuration, or one exists at the default path."""
    path = values["converter-config-filepath"]
    return bool(path != DEFAULT_CONFIGURATION or Path(path).exists())


def from_flags(values: Mapping[str, Any]) -> Settings:
    """Raises FlagError that names the flag, and the place in the file, with an invalid value."""
    workers = values["runtime-ctrl-workers-cnt"]
    if workers < 1:
        raise FlagError(f"invalid value {workers} for flag --runtime-ctrl-workers-cnt: must be more than 0")
    configuration, tenants = _files(values["converter-config-filepath"])
    _check_project(values, configuration)
    _check_acl(values, configuration)
    return Settings(
        configuration=configuration,
        tenants=tenants,
        workers=workers,
        namespace=values["watch-namespace"],
        cluster_timeout=values["cluster-request-timeout"],
        plain_http=values["allow-plain-http"],
        local_clusters=values["allow-local-clusters"],
        audit_log_mandatory=values["audit-log-mandatory"],
        structured_authentication=values["structured-auth-enabled"],
        custom_configs=values["custom-config-controller-enabled"],
        cache_configs=values["registry-cache-config-controller-enabled"],
        acl=values["api-server-acl-enabled"],
        ignore_removed_zones=values["ignore-removed-zones"],
        check_profiles=values["check-cloud-profiles"],
    )


def _files(path: str) -> tuple[Configuration, AuditTenants]:
    try:
        configuration = read_configuration(path)
        return configuration, read_tenants(configuration.converter.audit_logging.tenant_config_path)
    except ConfigurationError as error:
        raise FlagError(f"flag --converter-config-filepath: {error}") from None


def _check_project(values: Mapping[str, Any], configuration: Configuration) -> None:
    flag, file = values["gardener-project-name"], configuration.converter.gardener.project_name
    if flag != file:
        raise FlagError(
            f"invalid value {flag!r} for flag --gardener-project-name: converter.gardener.projectName in the converter "
            f"configuration is {file!r}, and both must be the same"
        )


def _check_acl(values: Mapping[str, Any], configuration: Configuration) -> None:
    if values["api-server-acl-enabled"] and not configuration.converter.kubernetes.api_server.acl.config_map_name:
        raise FlagError(
            "flag --api-server-acl-enabled needs converter.kubernetes.kubeApiServer.acl.configMapName in the converter "
            "configuration"
        )
