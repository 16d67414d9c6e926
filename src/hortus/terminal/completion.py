"""Live names for shell completion: what the clusters hold now, asked within a second, or nothing at all.

The shell waits at each key for this, so whatever goes wrong is silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import typer

from hortus.terminal.connections import Connections
from hortus.terminal.failures import CommandError

PATIENCE = 1.0
"""Seconds."""

Lister = Callable[[Connections, Any], Awaitable[Iterable[str]]]
"""Names by the connections and the parameters given so far."""
Completer = Callable[[typer.Context, str], list[str]]


def completing(names: Lister) -> Completer:
    """What typer wants as `autocompletion`. The program's root context holds as `obj` how its options are read."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        root = context.find_root()
        connections: Connections = root.obj(root.params)
        try:
            found = asyncio.run(asyncio.wait_for(_listed(names, connections, context.params), PATIENCE))
        except (CommandError, OSError, ValueError):
            return []
        return sorted(name for name in found if name.startswith(incomplete))

    return complete


async def _listed(names: Lister, connections: Connections, given: Any) -> set[str]:
    from hortus.kube.errors import KubeError

    try:
        return set(await names(connections, given))
    except KubeError:
        return set()
