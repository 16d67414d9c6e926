"""The simulation of `hortus up`: what works on shoots, and the fleet to begin with."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from hortus.cli.up.state import StateDirectory
from hortus.cli.up.supervisor import CannotRun, report
from hortus.engine import Manager
from hortus.kube import Client, ConnectionSettings
from hortus.simulation.fleet import ensure_shoots
from hortus.simulation.garden.composition import add_controllers
from hortus.simulation.garden.content import ensure_content
from hortus.simulation.settings import SettingsError, from_config


async def simulate(state: StateDirectory, *, clusters: int, config: dict[str, Any], stop: asyncio.Event) -> None:
    """Run the simulated garden until `stop`. Raises CannotRun."""
    try:
        settings = from_config(config)
    except SettingsError as error:
        raise CannotRun(str(error)) from None
    connection = ConnectionSettings(connections=32, user_agent="hortus-simulation")
    async with (
        Client.from_kubeconfig(state.garden_kubeconfig, settings=connection) as garden,
        Client.from_kubeconfig(state.simulation_kubeconfig, settings=connection) as management,
    ):
        await ensure_content(garden, settings.project, time.time(), seed_capacity=settings.seed_capacity)
        manager = Manager(garden, grace=2.0)
        add_controllers(
            manager, garden=garden, management=management, server_url=management.access.server, settings=settings
        )
        async with manager.running():
            fleet = "1 cluster" if clusters == 1 else f"{clusters} clusters"
            example = {"example": "demo-1"} if clusters else {}
            report("ready", f"project {settings.project}, {fleet} to begin with", **example)
            await ensure_shoots(garden, settings.project, clusters)
            await stop.wait()
