"""HTTPS calls to webhooks: bounded in time and size, verified by the CA of the configuration, never to this server.

One aiohttp session per logical cluster; a TLS context per CA bundle. Redirects are not followed and no proxy is used.
Used for admission and for conversion. A webhook given as a service is reached through a `ServiceResolver`, because
there is no cluster network behind this server.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable, Collection
from functools import lru_cache
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import aiohttp
import orjson

from hortus.apiserver.admission.sessions import Sessions
from hortus.apiserver.keyqueue import OWN_WORK
from hortus.kube.dialing import AddressDenied
from hortus.kube.objects import Object
from hortus.kube.tls import client_context

_OURSELVES = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0", "::"})  # noqa: S104 - names to refuse, not to bind
LARGEST_ANSWER = 8 * 1024 * 1024
"""Bytes of a webhook's answer: the largest object as a patch in base64, with room."""
_UNQUOTED = "/:@$&+,;=~"
"""Characters that Go does not escape in a path, besides letters, digits and `-._`."""
_SHOWN_ANSWER = 1024
"""Bytes of a foreign error that are repeated to the client; client-go's limit is 2,048."""
_LONGEST_FAILURE = 2048
"""Characters of the error for an answer that is none; parts of it may be the answer's."""
_LONGEST_REFUSAL = 16 * 1024
"""Characters of a webhook's refusal that are repeated to the client; the answer itself may be 8 MiB of text."""
_LONGEST, _LONGEST_OWN = 30.0, 10.0
"""Seconds that a call may take: on behalf of a client, and for the server's own loops (the default timeout of a
webhook)."""

ServiceResolver = Callable[[str, str, str, int], Awaitable[tuple[str, int]]]
"""(logical cluster, namespace, service, port) -> host and port to connect to. Raises LookupError when there is none."""


def shortened(text: str, most: int = _LONGEST_REFUSAL) -> str:
    """A webhook's refusal, cut to the length that an error may have."""
    return text if len(text) <= most else f"{text[:most]}…"


class CallFailed(Exception):
    """A webhook gave no usable answer; the text, cut if necessary, is the reason that clients get."""

    def __init__(self, text: str) -> None:
        super().__init__(shortened(text, _LONGEST_FAILURE))


