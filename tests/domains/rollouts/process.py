"""The controllers of rollouts as a process, to be killed: `python -m tests.domains.rollouts.process KUBECONFIG`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvloop
from tests.domains.rollouts.world import FLEET

from hortus.domains.rollouts.composition import add_controllers
from hortus.engine import Manager
from hortus.kube import Client


async def main(kubeconfig: Path) -> None:
    """Serves until the process is ended; prints `started` once."""
    async with Client.from_kubeconfig(kubeconfig) as client:
        manager = Manager(client, grace=0.0)
        add_controllers(manager, client, fleet_namespace=FLEET, watched="")
        async with manager.running():
            print("started", flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1])))
