"""A compiled expression and what Go's regexp package does with one."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterator

from hortus.render.bounded import Bounded
from hortus.render.gotemplate.regexes.classes import Ranges
from hortus.render.gotemplate.regexes.machine import PikeVM, Span
from hortus.render.gotemplate.regexes.syntax import (
    Assert,
    Chars,
    Choice,
    Group,
    Node,
    Repeat,
    Sequence,
    parse,
)

_PLACES = {
    "begin": r"\A",
    "end": r"\Z",
    "line_begin": r"(?:\A|(?<=\n))",
    "line_end": r"(?=\n|\Z)",
    "boundary": r"(?:(?<![0-9A-Za-z_])(?=[0-9A-Za-z_])|(?<=[0-9A-Za-z_])(?![0-9A-Za-z_]))",
    "no_boundary": r"(?:(?<![0-9A-Za-z_])(?![0-9A-Za-z_])|(?<=[0-9A-Za-z_])(?=[0-9A-Za-z_]))",
}
_NAME = re.compile(r"\$(?:(\$)|\{([0-9A-Za-z_]+)\}|([0-9A-Za-z_]+))", re.ASCII)
_MOST_STEPS = 400_000_000
"""The most steps of backtracking: each open repeat, and the start of the match, may go through the text."""


class Pattern:
    """One expression. Matches are spans: begin and end of the whole and of each group."""

    def __init__(self, text: str) -> None:
        parsed = parse(text)
        self.names = parsed.names
        self.groups = parsed.groups
        self._parsed = parsed
        self._open = _open_repeats(parsed.node)
        self._compiled = re.compile(_translated(parsed.node)) if self._open is not None else None
        self._machine: PikeVM | None = None

    def _search(self, text: str) -> Callable[[int], Span | None]:
        compiled = self._compiled
        if compiled is None or (self._open and len(text) ** (self._open + 1) > _MOST_STEPS):
            machine = self._machine = self._machine or PikeVM(self._parsed)
            return lambda start: machine.search(text, start)
        return lambda start: _span(compiled.search(text, start))

    def matches(self, text: str) -> bool:
        return self._search(text)(0) is not None

    def find(self, text: str) -> str | None:
        found = self._search(text)(0)
        return None if found is None else text[found[0] : found[1]]

    def spans(self, text: str, limit: int = -1) -> Iterator[Span]:
        """All matches from left to right; an empty one right after another does not count."""
        search = self._search(text)
        at, previous, count = 0, -1, 0
        while at <= len(text) and (limit < 0 or count < limit):
            found = search(at)
            if found is None:
                return
            if found[1] > found[0] or found[0] != previous:
                yield found
                count += 1
            previous = found[1]
            at = found[1] if found[1] > at else at + 1
            if found[1] == found[0]:
                at = found[1] + 1

    def split(self, text: str, limit: int) -> list[str]:
        """regexp.Split; an empty list when limit is 0."""
        if limit == 0:
            return []
        if self._parsed.node != Sequence(()) and not text:
            return [""]
        parts: list[str] = []
        begin = end = 0
        for found in self.spans(text):
            if limit > 0 and len(parts) == limit - 1:
                break
            end = found[0]
            if found[1]:
                parts.append(text[begin:end])
            begin = found[1]
        if end != len(text):
            parts.append(text[begin:])
        return parts

    def replace(self, text: str, template: str, *, literal: bool = False) -> str:
        """ReplaceAllString, or ReplaceAllLiteralString."""
        out: list[str] = []
        at = 0
        for found in self.spans(text):
            out += (text[at : found[0]], template if literal else self._expand(template, text, found))
            at = found[1]
        return "".join((*out, text[at:]))

    def _expand(self, template: str, text: str, span: Span) -> str:
        if "$" not in template:
            return template
        return _NAME.sub(lambda found: self._value(found, text, span), template)

    def _value(self, found: re.Match[str], text: str, span: Span) -> str:
        if found[1]:
            return "$"
        name = found[2] or found[3]
        numbers = [int(name)] if name.isdigit() and (name == "0" or name[0] != "0") else self.names.get(name, [])
        for number in numbers:
            if number <= self.groups and span[2 * number] >= 0:
                return text[span[2 * number] : span[2 * number + 1]]
        return ""


_KEPT: Bounded[str, Pattern] = Bounded(8 << 20, lambda text, _: 2000 + 200 * len(text))


def compile_pattern(text: str) -> Pattern:
    """The expression, from a cache. Raises RegexError."""
    found = _KEPT.get(text)
    if found is None:
        found = Pattern(text)
        _KEPT.put(text, found)
    return found


def _span(found: re.Match[str] | None) -> Span | None:
    if found is None:
        return None
    return [place for group in range((found.re.groups or 0) + 1) for place in found.span(group)]


def _open_repeats(node: Node) -> int | None:
    """The number of open repeats next to each other; None when one stands in another."""
    if isinstance(node, Group):
        return _open_repeats(node.node)
    if isinstance(node, Sequence | Choice):
        found = [_open_repeats(part) for part in node.nodes]
        if any(count is None for count in found):
            return None
        return sum(count or 0 for count in found)
    if not isinstance(node, Repeat):
        return 0
    inner = _open_repeats(node.node)
    many = node.high is None or node.high > 1
    if inner is None or (many and (inner or _varies(node.node))):
        return None
    return inner + (1 if node.high is None or node.high - node.low > 10 else 0)


def _varies(node: Node) -> bool:
    """True when one text may match in several ways or lengths, which under a repeat multiplies."""
    if isinstance(node, Chars | Assert):
        return False
    if isinstance(node, Group):
        return _varies(node.node)
    if isinstance(node, Sequence):
        return not node.nodes or any(map(_varies, node.nodes))
    if isinstance(node, Choice):
        return not _are_apart(node.nodes)
    return node.low != node.high or _varies(node.node)


def _are_apart(nodes: tuple[Node, ...]) -> bool:
    """True when these are single characters, none of which two of them allow."""
    if not all(isinstance(node, Chars) for node in nodes):
        return False
    found = sorted(pair for node in nodes if isinstance(node, Chars) for pair in node.ranges)
    folds = any(isinstance(node, Chars) and node.fold for node in nodes)
    return not folds and all(first[1] < second[0] for first, second in itertools.pairwise(found))


def _translated(node: Node) -> str:
    """The same expression for Python's `re`."""
    if isinstance(node, Chars):
        found = _class(node.ranges)
        return f"(?i:{found})" if node.fold else found
    if isinstance(node, Assert):
        return _PLACES[node.what]
    if isinstance(node, Group):
        return f"({_translated(node.node)})"
    if isinstance(node, Sequence):
        return "".join(
            f"(?:{_translated(part)})" if isinstance(part, Choice) else _translated(part) for part in node.nodes
        )
    if isinstance(node, Choice):
        return "|".join(map(_translated, node.nodes))
    inner = f"(?:{_translated(node.node)})"
    lazy = "" if node.greedy else "?"
    high = "" if node.high is None else str(node.high)
    return f"{inner}{{{node.low},{high}}}{lazy}"


def _class(ranges: Ranges) -> str:
    if not ranges:
        return r"(?!)"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return re.escape(chr(ranges[0][0]))
    if ranges == ((0, sys.maxunicode),):
        return r"[\s\S]"
    parts = "".join(_point(low) if low == high else f"{_point(low)}-{_point(high)}" for low, high in ranges)
    return f"[{parts}]"


def _point(code: int) -> str:
    return f"\\U{code:08x}" if code > 0x7F or not chr(code).isalnum() else chr(code)


def quote_meta(text: str) -> str:
    """regexp.QuoteMeta."""
    return "".join("\\" + char if char in "\\.+*?()|[]{}^$" else char for char in text)
