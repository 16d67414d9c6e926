"""The objects that `hortus get` shows: which cluster serves their kind, their table or documents, their changes."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import click
import orjson

from hortus.domains import all_domains
from hortus.engine.fleet import WideFacts
from hortus.kube import Client
from hortus.kube.discovery import Discovery, UnknownResource
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object, Resource, key_of
from hortus.terminal import (
    NAME_PROJECT,
    CommandError,
    Connections,
    GardenMissing,
    OutputFormat,
    Table,
    open_garden,
    print_line,
    print_objects,
    print_table,
)

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


class FoundKind(NamedTuple):
    """A kind at the cluster that serves it."""

    client: Client
    resource: Resource
    namespace: str = ""
    """The namespace to look in by default: that of Hortus' project in the garden; empty for all."""
    advice: str = ""
    """Advice for an account that may not look in all namespaces."""


class Asked(NamedTuple):
    """One kind of a `hortus get`, and names of its objects; all objects without names."""

    kind: str
    names: tuple[str, ...] = ()


class ObjectQuery:
    """One `hortus get`."""

    def __init__(
        self, asked: Sequence[Asked], namespace: str | None, selector: str, format: OutputFormat, *, heads: bool
    ) -> None:
        """An empty `namespace` stands for all, None for the default of the cluster that serves the kind."""
        self._asked = asked
        self._chosen = namespace
        self._selector = selector
        self._format = format
        self._heads = heads
        self._found: list[Object] = []
        self._missing: list[str] = []
        self._tables = 0

    async def serve(self, connections: Connections, *, watch: bool) -> None:
        """Prints everything that was asked for. Raises CommandError, naming what does not exist."""
        for asked in self._asked:
            async with serving(connections, asked.kind) as served:
                place = served.namespace if self._chosen is None else self._chosen
                try:
                    await self._show(connections, served, asked.names, place, watch=watch)
                except Forbidden as error:
                    if served.advice and not place:
                        raise CommandError(f"{error}; {served.advice}") from None
                    raise
        if not self._format.tabular and not watch:
            self._print_found()
        if self._missing:
            raise CommandError("; ".join(self._missing))

    async def _show(
        self, connections: Connections, served: FoundKind, names: tuple[str, ...], place: str, *, watch: bool
    ) -> None:
        version, widths = await self._look(connections, served, names, place)
        if not watch:
            return
        if not self._format.tabular:
            self._print_found()
        sys.stdout.flush()
        await self._follow(served, names, place, version, widths)

    async def _look(
        self, connections: Connections, served: FoundKind, names: tuple[str, ...], place: str
    ) -> tuple[str, Sequence[int]]:
        """Prints the table of one kind, or collects its objects; the version to watch from, and widths of columns."""
        client, resource = served.client, served.resource
        versions: list[str] = []
        bodies: list[Object] = []
        for name in names or ("",):
            fields = f"metadata.name={name}" if name else ""
            if self._format.tabular:
                query = {"labelSelector": self._selector, "fieldSelector": fields}
                answer = await client.request("GET", resource.path(place), query=query, accept=_TABLE)
                bodies.append(orjson.loads(answer.body))
                found = bodies[-1].get("rows") or []
                versions.append(str(bodies[-1]["metadata"].get("resourceVersion", "")))
            else:
                listed = await client.list(resource, place, labels=self._selector, fields=fields)
                found = list(listed.items)
                self._found += found
                versions.append(listed.resource_version)
            if name and not found:
                self._missing.append(f'{resource.plural} "{name}" not found{_where(place)}')
        rows = [row for body in bodies for row in body.get("rows") or ()]
        if not self._format.tabular or (names and not rows):
            return versions[0], ()
        if not rows:
            click.echo(f"No {resource.plural} found{_where(place)}.", err=True)
            return versions[0], ()
        table = self._table(resource, {**bodies[0], "rows": rows})
        if self._format.name == "wide" and not served.namespace and not served.advice:
            table = await widened(table, rows, connections, client, resource, place)
        if self._tables and self._heads:
            click.echo("")
        self._tables += 1
        return versions[0], print_table(table, heads=self._heads)

    def _table(self, resource: Resource, body: Object) -> Table:
        spread = resource.namespaced and not self._chosen
        kind = f"{resource.kind.lower()}.{resource.group}".rstrip(".") if len(self._asked) > 1 else ""
        return Table.from_server(body, wide=self._format.name == "wide", namespaces=spread, kind=kind)

    def _print_found(self) -> None:
        single = len(self._found) == 1 and sum(len(asked.names) for asked in self._asked) == 1
        if self._found or not self._missing:
            print_objects(self._found, self._format, single=single)

    async def _follow(
        self, served: FoundKind, names: tuple[str, ...], place: str, version: str, widths: Sequence[int]
    ) -> None:
        """Print each change as it comes; a table row is requested again, as the server renders it."""
        client, resource = served.client, served.resource
        fields = f"metadata.name={names[0]}" if len(names) == 1 else ""
        watch = client.watch(resource, place, resource_version=version, labels=self._selector, fields=fields)
        async with watch as events:
            async for event in events:
                metadata = event.object["metadata"]
                if event.type == "BOOKMARK" or (names and metadata["name"] not in names):
                    continue
                if not self._format.tabular:
                    print_objects([event.object], self._format, single=True)
                    sys.stdout.flush()
                    continue
                path = resource.path(metadata.get("namespace", ""))
                query = {"fieldSelector": f"metadata.name={metadata['name']}"}
                answer = await client.request("GET", path, query=query, accept=_TABLE)
                table = self._table(resource, orjson.loads(answer.body))
                widths = print_table(table, heads=False, widths=widths[: len(table.heads)])
                sys.stdout.flush()


