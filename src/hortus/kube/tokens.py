"""Claims of bearer tokens, as a client may read them: nothing is verified, and nothing is trusted because of them.

Most clusters issue JSON Web Tokens (RFC 7519). Any other token has no claims.
"""

from __future__ import annotations

import base64

import msgspec

from hortus.kube.secret import Secret
from hortus.kube.shapes import decode_json

_ACCOUNT = "system:serviceaccount:"


class TokenClaims(msgspec.Struct, frozen=True):
    """The claims that clients read."""

    sub: str = ""
    """The user, as `system:serviceaccount:NAMESPACE:NAME`."""
    exp: float | None = None
    """Seconds since the epoch."""

    @property
    def account_namespace(self) -> str:
        """The namespace of the ServiceAccount; empty for any other user."""
        return self.sub.removeprefix(_ACCOUNT).partition(":")[0] if self.sub.startswith(_ACCOUNT) else ""


def claims_of(token: Secret) -> TokenClaims:
    """The claims of a token; empty ones if it is no JSON Web Token."""
    parts = token.reveal().split(".")
    if len(parts) != 3:
        return TokenClaims()
    body = parts[1]
    try:
        return decode_json(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)), TokenClaims)
    except (ValueError, msgspec.DecodeError):
        return TokenClaims()


__all__ = ["TokenClaims", "claims_of"]
