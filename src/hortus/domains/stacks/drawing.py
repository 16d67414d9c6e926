"""The graph of stacks as one SVG document: no script, nothing loaded from elsewhere, light or dark as the reader's is.

Columns from left to right: ClusterStacks and the objects of providers, releases, Clusters, addons, and HelmReleases
where there are some. A state is a colour,
a line and a word, so that it can be read without colours. Text is in a font of fixed width: what fits a box is known.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

from hortus.domains.stacks.flux.objects import HELM_RELEASES
from hortus.domains.stacks.graph import (
    CLUSTER,
    GraphEdge,
    GraphNode,
    NodeId,
    NodeState,
    StacksGraph,
    neighbours,
)
from hortus.domains.stacks.types import CLUSTER_ADDONS, CLUSTER_STACK_RELEASES
from hortus.terminal import clean as printable

_WIDTH: Final = 300
"""The width of a box in pixels, as are all lengths here."""
_GAP: Final = 110
_SPACE: Final = 18
_MARGIN: Final = 28
_HEAD: Final = 46
_LINE: Final = 17
_PADDING: Final = 10
_LETTERS: Final = 36
"""Letters in a line of a box: one is 7.8 wide in the widest of the usual fonts at 13 px."""
_NAME_LINES: Final = 3
_TEXT_LINES: Final = 3
_COLUMNS: Final = {CLUSTER_STACK_RELEASES.kind: 1, CLUSTER: 2, CLUSTER_ADDONS.kind: 3, HELM_RELEASES.kind: 4}
_HEADS: Final = ("Stacks and providers", "Releases", "Clusters", "Addons", "By Flux")
_NO_XML: Final = dict.fromkeys((*range(0xD800, 0xE000), 0xFFFE, 0xFFFF))
_STYLE: Final = """
svg{color-scheme:light dark;--back:#fbfbf9;--box:#fff;--text:#1c2320;--dim:#5d6963;--edge:#8b958f;--good:#17733f;
--bad:#b3261e;--wait:#8a5a00;background:var(--back);
font:13px ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
@media(prefers-color-scheme:dark){svg{--back:#121614;--box:#1a201d;--text:#e4eae6;--dim:#97a59d;--edge:#6d7872;
--good:#5fd394;--bad:#ff8a80;--wait:#ffc46b}}
text{fill:var(--text)}.dim{fill:var(--dim);font-size:11px}.head{font-weight:600}
rect{fill:var(--box);stroke:var(--edge);stroke-width:1.2}.ready rect{stroke:var(--good)}.ready .state{fill:var(--good)}
.waiting rect{stroke:var(--wait);stroke-dasharray:5 4}.waiting .state{fill:var(--wait)}
.failed rect{stroke:var(--bad);stroke-width:3}.failed .state{fill:var(--bad);font-weight:600}
path{fill:none;stroke:var(--edge)}.tip{fill:var(--edge);stroke:none}
"""


class _Box(NamedTuple):
    """A node in its place."""

    node: GraphNode
    lines: tuple[tuple[str, str], ...]
    """The class and the text of each line."""
    x: float
    y: float

    @property
    def height(self) -> float:
        return _height(self.lines)


def svg(graph: StacksGraph) -> str:
    """The whole document."""
    boxes = _placed(graph)
    columns = _columns(graph)
    width = 2 * _MARGIN + columns * _WIDTH + (columns - 1) * _GAP
    height = max((box.y + box.height for box in boxes.values()), default=_HEAD + _LINE) + _MARGIN
    title = f"{len(graph.nodes)} objects of cluster stacks and their relations"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" width="{width}" height="{height:g}" '
        f'role="img" aria-label="{title}">',
        f"<title>{title}</title><style>{_STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>',
        *_heads(graph),
        *(_line(boxes[edge.source], boxes[edge.target]) for edge in graph.edges),
        # Edges that leave a box at one side share their relation's word.
        *dict.fromkeys(_relation(boxes[edge.source], boxes[edge.target], edge) for edge in graph.edges),
        *(_drawn(box) for box in boxes.values()),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _columns(graph: StacksGraph) -> int:
    """The number of columns; the last is for HelmReleases."""
    by_flux = any(node.id.kind == HELM_RELEASES.kind for node in graph.nodes)
    return len(_HEADS) if by_flux else len(_HEADS) - 1


# Places.


def _placed(graph: StacksGraph) -> dict[NodeId, _Box]:
    """Every node in its column, next to what it is joined to, without overlaps."""
    near = neighbours(graph.edges)
    columns = _ordered(graph, near)
    lines = {node.id: _lines(node) for node in graph.nodes}
    middles: dict[NodeId, float] = {}
    boxes: dict[NodeId, _Box] = {}
    # From the right: a Cluster has one ClusterAddon, while a release has many Clusters.
    for number in reversed(range(len(columns))):
        free = float(_HEAD + _MARGIN)
        for node in columns[number]:
            height = _height(lines[node.id])
            wanted = [middles[one] for one in near.get(node.id, ()) if one in middles]
            y = max(free, sum(wanted) / len(wanted) - height / 2) if wanted else free
            boxes[node.id] = _Box(node, lines[node.id], _MARGIN + number * (_WIDTH + _GAP), y)
            middles[node.id] = y + height / 2
            free = y + height + _SPACE
    return boxes


def _ordered(graph: StacksGraph, near: Mapping[NodeId, Sequence[NodeId]]) -> list[list[GraphNode]]:
    """The columns. Releases keep their order; others follow the mean place of what they are joined to next door."""
    columns: list[list[GraphNode]] = [[] for _ in _HEADS]
    for node in graph.nodes:
        columns[_COLUMNS.get(node.id.kind, 0)].append(node)
    for number, next_to in ((0, 1), (2, 1), (3, 2), (4, 3)):
        places = {node.id: place for place, node in enumerate(columns[next_to])}

        def place(node: GraphNode, places: Mapping[NodeId, int] = places) -> tuple[float, NodeId]:
            found = [places[one] for one in near.get(node.id, ()) if one in places]
            return (sum(found) / len(found) if found else float(len(places)), node.id)

        columns[number].sort(key=place)
    return columns


# Text.


def _lines(node: GraphNode) -> tuple[tuple[str, str], ...]:
    at = node.id
    found = [("dim", _cut(_clean(f"{at.kind} in {at.namespace}"), _LETTERS + 6))]
    found += [("name", text) for text in _wrapped(at.name, _NAME_LINES)]
    if node.state is not NodeState.PLAIN:
        words = f"{node.state}: {node.reason}" if node.reason else str(node.state)
        found += [("state", text) for text in _wrapped(words, _NAME_LINES)]
    if node.message and node.state is not NodeState.WELL:
        found += [("dim", text) for text in _wrapped(node.message, _TEXT_LINES, _LETTERS + 6)]
    return tuple(found)


def _wrapped(text: str, most: int, letters: int = _LETTERS) -> list[str]:
    """Lines of a text; what `most` lines do not hold ends with an ellipsis, and is whole in the node's title."""
    lines = textwrap.wrap(_clean(text), letters, break_on_hyphens=True)
    return lines if len(lines) <= most else [*lines[: most - 1], _cut(lines[most - 1] + "…" * letters, letters)]


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1].rstrip("…") + "…"


def _height(lines: Sequence[tuple[str, str]]) -> float:
    return 2 * _PADDING + _LINE * len(lines)


def _clean(text: str) -> str:
    """A text without the characters that XML cannot hold (https://www.w3.org/TR/xml/#charsets)."""
    return printable(text).translate(_NO_XML)


# Elements.


def _heads(graph: StacksGraph) -> Iterator[str]:
    counts = [0] * len(_HEADS)
    for node in graph.nodes:
        counts[_COLUMNS.get(node.id.kind, 0)] += 1
    for number, (head, count) in enumerate(list(zip(_HEADS, counts, strict=True))[: _columns(graph)]):
        x = _MARGIN + number * (_WIDTH + _GAP)
        yield f'<text class="head" x="{x}" y="{_MARGIN + _LINE:g}">{head} ({count})</text>'


def _drawn(box: _Box) -> str:
    node = box.node
    whole = [f"{node.id.kind} {node.id.namespace}/{node.id.name}", f"{node.state} {node.reason}".strip(), node.message]
    rows = "".join(
        f'<text class="{tone}" x="{box.x + _PADDING:g}" y="{box.y + _PADDING + _LINE * (row + 1) - 5:g}">'
        f"{escape(text)}</text>"
        for row, (tone, text) in enumerate(box.lines)
    )
    title = escape("\n".join(_clean(part) for part in whole if part))
    return (
        f'<g class="{node.state or "plain"}"><title>{title}</title>'
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{_WIDTH}" height="{box.height:g}" rx="6"/>{rows}</g>'
    )


def _line(source: _Box, target: _Box) -> str:
    """A curve from side to side."""
    right = source.x < target.x
    x1, x2 = (source.x + _WIDTH, target.x) if right else (source.x, target.x + _WIDTH)
    y1, y2 = source.y + source.height / 2, target.y + target.height / 2
    bend = (x1 + x2) / 2
    return f'<path d="M{x1:g} {y1:g}C{bend:g} {y1:g} {bend:g} {y2:g} {x2:g} {y2:g}" marker-end="url(#tip)"/>'


def _relation(source: _Box, target: _Box, edge: GraphEdge) -> str:
    """The word of an edge, next to its source."""
    right = source.x < target.x
    x, anchor = (source.x + _WIDTH + 5, "start") if right else (source.x - 5, "end")
    y = source.y + source.height / 2 - 5
    return f'<text class="dim" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(edge.relation)}</text>'