def _where(place: str) -> str:
    return f" in namespace {place}" if place else ""


async def widened(
    table: Table, rows: Sequence[Object], connections: Connections, client: Client, resource: Resource, place: str
) -> Table:
    """The table with expiry, version and region, for kinds of which a domain knows these."""
    columns = next((found for domain in all_domains() if (found := domain.wide_columns().get(resource))), None)
    if columns is None:
        return table
    from hortus.engine.fleet import until
    from hortus.engine.fleetreading import FleetReader, NotAFleet, ReadGarden

    async with open_garden(connections, client, place) as garden:
        reader = FleetReader(client, ReadGarden(garden.client, garden.namespace), place, kinds=columns.kinds)
        try:
            await reader.read()
        except NotAFleet as error:
            raise CommandError(f"{error}: is this the management cluster? (--kubeconfig)") from None
    for note in reader.notes:
        print_line(f"note: {note}", err=True)
    facts, now = columns.facts(reader.objects), time.time()
    known = {head.upper() for head in table.heads}
    cells = []
    for row in rows:
        known_facts = facts.get(key_of(row["object"]), WideFacts())
        left = until(known_facts.expires, now)
        cells.append({"EXPIRES": left, "VERSION": known_facts.version, "REGION": known_facts.region})
    heads = [head for head in ("EXPIRES", "VERSION", "REGION") if head not in known]
    wide = [[*row, *(cell[head] for head in heads)] for row, cell in zip(table.rows, cells, strict=True)]
    return Table([*table.heads, *heads], wide)


@asynccontextmanager
async def serving(connections: Connections, kind: str) -> AsyncIterator[FoundKind]:
    """The kind at the first of management cluster and garden that serves it. Raises CommandError."""
    async with connections.management() as client:
        if (resource := await _find(client, kind)) is not None:
            yield FoundKind(client, resource)
            return
        try:
            garden = connections.garden()
        except GardenMissing as error:
            raise CommandError(f"the management cluster does not serve {kind!r}, and {error}") from None
        async with garden:
            if (resource := await _find(garden, kind)) is None:
                raise CommandError(f"neither the management cluster nor the garden serves {kind!r}")
            place = await connections.garden_namespace(client, "") if resource.namespaced else ""
            yield FoundKind(garden, resource, place, "" if place or not resource.namespaced else NAME_PROJECT)


async def kinds(connections: Connections) -> Iterable[str]:
    """The plurals of all that can be listed in either cluster."""
    found: set[str] = set()
    for connect in (connections.management, connections.garden):
        with suppress(GardenMissing):
            async with connect() as client:
                served = (await Discovery.look(client)).served
                found |= {one.resource.plural for one in served if "list" in one.verbs}
    return found


async def _find(client: Client, word: str) -> Resource | None:
    try:
        return (await Discovery.look(client)).find(word).resource
    except UnknownResource:
        return None
