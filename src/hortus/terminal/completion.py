"""Live names for shell completion, read from the clusters within a second.

The shell waits for this at each key, so every failure ends in no suggestion.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from hortus.terminal.connections import Connections
from hortus.terminal.failures import CommandError

if TYPE_CHECKING:
    from hortus.kube.objects import Resource

PATIENCE = 1.0
"""Seconds."""

Lister = Callable[[Connections, Any], Awaitable[Iterable[str]]]
"""Returns names by the connections and the parameters given so far."""
Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def completing(names: Lister) -> Completer:
    """The `shell_complete` of an argument or option. The root context's `obj` reads connection options."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        import asyncio

        # Loaded before the patience begins, which is for clusters.
        import hortus.kube.client  # noqa: F401

        root = context.find_root()
        connections: Connections = dataclasses.replace(root.obj(root.params), note=lambda text: None)
        try:
            found = asyncio.run(asyncio.wait_for(_listed(names, connections, context.params), PATIENCE))
        except (CommandError, OSError, ValueError):
            return []
        return sorted(name for name in found if name.startswith(incomplete))

    return complete


class NamespaceName(click.ParamType[str]):
    """A namespace of the management cluster."""

    name = "namespace"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in completing(_namespaces)(ctx, param, incomplete)]


class ContextName(click.ParamType[str]):
    """A context of the kubeconfig files."""

    name = "context"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from hortus.kube.kubeconfig import KubeconfigError

        root = ctx.find_root()
        connections: Connections = dataclasses.replace(root.obj(root.params), note=lambda text: None)
        try:
            found = connections.contexts
        except (CommandError, KubeconfigError, OSError):
            return []
        return [CompletionItem(name) for name in sorted(found) if name.startswith(incomplete)]


async def _namespaces(connections: Connections, given: Any) -> Iterable[str]:
    from hortus.kube.objects import Resource

    return await names_of(Resource("", "v1", "namespaces", "Namespace", namespaced=False), connections, "")


async def names_of(resource: Resource, connections: Connections, namespace: str) -> list[str]:
    """The names of the objects of a kind in `namespace` of the management cluster. Raises KubeError."""
    from hortus.kube.objects import key_of

    async with connections.management() as client:
        return [key_of(found).name for found in (await client.list(resource, namespace, metadata_only=True)).items]


async def _listed(names: Lister, connections: Connections, given: Any) -> set[str]:
    from hortus.kube.errors import KubeError

    try:
        return set(await names(connections, given))
    except KubeError:
        return set()
