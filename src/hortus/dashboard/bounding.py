"""Bounds of a page: whatever an object or a file holds, a page is small and soon drawn.

A block shows its first rows, and all blocks of a page together have room for some rows and characters. The title of a
block that is cut says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from markupsafe import Markup
from msgspec.structs import replace

from hortus.engine.pages import (
    Bars,
    Block,
    Cell,
    EventTimeline,
    FactList,
    Grid,
    PageLink,
    StateMark,
    TimeCell,
    Tree,
    TreeNode,
)
from hortus.terminal.escaping import printable

_T = TypeVar("_T")
LONGEST: Final = 2000
"""Characters of one text; an annotation or a message may have a million."""
ROWS: Final = 200
"""Rows of a block: of a table, facts, bars, happenings, objects of a tree."""
ROWS_IN_ALL: Final = 1000
CHARACTERS: Final = 300_000
"""Characters of the rows of all blocks of a page, each text cut to the longest."""
_FULL: Final = "Left out, since the page is full."


def shown(value: object) -> object:
    """A text as a page may show it, cut and without control and direction characters; anything else as it is."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    text = printable(value[:LONGEST])
    return text if len(value) <= LONGEST else f"{text}… ({len(value):,} characters)"


class _Room:
    """The room that is left on a page."""

    def __init__(self) -> None:
        self._rows = ROWS_IN_ALL
        self._characters = CHARACTERS
        self._here = 0

    def begin(self) -> None:
        """Begins a block."""
        self._here = min(ROWS, self._rows)

    def takes(self, texts: Iterable[str]) -> bool:
        """Takes room for a row; False where there is none."""
        size = sum(min(len(text), LONGEST) for text in texts)
        if not self._here or size > self._characters:
            return False
        self._here -= 1
        self._rows -= 1
        self._characters -= size
        return True


def bounded(blocks: Iterable[Block]) -> list[Block]:
    """The blocks as far as a page has room for them. Those of a bounded page are left as they are."""
    room = _Room()
    return [_bounded(block, room) for block in blocks]


def _bounded(block: Block, room: _Room) -> Block:
    room.begin()
    match block:
        case Grid():
            rows = _first(block.rows, (map(_text, row) for row in block.rows), room)
            title = title_of(block.title, len(rows), len(block.rows))
            return block if title == block.title else replace(block, title=title, rows=rows, empty=_FULL)
        case FactList():
            items = _first(block.items, ((name, _text(value)) for name, value in block.items), room)
            return replace(block, title=title_of(block.title, len(items), len(block.items)), items=items)
        case Bars():
            bars = _first(block.bars, ((each.label, each.note) for each in block.bars), room)
            title = title_of(block.title, len(bars), len(block.bars))
            return block if title == block.title else replace(block, title=title, bars=bars, empty=_FULL)
        case EventTimeline():
            known = block.happenings
            happenings = _first(known, ((each.source, each.text) for each in known), room)
            title = title_of(block.title, len(happenings), len(known))
            return block if title == block.title else replace(block, title=title, happenings=happenings, empty=_FULL)
        case Tree():
            room.takes(_texts(block.root))
            root = _pruned(block.root, room)
            shown, there = (sum(1 for _ in each.all()) for each in (root, block.root))
            return replace(block, title=title_of(block.title, shown, there), root=root)
        case _:
            return block  # plots are of the dashboard's own measurements


def _first(rows: Sequence[_T], texts: Iterable[Iterable[str]], room: _Room) -> list[_T]:
    found = []
    for row, each in zip(rows, texts, strict=True):
        if not room.takes(each):
            break
        found.append(row)
    return found


def _pruned(node: TreeNode, room: _Room) -> TreeNode:
    children = []
    for child in node.children:
        if not room.takes(_texts(child)):
            break
        children.append(_pruned(child, room))
    return replace(node, children=tuple(children))


def title_of(title: str, shown: int, there: int) -> str:
    """The title of a block that shows the first of its rows."""
    return title if shown == there else f"{title}: the first {shown} of {there}"


def _texts(node: TreeNode) -> tuple[str, ...]:
    return node.kind, node.name, node.state, node.note, node.owner, node.step


def _text(cell: Cell) -> str:
    match cell:
        case StateMark() | PageLink():
            return cell.text
        case TimeCell():
            return cell.at
        case _:
            return str(cell)
