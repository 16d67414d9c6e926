"""The faults there are, as a scenario names them, and which parts of a system each of them can strike.

Faults of requests are laid into the path of the embedded API server (`hortus.simulation.disruption`); they exist where
`hortus up` runs. `kill` and `pause` need its processes on this machine. `clockStep` moves the one clock that is made to
be moved: that of the API server process, by which certificates and tokens expire, objects are stamped and the simulated
garden issues kubeconfigs. The clocks of the controllers and of the simulation's own loops stay as they are.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from hortus.simulation.load.settings import DAY, SECONDS, Bounds, Seconds, Share

Client = Literal["all", "controllers", "simulation", "kubectl", "simulate"]
"""The struck clients: `controllers`, `simulation` (the garden's own loops), `kubectl`, `simulate` (the load)."""
AGENTS: dict[str, str] = {
    "controllers": "hortus",
    "simulation": "hortus-simulation",
    "kubectl": "kubectl",
    "simulate": "hortus-simulate",
}
"""Clients by the name that their User-Agent begins with."""


class _Scheduled(msgspec.Struct, frozen=True, kw_only=True, tag_field="fault"):
    at: Seconds = 0.0
    """When it strikes first, after the begin of the phase."""
    every: Seconds = 0.0
    """Again after that long on average, never at the same distance twice; 0 is once."""


class _Lasting(_Scheduled, frozen=True, kw_only=True):
    lasts: Seconds = 5.0
    """The duration of each time."""


class _OnRequests(_Lasting, frozen=True, kw_only=True):
    clients: tuple[Client, ...] = ("controllers",)
    """The clients whose requests are struck."""
    verbs: tuple[Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"], ...] = ()
    """The verbs of the requests; empty is all."""
    resources: tuple[str, ...] = ()
    """To which resources, by plural; empty is all."""
    share: Share = 1.0
    """The part of these requests that is struck."""


class Latency(_OnRequests, frozen=True, kw_only=True, tag="latency"):
    """Requests wait before they are served."""

    delay: Seconds = 0.2
    """The delay of each request."""
    jitter: Seconds = 0.0
    """Up to that much longer or shorter."""


class InjectedErrors(_OnRequests, frozen=True, kw_only=True, tag="error"):
    """Requests are answered with an error and have no effect."""

    code: Literal[429, 500, 502, 503, 504] = 503
    """The HTTP status."""
    retryAfter: Seconds = 0.0
    """The Retry-After of the answer; 0 leaves it out, but with 429 it is at least 1 s."""


class Partition(_OnRequests, frozen=True, kw_only=True, tag="partition"):
    """Connections are cut and stay cut; open watches end too."""

    hang: bool = False
    """Requests get no answer at all until the partition is over, in place of a broken connection."""


class DroppedWatches(_Scheduled, frozen=True, kw_only=True, tag="dropWatches"):
    """Open watches are cut in the middle of whatever they send."""

    clients: tuple[Client, ...] = ("controllers",)
    """The clients whose watches are cut."""
    resources: tuple[str, ...] = ()
    """The resources of the watches, by plural; empty is all."""


class ClockStep(_Lasting, frozen=True, kw_only=True, tag="clockStep"):
    """The clock of the API server's process is wrong, then right again."""

    by: Annotated[float, SECONDS, Bounds(-7 * DAY, 7 * DAY)]
    """By how much; negative is into the past."""


Process = Literal["controllers", "simulation", "apiserver"]


class Kill(_Scheduled, frozen=True, kw_only=True, tag="kill"):
    """A process ends by SIGKILL; `hortus up` starts it again."""

    process: Process = "controllers"
    """The process to kill."""


class Pause(_Lasting, frozen=True, kw_only=True, tag="pause"):
    """A process stands still by SIGSTOP, then goes on as if nothing had been."""

    process: Process = "controllers"
    """The process to stop."""


Fault = Latency | InjectedErrors | Partition | DroppedWatches | ClockStep | Kill | Pause
OnServer = Latency | InjectedErrors | Partition | DroppedWatches | ClockStep
"""The faults that need the embedded API server; the others need its processes."""


def lasting(fault: Fault) -> float:
    """Seconds a strike lasts; 0 for one that is over at once."""
    return 0.0 if isinstance(fault, DroppedWatches | Kill) else fault.lasts
