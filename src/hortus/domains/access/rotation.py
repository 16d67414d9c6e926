"""When a kubeconfig is due: pure arithmetic over times, no clock of its own.

A kubeconfig is replaced once its share (`rotateAtPercent`) of the life that the cluster granted has gone by; each
request takes a fixed share off that wait, so that what was made in one minute is not replaced in one minute.
"""

from __future__ import annotations

import hashlib

SPREAD = 0.1
"""Largest share taken off the wait: 3.6 min of 36 min."""
CLOCK_SKEW = 300.0
"""Seconds by which a recorded time may lie in the future before it is taken for wrong."""
LEAST_WAIT = 30.0
"""Seconds between two kubeconfigs at least, however short a life a cluster grants."""


def share_of(uid: str) -> float:
    """The fixed share in [0, 1) of one request, spread evenly over all."""
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8], "big") / 2**64


def wait_of(lifetime: float, percent: int, share: float, *, spread: float = SPREAD) -> float:
    """Seconds from the writing of a kubeconfig that lives `lifetime` seconds to its replacement."""
    return max(lifetime * percent / 100 * (1.0 - spread * share), LEAST_WAIT)


def due_in(issued: float | None, expires: float | None, now: float, *, percent: int, share: float) -> float:
    """Seconds until the kubeconfig is to be replaced, 0 when it is due; None stands for a time that is not known."""
    if issued is None or expires is None or issued > now + CLOCK_SKEW or expires <= issued:
        return 0.0
    return max(issued + wait_of(expires - issued, percent, share) - now, 0.0)
