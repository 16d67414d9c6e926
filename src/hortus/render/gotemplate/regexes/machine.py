"""A machine for expressions that Python's `re` could backtrack on without end: all paths at once, linear in the text.

Pike's method: threads in order of preference, each with its captures; the time is bounded by the length of the text
times the size of the expression.
"""

from __future__ import annotations

from typing import Any

from hortus.render.gotemplate.regexes.syntax import Assert, Chars, Choice, Group, Node, Parsed, Repeat, Sequence

_CHAR, _SPLIT, _JUMP, _SAVE, _ASSERT, _MATCH = range(6)
_WORD = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
Span = list[int]
"""Begin and end of the match and of each group; -1 for a group that took no part."""


def holds(what: str, text: str, at: int) -> bool:
    """True when the assertion `what` holds at this place of the text."""
    if what == "begin":
        return at == 0
    if what == "end":
        return at == len(text)
    if what == "line_begin":
        return at == 0 or text[at - 1] == "\n"
    if what == "line_end":
        return at == len(text) or text[at] == "\n"
    before = at > 0 and text[at - 1] in _WORD
    after = at < len(text) and text[at] in _WORD
    return (before != after) == (what == "boundary")


class PikeVM:
    def __init__(self, parsed: Parsed) -> None:
        self.code: list[tuple[Any, ...]] = []
        self.slots = 2 * (parsed.groups + 1)
        self._emit(Group(parsed.node, 0, ""))
        self.code.append((_MATCH,))

    def _emit(self, node: Node) -> None:
        code = self.code
        if isinstance(node, Chars):
            code.append((_CHAR, _matcher(node)))
        elif isinstance(node, Assert):
            code.append((_ASSERT, node.what))
        elif isinstance(node, Group):
            code.append((_SAVE, 2 * node.number))
            self._emit(node.node)
            code.append((_SAVE, 2 * node.number + 1))
        elif isinstance(node, Sequence):
            for part in node.nodes:
                self._emit(part)
        elif isinstance(node, Choice):
            self._choice(node)
        else:
            self._repeat(node)

    def _choice(self, node: Choice) -> None:
        ends = []
        for part in node.nodes[:-1]:
            split = len(self.code)
            self.code.append(())
            self._emit(part)
            ends.append(len(self.code))
            self.code.append(())
            self.code[split] = (_SPLIT, split + 1, len(self.code))
        self._emit(node.nodes[-1])
        for end in ends:
            self.code[end] = (_JUMP, len(self.code))

    def _repeat(self, node: Repeat) -> None:
        for _ in range(node.low):
            self._emit(node.node)
        if node.high is None:
            begin = len(self.code)
            self.code.append(())
            self._emit(node.node)
            self.code.append((_JUMP, begin))
            self._split(begin, node.greedy)
            return
        splits = []
        for _ in range(node.high - node.low):
            splits.append(len(self.code))
            self.code.append(())
            self._emit(node.node)
        for split in splits:
            self._split(split, node.greedy)

    def _split(self, at: int, greedy: bool) -> None:
        into, past = at + 1, len(self.code)
        self.code[at] = (_SPLIT, into, past) if greedy else (_SPLIT, past, into)

    def search(self, text: str, start: int) -> Span | None:
        """The leftmost match from `start` on, by the preferences of the expression."""
        threads: list[tuple[int, Span]] = []
        best: Span | None = None
        at = start
        while True:
            seen: set[int] = set()
            current: list[tuple[int, Span]] = []
            for counter, captures in threads:
                self._follow(counter, captures, text, at, seen, current)
            if best is None:
                self._follow(0, [-1] * self.slots, text, at, seen, current)
            if not current:
                if best is not None or at >= len(text):
                    return best
                at += 1
                threads = []
                continue
            threads = []
            char = text[at] if at < len(text) else ""
            for counter, captures in current:
                step = self.code[counter]
                if step[0] == _MATCH:
                    best = captures
                    break
                if char and step[1](char):
                    threads.append((counter + 1, captures))
            if at >= len(text):
                return best
            at += 1

    def _follow(
        self, counter: int, captures: Span, text: str, at: int, seen: set[int], found: list[tuple[int, Span]]
    ) -> None:
        stack = [(counter, captures)]
        while stack:
            counter, captures = stack.pop()
            if counter in seen:
                continue
            seen.add(counter)
            step = self.code[counter]
            kind = step[0]
            if kind in (_CHAR, _MATCH):
                found.append((counter, captures))
            elif kind == _JUMP:
                stack.append((step[1], captures))
            elif kind == _SPLIT:
                stack += ((step[2], captures), (step[1], captures))
            elif kind == _SAVE:
                captures = captures.copy()
                captures[step[1]] = at
                stack.append((counter + 1, captures))
            elif holds(step[1], text, at):
                stack.append((counter + 1, captures))


def _matcher(node: Chars) -> Any:
    ranges = node.ranges
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        only = chr(ranges[0][0])
        if node.fold:
            allowed = frozenset((only, only.lower(), only.upper()))
            return allowed.__contains__
        return only.__eq__
    if sum(high - low for low, high in ranges) < 512:
        chars = frozenset(chr(code) for low, high in ranges for code in range(low, high + 1))
        return chars.__contains__
    return lambda char: any(low <= ord(char) <= high for low, high in ranges)
