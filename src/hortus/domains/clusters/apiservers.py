"""Kubernetes of a Runtime: its version, and the settings of its API server."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from hortus.schema import Fields, Format


class ClientAuthentication(Fields, frozen=True):
    """Accepted for compatibility; Gardener ignores it."""

    extra_config: dict[str, str] | None = None
    """Further settings."""
    secret: str | None = None
    """Secret of the client."""


class OidcConfig(Fields, frozen=True):
    """An OpenID Connect provider whose tokens the cluster's API server accepts."""

    ca_bundle: str | None = None
    """CA certificates for the connection to the provider."""
    client_authentication: ClientAuthentication | None = None
    """Accepted for compatibility; without effect."""
    client_id: str | None = field(name="clientID", default=None)
    """Client that tokens must be issued for."""
    groups_claim: str | None = None
    """Claim that holds a user's groups."""
    groups_prefix: str | None = None
    """Prefix of each group."""
    issuer_url: str | None = field(name="issuerURL", default=None)
    """Address of the provider; https."""
    required_claims: dict[str, str] | None = None
    """Claims that a token must have, with their values."""
    signing_algs: tuple[str, ...] | None = None
    """Signature algorithms that are accepted."""
    username_claim: str | None = None
    """Claim that holds a user's name."""
    username_prefix: str | None = None
    """Prefix of each user's name; - for no prefix."""


class AdditionalOidcConfig(OidcConfig, frozen=True):
    """A further OpenID Connect provider, kept as an OpenIDConnect object in the cluster."""

    jwks: Annotated[str, Format("byte")] | None = None
    """The provider's keys (a JSON Web Key Set), if the API server cannot fetch them from the provider."""


class Acl(Fields, frozen=True):
    """Access control list of the cluster's API server."""

    allowed_cidrs: tuple[str, ...] = field(name="allowedCIDRs", default=())
    """Address ranges from which the API server is reachable. An empty list allows all addresses."""


class ApiServer(Fields, frozen=True):
    """Settings of the cluster's API server."""

    acl: Acl | None = None
    """Access control list."""
    additional_oidc_config: tuple[AdditionalOidcConfig, ...] = ()
    """OpenID Connect providers that are kept as OpenIDConnect objects in the cluster."""
    oidc_config: OidcConfig | None = None
    """The OpenID Connect provider in the API server's own configuration. Defaults to the operator's."""


class Kubernetes(Fields, frozen=True):
    """Version and settings of Kubernetes."""

    kube_api_server: ApiServer | None = field(name="kubeAPIServer", default=None)
    """Settings of its API server."""
    version: str | None = None
    """Version of Kubernetes. Defaults to the operator's. A newer cluster is never downgraded."""
