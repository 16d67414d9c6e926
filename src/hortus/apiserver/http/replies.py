"""Answers: bytes with a code, written to the socket with as little ceremony as HTTP allows."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from hortus.kube.errors import ApiError

_GZIP_FROM = 128 * 1024
"""Bytes above which a body is compressed for clients that accept it (kube-apiserver's threshold)."""


class Reply:
    """One complete answer. `warnings` become Warning headers."""

    __slots__ = ("body", "code", "content_type", "headers", "warnings")

    def __init__(
        self,
        body: bytes,
        *,
        code: int = 200,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        warnings: Sequence[str] = (),
    ) -> None:
        self.body = body
        self.code = code
        self.content_type = content_type
        self.headers = headers
        self.warnings = warnings


def json_reply(value: Any, *, code: int = 200, content_type: str = "application/json") -> Reply:
    return Reply(orjson.dumps(value), code=code, content_type=content_type)


def status_reply(error: ApiError) -> Reply:
    """The Status body of an error, with Retry-After where the error asks for patience."""
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    return Reply(orjson.dumps(error.status()), code=error.http_code, headers=headers)


def warning_header(text: str) -> str:
    """RFC 7234 section 5.5 with code 299 and no agent, as KEP-1693 has it; unprintable characters are dropped."""
    plain = "".join(character for character in text if character.isprintable() and character.isascii())
    quoted = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted[:4096]}"'


def compressed(body: bytes, accept_encoding: str) -> bytes | None:
    """The gzip form of a large body when the client takes it. Level 1: a list is read once, soon, from near by."""
    if len(body) < _GZIP_FROM or "gzip" not in accept_encoding:
        return None
    return gzip.compress(body, compresslevel=1, mtime=0)
