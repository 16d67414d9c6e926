"""Fixed bearer tokens from the server's settings, for its first administrator."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from hortus.apiserver.authn.client_certificates import AUTHENTICATED
from hortus.apiserver.authn.identity import RequestCredentials, UserInfo

EVERY_CLUSTER = "*"


class StaticTokens:
    """Tokens by (logical cluster, token); the cluster `*` means all of them.

    Only digests are kept, and they are compared in constant time.
    """

    def __init__(self, tokens: Mapping[tuple[str, str], UserInfo]) -> None:
        self._users: dict[str, list[tuple[bytes, UserInfo]]] = {}
        for (cluster, token), user in tokens.items():
            groups = tuple(dict.fromkeys([*user.groups, AUTHENTICATED]))
            known = UserInfo(user.username, user.uid, groups, user.extra)
            self._users.setdefault(cluster, []).append((_digest(token), known))

    async def authenticate(self, credentials: RequestCredentials) -> UserInfo | None:
        return self.check(credentials.cluster, credentials.bearer)

    def check(self, cluster: str, token: str) -> UserInfo | None:
        known = [*self._users.get(cluster, ()), *self._users.get(EVERY_CLUSTER, ())]
        if not known or not token:
            return None
        given = _digest(token)
        found = None
        for digest, user in known:
            if hmac.compare_digest(digest, given):
                found = user
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
