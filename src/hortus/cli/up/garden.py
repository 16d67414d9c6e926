"""The simulation of `hortus up`: what works on shoots, and the demo objects to begin with."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from hortus.cli.up.cloud import local_cloud
from hortus.cli.up.demo import Demo
from hortus.cli.up.registry import local_registry
from hortus.cli.up.state import StateDirectory
from hortus.cli.up.supervisor import CannotRun, report
from hortus.domains import DemoFleet
from hortus.engine import Manager
from hortus.kube import Client, ConnectionSettings
from hortus.simulation.capi.composition import add_controllers as add_capi
from hortus.simulation.capi.definitions import install
from hortus.simulation.capi.settings import CapiSettings
from hortus.simulation.garden.composition import add_controllers
from hortus.simulation.garden.content import BINDING, ensure_content
from hortus.simulation.settings import SettingsError, from_config
from hortus.simulation.workloads import SimulatedWorkloads


async def simulate(state: StateDirectory, *, clusters: int, config: dict[str, Any]) -> None:
    """Run the simulated garden until cancelled. Raises CannotRun."""
    try:
        settings = from_config(config)
    except SettingsError as error:
        raise CannotRun(str(error)) from None
    connection = ConnectionSettings(connections=32, user_agent="hortus-simulation")
    fleet = DemoFleet([f"demo-{number}" for number in range(1, clusters + 1)], BINDING)
    async with (
        Client.from_kubeconfig(state.garden_kubeconfig, settings=connection) as garden,
        Client.from_kubeconfig(state.simulation_kubeconfig, settings=connection) as management,
        local_registry(state.path),
        local_cloud(state.path),
    ):
        await install(management)
        report("prepared")
        await ensure_content(garden, settings.project, time.time(), seed_capacity=settings.seed_capacity)
        manager = Manager(garden, grace=2.0)
        add_controllers(
            manager, garden=garden, management=management, server_url=management.access.server, settings=settings
        )
        capi = Manager(management, grace=2.0)
        add_capi(capi, management=management, settings=CapiSettings(hook_wait=0.1))
        demo = Demo(management, fleet, manager.clock)
        async with manager.running(), capi.running():
            await demo.begin()
            example = {"example": fleet.names[0]} if fleet.names else {}
            report("ready", f"project {settings.project}, {_amount(clusters)} to begin with", **example)
            workloads = SimulatedWorkloads(management, settings=settings, clock=manager.clock)
            async with asyncio.TaskGroup() as work:
                work.create_task(demo.complete(_report), name="demo objects")
                work.create_task(workloads.run(), name="workloads")


def _amount(clusters: int) -> str:
    return "1 cluster" if clusters == 1 else f"{clusters} clusters"


def _report(progress: str, is_last: bool) -> None:
    report("done" if is_last else "progress", f"ready: {progress}", title="demo")
