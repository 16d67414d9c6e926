"""The options and completions that the commands for one cluster share."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import click

from hortus.terminal import DEFAULT_NAMESPACE, CommandGroup, Connections, names_of, timeout, together

CLUSTER = together(
    click.option(
        "--cluster",
        default="",
        metavar="KYMA",
        help="Work on the cluster of this Kyma of a control plane; without it on the kubeconfig's own cluster.",
    ),
    click.option("--namespace", "-n", default=DEFAULT_NAMESPACE, help="With --cluster: namespace of the Kyma."),
)
TIMEOUT = timeout("100s")


async def listed_modules(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    """The modules that the Kyma of the cluster lists."""
    from hortus.domains.modules.using.session import open_session

    async with open_session(connections, given.get("cluster") or "", DEFAULT_NAMESPACE) as session:
        return [module.name for module in (await session.kyma()).spec.modules]


async def offered_modules(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    """The modules that the cluster is offered."""
    from hortus.domains.modules.using.session import open_session

    async with open_session(connections, given.get("cluster") or "", DEFAULT_NAMESPACE) as session:
        return [release.metadata.name for release in await session.releases()]


async def kymas(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    """The Kymas of a control plane."""
    from hortus.domains.modules.types import KYMAS

    return await names_of(KYMAS, connections, given.get("namespace") or DEFAULT_NAMESPACE)


def alias(module: CommandGroup, command: click.Command, name: str) -> None:
    """Add a command under the name that other programs give it, which help does not list."""
    same = copy.copy(command)
    same.hidden = True
    module.add_command(same, name)
