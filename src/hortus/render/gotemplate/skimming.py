"""Trees the quick way: a text is cut at its actions, and an action that stood in an earlier text is not parsed again.

Charts repeat themselves: of the actions of a large one most stand in it twice, and `{{- end }}` stands in all charts.
So an action is parsed once for its text and kept, with positions that count from its own beginning; what is left to do
for each text is the nesting of ifs, ranges and definitions. The grammar stays that of `parser`, which parses the
actions; and whatever is odd here (an error, a variable that nobody declared) is not decided here: there is no tree
then, and the parser reads the whole text and finds the error.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any, NamedTuple

from hortus.render.gotemplate import nodes
from hortus.render.gotemplate.errors import ParseError
from hortus.render.gotemplate.lexer import T
from hortus.render.gotemplate.parser import Parser
from hortus.schema.quoting import quote

MAIN = "\0"
"""Stands for the name of the text itself, so that texts of the same content share their trees."""
_SPACE = " \t\r\n"
_DELIMITED = re.compile(
    r"""\{\{(?:(-[ \t\r\n])?(?:/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/([ \t\r\n]-)?+"""
    r"""|([^"'`}]*+(?:(?:"(?:[^"\\\n]|\\[^\n])*+"|`[^`]*+`|'(?:[^'\\\n]|\\[^\n])*+')[^"'`}]*+)*+))(\}\})|)"""
)
"""A comment or an action; no fourth group where it is neither. The mark that trims text after an action is in its body.
"""
_TRIMS = re.compile(r"\A-[ \t\r\n]|[ \t\r\n]-\Z")
_CONTROLS = {T.IF: "if", T.RANGE: "range", T.WITH: "with"}
_COMMAND = "command"
_DEEPEST = 50
_KEPT_BYTES = 16 << 20
_WEIGHT, _PER_CHARACTER = 1000, 40
"""Bytes that an action's nodes take, about."""


class _Action(NamedTuple):
    """One action. Positions in `pipe` count from two characters before the action's words, where `{{` may stand."""

    kind: str
    keyword: str
    """The word of a control, or of an else that begins another one."""
    name: str
    pipe: Any
    """The nodes.Pipe; None where there is none."""
    position: int
    free: tuple[str, ...]
    """Variables that must have been declared before."""
    declared: tuple[str, ...]
    slots: int


class _Odd(Exception):
    """A text that is not decided here."""


class _Variables(list[str]):
    """Takes every variable as declared, and notes which ones were not declared here."""

    def __init__(self) -> None:
        super().__init__()
        self.free: dict[str, None] = {}

    def __contains__(self, name: object) -> bool:
        if not super().__contains__(name):
            self.free[str(name)] = None
        return True


class _ActionParser(Parser):
    def action(self) -> _Action:
        """The only action of the text. Raises ParseError, _Odd."""
        self.variables = variables = _Variables()
        self.next()
        token = self.next_word()
        kind, keyword, name, position = token.kind, "", "", 0
        pipe: nodes.Pipe | None = None
        if kind in _CONTROLS:
            keyword = _CONTROLS[kind]
            pipe = self.pipeline(keyword, T.RIGHT)
        elif kind is T.ELSE and self.peek_word().kind in (T.IF, T.WITH):
            keyword = _CONTROLS[self.next().kind]
            pipe = self.pipeline(keyword, T.RIGHT)
        elif kind in (T.END, T.ELSE, T.BREAK, T.CONTINUE):
            keyword = token.text
            self.expect(keyword, T.RIGHT)
        elif kind is T.DEFINE:
            name = self.unquoted(self.expect("define clause", T.STRING, T.RAW))
            self.expect("define clause", T.RIGHT)
        elif kind in (T.TEMPLATE, T.BLOCK):
            found = self.template() if kind is T.TEMPLATE else self.block_head()
            name, pipe, position = found.name, found.pipe, found.position
        else:
            self.backup()
            kind, pipe = _COMMAND, self.pipeline("command", T.RIGHT)
        if self.next().kind is not T.EOF:
            raise _Odd
        slots = self.slots + (keyword == "range")
        return _Action(kind, keyword, name, pipe, position, tuple(variables.free), tuple(variables), slots)


class Skimmer:
    """Reads texts whose templates may call `functions`; what it has read it knows again."""

    def __init__(self, functions: Container[str], refused: Container[str]) -> None:
        self._functions = functions
        self._refused = refused
        self._known: dict[str, _Action] = {}
        self._size = 0

    def trees(self, text: str) -> dict[str, nodes.Tree] | None:
        """The trees that `text` defines by name, its own as MAIN; None for a text that the parser must read."""
        try:
            return _Text(text, self).trees()
        except (_Odd, ParseError, RecursionError):
            return None

    def action(self, body: str) -> _Action:
        """The action between the delimiters. Raises ParseError, _Odd."""
        found = self._known.get(body)
        if found is None:
            # A body that would be read as a part of its delimiters.
            if body.startswith("/*") or _TRIMS.search(body):
                raise _Odd
            source = nodes.SourceText(MAIN, f"{{{{{body}}}}}")
            found = _ActionParser(source, self._functions, self._refused).action()
            self._size += _WEIGHT + _PER_CHARACTER * len(body)
            if self._size > _KEPT_BYTES:
                # All at once: the order of use would have to be kept with each use.
                self._known.clear()
                self._size = 0
            self._known[body] = found
        return found


