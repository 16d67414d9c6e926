"""Puts the simulated garden's controllers together for a process that has a `Manager` on the garden's API."""

from __future__ import annotations

from hortus.engine import Manager, Watch, without_managed_fields
from hortus.kube import Client
from hortus.simulation.faults import Faults
from hortus.simulation.fleet import FleetController, of_fleet
from hortus.simulation.garden.care import Care
from hortus.simulation.garden.gardenlet import Gardenlet
from hortus.simulation.garden.kinds import SEEDS, SHOOTS
from hortus.simulation.garden.scheduler import Scheduler
from hortus.simulation.garden.workload import WorkloadClusters
from hortus.simulation.settings import GardenSettings


def add_controllers(
    manager: Manager, *, garden: Client, management: Client, server_url: str, settings: GardenSettings
) -> None:
    """Add scheduler, gardenlet, care, fleet. `manager` watches the garden; `management` makes logical clusters."""
    shoots = manager.cache(SHOOTS, transform=without_managed_fields)
    seeds = manager.cache(SEEDS)
    clock = manager.clock
    scheduler = Scheduler(client=garden, shoots=shoots, seeds=seeds, settings=settings, clock=clock)
    gardenlet = Gardenlet(
        client=garden,
        shoots=shoots,
        workload=WorkloadClusters(management, with_nodes=settings.nodes),
        server_url=server_url,
        faults=Faults(settings.faults),
        settings=settings,
        clock=clock,
    )
    care = Care(client=garden, shoots=shoots, settings=settings, clock=clock)
    fleet = FleetController(client=management, shoots=shoots)
    manager.controller("scheduler", scheduler, sources=[Watch(shoots)], workers=settings.workers)
    manager.controller("gardenlet", gardenlet, sources=[Watch(shoots)], workers=settings.workers)
    manager.controller("care", care, sources=[Watch(shoots)], workers=settings.workers)
    manager.controller("fleet", fleet, sources=[Watch(shoots, when=lambda change: of_fleet(change.current))], workers=8)
