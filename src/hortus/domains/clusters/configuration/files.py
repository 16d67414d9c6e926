"""The configuration files on disk; the only place of this part that reads files."""

from __future__ import annotations

from pathlib import Path

from hortus.domains.clusters.configuration.audit import AuditTenants, parse_tenants
from hortus.domains.clusters.configuration.converter import Configuration, parse_configuration
from hortus.domains.clusters.configuration.maintenance import MaintenanceWindows, parse_windows
from hortus.domains.clusters.configuration.problems import ConfigurationError
from hortus.schema import FieldError


def read_configuration(path: str | Path) -> Configuration:
    """The converter's configuration. Raises ConfigurationError, also for a file that cannot be read."""
    return parse_configuration(_content(path), source=str(path))


def read_tenants(path: str | Path) -> AuditTenants:
    """The audit tenants. Raises ConfigurationError, also for a file that cannot be read."""
    return parse_tenants(_content(path), source=str(path))


def read_windows(path: str | Path) -> MaintenanceWindows:
    """The maintenance windows. Raises ConfigurationError, also for a file that cannot be read."""
    return parse_windows(_content(path), source=str(path))


def _content(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        problem = FieldError("<file>", f"cannot be read: {error.strerror}")
        raise ConfigurationError(str(path), [problem]) from error
