"""The operator's part of a conversion, as the controllers have it: the same files, the same flags.

Raises CommandError naming the flag or the place in a file.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from hortus.domains.clusters.configuration import (
    AuditTenants,
    Configuration,
    ConfigurationError,
    MaintenanceWindow,
    TenantMissing,
    read_configuration,
    read_tenants,
    read_windows,
)
from hortus.domains.clusters.operatoraccess import OperatorAccess, Ranges
from hortus.domains.clusters.settings import DEFAULT_CONFIGURATION
from hortus.domains.clusters.shoot import Context, LiveShoot
from hortus.engine import StepError
from hortus.kube import Client
from hortus.schema import FieldError
from hortus.schema.problems import required
from hortus.terminal import CommandError


class Choices(msgspec.Struct, frozen=True):
    """The flags of the controllers that decide what a Shoot looks like."""

    configuration: Path | None = None
    """None: where `hortus up` has it, else the controllers' default."""
    project: str = ""
    """Empty: the configuration's."""
    structured_authentication: bool = False
    acl: bool = False
    audit_log_mandatory: bool | None = None
    """None: as it is in `hortus up` where that is used, else true."""


class Landscape(msgspec.Struct, frozen=True):
    config: Configuration
    tenants: AuditTenants
    windows: dict[str, MaintenanceWindow]
    choices: Choices
    ranges: Ranges = Ranges()

    @property
    def namespace(self) -> str:
        """The project's namespace in the garden."""
        return self.config.converter.gardener.namespace

    @property
    def project(self) -> str:
        return self.config.converter.gardener.project_name

    def context(self, shoot: LiveShoot) -> tuple[Context, list[FieldError]]:
        """The context of one Shoot's conversion, and the problems of finding it."""
        tenant, problems = None, []
        try:
            tenant = self.tenants.lookup(shoot.spec.provider.type, shoot.spec.region)
        except TenantMissing as error:
            if self.choices.audit_log_mandatory is not False:
                text = f"{error}; or give --audit-log-mandatory=false as the controllers have it"
                problems.append(required("audit tenants", text))
        context = Context(
            tenant=tenant,
            windows=self.windows,
            structured_authentication=self.choices.structured_authentication,
            acl=self.choices.acl,
            operator_cidrs=self.ranges.operator,
            nat_address=self.ranges.nat,
        )
        return context, problems


def read_landscape(choices: Choices, folder: Path) -> Landscape:
    """The landscape without the operator's own ranges; `folder` is where the management cluster's kubeconfig lies."""
    local = folder / "converter.json"
    path = choices.configuration or (local if local.exists() else Path(DEFAULT_CONFIGURATION))
    if path == local and choices.audit_log_mandatory is None:
        choices = msgspec.structs.replace(choices, audit_log_mandatory=False)
    try:
        config = read_configuration(str(path))
        tenants = read_tenants(config.converter.audit_logging.tenant_config_path)
        windows = config.converter.maintenance_window.window_map_path
        found = dict(read_windows(windows)) if windows else {}
    except ConfigurationError as error:
        raise CommandError(f"--converter-config-filepath: {error}") from None
    if choices.project and choices.project != config.converter.gardener.project_name:
        raise CommandError(
            f"--project is {choices.project}, but converter.gardener.projectName in {path} is "
            f"{config.converter.gardener.project_name}: both must be the same"
        )
    return Landscape(config, tenants, found, choices)


async def with_ranges(landscape: Landscape, client: Client, namespace: str) -> Landscape:
    """With the operator's own address ranges, which every ACL lets in."""
    if not landscape.choices.acl:
        return landscape
    name = landscape.config.converter.kubernetes.api_server.acl.config_map_name
    try:
        ranges = await OperatorAccess(client, name, enabled=True).ranges(namespace)
    except StepError as error:
        raise CommandError(error.message) from error
    return msgspec.structs.replace(landscape, ranges=ranges)
