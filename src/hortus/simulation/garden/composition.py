"""Puts the simulated garden's controllers together for a process that has a `Manager` on the garden's API."""

from __future__ import annotations

from hortus.engine import Manager, Watch, without_managed_fields
from hortus.kube import Client
from hortus.kube.objects import ObjectKey
from hortus.simulation.faults import Faults
from hortus.simulation.garden.calendar import HibernationSchedules, MaintenanceWindows
from hortus.simulation.garden.care import Care
from hortus.simulation.garden.gardenlet import ShootGardenlet
from hortus.simulation.garden.kinds import CLOUD_PROFILES, SEEDS, SHOOTS, profile_of
from hortus.simulation.garden.machines import Machines
from hortus.simulation.garden.outages import Outages
from hortus.simulation.garden.scheduler import Scheduler
from hortus.simulation.garden.workload import WorkloadClusters
from hortus.simulation.settings import GardenSettings


def add_controllers(
    manager: Manager,
    *,
    garden: Client,
    management: Client,
    server_url: str,
    settings: GardenSettings,
    with_outages: bool = True,
    skips_unread: bool = False,
) -> None:
    """Add all controllers of a garden. `manager` watches the garden; `management` makes logical clusters.

    Without outages the conditions of seeds are somebody else's. With `skips_unread` operations of Shoots end well also
    where the objects of the cluster cannot be read.
    """
    shoots = manager.cache(SHOOTS, transform=without_managed_fields)
    seeds = manager.cache(SEEDS)
    profiles = manager.cache(CLOUD_PROFILES)
    machines = Machines(lambda name: profiles.get(ObjectKey("", name)))
    clock = manager.clock
    scheduler = Scheduler(client=garden, shoots=shoots, seeds=seeds, settings=settings, clock=clock)
    gardenlet = ShootGardenlet(
        client=garden,
        shoots=shoots,
        workload=WorkloadClusters(management, with_nodes=settings.nodes, machines=machines, skips_unread=skips_unread),
        server_url=server_url,
        faults=Faults(settings.faults, random_seed=settings.random_seed),
        settings=settings,
        clock=clock,
        seeds=seeds,
    )
    care = Care(client=garden, shoots=shoots, settings=settings, clock=clock, seeds=seeds)
    hibernation = HibernationSchedules(client=garden, shoots=shoots, clock=clock)
    maintenance = MaintenanceWindows(
        client=garden,
        shoots=shoots,
        profile=lambda shoot: profiles.get(ObjectKey("", profile_of(shoot)[1])),
        clock=clock,
    )
    outages = Outages(client=garden, seeds=seeds, settings=settings, clock=clock)
    of_seed = Watch(seeds, to=gardenlet.shoots_of_seed)
    waiting = Watch(seeds, to=scheduler.unscheduled)
    manager.controller("scheduler", scheduler, sources=[waiting, Watch(shoots)], workers=settings.workers)
    # The caches that gardenlet reads are listed first: its first reconcile of a shoot needs the machines and the seed.
    described = Watch(profiles, to=lambda _: ())
    manager.controller("gardenlet", gardenlet, sources=[described, of_seed, Watch(shoots)], workers=settings.workers)
    manager.controller("shoot-hibernation", hibernation, sources=[Watch(shoots)], workers=settings.workers)
    manager.controller("shoot-maintenance", maintenance, sources=[described, Watch(shoots)], workers=settings.workers)
    manager.controller("care", care, sources=[of_seed, Watch(shoots)], workers=settings.workers)
    if with_outages:
        manager.controller("outages", outages, sources=[Watch(seeds)])
