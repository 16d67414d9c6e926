"""The simulated part of a plan's world: what stands for Gardener, Cluster API and the workloads of clusters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import Any, Final

from hortus.apiserver.store.backend import Commit
from hortus.cli.plan.stacks import stack_world
from hortus.engine import Manager
from hortus.kube import ConnectionSettings
from hortus.simulation.fork import GARDEN, Fork
from hortus.simulation.fork.counting import SIMULATION
from hortus.simulation.garden.composition import add_controllers
from hortus.simulation.plan.activity import Activity
from hortus.simulation.settings import GardenSettings
from hortus.simulation.workloads import MODULE_GROUP, SimulatedWorkloads

DURATIONS: Final = GardenSettings(
    schedule_delay=5.0,
    create_duration=600.0,
    reconcile_duration=300.0,
    delete_duration=600.0,
    node_duration=180.0,
    progress_period=60.0,
    care_period=30.0,
    sync_period=1e9,
    retry_period=60.0,
    workload_duration=30.0,
    workload_clusters=1 << 30,
    require_bindings=False,
)
"""Durations of operations: those of Gardener on the usual providers, by order of magnitude."""
_CONNECTION: Final = ConnectionSettings(connections=512, timeout=600.0, user_agent=SIMULATION)
_WORKLOADS: Final = ("apps/deployments", "apps/daemonsets", "apps/statefulsets", "core/nodes")
"""Kinds whose writes the workloads of a cluster follow: a node that comes or goes has agents that do."""


@asynccontextmanager
async def simulated(
    fork: Fork, activity: Activity, *, server_url: str, random: Random, values: Mapping[str, Any]
) -> AsyncIterator[None]:
    """Garden and Cluster API at work, and the workloads of each cluster from its first write to one on.

    `values` are the flags of the controllers.
    """
    settings, clock = fork.settings.simulation, fork.clock
    async with AsyncExitStack() as stack:
        management = await stack.enter_async_context(fork.client("root", settings=_CONNECTION))
        garden = await stack.enter_async_context(fork.client(GARDEN, settings=_CONNECTION))
        manager = Manager(garden, clock=clock, grace=0.0, random=random)
        if fork.settings.garden is not None:
            add_controllers(
                manager,
                garden=garden,
                management=management,
                server_url=server_url,
                settings=settings,
                with_outages=False,
                skips_unread=True,
            )
        workloads = SimulatedWorkloads(management, settings=settings, clock=clock)

        def begin(change: Commit) -> None:
            cluster, _, suffix = change.bucket.partition("/")
            if cluster not in ("root", GARDEN) and (suffix in _WORKLOADS or suffix.startswith(f"{MODULE_GROUP}/")):
                workloads.begin(cluster)

        activity.on_write.append(begin)
        await stack.enter_async_context(manager.running())
        await stack.enter_async_context(stack_world(fork, management, values))
        idle = asyncio.create_task(workloads.rest(), name="workloads")
        try:
            yield
        finally:
            idle.cancel()
            await asyncio.gather(idle, return_exceptions=True)
