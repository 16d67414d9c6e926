"""A fork of a live fleet: an API server in memory whose objects come from live clusters and whose writes stay in it.

`VirtualLoop` runs everything in the fork on time that passes only when nothing is left to do; `Fork` is the server with
the simulated garden; `LiveClusters` reads from the live ones, and sends nothing but GET. Nothing of it opens a port or
writes a file: a Secret that was read lies in memory, and is gone with the process.
"""

from hortus.simulation.fork.live import LiveCluster, LiveClusters, LiveReadFailed
from hortus.simulation.fork.naming import GARDEN
from hortus.simulation.fork.store import ReadThrough
from hortus.simulation.fork.time import VirtualClock, VirtualLoop
from hortus.simulation.fork.world import Fork, ForkSettings

__all__ = [
    "GARDEN",
    "Fork",
    "ForkSettings",
    "LiveCluster",
    "LiveClusters",
    "LiveReadFailed",
    "ReadThrough",
    "VirtualClock",
    "VirtualLoop",
]
