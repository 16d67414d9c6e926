"""The operator's configuration of clusters: defaults of Runtimes, and the settings of the landscape.

The configuration is three JSON files in the formats of the Go system:

    configuration = read_configuration(path)       # Configuration, at start
    tenants = read_tenants(path)                   # AuditTenants, at start
    windows = read_windows(path)                   # MaintenanceWindows, for every conversion

Each raises ConfigurationError, which lists every problem with its path in the document, the value and what is allowed.
`docs/clusters/configuration.md` describes the keys; `KEYS` is the table that both it and the checks come from.
"""

from hortus.domains.clusters.configuration.audit import AuditTenant, AuditTenants, TenantMissing, parse_tenants
from hortus.domains.clusters.configuration.converter import Configuration, OidcDefaults, parse_configuration
from hortus.domains.clusters.configuration.files import read_configuration, read_tenants, read_windows
from hortus.domains.clusters.configuration.keys import KEYS, Key
from hortus.domains.clusters.configuration.maintenance import MaintenanceWindow, MaintenanceWindows, parse_windows
from hortus.domains.clusters.configuration.problems import ConfigurationError

__all__ = [
    "KEYS",
    "AuditTenant",
    "AuditTenants",
    "Configuration",
    "ConfigurationError",
    "Key",
    "MaintenanceWindow",
    "MaintenanceWindows",
    "OidcDefaults",
    "TenantMissing",
    "parse_configuration",
    "parse_tenants",
    "parse_windows",
    "read_configuration",
    "read_tenants",
    "read_windows",
]
