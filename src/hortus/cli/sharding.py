"""Several replicas that share the objects: the flags, and what of them each part of the program needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.engine import LeaseTimes, Shards, parse_address
from hortus.engine.flags import Flag, FlagError
from hortus.kube import Client
from hortus.kube.clock import Clock

GROUP = "hortus"
"""Of all replicas that share one namespace for their leases."""

FLAGS: tuple[Flag, ...] = (
    Flag(
        "sharding",
        "bool",
        False,
        "Share the objects with all replicas that run with this flag, instead of electing one that does all.",
    ),
    Flag("replicas", "int", 1, "Processes to start on this machine; more than one share the objects (--sharding)."),
    Flag(
        "shard-lease-duration",
        "duration",
        15.0,
        "With --sharding: time after which the objects of a replica that was killed are taken over.",
    ),
)

_PORTS_APART = 10
"""Between the listening addresses of two replicas on one machine."""
_SHORTEST = 3.0
"""Seconds. Leases count whole seconds, and their last third is what requests on the way may take."""


def shards(client: Client, values: Mapping[str, Any], *, namespace: str, clock: Clock) -> Shards:
    """The membership that `values` ask for. Raises FlagError."""
    duration = values["shard-lease-duration"]
    if duration < _SHORTEST:
        raise FlagError(f"invalid value {duration:g}s for flag --shard-lease-duration: must be {_SHORTEST:g}s or more")
    # The proportions of client-go's leader election: 15, 10 and 2 seconds.
    times = LeaseTimes(duration=duration, renew_deadline=duration * 2 / 3, retry_period=duration * 2 / 15)
    return Shards(client, group=GROUP, namespace=namespace, clock=clock, times=times)


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
