"""What servers tell about how often they may be asked.

Docker Hub sends `RateLimit-Limit: 100;w=21600`, GitHub `X-RateLimit-Remaining` and a `X-RateLimit-Reset` in epoch
seconds. Values are input: nonsense is as good as absent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from hortus.kube.retries import retry_after

_LEADING_NUMBER = re.compile(r"\s*([0-9]{1,12})")
_LONGEST_WISH = 24 * 3600.0
"""Seconds; a reset later than this is not believed."""


class RateLimit(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one allowance as of its last answer."""

    limit: int
    remaining: int
    resets_in: float | None = None
    """Seconds until the allowance is full again, where the server says so."""


def rate_limit(headers: Mapping[str, str], now: float) -> RateLimit | None:
    """The allowance that an answer tells of, if any."""
    for start in ("X-RateLimit-", "RateLimit-"):
        limit, remaining = _number(headers.get(start + "Limit")), _number(headers.get(start + "Remaining"))
        if limit is not None and remaining is not None:
            return RateLimit(limit=limit, remaining=remaining, resets_in=_reset(headers.get(start + "Reset"), now))
    return None


def wish(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait before the next try: Retry-After, or the reset of an allowance that is used up."""
    asked = retry_after(headers, now)
    if asked is not None:
        return asked
    found = rate_limit(headers, now)
    return found.resets_in if found is not None and found.remaining == 0 else None


def _number(text: str | None) -> int | None:
    found = _LEADING_NUMBER.match(text or "")
    return int(found[1]) if found else None


def _reset(text: str | None, now: float) -> float | None:
    """GitHub gives the moment, the draft standard the seconds; no allowance lasts half a century."""
    value = _number(text)
    if value is None:
        return None
    seconds = value - now if value > 1_500_000_000 else float(value)
    return min(max(seconds, 0.0), _LONGEST_WISH)
