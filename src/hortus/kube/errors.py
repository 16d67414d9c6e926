"""The errors of the Kubernetes API, one class per `reason`, the same on both sides of the wire.

A server raises them and answers with `status()`; a client builds them from a Status body with `from_status`.
`TransportError`s are for a client that got no proper answer at all. Both are `KubeError`s. Reasons and codes: API
conventions, "Response Status Kind" (kubernetes/community, contributors/devel/sig-architecture/api-conventions.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class KubeError(Exception):
    """The base of all errors between this process and an API server."""


class ApiError(KubeError):
    """An error answer of an API server. `code` is the HTTP status, `reason` the machine-readable cause."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
        code: int | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = dict(details or {})
        self._shows_details = details is not None
        self.retry_after = retry_after
        """Seconds after which the server asks for another attempt, or None."""
        self.metadata: dict[str, Any] = {}
        """ListMeta of the Status: after an expired list, the token that continues where it stopped."""
        self.http_code = code if code is not None else self.code
        self.status_reason = reason if reason is not None else self.reason

    def say(self, message: str) -> None:
        """Replaces the message."""
        self.message, self.args = message, (message,)

    def status(self) -> dict[str, Any]:
        """The metav1.Status body of this error."""
        details = dict(self.details)
        if self.retry_after is not None:
            details["retryAfterSeconds"] = max(1, round(self.retry_after))
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": dict(self.metadata),
            "status": "Failure",
            "message": self.message,
        }
        if self.status_reason:
            body["reason"] = self.status_reason
        if details or self._shows_details:
            body["details"] = details
        body["code"] = self.http_code
        return body


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    code, reason = 404, "NotFound"


class NotServed(NotFound):
    """A 404 that names no object: the path is not served here, or not now. It says nothing about any object.

    Code that takes NotFound for "gone, so nothing is left to do" has to distinguish the two.
    """


class MethodNotAllowed(ApiError):
    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class AlreadyExists(ApiError):
    code, reason = 409, "AlreadyExists"


class Conflict(ApiError):
    code, reason = 409, "Conflict"


class Gone(ApiError):
    """The resource version asked for is no longer kept (reason `Gone`)."""

    code, reason = 410, "Gone"


class Expired(Gone):
    """A resource version or continue token that has been compacted away (reason `Expired`)."""

    code, reason = 410, "Expired"


class RequestEntityTooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    """The object breaks its schema or rules; `details.causes` name each field."""

    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    code, reason = 429, "TooManyRequests"


class InternalError(ApiError):
    code, reason = 500, "InternalError"


class ServiceUnavailable(ApiError):
    code, reason = 503, "ServiceUnavailable"


class Timeout(ApiError):
    """The request could not be completed within the given time (code 504, reason `Timeout`)."""

    code, reason = 504, "Timeout"


class ServerTimeout(ApiError):
    """The server could not answer in time and asks to be tried again (code 500, reason `ServerTimeout`)."""

    code, reason = 500, "ServerTimeout"


_CLASSES: Sequence[type[ApiError]] = (
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    AlreadyExists,
    Conflict,
    Gone,
    Expired,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    Invalid,
    TooManyRequests,
    InternalError,
    ServiceUnavailable,
    Timeout,
    ServerTimeout,
)
_BY_REASON = {cls.reason: cls for cls in _CLASSES}
_BY_CODE = {cls.code: cls for cls in reversed(_CLASSES)} | {409: Conflict, 410: Gone, 500: InternalError}


def from_status(code: int, body: Mapping[str, Any] | None, *, retry_after: float | None = None) -> ApiError:
    """The error for an answer with HTTP `code` and, where the server sent one, a Status `body`."""
    status = body if isinstance(body, Mapping) and body.get("kind") == "Status" else {}
    reason = str(status.get("reason") or "")
    cls = _BY_REASON.get(reason) or _BY_CODE.get(code) or (InternalError if code >= 500 else ApiError)
    details = status.get("details")
    details = dict(details) if isinstance(details, Mapping) else {}
    if cls is NotFound and not details.get("name"):
        cls = NotServed
    seconds = details.get("retryAfterSeconds")
    if retry_after is None and isinstance(seconds, int) and seconds > 0:
        retry_after = float(seconds)
    message = str(status.get("message") or f"the server answered with HTTP status {code}")
    return cls(message, details=details or None, retry_after=retry_after, code=code, reason=reason or None)


class TransportError(KubeError):
    """No proper answer came from `host`; the server may or may not have acted on the request.

    The message says what happened and what to do, and never holds a credential.
    """

    retry_after: float | None = None
    """Seconds after which another attempt makes sense, where that is known."""
    permanent: ClassVar[bool] = False
    """True if only a change of the configuration or the server can help."""

    def __init__(self, host: str, problem: str, advice: str = "") -> None:
        super().__init__(f"{host}: {problem}; {advice}" if advice else f"{host}: {problem}")
        self.host = host
        self.problem = problem
        self.advice = advice


class ConnectionFailed(TransportError):
    """The server could not be reached, or the connection broke before the answer was whole."""


class TlsFailed(ConnectionFailed):
    """The server was reached, but one side did not accept the other's certificate."""

    permanent = True


class BadAddress(ConnectionFailed):
    """The server's address is malformed, or one that this client must not connect to."""

    permanent = True


class RequestTimedOut(TransportError):
    """No whole answer within the time given to the request."""


class Garbage(TransportError):
    """The answer is not one of a Kubernetes API server: HTML, half a JSON, another object, a redirect."""


class ResponseTooLarge(TransportError):
    """The answer is longer than this client accepts."""


__all__ = [
    "ApiError",
    "BadAddress",
    "ConnectionFailed",
    "Garbage",
    "KubeError",
    "RequestTimedOut",
    "ResponseTooLarge",
    "TlsFailed",
    "TransportError",
    "from_status",
    *[cls.__name__ for cls in _CLASSES],
]
