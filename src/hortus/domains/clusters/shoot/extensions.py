"""The extensions of a Shoot: those of a created one, and those of a live one after a patch (docs/clusters/shoot.md).

A patch keeps the live list and its order: extensions that nobody here knows stay, and so do certificates, DNS and OIDC
as they were created. An extension is switched off by `disabled`, never taken off.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

from hortus.domains.clusters.configuration import AuditTenant, Configuration
from hortus.domains.clusters.pools import converted
from hortus.domains.clusters.shoot.caches import REGISTRY_CACHE, registry_cache
from hortus.domains.clusters.shoot.context import Context
from hortus.domains.clusters.shoots import Extension
from hortus.domains.clusters.types import Runtime
from hortus.kube import Object

NETWORK_FILTER: Final = "shoot-networking-filter"
CERTIFICATES: Final = "shoot-cert-service"
DNS: Final = "shoot-dns-service"
OIDC: Final = "shoot-oidc-service"
AUDIT_LOG: Final = "shoot-auditlog-service"
ACL: Final = "acl"
NVIDIA_OPENSHELL: Final = "shoot-nvidia-openshell"

ACL_PROVIDERS: Final = ("aws", "azure")
AUDIT_CREDENTIALS: Final = "auditlog-credentials"
"""Name of the resource of a Shoot by which the extension finds the audit log's credentials."""


_Typed = tuple[str, Object]
"""The type of an extension, and the extension as it is handed on."""


def created_extensions(runtime: Runtime, config: Configuration, context: Context) -> list[Object]:
    """The extensions of a new Shoot."""
    made: list[Object | None] = [
        _network_filter(runtime),
        _certificates(),
        _dns(runtime, config),
        {"type": OIDC, "disabled": False},
        _audit_log(context.tenant),
        _acl(runtime, context),
        _nvidia_openshell(runtime),
        registry_cache(runtime, context),
    ]
    return [extension for extension in made if extension is not None]


def patched_extensions(runtime: Runtime, context: Context, live: Sequence[Object]) -> list[Object]:
    """The extensions of a live Shoot, brought up to the Runtime."""
    found = [(converted(extension, Extension, "extension").type, extension) for extension in live]
    _put(found, AUDIT_LOG, _audit_log(context.tenant))
    _put(found, NETWORK_FILTER, _network_filter(runtime))
    if context.acl:
        _put_or_disable(found, ACL, _acl(runtime, context))
    _put_or_disable(found, NVIDIA_OPENSHELL, _nvidia_openshell(runtime))
    _put_or_disable(found, REGISTRY_CACHE, registry_cache(runtime, context))
    return [extension for _, extension in found]


def audit_resource(tenant: AuditTenant) -> Object:
    """The entry of `spec.resources` that carries the audit log's credentials to the cluster's seed."""
    reference = {"apiVersion": "v1", "kind": "Secret", "name": tenant.secret_name}
    return {"name": AUDIT_CREDENTIALS, "resourceRef": reference}


def _put(extensions: list[_Typed], type_: str, wanted: Object | None) -> None:
    """Put `wanted` into the list, in place of the one of its type, or else at the end."""
    if wanted is None:
        return
    for index, (present, _) in enumerate(extensions):
        if present == type_:
            extensions[index] = (type_, wanted)
            return
    extensions.append((type_, wanted))


def _put_or_disable(extensions: list[_Typed], type_: str, wanted: Object | None) -> None:
    if wanted is not None:
        _put(extensions, type_, wanted)
        return
    for index, (present, extension) in enumerate(extensions):
        if present == type_:
            extensions[index] = (type_, {**extension, "disabled": True})


def _network_filter(runtime: Runtime) -> Object:
    wanted = runtime.wanted.security.networking.filter
    if not wanted.egress.enabled:
        return {"type": NETWORK_FILTER, "disabled": True}
    extension: Object = {"type": NETWORK_FILTER, "disabled": False}
    if wanted.ingress is not None and wanted.ingress.enabled:
        extension["providerConfig"] = {"egressFilter": {"blackholingEnabled": True}}
    return extension


def _certificates() -> Object:
    return {
        "type": CERTIFICATES,
        "providerConfig": {
            "apiVersion": "service.cert.extensions.gardener.cloud/v1alpha1",
            "kind": "CertConfig",
            "shootIssuers": {"enabled": True},
        },
    }


def _dns(runtime: Runtime, config: Configuration) -> Object:
    dns = config.converter.dns
    provider_config: Object = {
        "apiVersion": "service.dns.extensions.gardener.cloud/v1alpha1",
        "kind": "DNSConfig",
        "providers": None,
        "syncProvidersFromShootSpecDNS": True,
    }
    if dns.external:
        domains = {"include": [domain_of(runtime, config)]}
        provider_config["dnsProviderReplication"] = {"enabled": True}
        provider_config["providers"] = [{"domains": domains, "secretName": dns.secret_name, "type": dns.provider_type}]
    return {"type": DNS, "providerConfig": provider_config}


def domain_of(runtime: Runtime, config: Configuration) -> str:
    """The cluster's own domain, where the operator has a DNS provider."""
    return f"{runtime.wanted.shoot.name}.{config.converter.dns.domain_prefix}"


def _audit_log(tenant: AuditTenant | None) -> Object | None:
    if tenant is None:
        return None
    return {
        "type": AUDIT_LOG,
        "providerConfig": {
            "apiVersion": "service.auditlog.extensions.gardener.cloud/v1alpha1",
            "kind": "AuditlogConfig",
            "type": "standard",
            "tenantID": tenant.tenant_id,
            "serviceURL": tenant.service_url,
            "secretReferenceName": AUDIT_CREDENTIALS,
        },
    }


def _acl(runtime: Runtime, context: Context) -> Object | None:
    """The ranges that may reach the API server; the operator's are always among them, and an empty list admits all."""
    shoot = runtime.wanted.shoot
    acl = shoot.api_server.acl
    if not context.acl or acl is None or shoot.provider.type not in ACL_PROVIDERS:
        return None
    if not acl.allowed_cidrs:
        return {"type": ACL, "disabled": True}
    nat = [str(ipaddress.ip_network(context.nat_address))] if context.nat_address else []
    cidrs = list(dict.fromkeys([*acl.allowed_cidrs, *context.operator_cidrs, *nat]))
    rule = {"action": "ALLOW", "type": "remote_ip", "cidrs": cidrs}
    return {"type": ACL, "disabled": False, "providerConfig": {"rule": rule}}


def _nvidia_openshell(runtime: Runtime) -> Object | None:
    if not runtime.wanted.shoot.enable_nvidia_openshell:
        return None
    return {"type": NVIDIA_OPENSHELL, "disabled": False}
