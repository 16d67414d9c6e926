"""The durations of the simulated Flux."""

from __future__ import annotations

import msgspec


class FluxSimulationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds."""

    retry: float = 2.0
    """Until what failed is tried again; Flux backs off, or follows the object's `retryInterval`."""
    workers: int = 4
