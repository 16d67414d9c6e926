"""`hortus agent list|why`: the agents of the fleet, one row for each cluster, and the reason for the state of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from hortus.terminal import (
    CommandError,
    CommandGroup,
    Connections,
    Table,
    clean,
    completing,
    print_table,
    run,
)

if TYPE_CHECKING:
    from hortus.domains.agents.fleet.counting import PlacementState
    from hortus.kube import Client
    from hortus.kube.objects import Object, Resource

GROUP: Final = "agent"
ABOUT: Final = """Look after monitoring agents.

docs/agents explains the objects behind them.
"""
_FLEET: Final = "fleet"
_NAMESPACE = click.option("--namespace", "-n", default=_FLEET, help="Namespace of the fleet.")


async def _clusters(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.domains.inventory.types import CLUSTER_PROFILES
    from hortus.kube.objects import key_of

    async with connections.management() as client:
        listed = await client.list(CLUSTER_PROFILES, given.get("namespace") or _FLEET, metadata_only=True)
        return [key_of(one).name for one in listed.items]


def register(app: CommandGroup, connect: Callable[[], Connections]) -> None:
    """Add these commands to the group of agents, which is made where it is not there yet."""
    group = app.commands.get(GROUP)
    if not isinstance(group, CommandGroup):
        group = CommandGroup(GROUP, panel="Fleet", help=ABOUT, no_args_is_help=True)
    app.add_command(group)

    @group.command("list")
    @click.option("--configuration", "-c", default="", metavar="NAME", help="Only agents of this AgentConfiguration.")
    @_NAMESPACE
    def list_(configuration: str, namespace: str) -> None:
        """List the clusters that have agents by AgentConfigurations, those that failed first.

        \b
        hortus agent list
        hortus agent list -c production
        """
        run(_list(connect(), configuration, namespace))

    @group.command()
    @click.argument("cluster", metavar="CLUSTER", shell_complete=completing(_clusters))
    @_NAMESPACE
    def why(cluster: str, namespace: str) -> None:
        """Explain the agents of a cluster: their state, the next step, and the configurations that do not count."""
        run(_why(connect(), cluster, namespace))


async def _list(connections: Connections, configuration: str, namespace: str) -> None:
    from hortus.domains.agents.fleet.explaining import HEADS, rows

    async with connections.management() as client:
        states = await _states(client, namespace)
    chosen = [one for one in states if configuration in ("", one.placement.spec.configuration)]
    print_table(Table(HEADS, list(rows(chosen))))


async def _why(connections: Connections, cluster: str, namespace: str) -> None:
    from hortus.domains.agents.fleet.explaining import explained
    from hortus.domains.agents.types import AGENT_CONFIGURATIONS, AgentConfiguration
    from hortus.domains.inventory.types import CLUSTER_PROFILES, ClusterProfile
    from hortus.engine import read

    async with connections.management() as client:
        states = await _states(client, namespace)
        configurations = [
            read(AgentConfiguration, one) for one in await _listed(client, AGENT_CONFIGURATIONS, namespace)
        ]
        profiles = [read(ClusterProfile, one) for one in await _listed(client, CLUSTER_PROFILES, namespace)]
    labels = next((one.metadata.labels for one in profiles if one.metadata.name == cluster), None)
    if labels is None and all(one.placement.spec.cluster != cluster for one in states):
        known = ", ".join(sorted(one.metadata.name for one in profiles)[:20]) or "none"
        raise CommandError(f"no cluster {cluster} in namespace {namespace}; there are: {known}")
    for line in explained(cluster, labels, configurations, states):
        click.echo(clean(line))


async def _states(client: Client, namespace: str) -> list[PlacementState]:
    from hortus.domains.agents.fleet.changes import AGENT_CHANGE
    from hortus.domains.agents.fleet.counting import PlacementState
    from hortus.domains.agents.types import AGENT_PLACEMENTS, AgentPlacement
    from hortus.engine import read
    from hortus.engine.rollouts import waits_for

    found = await _listed(client, AGENT_PLACEMENTS, namespace)
    return [PlacementState(read(AgentPlacement, one), bool(waits_for(one, AGENT_CHANGE))) for one in found]


async def _listed(client: Client, resource: Resource, namespace: str) -> list[Object]:
    from hortus.kube.errors import NotServed

    try:
        return (await client.list(resource, namespace)).items
    except NotServed:
        raise CommandError(f"{client.host} serves no {resource.kind}: install Hortus there, or its CRD") from None
