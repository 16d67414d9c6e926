"""When a kubeconfig is due: pure arithmetic over times, no clock of its own.

The contract (infrastructure-manager, rotation): the rotation period P is `minimal-rotation-time` of the kubeconfig's
lifetime, cut to whole minutes; a kubeconfig is replaced once 0.95 P have gone by since it was written. With the
defaults, 0.6 of 24 h, that is after 13 h 40 min 48 s of the 24 h it lives.

Two things are added. A garden may grant less time than asked for; then the same share of what was granted counts. And
each cluster takes its own fixed share off the wait (`spread`), so that a fleet made in one minute is not replaced in
one minute.
"""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple

import msgspec

RATIO_MODIFIER = 0.95
"""Share of the rotation period after which a kubeconfig is replaced."""
CLOCK_SKEW = 300.0
"""Seconds by which a recorded time may lie in the future before it is taken for wrong."""
GRANT_TOLERANCE = 60.0
"""Seconds by which a granted lifetime may fall short of the one asked for and still count as it: the garden stamps
whole seconds by its own clock."""
DEFAULT_SPREAD = 0.05
"""Largest share taken off the wait: 41 min of 13 h 40 min."""


class RotationPolicy(msgspec.Struct, frozen=True):
    """The operator's settings. Seconds throughout."""

    lifetime: float = 24 * 3600.0
    """What is asked of the garden for each kubeconfig (`kubeconfig-expiration-time`)."""
    minimal_ratio: float = 0.6
    """Share of the lifetime a kubeconfig is kept at most (`minimal-rotation-time`)."""
    spread: float = 0.0

    @property
    def period(self) -> float:
        """P, in whole minutes."""
        return self.period_of(self.lifetime)

    @property
    def threshold(self) -> float:
        """0.95 P: the age at which a kubeconfig is replaced, before the spread is taken off."""
        return RATIO_MODIFIER * self.period

    def period_of(self, lifetime: float) -> float:
        share = self.minimal_ratio * lifetime
        # Rounded to a nanosecond first: 0.6 * 1440 must not become 863 minutes by binary fractions.
        whole = math.floor(round(share / 60.0, 9)) * 60.0
        # Below a minute the contract's P is zero, which would ask for a new kubeconfig without end.
        return whole or share

    def wait(self, granted: float | None, share: float) -> float:
        """The age at which this cluster's kubeconfig is replaced.

        `granted` is the lifetime the garden gave, None when unknown; `share` the cluster's own number in [0, 1).
        A lifetime of nothing is taken for unknown: the garden's clock is wrong, and asking without end mends no clock.
        """
        tolerance = min(GRANT_TOLERANCE, (1.0 - RATIO_MODIFIER) * self.lifetime)
        known = granted is not None and 0.0 < granted < self.lifetime - tolerance
        lifetime = granted if known and granted is not None else self.lifetime
        return RATIO_MODIFIER * self.period_of(lifetime) * (1.0 - self.spread * share)


def share_of(identity: str) -> float:
    """A number in [0, 1) that is always the same for `identity` and evenly spread over many."""
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=6).digest()) / 2**48


class Due(NamedTuple):
    now: bool
    """Whether it is to be replaced at once."""
    after: float
    """Seconds until it is to be looked at again."""


def next_rotation(*, last_sync: float | None, now: float, wait: float) -> Due:
    """When the kubeconfig written at `last_sync` is to be replaced; None means it was never written.

    What is due is looked at again a whole `wait` later, counted from the write that follows at once.
    """
    if last_sync is None or last_sync > now + CLOCK_SKEW:
        return Due(now=True, after=wait)
    left = wait - (now - last_sync)
    if left <= 0:
        return Due(now=True, after=wait)
    return Due(now=False, after=min(left, wait))
