"""Several replicas that share the objects on one machine: each listens on addresses of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.engine.flags import FlagError
from hortus.engine.health import parse_address

_PORTS_APART = 10
"""Between the listening addresses of two replicas on one machine."""


def addresses(values: Mapping[str, Any], number: int) -> list[str]:
    """Flags with which replica `number`, from 0, listens apart from the others. Raises FlagError."""
    found = []
    for flag in ("metrics-bind-address", "health-probe-bind-address"):
        try:
            address = parse_address(values[flag])
        except ValueError as error:
            raise FlagError(f"invalid value {values[flag]!r} for flag --{flag}: {error}") from None
        if address is not None and address.port:
            address = type(address)(address.host, address.port + _PORTS_APART * number)
        found.append(f"--{flag}={address or 0}")
    return found