class _Open:
    """A control or a definition whose end is still to come."""

    __slots__ = ("action", "base", "body", "is_chained", "known", "otherwise", "outer")

    def __init__(self, action: _Action, base: int, known: int, *, is_chained: bool = False) -> None:
        self.action = action
        self.base = base
        self.known = known
        self.body = nodes.Nodes(base)
        self.otherwise: nodes.Nodes | None = None
        self.is_chained = is_chained
        self.outer: tuple[list[str], int, int] | None = None


class _Text:
    """One text on its way to trees."""

    def __init__(self, text: str, skimmer: Skimmer) -> None:
        self._text = text
        self._skimmer = skimmer
        self._source = nodes.SourceText(MAIN, text)
        self._trees: dict[str, nodes.Tree] = {}
        self._open: list[_Open] = []
        self._root = self._list = nodes.Nodes(0)
        self._variables = ["$"]
        self._ranges = 0
        self._slots = 1

    def trees(self) -> dict[str, nodes.Tree]:
        text, known, take = self._text, self._skimmer.action, self._take
        at, trims = 0, False
        for found in _DELIMITED.finditer(text):
            left, comment_right, body, closed = found.groups()
            if closed is None:
                raise _Odd
            begin, end = found.span()
            if begin > at:
                part = text[at:begin]
                if trims:
                    part = part.lstrip(_SPACE)
                if left:
                    part = part.rstrip(_SPACE)
                if part:
                    self._list.nodes.append(nodes.Text(at, part))
            at = end
            if body is None:
                trims = comment_right is not None
                continue
            trims = body[-1:] == "-" and body[-2:-1] in (" ", "\t", "\r", "\n")
            if trims:
                body = body[:-2]
            take(known(body), begin + 2 if left else begin)
        part = text[at:].lstrip(_SPACE) if trims else text[at:]
        if part:
            self._list.nodes.append(nodes.Text(at, part))
        if self._open:
            raise _Odd
        self._add(MAIN, self._root)
        return self._trees

    def _take(self, action: _Action, base: int) -> None:
        for name in action.free:
            if name not in self._variables:
                raise _Odd
        kind = action.kind
        if kind is _COMMAND:
            if action.slots:
                self._declare(action)
            self._list.nodes.append(nodes.Action(base, action.pipe, base))
        elif kind is T.END:
            self._end()
        elif kind is T.ELSE:
            self._else(action, base)
        elif kind in _CONTROLS:
            self._ranges += kind is T.RANGE
            self._begin(_Open(action, base, len(self._variables)))
            self._declare(action)
        elif kind is T.TEMPLATE:
            self._declare(action)
            self._list.nodes.append(_template(action, base))
        elif kind is T.BREAK or kind is T.CONTINUE:
            if not self._ranges:
                raise _Odd
            self._list.nodes.append(nodes.Jump(base, action.keyword))
        else:
            self._definition(action, base)

    def _declare(self, action: _Action) -> None:
        self._variables += action.declared
        self._slots += action.slots

    def _begin(self, opened: _Open) -> None:
        if len(self._open) >= _DEEPEST:
            raise _Odd
        self._open.append(opened)
        self._list = opened.body

    def _definition(self, action: _Action, base: int) -> None:
        if action.kind is T.DEFINE and self._open:
            raise _Odd
        self._declare(action)
        opened = _Open(action, base, 0)
        opened.outer = (self._variables, self._ranges, self._slots)
        self._variables, self._ranges, self._slots = ["$"], 0, 1
        self._begin(opened)

    def _else(self, action: _Action, base: int) -> None:
        opened = self._open[-1] if self._open else None
        if opened is None or opened.outer is not None or opened.otherwise is not None:
            raise _Odd
        self._ranges -= opened.action.keyword == "range"
        opened.otherwise = self._list = nodes.Nodes(base)
        if action.pipe is not None:
            if action.keyword != opened.action.keyword:
                raise _Odd
            self._begin(_Open(action, base, len(self._variables), is_chained=True))
            self._declare(action)

    def _end(self) -> None:
        while True:
            if not self._open:
                raise _Odd
            closed = self._open.pop()
            above = self._open[-1] if self._open else None
            if closed.outer is not None:
                self._add(closed.action.name, closed.body)
                self._variables, self._ranges, self._slots = closed.outer
            else:
                self._ranges -= closed.action.keyword == "range" and closed.otherwise is None
                del self._variables[closed.known :]
            self._list = self._root_of(above)
            if closed.action.kind is not T.DEFINE:
                self._list.nodes.append(_closed(closed))
            if not closed.is_chained:
                return

    def _root_of(self, above: _Open | None) -> nodes.Nodes:
        if above is None:
            return self._root
        return above.body if above.otherwise is None else above.otherwise

    def _add(self, name: str, root: nodes.Nodes) -> None:
        known = self._trees.get(name)
        if known is None or known.root.is_empty():
            self._trees[name] = nodes.Tree(name, self._source, root, self._slots)
        elif not root.is_empty():
            raise _Odd


def _template(action: _Action, base: int) -> nodes.Template:
    return nodes.Template(action.position, action.name, quote(action.name), action.pipe, base)


def _closed(opened: _Open) -> nodes.Node:
    action = opened.action
    if action.kind is T.BLOCK:
        return _template(action, opened.base)
    return nodes.Branch(action.keyword, action.pipe, opened.body, opened.otherwise, opened.base)
