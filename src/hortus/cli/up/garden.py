"""The simulation of `hortus up`: what works on shoots, and the demo objects to begin with."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any

from hortus.cli.up.cloud import local_cloud
from hortus.cli.up.demo import Demo
from hortus.cli.up.registry import local_registry
from hortus.cli.up.state import StateDirectory
from hortus.cli.up.supervisor import CannotRun, report
from hortus.domains import DemoFleet, all_domains
from hortus.domains.garden.migration.coordinator import add_coordinator
from hortus.engine import Manager
from hortus.kube import Client, ConnectionSettings
from hortus.simulation.capi.composition import add_controllers as add_capi
from hortus.simulation.capi.definitions import install
from hortus.simulation.capi.settings import CapiSettings
from hortus.simulation.flux.composition import add_flux
from hortus.simulation.flux.definitions import install as install_flux
from hortus.simulation.garden.composition import add_controllers
from hortus.simulation.garden.content import BINDING, ensure_content
from hortus.simulation.garden.livemigration.planes import SimulatedPlanes
from hortus.simulation.garden.seed.composition import add_seed, add_spares
from hortus.simulation.garden.seed.gardenlets import GardenletTimes
from hortus.simulation.garden.seed.kinds import SPARE_FOLDER, SPARE_PREFIX
from hortus.simulation.settings import SettingsError, from_config
from hortus.simulation.workloads import SimulatedWorkloads


async def simulate(state: StateDirectory, *, clusters: int, config: dict[str, Any], begun: asyncio.Event) -> None:
    """Run the simulated garden until cancelled; `begun` is set once the API server is there. Raises CannotRun."""
    try:
        settings = from_config(config)
    except SettingsError as error:
        raise CannotRun(str(error)) from None
    connection = ConnectionSettings(connections=32, user_agent="hortus-simulation")
    fleet = DemoFleet([f"demo-{number}" for number in range(1, clusters + 1)], BINDING)
    async with local_registry(state.path), local_cloud(state.path), AsyncExitStack() as clients:
        await begun.wait()
        garden, management, seed = [
            await clients.enter_async_context(Client.from_kubeconfig(path, settings=connection))
            for path in (state.garden_kubeconfig, state.simulation_kubeconfig, state.seed_kubeconfig)
        ]
        await asyncio.gather(install(management), install_flux(management))
        report("prepared")
        await ensure_content(garden, settings.project, time.time(), seed_capacity=settings.seed_capacity)
        manager = Manager(garden, grace=2.0)
        add_controllers(
            manager, garden=garden, management=management, server_url=management.access.server, settings=settings
        )
        add_coordinator(manager, client=garden, planes=SimulatedPlanes(settings, manager.clock))
        capi = Manager(management, grace=2.0)
        add_capi(capi, management=management, settings=CapiSettings(hook_wait=0.1, nodes=settings.nodes))
        add_flux(capi, client=management)
        seeds, served = Manager(seed, grace=2.0), _extensions(state, settings.project)
        spares = {
            file.stem: await clients.enter_async_context(Client.from_kubeconfig(file, settings=connection))
            for file in (
                state.path / SPARE_FOLDER / f"{SPARE_PREFIX}{n + 1}.kubeconfig" for n in range(settings.spare_seeds)
            )
        }
        times = GardenletTimes(lease_grace=1.0)  # `hortus up` waits 3 s for Seeds to stay well
        hosts = await add_spares(
            manager, seeds, client=garden, management=management, spares=spares, served=served, times=times
        )
        await add_seed(manager, seeds, seed=seed, management=management, served=served, hosts=hosts)
        demo = Demo(management, fleet, manager.clock)
        async with manager.running(), capi.running(), seeds.running():
            await demo.begin()
            example = {"example": fleet.names[0]} if fleet.names else {}
            report("ready", f"project {settings.project}, {_amount(clusters)} to begin with", **example)
            workloads = SimulatedWorkloads(management, settings=settings, clock=manager.clock)
            async with asyncio.TaskGroup() as work:
                work.create_task(demo.complete(_report), name="demo objects")
                work.create_task(workloads.run(), name="workloads")


def _extensions(state: StateDirectory, project: str) -> list[str]:
    """The types of extensions that the controllers reconcile on the seed."""
    return [one for domain in all_domains() for one in domain.local_setup(state.path, project).extensions]


def _amount(clusters: int) -> str:
    return "1 cluster" if clusters == 1 else f"{clusters} clusters"


def _report(progress: str, is_last: bool) -> None:
    report("done" if is_last else "progress", f"ready: {progress}", title="demo")
