"""The reads of plans, as the live side saw them: in the audit log of its API server."""

from __future__ import annotations

import re
from collections import Counter

import orjson

AGENT = "hortus-plan"
"""Begins the User-Agent of a plan's reads."""
_LISTED = re.compile(r"^(?:/clusters/([^/]+))?(/apis?/[^?]*)")


def verbs_of(log: bytes) -> Counter[str]:
    """The requests of plans by verb."""
    return Counter(event["verb"] for event in _events(log))


def lists_of(log: bytes) -> Counter[tuple[str, str]]:
    """The lists of plans by cluster and path. Further pages of a list are no lists of their own."""
    found: Counter[tuple[str, str]] = Counter()
    for event in _events(log):
        uri = event["requestURI"]
        if "continue=" not in uri and (match := _LISTED.match(uri)) is not None:
            found[match[1] or "root", match[2]] += 1
    return found


def _events(log: bytes) -> list[dict[str, str]]:
    """The events of plans; the last line may be written in part."""
    lines = log[: log.rfind(b"\n") + 1].splitlines()
    found: list[dict[str, str]] = [orjson.loads(line) for line in lines if AGENT.encode() in line]
    return [event for event in found if event.get("userAgent", "").startswith(AGENT)]
