"""The bodies of requests at `PATH`, by which faults strike in the API server of `hortus up` (`disruption`).

Those who send them load no API server.
"""

from __future__ import annotations

import msgspec

PATH = "/simulation/faults"


class DisruptionRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A disturbance of chosen requests, for some time. An empty choice is all."""

    effect: str
    """`latency`, `error` or `partition`."""
    seconds: float
    """The duration of the rule."""
    agents: tuple[str, ...] = ()
    """Clients, by what their User-Agent says up to a slash."""
    verbs: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    share: float = 1.0
    delay: float = 0.0
    jitter: float = 0.0
    code: int = 503
    retry_after: float = 0.0
    hang: bool = False
    seed: int = 0

    def strikes(self, agent: str, verb: str, resource: str) -> bool:
        """True when the rule covers such a request."""
        return (
            (not self.agents or agent in self.agents)
            and (not self.verbs or verb in self.verbs)
            and (not self.resources or resource in self.resources)
        )


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a PUT."""

    rules: tuple[DisruptionRule, ...] = ()
    offset: float = 0.0
    """Seconds by which the clock is wrong."""
    offset_seconds: float = 0.0
    """The size of the step."""


class Drop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The choice of open watches to cut."""

    agents: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
