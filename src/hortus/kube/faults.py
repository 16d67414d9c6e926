"""Foreign exceptions, mapped where they enter: those of aiohttp, ssl and the system become `TransportError`s.

Only parts known to be harmless reach a message: error names, the host, an HTTP status. Never a URL, which may hold the
password of a proxy, and never a body.
"""

from __future__ import annotations

import os
import ssl

import aiohttp

from hortus.kube.dialing import AddressDenied
from hortus.kube.errors import BadAddress, ConnectionFailed, Garbage, RequestTimedOut, TlsFailed, TransportError

FOREIGN = (aiohttp.ClientError, OSError, RuntimeError)
"""The exceptions of calls through aiohttp. A TimeoutError is an OSError; RuntimeErrors are those of a session closed in
the middle, and of uvloop where asyncio has OSErrors."""


def mapped(error: Exception, host: str, timeout: float) -> TransportError:
    """The `TransportError` for one of `FOREIGN`."""
    if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)):
        return _tls(error, host)
    if isinstance(error, TimeoutError):
        advice = "the API server is slow or the network drops packets"
        return RequestTimedOut(host, f"no whole answer within {timeout:g} s", advice)
    if isinstance(error, aiohttp.ClientConnectorError):
        return _unreachable(error, host)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return ConnectionFailed(host, f"the proxy answered {error.status}", "check proxy-url and what the proxy allows")
    if isinstance(error, aiohttp.ClientPayloadError):
        return ConnectionFailed(host, "the connection broke in the middle of the answer")
    if isinstance(error, aiohttp.InvalidURL):
        return BadAddress(host, "the server URL names no usable host", "write a DNS name or a whole IP address")
    if isinstance(error, aiohttp.ClientResponseError):
        advice = "check that the server URL is that of a Kubernetes API server"
        return Garbage(host, "the answer is not HTTP", advice)
    reason = _system_reason(error) if isinstance(error, OSError) else "closed by the server"
    return ConnectionFailed(host, f"the connection broke before the answer: {reason}")


def _tls(error: Exception, host: str) -> TlsFailed:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        found = error.certificate_error
        reason = getattr(found, "verify_message", "") or type(found).__name__
        advice = "check the CA and the host name in the kubeconfig"
        return TlsFailed(host, f"its certificate is not accepted: {reason}", advice)
    found = getattr(error, "os_error", error)
    reason = getattr(found, "reason", None) or "no agreement"
    return TlsFailed(host, f"TLS failed: {reason}", "check the client certificate, and that this port speaks TLS")


def _unreachable(error: aiohttp.ClientConnectorError, host: str) -> ConnectionFailed:
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return ConnectionFailed(host, "the proxy cannot be reached", "check proxy-url")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return ConnectionFailed(host, "its name cannot be resolved", "check the server URL and the DNS")
    if isinstance(error.os_error, AddressDenied):
        advice = "an untrusted kubeconfig may not lead to this machine or its metadata service"
        return BadAddress(host, f"its address {error.os_error.address} is not allowed", advice)
    advice = "check that the API server runs and can be reached from here"
    return ConnectionFailed(host, f"cannot connect: {_system_reason(error)}", advice)


def _system_reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else "reset by peer"