class WebhookClient:
    """`own_port` and `own_names` are the port and names of this server itself. The webhooks of `local` and of root may
    be on this machine, those of other logical clusters may not."""

    def __init__(
        self,
        *,
        own_names: frozenset[str],
        own_port: int,
        services: ServiceResolver | None = None,
        local: Collection[str] = (),
    ) -> None:
        self._own_names = own_names | _OURSELVES
        self._own_port = own_port
        self._services = services
        self._sessions = Sessions(local=local)

    async def start(self) -> None:
        """Has no effect: sessions are made at the first call."""

    async def stop(self) -> None:
        await self._sessions.close()

    def forget(self, cluster: str) -> None:
        """Drops the session of a removed logical cluster."""
        self._sessions.forget(cluster)

    async def ask(self, cluster: str, config: Object, question: Object, *, seconds: float) -> bytes:
        """POSTs `question` to the address of a WebhookClientConfig; returns the body of the answer. Raises
        CallFailed."""
        seconds = min(seconds, _LONGEST_OWN) if OWN_WORK.get() else seconds
        timeout = min(max(seconds, 0.001), _LONGEST)
        try:
            body = orjson.dumps(question)
            async with asyncio.timeout(timeout):
                url, connect_to, name = await self._address(cluster, config)
                shown = f"{url}?timeout={_go_seconds(seconds)}" if seconds else url
                session = self._sessions.of(cluster, resolved=bool(connect_to))
                return await _post(session, shown, connect_to, name, _trusting(config), body)
        except TimeoutError:
            where = _shown_url(config)
            raise CallFailed(f'Post "{where}?timeout={_go_seconds(seconds)}": context deadline exceeded') from None
        except ValueError as error:
            raise CallFailed(f'"{_shown_url(config)}" cannot be called: {error}') from None

    async def _address(self, cluster: str, config: Object) -> tuple[str, str, str]:
        """The URL as it is shown, the origin to connect to (empty: that of the URL), and the name to verify."""
        service = config.get("service")
        if not service:
            url = _cleaned_url(config)
            self._refuse_ourselves(url)
            return url, "", ""
        namespace, name, port = service["namespace"], service["name"], int(service.get("port") or 443)
        host = f"{name}.{namespace}.svc"
        if self._services is None:
            raise CallFailed(
                f'service "{name}" in namespace "{namespace}" cannot be reached: there is no cluster network behind '
                "this API server; set clientConfig.url"
            )
        try:
            address, at = await self._services(cluster, namespace, name, port)
        except LookupError as error:
            raise CallFailed(f'Post "https://{host}:{port}{_path(service)}": {error}') from None
        origin = f"https://{f'[{address}]' if ':' in address else address}:{at}{_path(service)}"
        self._refuse_ourselves(origin)
        return f"https://{host}:{port}{_path(service)}", origin, host

    def _refuse_ourselves(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname:
            raise CallFailed(f'"{url}" is not an https URL')
        if (parts.port or 443) == self._own_port and parts.hostname.lower() in self._own_names:
            raise CallFailed(f'"{url}" is this API server itself, which is no webhook')


def _cleaned_url(config: Object) -> str:
    """The URL as Go's client sends it: host and path, without query and fragment."""
    parts = urlsplit(str(config.get("url") or ""))
    return urlunsplit((parts.scheme, parts.netloc, _cleaned(unquote(parts.path)), "", ""))


def _cleaned(path: str) -> str:
    """A path without empty, `.` and `..` segments (Go's path.Join), as a URL holds it."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    return "/" + quote("/".join(kept), safe=_UNQUOTED)


async def _post(
    session: aiohttp.ClientSession, url: str, connect_to: str, name: str, tls: ssl.SSLContext, body: bytes
) -> bytes:
    query = url.partition("?")[2]
    target = f"{connect_to}?{query}" if connect_to and query else connect_to or url
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    try:
        async with session.post(
            target, data=body, ssl=tls, server_hostname=name or None, headers=headers, allow_redirects=False
        ) as response:
            answer = await response.content.read(LARGEST_ANSWER + 1)
            while len(answer) <= LARGEST_ANSWER and not response.content.at_eof():
                answer += await response.content.read(LARGEST_ANSWER + 1 - len(answer))
            status, media_type = response.status, response.headers.get("Content-Type", "text/plain")
    except aiohttp.ClientConnectorCertificateError:
        raise CallFailed(f'Post "{url}": tls: failed to verify certificate') from None
    except aiohttp.ClientConnectorError as error:
        raise CallFailed(f'Post "{url}": {_dial_words(error)}') from None
    except aiohttp.ClientError as error:
        raise CallFailed(f'Post "{url}": {str(error) or type(error).__name__}') from None
    if len(answer) > LARGEST_ANSWER:
        raise CallFailed(f"the answer is longer than {LARGEST_ANSWER} bytes")
    if status != 200:
        raise CallFailed(_refusal(status, answer if media_type.lower().startswith("text/") else b""))
    return answer


def _dial_words(error: aiohttp.ClientConnectorError) -> str:
    """The words of Go's dialer."""
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return f"tls: {error.os_error}"
    if isinstance(error.os_error, AddressDenied):
        where = f"dial tcp {error.host}:{error.port}"
        return f"{where}: webhooks of logical clusters may not be on this machine or its link"
    if isinstance(error.os_error, ConnectionRefusedError):
        return f"dial tcp {error.host}:{error.port}: connect: connection refused"
    return f"dial tcp {error.host}:{error.port}: {error.os_error.strerror or error.os_error}"


def _refusal(status: int, answer: bytes) -> str:
    """The error of Go's client for an answer that is no success; it shows nothing of an answer that is no text."""
    if status == 404:
        return "the server could not find the requested resource"
    text = answer[:_SHOWN_ANSWER].decode(errors="replace").strip()
    if status >= 500:
        return f'an error on the server ("{text or "unknown"}") has prevented the request from succeeding'
    if status == 403:
        return text or "unknown"
    if status in _WORDS:
        return _WORDS[status]
    return f"the server rejected our request for an unknown reason (HTTP status {status})"


_WORDS = {
    401: "the server has asked for the client to provide credentials",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    415: "the server does not accept the request's content type",
    429: "the server has received too many requests and has asked us to try again later",
}


def _trusting(config: Object) -> ssl.SSLContext:
    try:
        return _context(config.get("caBundle") or "")
    except (ssl.SSLError, ValueError) as error:
        raise CallFailed(f"could not get REST client: unable to load root certificates: {error}") from None


@lru_cache(maxsize=256)
def _context(bundle: str) -> ssl.SSLContext:
    """A context that trusts the bundle (PEM in base64), or the system's authorities when there is none.

    As in Go, each certificate of the bundle is trusted for itself: it may be the server's own or an intermediate, and a
    server is known by its subject alternative names alone.
    """
    context = client_context(ca=base64.b64decode(bundle))
    context.hostname_checks_common_name = False
    return context


def _path(service: Object) -> str:
    return _cleaned(str(service.get("path") or ""))


def _shown_url(config: Object) -> str:
    service = config.get("service")
    if not service:
        return _cleaned_url(config)
    return f"https://{service['name']}.{service['namespace']}.svc:{service.get('port') or 443}{_path(service)}"


def _go_seconds(seconds: float) -> str:
    return f"{seconds:g}s"
