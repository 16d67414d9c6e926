"""All authenticators in Kubernetes' order: certificate, fixed tokens, ServiceAccount tokens, anonymous.

The first that proves a user wins; credentials that prove no user are refused, also where anonymous requests are
allowed.
"""

from __future__ import annotations

from hortus.apiserver.authn.client_certificates import CertificateAuthenticator
from hortus.apiserver.authn.identity import RequestCredentials, UserInfo
from hortus.apiserver.authn.service_accounts import ServiceAccountTokens
from hortus.apiserver.authn.static_tokens import StaticTokens
from hortus.kube.errors import Unauthorized

ANONYMOUS = UserInfo("system:anonymous", groups=("system:unauthenticated",))


class Authentication:
    """The server's whole authentication; `authenticate` never returns None.

    With `anonymous`, requests without credentials continue as system:anonymous, which the default roles allow only
    /healthz, /livez, /readyz and /version; without, they are refused.
    """

    def __init__(
        self,
        certificates: CertificateAuthenticator,
        fixed: StaticTokens,
        service_accounts: ServiceAccountTokens,
        *,
        anonymous: bool = True,
    ) -> None:
        self._certificates = certificates
        self._fixed = fixed
        self._service_accounts = service_accounts
        self._anonymous = anonymous

    async def authenticate(self, credentials: RequestCredentials) -> UserInfo:
        """The user behind a request; raises Unauthorized (401)."""
        refused: Unauthorized | None = None
        if credentials.certificate:
            try:
                user = self._certificates.check(credentials.cluster, credentials.certificate)
                if user is not None:
                    return user
            except Unauthorized as problem:
                refused = problem
        if credentials.bearer:
            user = self._fixed.check(credentials.cluster, credentials.bearer)
            return user or (await self._service_accounts.check(credentials.cluster, credentials.bearer)).user
        if refused is not None:
            raise refused
        if self._anonymous:
            return ANONYMOUS
        raise Unauthorized("Unauthorized")
