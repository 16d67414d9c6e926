"""The headers of a request on its way to an aggregated API server, and of the answer on its way back.

Credentials end here: the server behind learns the user from `X-Remote-*`, which it believes because of this server's
certificate. Whatever a client sends under these names is dropped, in every spelling. Names and their escaping are those
of k8s.io/client-go, transport/round_trippers.go.
"""

from __future__ import annotations

import re
from typing import Final

from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy

from hortus.apiserver.aggregation.servers import Unreachable
from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.clusters.trust import EXTRA_PREFIX, GROUP_HEADER, UID_HEADER, USER_HEADER

_HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers of one connection (RFC 9110, section 7.6.1)."""
_ENDING_HERE: Final = frozenset({"authorization", "expect", "host"}) | _HOP_BY_HOP
_IDENTITY: Final = ("x-remote-user", "x-remote-uid", "x-remote-group", "x-remote-extra-", "impersonate-")
_TOKEN: Final = frozenset(b"!#$&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
"""Characters of the name of a header (RFC 9110, token) but for the percent sign, which escapes others."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that no value of a header has (golang.org/x/net, http/httpguts); a line break begins another header."""


def identity(user: UserInfo) -> CIMultiDict[str]:
    """The headers that name the user of a request. Raises Unreachable where they cannot, in the words of net/http."""
    found: CIMultiDict[str] = CIMultiDict()
    found.add(USER_HEADER, user.username)
    if user.uid:
        found.add(UID_HEADER, user.uid)
    for group in user.groups:
        found.add(GROUP_HEADER, group)
    for key, values in user.extra.items():
        for value in values:
            found.add(EXTRA_PREFIX + _escaped(key), value)
    for name, value in found.items():
        if _CONTROL.search(value):
            raise Unreachable(f'net/http: invalid header field value for "{name}"')
    return found


def forwarded(request: web.BaseRequest, user: UserInfo, audit: str, path: str) -> CIMultiDict[str]:
    """The headers of a client's request for the server behind; `path` is the path below the logical cluster.

    Raises Unreachable.
    """
    dropped = _of_connection(request.headers) | _ENDING_HERE
    found: CIMultiDict[str] = CIMultiDict()
    for name, value in request.headers.items():
        lower = name.lower()
        if lower not in dropped and not lower.replace("_", "-").startswith(_IDENTITY):
            found.add(name, value)
    if audit:
        found["Audit-ID"] = audit
    peers = [*found.getall("X-Forwarded-For", ()), *([request.remote] if request.remote else [])]
    if peers:
        found["X-Forwarded-For"] = ", ".join(peers)
    found["X-Forwarded-Host"] = request.host
    found["X-Forwarded-Proto"] = "https"
    found["X-Forwarded-Uri"] = path
    found.extend(identity(user))
    return found


def returned(headers: CIMultiDictProxy[str]) -> list[tuple[str, str]]:
    """The headers of an answer for the client, without those of the connection and the length."""
    dropped = _of_connection(headers) | _HOP_BY_HOP | {"content-length"}
    return [(name, value) for name, value in headers.items() if name.lower() not in dropped]


def _of_connection(headers: CIMultiDictProxy[str]) -> set[str]:
    """The headers that `Connection` names."""
    return {word.strip().lower() for value in headers.getall("Connection", ()) for word in value.split(",")}


def _escaped(key: str) -> str:
    """The key of an extra attribute as part of a header's name."""
    return "".join(chr(byte) if byte in _TOKEN else f"%{byte:02X}" for byte in key.encode())
