"""The audit tenant file: the tenants of the audit log service by provider and region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import msgspec

from hortus.domains.clusters.configuration.converter import decoded
from hortus.domains.clusters.configuration.problems import ConfigurationError
from hortus.schema import FieldError
from hortus.schema.problems import invalid, required, type_invalid


class TenantMissing(LookupError):
    """A provider and region without an audit tenant, in the words of the Go system."""


class AuditTenant(msgspec.Struct, frozen=True):
    """The tenant that takes the audit log of a cluster."""

    tenant_id: str = msgspec.field(name="tenantID")
    service_url: str = msgspec.field(name="serviceURL")
    secret_name: str = msgspec.field(name="secretName")
    """Secret in the garden with the credentials of the audit log service."""


class AuditTenants(msgspec.Struct, frozen=True):
    """All tenants, by provider type and region."""

    by_provider: dict[str, dict[str, AuditTenant]] = {}

    def lookup(self, provider: str, region: str) -> AuditTenant:
        """The tenant of clusters there. Raises TenantMissing."""
        regions = self.by_provider.get(provider)
        if regions is None:
            raise TenantMissing(f"audit logs configuration not found: missing providerType: '{provider}'")
        if region not in regions:
            raise TenantMissing(
                f"audit logs configuration not found: missing region: '{region}' for providerType: '{provider}'"
            )
        return regions[region]


def parse_tenants(data: bytes, *, source: str = "the audit tenant file") -> AuditTenants:
    """The tenants in a JSON document `{provider: {region: {tenantID, serviceURL, secretName}}}`.

    Raises ConfigurationError with every problem.
    """
    document = decoded(data, source)
    if problems := list(_problems(document)):
        raise ConfigurationError(source, problems)
    return AuditTenants(msgspec.convert(document, dict[str, dict[str, AuditTenant]]))


def _problems(document: object) -> Iterator[FieldError]:
    if not isinstance(document, Mapping):
        yield type_invalid("<document>", document, "must be an object of providers")
        return
    for provider, regions in document.items():
        if not isinstance(regions, Mapping):
            yield type_invalid(provider, regions, "must be an object of regions")
            continue
        for region, tenant in regions.items():
            yield from _tenant_problems(f"{provider}.{region}", tenant)


def _tenant_problems(path: str, tenant: object) -> Iterator[FieldError]:
    if not isinstance(tenant, Mapping):
        yield type_invalid(path, tenant, "must be an object with tenantID, serviceURL and secretName")
        return
    for name in ("tenantID", "serviceURL", "secretName"):
        value = tenant.get(name)
        if value is None or value == "":
            yield required(f"{path}.{name}")
        elif not isinstance(value, str):
            yield type_invalid(f"{path}.{name}", value, "must be a text")
        elif name == "serviceURL" and not _is_url(value):
            yield invalid(f"{path}.{name}", value, "must be a URL such as https://audit.example.org:3001")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return bool(parts.scheme and parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False
