"""`hortus get`: objects of any kind, of the management cluster or the garden, in kubectl's formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from hortus.domains import all_domains
from hortus.terminal import CommandGroup, Connections, OutputFormat, completing, output_formats, run


def register(app: CommandGroup, connect: Callable[[], Connections]) -> None:
    @app.command(panel="Clusters")
    @click.argument(
        "kind", help="clusters, shoots, secrets, ... as kubectl names them.", shell_complete=completing(_kinds)
    )
    @click.argument(
        "name", default="", help="Name of one object. All objects by default.", shell_complete=completing(_names)
    )
    @click.option(
        "--namespace",
        "-n",
        default="",
        help="Only this namespace.",
        show_default="all; in the garden that of Hortus' project",
    )
    @click.option("--all-namespaces", "-A", is_flag=True, help="All namespaces, also in the garden.")
    @click.option("--selector", "-l", default="", help="Label selector.")
    @output_formats("table", "wide", "json", "yaml", "name", "jsonpath=TEMPLATE", "custom-columns=HEAD:PATH,...")
    @click.option("--watch", "-w", is_flag=True, help="Watch for changes until Ctrl-C.")
    @click.option("--no-headers", is_flag=True, help="Omit the header of a table.")
    def get(
        kind: str,
        name: str,
        namespace: str,
        all_namespaces: bool,
        selector: str,
        output: OutputFormat,
        watch: bool,
        no_headers: bool,
    ) -> None:
        """Show objects of any kind, such as clusters and shoots.

        Kinds of the management cluster come first, then those of the garden. Formats: table, wide, json, yaml, name,
        jsonpath=TEMPLATE, custom-columns=HEAD:PATH,...
        """
        if name and (all_namespaces or selector):
            raise click.BadParameter("a name goes with neither --all-namespaces nor --selector")
        from hortus.cli.objects import ObjectQuery

        place = namespace if namespace or all_namespaces else None
        query = ObjectQuery(_aliases().get(kind, kind), name, place, selector, output, not no_headers)
        run(query.serve(connect(), watch=watch))


def _aliases() -> dict[str, str]:
    return {alias: plural for domain in all_domains() for alias, plural in domain.aliases().items()}


async def _kinds(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.cli.objects import kinds

    return {*_aliases(), *await kinds(connections)}


async def _names(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.cli.objects import serving

    kind = given.get("kind") or ""
    async with serving(connections, _aliases().get(kind, kind)) as served:
        place = given.get("namespace") or ("" if given.get("all_namespaces") else served.namespace)
        listed = await served.client.list(served.resource, place, metadata_only=True)
        return [obj["metadata"]["name"] for obj in listed.items]
