"""Tables for `kubectl get`: a meta.k8s.io Table with one row per object (KEP-331).

Columns come from the kind: cells computed by its strategy, or JSONPaths as in a CRD's additionalPrinterColumns. Rows
carry the object's metadata unless the client asks for all of it or nothing (`includeObject`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson

from hortus.apiserver.builtin.cells.parts import since
from hortus.apiserver.resources.definition import TableColumn
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.partial import partial_metadata
from hortus.apiserver.resources.reading import Listing
from hortus.apiserver.turns import TurnPace
from hortus.kube.objects import Object
from hortus.schema import JsonPath

_NAME = TableColumn("Name", ".metadata.name", format="name", description="The name of the object in its namespace.")


def columns_of(kind: Kind) -> tuple[TableColumn, ...]:
    """The kind's columns; the name comes first unless a CRD declares it elsewhere."""
    columns = kind.definition.columns
    has_place = any(
        column.name == "Name" and (column.format == "name" or not index) for index, column in enumerate(columns)
    )
    return columns if has_place else (_NAME, *columns)


def definitions_of(kind: Kind) -> list[Object]:
    return [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in columns_of(kind)
    ]


async def table_of(kind: Kind, listing: Listing, pace: TurnPace, *, include: str, now: float) -> bytes:
    """A Table of a listing. `include` is `Metadata`, `Object` or `None`, empty meaning `Metadata`."""
    rows: list[bytes] = []
    for value in listing.values:
        if pace.due:
            await pace.turn()
        rows.append(row_of(kind, value, include=include, now=now))
    return table_body(kind, b",".join(rows), listing.meta())


def table_body(kind: Kind, rows: bytes, meta: Mapping[str, Any], *, columns: bool = True) -> bytes:
    """A Table around encoded rows. `columns` False omits the column definitions, as in later events of a watch."""
    return b'{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":%s,"columnDefinitions":%s,"rows":[%s]}' % (
        orjson.dumps(meta),
        orjson.dumps(definitions_of(kind)) if columns else b"null",
        rows,
    )


def row_of(kind: Kind, value: bytes, *, include: str, now: float) -> bytes:
    obj: Object = orjson.loads(value)
    computed = kind.definition.strategy.cells(obj, now)
    cells = [_cell(column, obj, computed, now) for column in columns_of(kind)]
    if include == "Object":
        shown = value
    else:
        shown = b"null" if include == "None" else partial_metadata(value)
    return b'{"cells":%s,"object":%s}' % (orjson.dumps(cells), shown)


def _cell(column: TableColumn, obj: Object, computed: Mapping[str, Any], now: float) -> Any:
    if column.path in computed:
        return computed[column.path]
    path = _path(column.path)
    value = path.first(obj) if path is not None else None
    if column.type == "date":
        return None if value is None else since(value, now)
    return _typed(column.type, value)


@lru_cache(maxsize=4096)
def _path(text: str) -> JsonPath | None:
    try:
        return JsonPath.parse(text)
    except ValueError:
        return None


def _typed(type_: str, value: Any) -> Any:
    """The value where it is of the column's type, otherwise nothing (apiextensions' cellForJSONValue)."""
    match type_:
        case "integer":
            return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "number":
            return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
    if isinstance(value, str) or value is None:
        return value
    return orjson.dumps(value).decode()
