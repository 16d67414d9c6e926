"""Checks that the OIDC providers and the ACL of a Runtime can work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_network
from typing import Final
from urllib.parse import urlsplit

from hortus.domains.clusters.shoot.context import Context
from hortus.domains.clusters.shoot.extensions import ACL_PROVIDERS
from hortus.domains.clusters.types import OidcConfig, RuntimeShoot
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid, required, too_many

PATH: Final = "spec.shoot.kubernetes.kubeAPIServer"
MOST_CIDRS: Final = 50
"""The limit of the ACL extension in its default configuration."""


def access_problems(shoot: RuntimeShoot, context: Context) -> list[FieldError]:
    """Problems of `spec.shoot.kubernetes.kubeAPIServer`."""
    api_server = shoot.api_server
    problems = list(_issuer_problems(f"{PATH}.oidcConfig", api_server.oidc_config or OidcConfig()))
    problems += _completeness_problems(api_server.additional_oidc_config)
    for index, oidc in enumerate(api_server.additional_oidc_config):
        problems += _issuer_problems(f"{PATH}.additionalOidcConfig[{index}]", oidc)
    if api_server.acl is not None:
        problems += _acl_problems(api_server.acl.allowed_cidrs, shoot.provider.type, context)
    return problems


def _completeness_problems(providers: Sequence[OidcConfig]) -> Iterator[FieldError]:
    """A list without any complete provider stands for the default; a mixed one is a mistake."""
    if not any(oidc.client_id and oidc.issuer_url for oidc in providers):
        return
    for index, oidc in enumerate(providers):
        for name, value in (("clientID", oidc.client_id), ("issuerURL", oidc.issuer_url)):
            if not value:
                yield required(
                    f"{PATH}.additionalOidcConfig[{index}].{name}", "the other providers of the list have it"
                )


def _issuer_problems(path: str, oidc: OidcConfig) -> Iterator[FieldError]:
    issuer = oidc.issuer_url
    if issuer and not _is_https(issuer):
        yield invalid(f"{path}.issuerURL", issuer, "must be a URL that begins with https://")


def _is_https(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        # Such as brackets that hold no IPv6 address.
        return False
    return parts.scheme == "https" and bool(parts.hostname)


def _acl_problems(cidrs: Sequence[str], provider: str, context: Context) -> Iterator[FieldError]:
    path = f"{PATH}.acl"
    if cidrs and provider not in ACL_PROVIDERS:
        # Taking it silently would leave an API server open that its owner believes to be closed.
        yield forbidden(path, f"not available for provider {provider}; available for {', '.join(ACL_PROVIDERS)}")
        return
    if cidrs and not context.acl:
        yield forbidden(path, "ACLs are switched off; the operator switches them on by --api-server-acl-enabled")
        return
    for index, cidr in enumerate(cidrs):
        if not _is_network(cidr):
            yield invalid(f"{path}.allowedCIDRs[{index}]", cidr, "must be a range such as 203.0.113.0/24")
    everything = len(set(cidrs) | set(context.operator_cidrs)) + bool(context.nat_address)
    if cidrs and everything > MOST_CIDRS:
        yield too_many(f"{path}.allowedCIDRs", len(cidrs), MOST_CIDRS - (everything - len(set(cidrs))))


def _is_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return "/" in text
