"""Parse RE2's syntax to a tree. Errors are worded as by Go's regexp/syntax."""

from __future__ import annotations

import sys
from typing import NamedTuple

from hortus.render.gotemplate.regexes.classes import (
    ANY,
    CONTROLS,
    NOT_NEWLINE,
    PERL,
    POSIX,
    Ranges,
    folded,
    merged,
    negated,
    unicode_class,
)

_MOST_REPEATS = 1000
_DEEPEST = 100
_LARGEST = 50_000
"""Nodes of the expression with its counted repeats written out."""


class RegexError(ValueError):
    """An expression that Go would refuse, or that this one cannot run."""

    def __init__(self, problem: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{part}`")


class Chars(NamedTuple):
    """One character out of ranges; `fold` ignores case."""

    ranges: Ranges
    fold: bool = False


class Assert(NamedTuple):
    """A place: begin, end, line_begin, line_end, boundary, no_boundary."""

    what: str


class Repeat(NamedTuple):
    node: Node
    low: int
    high: int | None
    greedy: bool


class Group(NamedTuple):
    node: Node
    number: int
    name: str


class Sequence(NamedTuple):
    nodes: tuple[Node, ...]


class Choice(NamedTuple):
    nodes: tuple[Node, ...]


Node = Chars | Assert | Repeat | Group | Sequence | Choice


class Parsed(NamedTuple):
    node: Node
    groups: int
    names: dict[str, list[int]]


def parse(text: str) -> Parsed:
    """The tree of an expression. Raises RegexError."""
    parser = _Parser(text)
    node = parser.choice(0)
    if parser.at < len(text):
        raise RegexError("unexpected )", text)
    if _size(node) > _LARGEST:
        raise RegexError("expression too large", text[:40])
    return Parsed(node, parser.groups, parser.names)


def _size(node: Node) -> int:
    if isinstance(node, Repeat):
        return 1 + _size(node.node) * max(node.low, node.high or 1, 1)
    if isinstance(node, Group):
        return 1 + _size(node.node)
    if isinstance(node, Sequence | Choice):
        return 1 + sum(map(_size, node.nodes))
    return 1


class _Flags(NamedTuple):
    fold: bool = False
    lines: bool = False
    dot_all: bool = False
    lazy: bool = False


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.groups = 0
        self.names: dict[str, list[int]] = {}
        self.flags = _Flags()

    def choice(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise RegexError("expression nests too deeply", self.text[:40])
        outer = self.flags
        options = [self.sequence(depth)]
        while self.text.startswith("|", self.at):
            self.at += 1
            options.append(self.sequence(depth))
        self.flags = outer
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            node = self.atom(depth)
            if node is not None:
                parts.append(self.repeats(node))
            elif self.text[self.at : self.at + 1] in tuple("*+?"):
                raise RegexError("missing argument to repetition operator", self.text[self.at])
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    # Repeats

    def repeats(self, node: Node) -> Node:
        last = ""
        while (found := self._bounds()) is not None:
            low, high, end = found
            operator = self.text[self.at : end]
            self.at = end
            greedy = not self.flags.lazy
            if self.text.startswith("?", self.at):
                greedy = not greedy
                self.at += 1
            if last:
                raise RegexError("invalid nested repetition operator", last + self.text[end - len(operator) : self.at])
            last = self.text[end - len(operator) : self.at]
            node = Repeat(node, low, high, greedy)
        return node

    def _bounds(self) -> tuple[int, int | None, int] | None:
        char = self.text[self.at : self.at + 1]
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(char)
        if simple:
            return *simple, self.at + 1
        if char != "{":
            return None
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at + 1 : end].partition(",") if end > 0 else ("", "", "")
        if not (low.isascii() and low.isdigit()) or (high and not (high.isascii() and high.isdigit())):
            return None
        most = (int(high) if high else None) if comma else int(low)
        if len(low) > 5 or len(high) > 5 or int(low) > _MOST_REPEATS or (most or 0) > _MOST_REPEATS:
            raise RegexError("invalid repeat count", self.text[self.at : end + 1])
        if most is not None and most < int(low):
            raise RegexError("invalid repeat count", self.text[self.at : end + 1])
        return int(low), most, end + 1

    # Atoms

    def atom(self, depth: int) -> Node | None:
        """One atom; None for a change of flags, which stands for nothing."""
        char = self.text[self.at]
        if char == "(":
            return self.group(depth)
        if char == "[":
            return Chars(self.bracket(), self.flags.fold)
        self.at += 1
        if char in "*+?":
            raise RegexError("missing argument to repetition operator", char)
        if char == ".":
            return Chars(ANY if self.flags.dot_all else NOT_NEWLINE)
        if char == "^":
            return Assert("line_begin" if self.flags.lines else "begin")
        if char == "$":
            return Assert("line_end" if self.flags.lines else "end")
        if char == "\\":
            return self.escape()
        return self.literal(char)

    def literal(self, char: str) -> Node:
        return Chars(((ord(char), ord(char)),), self.flags.fold and char.lower() != char.upper())

    def group(self, depth: int) -> Node | None:
        begin = self.at
        self.at += 1
        name = ""
        number = 0
        outer = self.flags
        if self.text.startswith("?", self.at):
            named = next((start for start in ("?P<", "?<") if self.text.startswith(start, self.at)), None)
            if named:
                name = self._name(named, begin)
            elif not self._group_flags(begin):
                return None
            else:
                number = -1
        if number == 0:
            self.groups += 1
            number = self.groups
            if name:
                self.names.setdefault(name, []).append(number)
        node = self.choice(depth + 1)
        if not self.text.startswith(")", self.at):
            raise RegexError("missing closing )", self.text)
        self.at += 1
        self.flags = outer
        return node if number < 0 else Group(node, number, name)

    def _name(self, start: str, begin: int) -> str:
        end = self.text.find(">", self.at)
        name = self.text[self.at + len(start) : end] if end > 0 else ""
        if end < 0 or not name or not all(char == "_" or (char.isascii() and char.isalnum()) for char in name):
            raise RegexError("invalid named capture", self.text[begin : end + 1] if end > 0 else self.text[begin:])
        self.at = end + 1
        return name

    def _group_flags(self, begin: int) -> bool:
        """Read `?flags:` or `?flags)`; whether a group follows."""
        self.at += 1
        value = True
        flags = self.flags
        seen = False
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char in "imsU":
                field = {"i": "fold", "m": "lines", "s": "dot_all", "U": "lazy"}[char]
                flags = flags._replace(**{field: value})
                seen = True
            elif char == "-" and value:
                value, seen = False, False
            elif char in ":)" and (value or seen):
                self.flags = flags
                return char == ":"
            else:
                break
        raise RegexError("invalid or unsupported Perl syntax", self.text[begin : self.at])

    def escape(self) -> Node:
        char = self._escaped()
        if char in PERL:
            return Chars(PERL[char])
        if char.lower() in PERL and char.isupper():
            return Chars(negated(PERL[char.lower()]))
        places = {"A": "begin", "z": "end", "b": "boundary", "B": "no_boundary"}
        if char in places:
            return Assert(places[char])
        if char in "pP":
            return Chars(self._unicode(char == "P"), self.flags.fold)
        if char == "Q":
            return self._quoted()
        code = self._code(char)
        return Chars(((code, code),), self.flags.fold and chr(code).lower() != chr(code).upper())

    def _escaped(self) -> str:
        if self.at >= len(self.text):
            raise RegexError("trailing backslash at end of expression", "")
        char = self.text[self.at]
        self.at += 1
        return char

    def _quoted(self) -> Node:
        end = self.text.find("\\E", self.at)
        stop = len(self.text) if end < 0 else end
        parts = tuple(self.literal(char) for char in self.text[self.at : stop])
        self.at = len(self.text) if end < 0 else end + 2
        return Sequence(parts)

    def _code(self, char: str) -> int:
        if char in CONTROLS:
            return CONTROLS[char]
        if char == "x":
            return self._hex()
        if "1" <= char <= "7" and self.text[self.at : self.at + 1] not in tuple("01234567"):
            raise RegexError("invalid escape sequence", "\\" + char)
        if "0" <= char <= "7":
            digits = char
            while len(digits) < 3 and self.text[self.at : self.at + 1] in tuple("01234567"):
                digits += self.text[self.at]
                self.at += 1
            return int(digits, 8)
        if char.isascii() and not char.isalnum():
            return ord(char)
        raise RegexError("invalid escape sequence", "\\" + char)

    def _hex(self) -> int:
        if self.text.startswith("{", self.at):
            end = self.text.find("}", self.at)
            digits = self.text[self.at + 1 : end] if end > 0 else ""
            after = end + 1
        else:
            digits, after = self.text[self.at : self.at + 2], self.at + 2
            if len(digits) < 2:
                digits = ""
        if not digits or len(digits) > 8 or any(char not in "0123456789abcdefABCDEF" for char in digits):
            raise RegexError("invalid escape sequence", "\\x" + self.text[self.at : self.at + 2])
        self.at = after
        code = int(digits, 16)
        if code > sys.maxunicode:
            raise RegexError("invalid escape sequence", "\\x{" + digits + "}")
        return code

    def _unicode(self, negate: bool) -> Ranges:
        begin = self.at - 2
        if self.text.startswith("{", self.at):
            end = self.text.find("}", self.at)
            if end < 0:
                raise RegexError("invalid character class range", self.text[begin:])
            name = self.text[self.at + 1 : end]
            self.at = end + 1
        else:
            name = self._escaped()
        if name.startswith("^"):
            name, negate = name[1:], not negate
        ranges = unicode_class(name)
        if ranges is None:
            raise RegexError("invalid character class range", self.text[begin : self.at])
        return negated(ranges) if negate else ranges

    # Brackets

    def bracket(self) -> Ranges:
        begin = self.at
        self.at += 1
        negate = self.text.startswith("^", self.at)
        self.at += negate
        found: list[tuple[int, int]] = []
        first = True
        while first or not self.text.startswith("]", self.at):
            if self.at >= len(self.text):
                raise RegexError("missing closing ]", self.text[begin:])
            first = False
            found += self._bracket_part(begin)
        self.at += 1
        ranges = merged(tuple(found))
        if self.flags.fold:
            ranges = folded(ranges)
        return negated(ranges) if negate else ranges

    def _bracket_part(self, begin: int) -> Ranges:
        if self.text.startswith("[:", self.at):
            end = self.text.find(":]", self.at)
            if end > 0:
                return self._posix(end)
        if self.text.startswith("\\", self.at) and self.text[self.at + 1 : self.at + 2] in tuple("dswDSWpP"):
            self.at += 1
            char = self._escaped()
            if char in "pP":
                return self._unicode(char == "P")
            ranges = PERL[char.lower()]
            return negated(ranges) if char.isupper() else ranges
        start = self.at
        low = self._bracket_char(begin)
        high = low
        if self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
            self.at += 1
            high = self._bracket_char(begin)
            if high < low:
                raise RegexError("invalid character class range", self.text[start : self.at])
        return ((low, high),)

    def _bracket_char(self, begin: int) -> int:
        if self.at >= len(self.text):
            raise RegexError("missing closing ]", self.text[begin:])
        char = self.text[self.at]
        self.at += 1
        return self._code(self._escaped()) if char == "\\" else ord(char)

    def _posix(self, end: int) -> Ranges:
        name = self.text[self.at + 2 : end]
        negate = name.startswith("^")
        ranges = POSIX.get(name.removeprefix("^"))
        if ranges is None:
            raise RegexError("invalid character class range", self.text[self.at : end + 2])
        self.at = end + 2
        return negated(ranges) if negate else ranges
