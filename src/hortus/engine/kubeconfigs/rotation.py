"""The time at which a kubeconfig is due: arithmetic over times, no clock of its own.

A kubeconfig is replaced once a share of its life has gone by since it was written. Each identity takes its own fixed
part off that wait (`spread`), so that a fleet made in one minute is not replaced in one minute.
"""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple

import msgspec

CLOCK_SKEW = 300.0
"""Seconds by which a recorded time may lie in the future before it is taken for wrong."""
GRANT_TOLERANCE = 60.0
"""Seconds by which a granted lifetime may fall short of the one asked for and still count as it: issuers stamp whole
seconds by their own clock."""

RESERVE = 0.2
"""Share of a lifetime that no delay may use up."""


class RotationPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one domain. Seconds throughout."""

    lifetime: float = math.inf
    """The lifetime asked of the issuer, which counts when no shorter one was granted; infinite where only grants do."""
    share: float
    """Share of the lifetime after which a kubeconfig is replaced: the rotation period."""
    whole_minutes: bool = False
    """True cuts the period to whole minutes."""
    margin: float = 1.0
    """Share of the period after which the replacement is due."""
    least: float = 0.0
    """Least time between two kubeconfigs, however short a life is granted."""
    spread: float = 0.0
    """Largest share taken off the wait."""

    def period(self, lifetime: float) -> float:
        period = self.share * lifetime
        if not self.whole_minutes or math.isinf(period):
            return period
        # Rounded to a nanosecond first: 0.6 * 1440 must not become 863 minutes by binary fractions.
        whole = math.floor(round(period / 60.0, 9)) * 60.0
        # A period of zero, below a minute, would ask for another kubeconfig without end.
        return whole or period

    def wait(self, granted: float | None, fraction: float) -> float:
        """The age at which the kubeconfig of an identity is replaced; `fraction` is its own, of `fraction_of`.

        `granted` is the lifetime that the issuer gave, None when unknown. A lifetime of nothing is taken for unknown:
        the issuer's clock is wrong, and asking without end mends no clock.
        """
        lifetime = self._counting(granted)
        return max(self.margin * self.period(lifetime) * (1.0 - self.spread * fraction), self.least)

    def next(self, *, issued: float | None, expires: float | None, fraction: float, now: float) -> Due:
        """The time at which a kubeconfig is to be replaced; None stands for a time that is not known.

        One that is due is due again a whole wait later, counted from the write that follows at once.
        """
        granted = None if issued is None or expires is None else expires - issued
        wait = self.wait(granted, fraction)
        if math.isinf(wait):
            return Due(now=True, after=0.0)
        left = 0.0 if issued is None or issued > now + CLOCK_SKEW else wait - (now - issued)
        return Due(now=True, after=wait) if left <= 0 else Due(now=False, after=min(left, wait))

    def latest(self, *, issued: float | None, expires: float | None) -> float:
        """The time to which a replacement may be delayed, with RESERVE of the life left; 0 where it is not known."""
        if issued is None or math.isinf(lifetime := self._counting(None if expires is None else expires - issued)):
            return 0.0
        return issued + (1.0 - RESERVE) * lifetime

    def _counting(self, granted: float | None) -> float:
        """The lifetime that counts."""
        if granted is None or granted <= 0.0:
            return self.lifetime
        if math.isinf(self.lifetime):
            return granted
        tolerance = min(GRANT_TOLERANCE, (1.0 - self.margin) * self.lifetime)
        return granted if granted < self.lifetime - tolerance else self.lifetime


class Due(NamedTuple):
    now: bool
    """True when the kubeconfig is to be replaced at once."""
    after: float
    """Seconds until the next replacement; 0 where no lifetime is known."""


def fraction_of(identity: str) -> float:
    """A number in [0, 1) that is always the same for `identity` and evenly spread over many."""
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=6).digest()) / 2**48
