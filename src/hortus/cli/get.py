"""`hortus get`: objects of any kind, of the management cluster or the garden, in kubectl's formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from hortus.domains import all_domains
from hortus.terminal import CommandGroup, Connections, OutputFormat, completing, output_formats, run, together

if TYPE_CHECKING:
    from hortus.cli.objects import Asked


def _aliases() -> dict[str, str]:
    return {alias: plural for domain in all_domains() for alias, plural in domain.aliases().items()}


async def _words(connections: Connections, given: Mapping[str, Any]) -> Iterable[str]:
    from hortus.cli.objects import kinds, serving

    words = given.get("words") or ()
    if not words:
        return {*_aliases(), *await kinds(connections)}
    async with serving(connections, _aliases().get(words[0], words[0])) as served:
        place = given.get("namespace") or ("" if given.get("all_namespaces") else served.namespace)
        listed = await served.client.list(served.resource, place, metadata_only=True)
        return {obj["metadata"]["name"] for obj in listed.items} - set(words[1:])


_WORDS = click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="KIND [NAME]...",
    help="clusters, shoots, secrets, ... as kubectl names them, and names; or KIND/NAME, several; or KIND,KIND.",
    shell_complete=completing(_words),
)
_SELECTION = together(
    click.option(
        "--namespace",
        "-n",
        default="",
        help="Only this namespace.",
        show_default="all; in the garden that of Hortus' project",
    ),
    click.option("--all-namespaces", "-A", is_flag=True, help="All namespaces, also in the garden."),
    click.option("--selector", "-l", default="", metavar="LABELS", help="Label selector."),
)


def register(app: CommandGroup, connect: Callable[[], Connections]) -> None:
    @app.command(panel="Clusters")
    @_WORDS
    @_SELECTION
    @output_formats("table", "wide", "json", "yaml", "name", "jsonpath=TEMPLATE", "custom-columns=HEAD:PATH,...")
    @click.option("--watch", "-w", is_flag=True, help="Watch for changes until Ctrl-C.")
    @click.option("--no-headers", is_flag=True, help="Omit the header of a table.")
    def get(
        words: tuple[str, ...],
        namespace: str,
        all_namespaces: bool,
        selector: str,
        output: OutputFormat,
        watch: bool,
        no_headers: bool,
    ) -> None:
        """Show objects of any kind, such as clusters and shoots.

        Kinds of the management cluster come first, then those of the garden. `-o wide` of clusters and runtimes shows
        expiry, version and region too.

        \b
        hortus get clusters
        hortus get runtimes,clusters -o wide
        hortus get runtime/blue shoot/blue -o yaml
        """
        asked = _asked(words)
        if any(one.names for one in asked) and (all_namespaces or selector):
            raise click.BadParameter("a name goes with neither --all-namespaces nor --selector")
        if watch and len(asked) > 1:
            raise click.BadParameter("--watch goes with one kind")
        from hortus.cli.objects import ObjectQuery

        place = namespace if namespace or all_namespaces else None
        query = ObjectQuery(asked, place, selector, output, heads=not no_headers)
        run(query.serve(connect(), watch=watch))


def _asked(words: Sequence[str]) -> list[Asked]:
    """The kinds and names of a line in kubectl's forms. Raises click.BadParameter."""
    from hortus.cli.objects import Asked

    aliases = _aliases()
    parts = [part for word in words for part in word.split(",") if part]
    if any("/" in part for part in parts):
        names: dict[str, list[str]] = {}
        for part in parts:
            kind, slash, name = part.partition("/")
            if not (kind and slash and name):
                raise click.BadParameter(f"{part!r} stands among KIND/NAME: write all of them so")
            names.setdefault(aliases.get(kind, kind), []).append(name)
        return [Asked(kind, tuple(dict.fromkeys(found))) for kind, found in names.items()]
    kinds = dict.fromkeys(aliases.get(kind, kind) for kind in words[0].split(",") if kind)
    found = tuple(dict.fromkeys(part for word in words[1:] for part in word.split(",") if part))
    return [Asked(kind, found) for kind in kinds]
