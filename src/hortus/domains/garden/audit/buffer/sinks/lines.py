"""The fields of an event that sinks need: the time of its stage."""

from __future__ import annotations

from datetime import datetime

import msgspec


class _Times(msgspec.Struct, rename="camel"):
    stage_timestamp: datetime | None = None


_decoder = msgspec.json.Decoder(_Times)


def seconds_of(line: bytes, otherwise: float) -> float:
    """The event's time in seconds since the Unix epoch; `otherwise` where it has none that can be read."""
    try:
        found = _decoder.decode(line).stage_timestamp
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return otherwise
    return found.timestamp() if found is not None and found.tzinfo is not None else otherwise
