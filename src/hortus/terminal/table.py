"""Tables as kubectl prints them: upper-case heads, columns three spaces apart, no lines.

Texts come from objects, so control characters are removed before they reach a terminal (the class of CVE-2021-25743).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from hortus.terminal.escaping import printable

_GAP = 3


class Table(NamedTuple):
    heads: Sequence[str]
    rows: Sequence[Sequence[object]]

    @classmethod
    def from_server(cls, answer: Mapping[str, Any], *, wide: bool, namespaces: bool, kind: str = "") -> Table:
        """A meta.k8s.io Table; columns of lower priority only when `wide`, a namespace column when asked.

        `kind` stands before each name, for tables of several kinds.
        """
        definitions = answer.get("columnDefinitions") or ()
        shown = [index for index, column in enumerate(definitions) if wide or not column.get("priority")]
        heads = [definitions[index]["name"] for index in shown]
        rows = []
        for row in answer.get("rows") or ():
            named = [definitions[index].get("format") == "name" and kind for index in shown]
            found = [row["cells"][index] for index in shown]
            cells = [f"{kind}/{cell}" if is_name else cell for cell, is_name in zip(found, named, strict=True)]
            if namespaces:
                metadata = (row.get("object") or {}).get("metadata") or {}
                cells.insert(0, metadata.get("namespace", ""))
            rows.append(cells)
        return cls(["Namespace", *heads] if namespaces else heads, rows)


def print_table(table: Table, *, heads: bool = True, widths: Sequence[int] = ()) -> Sequence[int]:
    """Print and return the widths used, so that further rows can be printed below with the same."""
    lines = [[clean(cell) for cell in row] for row in table.rows]
    titles = [clean(head).upper() for head in table.heads]
    columns = [*lines, titles] if heads else lines
    found = [max((len(line[index]) for line in columns), default=0) for index in range(len(titles))]
    used = [max(pair) for pair in zip(found, widths, strict=True)] if widths else found
    for line in ([titles] if heads else []) + lines:
        print(_line(line, used))
    return used


def clean(value: object) -> str:
    """A cell's text without control and direction characters; `<none>` where there is nothing."""
    if value is None or value == "":
        return "<none>"
    if isinstance(value, bool):
        return str(value).lower()
    return printable(str(value))


def print_line(line: str, *, err: bool = False) -> None:
    """Prints a line in which there may be texts of objects; to standard error with `err`."""
    click.echo(printable(line), err=err)


def _line(cells: Iterable[str], widths: Sequence[int]) -> str:
    return "".join(cell.ljust(width + _GAP) for cell, width in zip(cells, widths, strict=True)).rstrip()
