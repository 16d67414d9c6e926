"""Answers: bytes with a code and the headers that HTTP requires."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from hortus.kube.errors import ApiError

_GZIP_FROM = 128 * 1024
"""Bytes above which a body is compressed for clients that accept it (kube-apiserver's threshold)."""
_MOST_WARNINGS, _CUT_WARNING = 4096, 256
"""Characters of all warnings together, and of each when they are more (k8s.io/apiserver, warning recorder)."""


class Reply:
    """One complete answer. `warnings` become Warning headers; `pack` gives the body as gzip more cheaply than gzip."""

    __slots__ = ("body", "code", "content_type", "headers", "pack", "warnings")

    def __init__(
        self,
        body: bytes,
        *,
        code: int = 200,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        warnings: Sequence[str] = (),
        pack: Callable[[], bytes] | None = None,
    ) -> None:
        self.body = body
        self.code = code
        self.content_type = content_type
        self.headers = headers
        self.warnings = warnings
        self.pack = pack


def json_reply(value: Any, *, code: int = 200, content_type: str = "application/json") -> Reply:
    return Reply(orjson.dumps(value), code=code, content_type=content_type)


def status_reply(error: ApiError) -> Reply:
    """The Status body of an error, with Retry-After where the error has one."""
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    return Reply(orjson.dumps(error.status()), code=error.http_code, headers=headers)


def warning_headers(texts: Sequence[str]) -> list[str]:
    """RFC 7234 section 5.5 with code 299 and no agent, as KEP-1693 has it; unprintable characters are dropped.

    When they exceed 4,096 characters together, the first sixteen are sent, each cut to 256.
    """
    plain = ["".join(each for each in text if each.isprintable() and each.isascii()) for text in texts]
    if sum(map(len, plain)) > _MOST_WARNINGS:
        plain = [text[:_CUT_WARNING] for text in plain[: _MOST_WARNINGS // _CUT_WARNING]]
    quoted = [text.replace("\\", "\\\\").replace('"', '\\"') for text in plain]
    return [f'299 - "{text}"' for text in quoted]


def compressed(reply: Reply, accept_encoding: str) -> bytes | None:
    """The gzip form of a large body when the client accepts it. Level 1, because a list is read once and the network is
    fast."""
    body = reply.body
    if len(body) < _GZIP_FROM or "gzip" not in accept_encoding:
        return None
    if reply.pack is not None:
        return reply.pack()
    return gzip.compress(body, compresslevel=1, mtime=0)
