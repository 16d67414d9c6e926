"""Retries: the attempts that are worth it and the wait before each.

A server's Retry-After is honoured up to `longest_wait`, and never shortens the client's own wait: "0" or a date in the
past changes nothing. A longer request is not waited for here: the caller gets the error with the (capped) time in
`retry_after`, and its queue can wait without blocking a worker.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import msgspec

from hortus.kube.errors import ApiError, ConnectionFailed, KubeError

LONGEST_WISH = 600.0
"""Seconds; the cap for a server that answers `Retry-After: 999999999`."""

_STRETCH = 1.1
"""The largest factor by which a requested wait is extended, so that many clients do not return at one moment."""


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """The number of attempts, and the bounds of the wait between two of them, in seconds."""

    attempts: int = 4
    first_wait: float = 0.1
    longest_wait: float = 10.0

    def delay(self, error: KubeError, attempt: int, *, repeatable: bool) -> float | None:
        """Seconds to wait after failed attempt number `attempt` (from 1), or None to stop."""
        if attempt >= self.attempts:
            return None
        if isinstance(error, ApiError):
            if not (_asked(error) or (repeatable and error.http_code in (500, 502, 503, 504))):
                return None
            if error.retry_after is not None:
                return self._wished(error.retry_after, attempt)
        elif not (repeatable and isinstance(error, ConnectionFailed)) or error.permanent:
            return None
        return self._own(attempt)

    def _wished(self, seconds: float, attempt: int) -> float | None:
        """Seconds to wait where a server asks for `seconds`: at most a tenth more, never less, and never less than the
        own wait.

        None when that is longer than `longest_wait`.
        """
        if seconds > self.longest_wait:
            return None
        return max(self._own(attempt), seconds * random.uniform(1.0, _STRETCH))  # noqa: S311 - spreads a crowd

    def _own(self, attempt: int) -> float:
        wait = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1))
        return wait * random.uniform(0.5, 1.0)  # noqa: S311 - spreads a crowd, hides nothing


def _asked(error: ApiError) -> bool:
    """Reports whether the server did nothing yet and asks for another attempt."""
    return error.http_code == 429 or (error.http_code >= 500 and error.retry_after is not None)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds asked for by a Retry-After header, as a number or a date (RFC 9110, 10.2.3); nonsense is None."""
    text = headers.get("Retry-After")
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return float(min(int(text[:12]), LONGEST_WISH))
    try:
        wish = parsedate_to_datetime(text).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return min(max(wish, 0.0), LONGEST_WISH)
