"""The objects that `hortus get` shows: which cluster serves their kind, their table or documents, their changes."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import click
import orjson

from hortus.kube import Client
from hortus.kube.discovery import Discovery, UnknownResource
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object, Resource
from hortus.terminal import (
    NAME_PROJECT,
    CommandError,
    Connections,
    GardenMissing,
    OutputFormat,
    Table,
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


class ObjectQuery:
    """One `hortus get`."""

    def __init__(
        self, kind: str, name: str, namespace: str | None, selector: str, format: OutputFormat, heads: bool
    ) -> None:
        """An empty `namespace` stands for all, None for the default of the cluster that serves the kind."""
        self._kind = kind
        self._name = name
        self._chosen = namespace
        self._namespace = namespace or ""
        self._selector = selector
        self._format = format
        self._heads = heads

    async def serve(self, connections: Connections, *, watch: bool) -> None:
        async with serving(connections, self._kind) as (client, resource, namespace, advice):
            if self._chosen is None:
                self._namespace = namespace
            try:
                await self._show(client, resource, watch=watch)
            except Forbidden as error:
                if advice and not self._namespace:
                    raise CommandError(f"{error}; {advice}") from None
                raise

    async def _show(self, client: Client, resource: Resource, *, watch: bool) -> None:
        fields = f"metadata.name={self._name}" if self._name else ""
        if self._format.tabular:
            version, widths = await self._table(client, resource, fields)
        else:
            listed = await client.list(resource, self._namespace, labels=self._selector, fields=fields)
            self._expect(listed.items, resource)
            print_objects(listed.items, self._format, single=bool(self._name) and len(listed.items) == 1)
            version, widths = listed.resource_version, ()
        if watch:
            sys.stdout.flush()
            await self._follow(client, resource, fields, version, widths)

    async def _table(self, client: Client, resource: Resource, fields: str) -> tuple[str, Any]:
        query = {"labelSelector": self._selector, "fieldSelector": fields}
        answer = await client.request("GET", resource.path(self._namespace), query=query, accept=_TABLE)
        body: Object = orjson.loads(answer.body)
        self._expect(body.get("rows") or [], resource)
        widths: Any = ()
        if body.get("rows"):
            widths = print_table(self._rows(resource, body), heads=self._heads)
        else:
            where = f" in namespace {self._namespace}" if self._namespace else ""
            click.echo(f"No {resource.plural} found{where}.", err=True)
        return str(body["metadata"].get("resourceVersion", "")), widths

    def _rows(self, resource: Resource, body: Object) -> Table:
        spread = resource.namespaced and not self._chosen
        return Table.from_server(body, wide=self._format.name == "wide", namespaces=spread)

    def _expect(self, found: list[Any], resource: Resource) -> None:
        if self._name and not found:
            where = f" in namespace {self._namespace}" if self._namespace else ""
            raise CommandError(f'{resource.plural} "{self._name}" not found{where}')

    async def _follow(self, client: Client, resource: Resource, fields: str, version: str, widths: Any) -> None:
        """Print each change as it comes; a table row is requested again, as the server renders it."""
        watch = client.watch(resource, self._namespace, resource_version=version, labels=self._selector, fields=fields)
        async with watch as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                if not self._format.tabular:
                    print_objects([event.object], self._format, single=True)
                    sys.stdout.flush()
                    continue
                metadata = event.object["metadata"]
                path = resource.path(metadata.get("namespace", ""))
                query = {"fieldSelector": f"metadata.name={metadata['name']}"}
                answer = await client.request("GET", path, query=query, accept=_TABLE)
                table = self._rows(resource, orjson.loads(answer.body))
                widths = print_table(table, heads=False, widths=widths)
                sys.stdout.flush()


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
