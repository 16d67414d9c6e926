"""`-o`: the output formats that every command takes, with kubectl's names."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import click

from hortus.terminal.escaping import HARMFUL
from hortus.terminal.table import Table, clean, print_table

if TYPE_CHECKING:
    from hortus.kube.objects import Object

T = TypeVar("T")
R = TypeVar("R", contravariant=True)

_AS_JSON = {code: f"\\u{code:04x}" for code in HARMFUL}
"""Replaces harmful characters by JSON escapes, which mean the same."""
_FOR_TERMINALS = dict.fromkeys(code for code in (*range(32), *HARMFUL) if chr(code) not in "\t\n")


class OutputFormat(NamedTuple):
    """One parsed `-o`."""

    name: str = "table"
    argument: str = ""

    @property
    def tabular(self) -> bool:
        return self.name in ("table", "wide")


def raw(content: bytes) -> None:
    """Prints the text of an object: unchanged into a pipe or file, to a terminal without control characters."""
    if sys.stdout.isatty():
        content = content.decode("utf-8", "replace").translate(_FOR_TERMINALS).encode()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def plain(value: Any, format: OutputFormat) -> None:
    """Print any JSON-like value as JSON or YAML."""
    if format.name == "json":
        import orjson

        print(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode().translate(_AS_JSON))
    else:
        from hortus.kube import yaml

        text = yaml.dump(value)
        print(text if text == text.translate(_AS_JSON) else yaml.dump(value, ascii_only=True), end="")


class ListViews(Protocol[R]):
    """A domain's module `views`, for commands that list objects of one kind and show one."""

    @property
    def HEADS(self) -> Sequence[str]: ...

    @property
    def WIDE(self) -> Sequence[str]:
        """Further columns of `-o wide`."""

    def row(self, found: R, /, *, wide: bool) -> Sequence[object]: ...

    def summary(self, found: R, /) -> Any: ...

    def page(self, found: R, /) -> Iterable[str]: ...

    def details(self, found: R, /) -> Any: ...


def print_listed(found: Sequence[T], format: OutputFormat, views: ListViews[T]) -> None:
    """Print one row for each; for json and yaml the summaries."""
    if format.tabular:
        wide = format.name == "wide"
        heads = [*views.HEADS, *views.WIDE] if wide else views.HEADS
        print_table(Table(heads, [views.row(one, wide=wide) for one in found]))
    else:
        plain([views.summary(one) for one in found], format)


def print_one(found: T, format: OutputFormat, views: ListViews[T]) -> None:
    """Print the page of one object; for json and yaml the details."""
    if format.tabular:
        for line in views.page(found):
            print(clean(line) if line else "")
    else:
        plain(views.details(found), format)


def print_objects(objects: Sequence[Object], format: OutputFormat, *, single: bool) -> None:
    """Print API objects in a format other than table; several become a List, as kubectl does."""
    match format.name:
        case "name":
            for obj in objects:
                print(clean(_name(obj)))
        case "jsonpath":
            text = _rendered(format.argument, objects[0] if single else _list(objects))
            # A pipe gets the object's text unchanged; a terminal would interpret its control characters.
            print(text.translate(_FOR_TERMINALS) if sys.stdout.isatty() else text)
        case "custom-columns":
            _custom_columns(objects, format.argument)
        case _:
            plain(objects[0] if single else _list(objects), format)


def _list(objects: Sequence[Object]) -> Object:
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": list(objects)}


def _name(obj: Object) -> str:
    group = obj["apiVersion"].rpartition("/")[0]
    kind = obj["kind"].lower()
    return f"{kind}.{group}/{obj['metadata']['name']}" if group else f"{kind}/{obj['metadata']['name']}"


def _rendered(text: str, value: Object) -> str:
    from hortus.schema.jsonpath import JsonPathError, JsonPathTemplate

    try:
        template = JsonPathTemplate.parse(text)
    except JsonPathError as error:
        raise click.BadParameter(f"jsonpath: {error}", param_hint="-o") from None
    return template.render(value)


def _custom_columns(objects: Sequence[Object], argument: str) -> None:
    from hortus.schema.jsonpath import JsonPath, JsonPathError, printed

    heads, paths = [], []
    for column in argument.split(","):
        head, colon, path = column.partition(":")
        if not head or not colon or not path:
            raise click.BadParameter(f"custom-columns: {column!r} is not HEAD:PATH", param_hint="-o")
        heads.append(head)
        try:
            paths.append(JsonPath.parse(path))
        except JsonPathError as error:
            raise click.BadParameter(f"custom-columns: {path}: {error}", param_hint="-o") from None
    rows = [[",".join(printed(value) for value in path.find(obj)) for path in paths] for obj in objects]
    print_table(Table(heads, rows))
