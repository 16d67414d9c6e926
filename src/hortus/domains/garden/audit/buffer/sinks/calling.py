"""HTTP calls of sinks: one session each, TLS, no redirects, and answers mapped to SinkError."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple

import aiohttp

from hortus.domains.garden.audit.buffer.sinks.sink import SinkError
from hortus.engine.redaction import redact_text

_LARGEST_ANSWER = 64 * 1024
_PART = 256 * 1024
"""Bytes written at a time."""
_SHOWN = 200
"""Characters of an answer that are shown in an error."""
_TOO_LARGE = 413
_PERMANENT = (400, 415, 422)
"""Statuses that are about one request; 404 and 405 are about the address, and may end when the sink is mended."""


class HttpAnswer(NamedTuple):
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def header(self, name: str) -> str:
        """The value of a header; empty where there is none."""
        return self.headers.get(name, "")


class SinkCaller:
    """Sends the requests of one sink. The session is made at the first call."""

    def __init__(self, *, timeout: float, context: ssl.SSLContext | None = None, server_name: str = "") -> None:
        """`server_name` is that of the certificate, where it is not the host of the address."""
        self._seconds = timeout
        self._server_name = server_name or None
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, 10.0))
        self._context = context
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(
        self,
        method: str,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        accepted: Callable[[int], bool] = lambda status: 200 <= status < 300,
        largest: int = _LARGEST_ANSWER,
    ) -> HttpAnswer:
        """The answer, if its status is accepted, with its first `largest` bytes. Raises SinkError."""
        if self._session is None:
            # Headers as given: a signature covers them.
            self._session = aiohttp.ClientSession(skip_auto_headers=("Accept-Encoding", "User-Agent"))
        try:
            async with self._session.request(
                method,
                url,
                data=body if len(body) < _PART else _parts(body),
                headers={**headers, "Content-Length": str(len(body))},
                ssl=self._context if self._context is not None else True,
                server_hostname=self._server_name,
                allow_redirects=False,
                timeout=self._timeout,
            ) as answer:
                answered = HttpAnswer(answer.status, answer.headers, await _first(answer.content, largest))
        except aiohttp.InvalidURL:
            raise SinkError(f"{_place(url)} is no URL") from None
        except TimeoutError as error:
            limit = f"no answer within {self._seconds:g} s"
            raise SinkError(f"{_place(url)}: {str(error) or limit}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise SinkError(f"{_place(url)}: {str(error) or type(error).__name__}") from error
        if not accepted(answered.status):
            raise _refusal(url, answered)
        return answered


async def _parts(body: bytes) -> AsyncIterator[bytes]:
    """The body in parts, so that a large one does not hold up the loop."""
    for start in range(0, len(body), _PART):
        yield body[start : start + _PART]


async def _first(content: aiohttp.StreamReader, most: int) -> bytes:
    """The first bytes of an answer, which arrives in parts."""
    found = bytearray()
    while len(found) < most and (part := await content.read(most - len(found))):
        found += part
    return bytes(found)


def _refusal(url: str, answer: HttpAnswer) -> SinkError:
    text = redact_text(answer.body.decode(errors="replace")[:_SHOWN]).strip()
    after = answer.header("Retry-After")
    return SinkError(
        f"{_place(url)}: status {answer.status}: {text}",
        retry_after=float(after) if after.isascii() and after.isdigit() else 0.0,
        too_large=answer.status == _TOO_LARGE,
        refused=answer.status in _PERMANENT,
    )


def _place(url: str) -> str:
    """The address without a query, which may hold a token."""
    return url.partition("?")[0]
