"""The controllers of rollouts as a process, to be killed: `python -m tests.domains.rollouts.process KUBECONFIG FLEET`.

It imports nothing of the tests: their API server takes as long to load as all that the controllers need.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvloop

from hortus.domains.rollouts.composition import add_controllers
from hortus.engine import Manager
from hortus.engine.deputies import Deputies
from hortus.kube import Client


async def main(kubeconfig: Path, fleet: str) -> None:
    """Serves until the process is ended; prints `started` once."""
    async with Client.from_kubeconfig(kubeconfig) as client:
        manager = Manager(client, grace=0.0)
        deputies = Deputies(client, "*", clock=manager.clock)
        add_controllers(manager, client, fleet_namespace=fleet, watched="", deputies=deputies)
        async with manager.running():
            print("started", flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1]), sys.argv[2]))
