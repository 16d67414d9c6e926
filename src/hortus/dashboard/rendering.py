"""Pages as HTML. Every text passes through one place, which takes out control and direction characters, cuts what is
too long, and escapes the rest: nothing of an object is ever markup.

A page is a list of parts with an id and a digest each. A stream sends only the parts that changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from hortus.dashboard import drawing
from hortus.dashboard.bounding import bounded, shown
from hortus.dashboard.content import Content
from hortus.dashboard.filters import SORTS
from hortus.dashboard.viewers import Viewer
from hortus.engine.fleet import OWNERS, FleetRow, RowStanding
from hortus.engine.outcomes import Actor
from hortus.engine.pages import STANDINGS, FleetPage, PageLink, StateMark, TimeCell, moment, path_of, reason_of

_FOLDER: Final = Path(__file__).parent
STATIC: Final = _FOLDER / "static"
_CHANGES: Final = 8
"""Changes of one page that are kept; open pages mostly lack the same parts."""
_COMMANDS: Final = 20
"""Commands of one text; further backticks are text."""
_ONE_LINE: Final = 16
"""Characters."""
_COLUMNS: Final = ("since", "expires", "version", "region")
SIGNS: Final = {"failed": "✗", "waiting": "·", "well": "✓", "running": "▸", "unknown": "?"}


class PagePart(NamedTuple):
    """A piece of a page that is replaced as a whole."""

    id: str
    html: str
    digest: str
    """Eight characters that differ when the piece does."""


class Drawn:
    """The parts of a page, and its title; one for all open pages that show the same."""

    def __init__(self, title: str, parts: Sequence[PagePart]) -> None:
        self.title = title
        self.parts = parts
        self.digests = frozenset(part.digest for part in parts)
        self.size = sum(len(part.html) for part in parts)
        self._changes: dict[tuple[str, ...], bytes] = {}

    def change(self, have: Collection[str]) -> bytes:
        """The JSON that makes this page of one whose parts have the digests `have`; empty where nothing differs."""
        ids = tuple(part.id for part in self.parts if part.digest not in have)
        if not ids:
            return b""
        if (known := self._changes.get(ids)) is None:
            if len(self._changes) >= _CHANGES:
                self._changes.clear()
            parts = {part.id: part.html for part in self.parts if part.id in ids}
            order = [part.id for part in self.parts]
            known = self._changes[ids] = orjson.dumps({"title": self.title, "parts": parts, "order": order})
        return known


class PageFrame(NamedTuple):
    """The surroundings of the parts of a page: menu, viewer, address."""

    pages: Iterable[FleetPage]
    viewer: Viewer
    csrf: str
    address: str
    """Path and query of the page."""
    now: float
    message: str = ""
    """The outcome of an action."""


def address_of(path: Iterable[str], namespace: str = "") -> str:
    """The address of a page, from the parts of its path."""
    query = f"?namespace={quote(namespace, safe='')}" if namespace else ""
    return "/" + "/".join(quote(part, safe="") for part in path) + query


@lru_cache(maxsize=1)
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals.update(
        address_of=address_of,
        bar=drawing.bar,
        strip=drawing.strip,
        plot=drawing.plot,
        largest=drawing.largest,
        edges_of=drawing.edges_of,
        reading=drawing.reading,
        signs=SIGNS,
        sorts=list(SORTS),
        owners=OWNERS,
        standings=STANDINGS,
        well=RowStanding.WELL,
        nobody=Actor.NOBODY,
        nowhen=TimeCell(""),
        moment=moment,
        path_of=path_of,
        reason_of=reason_of,
        kind_of=_kind_of,
        pieces=_pieces,
        columns_of=_columns_of,
        is_short=_is_short,
        versioned=versioned,
    )
    return made


def draw(content: Content, *, csrf: str, now: float) -> Iterator[PagePart]:
    """The parts of a page, each of them soon drawn."""
    values = {
        "content": content,
        "now": now,
        "csrf": csrf,
        "here": partial(_here, content),
        "everything": address_of((content.page.name,), content.namespace),
    }
    module: Any = _environment().get_template("parts.html").make_module(values)
    pieces: list[tuple[str, Callable[[], str]]] = [("notes", module.notes), ("head", module.head)]
    if content.window is not None:
        pieces += [("facets", module.facets), ("rows", module.rows)]
    for name, piece in pieces:
        yield _part(f"part-{name}", piece())
    for number, block in enumerate(bounded(content.blocks)):
        yield _part(f"part-block-{number}", module.block(block, number))


def _part(id: str, drawn: str) -> PagePart:
    html = drawn.strip()
    return PagePart(id, html, hashlib.sha256(html.encode()).hexdigest()[:8])


def page(drawn: Drawn, content: Content, frame: PageFrame) -> str:
    """A whole page."""
    template = _environment().get_template("page.html")
    return template.render(drawn=drawn, content=content, frame=frame, markup=Markup)


def document(name: str, **values: Any) -> str:
    """A page without a viewer: to sign in, or to report a problem."""
    return _environment().get_template(name).render(**values)


@lru_cache(maxsize=8)
def versioned(name: str) -> str:
    """The address of a file of ours, which changes with its content: browsers keep it for good."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?v={digest}"


def _here(content: Content, **changes: object) -> str:
    """The address of this page with some filters changed."""
    query = content.filters.address(**changes)
    if content.namespace:
        query += f"{'&' if len(query) > 1 else ''}namespace={quote(content.namespace, safe='')}"
    return query


def _kind_of(cell: object) -> str:
    if isinstance(cell, StateMark):
        return "mark"
    if isinstance(cell, PageLink):
        return "link"
    return "time" if isinstance(cell, TimeCell) else "text"


def _pieces(text: object) -> Iterable[tuple[object, bool]]:
    """A text, cut, in pieces; those between backticks, such as commands, are True."""
    text = shown(text)
    if not isinstance(text, str) or text.count("`") < 2:
        return [(text, False)]
    return [(piece, number % 2 == 1) for number, piece in enumerate(text.split("`", 2 * _COMMANDS))]


def _columns_of(rows: Iterable[FleetRow]) -> list[tuple[str, str]]:
    """Titles and fields of the columns that some row of the window has a value for."""
    rows = list(rows)
    return [(name.capitalize(), name) for name in _COLUMNS if any(getattr(row, name) not in (None, "") for row in rows)]


def _is_short(cell: object) -> bool:
    """Reports whether a text stays on one line; longer ones break, also within a word."""
    return isinstance(cell, str) and len(cell) <= _ONE_LINE
