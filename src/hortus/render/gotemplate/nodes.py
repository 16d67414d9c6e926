"""The tree of a parsed template. `str(node)` is the node as Go's error messages quote it.

Positions are offsets at the places where Go puts them, into the text the tree was parsed from; those of a statement's
expressions count from the `base` of the statement, as an action that stands in many texts is one tree.
"""

from __future__ import annotations

from typing import Any

from hortus.render.gotemplate.lexer import T, Token
from hortus.render.gotemplate.numbers import INT64_MAX, INT64_MIN, UINT64_MAX, parse_float, parse_integer
from hortus.render.gotemplate.unquoting import unquote_rune
from hortus.schema.quoting import quote


class SourceText:
    """One parsed text: what errors name."""

    __slots__ = ("name", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    def location(self, position: int) -> str:
        """`line:column`, columns counted in bytes as Go does."""
        before = self.text[:position]
        line = before.count("\n") + 1
        start = before.rfind("\n") + 1
        return f"{line}:{len(before[start:].encode('utf-8', 'surrogateescape'))}"


class Node:
    __slots__ = ("position",)

    def __init__(self, position: int) -> None:
        self.position = position


class Text(Node):
    __slots__ = ("text",)

    def __init__(self, position: int, text: str) -> None:
        self.position = position
        self.text = text

    def __str__(self) -> str:
        return self.text


class Nodes(Node):
    """A list of nodes."""

    __slots__ = ("nodes",)

    def __init__(self, position: int) -> None:
        self.position = position
        self.nodes: list[Node] = []

    def __str__(self) -> str:
        return "".join(map(str, self.nodes))

    def is_empty(self) -> bool:
        """True when the nodes hold white space alone."""
        return all(isinstance(node, Text) and not node.text.strip() for node in self.nodes)


class Literal(Node):
    """A string, boolean or number. `value` is what it is where any type will do; `integer` and so on where not."""

    __slots__ = ("floating", "integer", "kind", "shown", "unsigned", "value")

    def __init__(self, position: int, kind: str, shown: str, value: Any) -> None:
        self.position = position
        self.kind = kind
        self.shown = shown
        self.value = value
        self.integer: int | None = None
        self.unsigned: int | None = None
        self.floating: float | None = None

    def __str__(self) -> str:
        return self.shown


class Dot(Node):
    __slots__ = ()

    def __str__(self) -> str:
        return "."


class Nil(Node):
    __slots__ = ()

    def __str__(self) -> str:
        return "nil"


class Field(Node):
    """.X.Y"""

    __slots__ = ("names",)

    def __init__(self, position: int, names: list[str]) -> None:
        self.position = position
        self.names = names

    def __str__(self) -> str:
        return "".join("." + name for name in self.names)


class Variable(Node):
    """$x.Y; the first name has the dollar sign."""

    __slots__ = ("names",)

    def __init__(self, position: int, names: list[str]) -> None:
        self.position = position
        self.names = names

    def __str__(self) -> str:
        return ".".join(self.names)


class Identifier(Node):
    """The name of a function."""

    __slots__ = ("name",)

    def __init__(self, position: int, name: str) -> None:
        self.position = position
        self.name = name

    def __str__(self) -> str:
        return self.name


class Chain(Node):
    """(pipeline).X.Y"""

    __slots__ = ("names", "node")

    def __init__(self, position: int, node: Node) -> None:
        self.position = position
        self.node = node
        self.names: list[str] = []

    def __str__(self) -> str:
        inner = f"({self.node})" if isinstance(self.node, Pipe) else str(self.node)
        return inner + "".join("." + name for name in self.names)


class Command(Node):
    __slots__ = ("arguments",)

    def __init__(self, position: int) -> None:
        self.position = position
        self.arguments: list[Node] = []

    def __str__(self) -> str:
        return " ".join(f"({part})" if isinstance(part, Pipe) else str(part) for part in self.arguments)


class Pipe(Node):
    __slots__ = ("assigns", "commands", "declared")

    def __init__(self, position: int) -> None:
        self.position = position
        self.assigns = False
        self.declared: list[Variable] = []
        self.commands: list[Command] = []

    def __str__(self) -> str:
        begin = ""
        if self.declared:
            begin = ", ".join(map(str, self.declared)) + (" = " if self.assigns else " := ")
        return begin + " | ".join(map(str, self.commands))


class Action(Node):
    __slots__ = ("base", "pipe")

    def __init__(self, position: int, pipe: Pipe, base: int = 0) -> None:
        self.position = position
        self.pipe = pipe
        self.base = base

    def __str__(self) -> str:
        return f"{{{{{self.pipe}}}}}"


class Branch(Node):
    """if, with or range."""

    __slots__ = ("base", "body", "keyword", "otherwise", "pipe")

    def __init__(self, keyword: str, pipe: Pipe, body: Nodes, otherwise: Nodes | None, base: int = 0) -> None:
        self.position = pipe.position
        self.base = base
        self.keyword = keyword
        self.pipe = pipe
        self.body = body
        self.otherwise = otherwise

    def __str__(self) -> str:
        other = f"{{{{else}}}}{self.otherwise}" if self.otherwise is not None else ""
        return f"{{{{{self.keyword} {self.pipe}}}}}{self.body}{other}{{{{end}}}}"


class Jump(Node):
    """break or continue."""

    __slots__ = ("keyword",)

    def __init__(self, position: int, keyword: str) -> None:
        self.position = position
        self.keyword = keyword

    def __str__(self) -> str:
        return f"{{{{{self.keyword}}}}}"


class Template(Node):
    """A call of another template."""

    __slots__ = ("base", "name", "pipe", "shown")

    def __init__(self, position: int, name: str, shown: str, pipe: Pipe | None, base: int = 0) -> None:
        self.position = position
        self.base = base
        self.name = name
        self.shown = shown
        self.pipe = pipe

    def __str__(self) -> str:
        return f"{{{{template {self.shown}{f' {self.pipe}' if self.pipe else ''}}}}}"


class Tree:
    """One template: its name, its nodes, the text it came from, and the places its variables need in a frame."""

    __slots__ = ("name", "root", "slots", "source")

    def __init__(self, name: str, source: SourceText, root: Nodes, slots: int) -> None:
        self.name = name
        self.source = source
        self.root = root
        self.slots = slots


def number(token: Token) -> Literal:
    text = token.text
    found = Literal(token.position, "number", text, None)
    if token.kind is T.CHARACTER:
        code = unquote_rune(text)
        found.value = found.integer = found.unsigned = code
        found.floating = float(code)
        return found
    if token.kind is T.COMPLEX or text.endswith("i"):
        raise ValueError(f"complex numbers are not supported: {quote(text)}")
    whole = parse_integer(text)
    if whole is not None and INT64_MIN <= whole <= INT64_MAX:
        found.value = found.integer = whole
        found.floating = float(whole)
    if whole is not None and 0 <= whole <= UINT64_MAX and text[0] not in "+-":
        found.unsigned = whole
        found.floating = float(whole)
    if found.floating is None:
        _float(found, text)
    elif any(c in text for c in ".eEpP") and not text.lower().startswith("0x"):
        found.value = found.floating
    return found


def _float(found: Literal, text: str) -> None:
    value = parse_float(text)
    if value is None:
        raise ValueError(f"illegal number syntax: {quote(text)}")
    if not any(c in text for c in ".eEpP"):
        raise ValueError(f"integer overflow: {quote(text)}")
    found.floating = found.value = value
    if value.is_integer():
        if INT64_MIN <= value <= INT64_MAX:
            found.integer = int(value)
        if 0 <= value <= UINT64_MAX:
            found.unsigned = int(value)
