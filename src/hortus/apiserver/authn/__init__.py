"""Authentication: the user of a request, proven by a client certificate or a bearer token of *that* logical cluster.

Use: `keys = await open_keys(backend, names=..., now=...)` gives the server's keys and `keys.tls_context()`; per
connection `peer_certificate(transport)`; per request `await Authentication(...).authenticate(Credentials(...))`.
"""

from __future__ import annotations

from hortus.apiserver.authn.certificates import IssuedCertificate
from hortus.apiserver.authn.chain import ANONYMOUS, Authentication
from hortus.apiserver.authn.client_certificates import CertificateAuthenticator, peer_certificate
from hortus.apiserver.authn.identity import RequestCredentials, UserInfo
from hortus.apiserver.authn.keys import ServerKeys, open_keys
from hortus.apiserver.authn.service_accounts import (
    ServiceAccountTokens,
    StoredObjects,
    issuer_of,
    json_web_keys,
    openid_configuration,
)
from hortus.apiserver.authn.static_tokens import StaticTokens

__all__ = [
    "ANONYMOUS",
    "Authentication",
    "CertificateAuthenticator",
    "IssuedCertificate",
    "RequestCredentials",
    "ServerKeys",
    "ServiceAccountTokens",
    "StaticTokens",
    "StoredObjects",
    "UserInfo",
    "issuer_of",
    "json_web_keys",
    "open_keys",
    "openid_configuration",
    "peer_certificate",
]
