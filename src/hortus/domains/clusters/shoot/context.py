"""The facts of a conversion besides the Runtime and the configuration; the caller looks them up, so that it is pure.

The switches carry the names and defaults of the Go system's flags.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from hortus.domains.clusters.configuration import AuditTenant, MaintenanceWindow
from hortus.kube import Object


class Context(msgspec.Struct, frozen=True):
    """Facts and switches of one conversion."""

    tenant: AuditTenant | None = None
    """The tenant that takes the audit log; None leaves audit logging as it is."""
    windows: Mapping[str, MaintenanceWindow] = {}
    """Maintenance windows, by region."""
    caches: tuple[Object, ...] = ()
    """Registry caches, each as the `spec` of a RegistryCacheConfig, when the Runtime says only that there are some."""
    structured_authentication: bool = False
    """Flag structured-auth-enabled: OIDC by a ConfigMap instead of fields of the Shoot."""
    acl: bool = False
    """Flag api-server-acl-enabled."""
    operator_cidrs: tuple[str, ...] = ()
    """The operator's own ranges, let in through every ACL (key acl-list.json of the ConfigMap)."""
    nat_address: str = ""
    """The management cluster's own address, let in through every ACL (key kcp-external-nat-ip.json)."""
    credentials_binding: str = ""
    """The CredentialsBinding that takes the place of a live Shoot's SecretBinding; empty for the Runtime's."""
    now: float = 0.0
    """The time by which versions of a CloudProfile have expired; 0 for before all of them."""
    ignore_removed_zones: bool = False
    """Keep zones that a Runtime no longer lists, as the Go system does, instead of refusing the Runtime."""


DEFAULT_CONTEXT = Context()
