"""Parses tokens into trees, one per template of a text. The grammar and the errors are text/template/parse's."""

from __future__ import annotations

from collections.abc import Container

from hortus.render.gotemplate import nodes
from hortus.render.gotemplate.lexer import T, Token
from hortus.render.gotemplate.nodes import number
from hortus.render.gotemplate.tokenreader import TokenReader
from hortus.render.gotemplate.unquoting import unquote
from hortus.schema.quoting import quote

_OPERANDS = frozenset(
    (
        T.BOOL,
        T.CHARACTER,
        T.COMPLEX,
        T.DOT,
        T.FIELD,
        T.IDENTIFIER,
        T.NUMBER,
        T.NIL,
        T.RAW,
        T.STRING,
        T.VARIABLE,
        T.LEFT_PAREN,
    )
)
_DEEPEST = 200
"""Nesting of parentheses and controls. Go allows 10,000; no template that people wrote comes near either."""


class _End(nodes.Node):
    def __str__(self) -> str:
        return "{{end}}"


class _Else(nodes.Node):
    def __str__(self) -> str:
        return "{{else}}"


def parse(name: str, text: str, functions: Container[str], *, refused: Container[str] = ()) -> dict[str, nodes.Tree]:
    """The trees that `text` defines by name, its own among them. Raises ParseError.

    `functions` are the names that may be called; a call of a `refused` one is told apart from an unknown one.
    """
    source = nodes.SourceText(name, text)
    return Parser(source, functions, refused).run()


class Parser(TokenReader):
    """Reads one text."""

    def __init__(self, source: nodes.SourceText, functions: Container[str], refused: Container[str]) -> None:
        super().__init__(source)
        self.functions = functions
        self.refused = refused
        self.trees: dict[str, nodes.Tree] = {}
        self.variables = ["$"]
        self.range_depth = 0
        self.depth = 0
        self.slots = 0
        """Places that the variables and ranges of a template need in its frame, besides `$`."""

    # Structure

    def run(self) -> dict[str, nodes.Tree]:
        root = nodes.Nodes(self.peek().position)
        while self.peek().kind is not T.EOF:
            if self.peek().kind is T.LEFT:
                begin = self.at
                self.next()
                if self.next_word().kind is T.DEFINE:
                    self._definition()
                    continue
                self.at = begin
            node = self._text_or_action()
            if isinstance(node, _End | _Else):
                raise self.error(f"unexpected {node}")
            root.nodes.append(node)
        self._add(self.source.name, root)
        return self.trees

    def _add(self, name: str, root: nodes.Nodes) -> None:
        known = self.trees.get(name)
        if known is None or known.root.is_empty():
            self.trees[name] = nodes.Tree(name, self.source, root, self.slots + 1)
        elif not root.is_empty():
            raise self.error(f"template: multiple definition of template {quote(name)}")

    def _definition(self) -> None:
        context = "define clause"
        name = self.unquoted(self.expect(context, T.STRING, T.RAW))
        self.expect(context, T.RIGHT)
        self._separate(name, context)

    def _separate(self, name: str, context: str) -> None:
        outer = (self.variables, self.range_depth, self.action_line, self.slots)
        self.variables, self.range_depth, self.action_line, self.slots = ["$"], 0, 0, 0
        root, end = self._list()
        if not isinstance(end, _End):
            raise self.error(f"unexpected {end} in {context}")
        self._add(name, root)
        self.variables, self.range_depth, self.action_line, self.slots = outer

    def _list(self) -> tuple[nodes.Nodes, nodes.Node]:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"nested deeper than {_DEEPEST} levels")
        found = nodes.Nodes(self.peek_word().position)
        while self.peek_word().kind is not T.EOF:
            node = self._text_or_action()
            if isinstance(node, _End | _Else):
                self.depth -= 1
                return found, node
            found.nodes.append(node)
        raise self.error("unexpected EOF", self.peek().line)

    def _text_or_action(self) -> nodes.Node:
        token = self.next_word()
        if token.kind is T.TEXT:
            return nodes.Text(token.position, token.text)
        if token.kind is not T.LEFT:
            raise self.unexpected(token, "input")
        self.action_line = token.line
        node = self._action()
        self.action_line = 0
        return node

    def _action(self) -> nodes.Node:
        token = self.next_word()
        if token.kind in (T.IF, T.RANGE, T.WITH):
            return self._control(token.text)
        if token.kind is T.END:
            return _End(self.expect("end", T.RIGHT).position)
        if token.kind is T.ELSE:
            return self._else()
        if token.kind is T.TEMPLATE:
            return self.template()
        if token.kind is T.BLOCK:
            return self._block()
        if token.kind in (T.BREAK, T.CONTINUE):
            return self._jump(token)
        self.backup()
        return nodes.Action(self.peek().position, self.pipeline("command", T.RIGHT))

    def _jump(self, token: Token) -> nodes.Node:
        following = self.next_word()
        if following.kind is not T.RIGHT:
            raise self.unexpected(following, f"{{{{{token.text}}}}}")
        if not self.range_depth:
            raise self.error(f"{{{{{token.text}}}}} outside {{{{range}}}}")
        return nodes.Jump(token.position, token.text)

    def _else(self) -> nodes.Node:
        following = self.peek_word()
        if following.kind in (T.IF, T.WITH):
            return _Else(following.position)
        return _Else(self.expect("else", T.RIGHT).position)

    def _control(self, keyword: str) -> nodes.Branch:
        known = len(self.variables)
        pipe = self.pipeline(keyword, T.RIGHT)
        self.range_depth += keyword == "range"
        self.slots += keyword == "range"
        body, end = self._list()
        self.range_depth -= keyword == "range"
        otherwise = self._otherwise(keyword, end) if isinstance(end, _Else) else None
        del self.variables[known:]
        return nodes.Branch(keyword, pipe, body, otherwise)

    def _otherwise(self, keyword: str, end: nodes.Node) -> nodes.Nodes:
        kind = self.peek().kind
        if (keyword == "if" and kind is T.IF) or (keyword == "with" and kind is T.WITH):
            self.next()
            found = nodes.Nodes(end.position)
            self.depth += 1
            if self.depth > _DEEPEST:
                raise self.error(f"nested deeper than {_DEEPEST} levels")
            found.nodes.append(self._control(keyword))
            self.depth -= 1
            return found
        found, last = self._list()
        if not isinstance(last, _End):
            raise self.error(f"expected end; found {last}")
        return found

    def _block(self) -> nodes.Node:
        found = self.block_head()
        self._separate(found.name, "block clause")
        return found

    def block_head(self) -> nodes.Template:
        context = "block clause"
        token = self.next_word()
        name = self._template_name(token, context)
        return nodes.Template(token.position, name, quote(name), self.pipeline(context, T.RIGHT))

    def template(self) -> nodes.Template:
        context = "template clause"
        token = self.next_word()
        name = self._template_name(token, context)
        pipe = None
        if self.next_word().kind is not T.RIGHT:
            self.backup()
            pipe = self.pipeline(context, T.RIGHT)
        return nodes.Template(token.position, name, quote(name), pipe)

    def _template_name(self, token: Token, context: str) -> str:
        if token.kind not in (T.STRING, T.RAW):
            raise self.unexpected(token, context)
        return self.unquoted(token)

    def unquoted(self, token: Token) -> str:
        try:
            return unquote(token.text)
        except ValueError as error:
            raise self.error(str(error)) from None

    # Pipelines

    def pipeline(self, context: str, end: str) -> nodes.Pipe:
        pipe = nodes.Pipe(self.peek_word().position)
        self._declarations(pipe, context)
        while True:
            token = self.next_word()
            if token.kind is end:
                self._check(pipe, context)
                return pipe
            if token.kind not in _OPERANDS:
                raise self.unexpected(token, context)
            self.backup()
            pipe.commands.append(self._command())

    def _declarations(self, pipe: nodes.Pipe, context: str) -> None:
        while self.peek_word().kind is T.VARIABLE:
            begin = self.at
            variable = self.next()
            following = self.peek_word()
            comma = following.kind is T.CHAR and following.text == ","
            if following.kind not in (T.ASSIGN, T.DECLARE) and not comma:
                self.at = begin
                return
            self.next_word()
            pipe.assigns = following.kind is T.ASSIGN
            pipe.declared.append(nodes.Variable(variable.position, [variable.text]))
            self.variables.append(variable.text)
            self.slots += 1
            if not comma:
                return
            if context != "range" or len(pipe.declared) >= 2:
                raise self.error(f"too many declarations in {context}")
            if self.peek_word().kind not in (T.VARIABLE, T.RIGHT, T.RIGHT_PAREN):
                raise self.error("range can only initialize variables")

    def _check(self, pipe: nodes.Pipe, context: str) -> None:
        if not pipe.commands:
            raise self.error(f"missing value for {context}")
        for stage, command in enumerate(pipe.commands[1:], start=2):
            if isinstance(command.arguments[0], nodes.Literal | nodes.Dot | nodes.Nil):
                raise self.error(f"non executable command in pipeline stage {stage}")

    def _command(self) -> nodes.Command:
        command = nodes.Command(self.peek_word().position)
        while True:
            self.peek_word()
            operand = self._operand()
            if operand is not None:
                command.arguments.append(operand)
            token = self.next()
            if token.kind is T.SPACE:
                continue
            if token.kind in (T.RIGHT, T.RIGHT_PAREN):
                self.backup()
            elif token.kind is not T.PIPE:
                raise self.unexpected(token, "operand")
            break
        if not command.arguments:
            raise self.error("empty command")
        return command

    def _operand(self) -> nodes.Node | None:
        node = self._term()
        if node is None or self.peek().kind is not T.FIELD:
            return node
        position = self.peek().position
        names = []
        while self.peek().kind is T.FIELD:
            names.append(self.next().text[1:])
        if isinstance(node, nodes.Field):
            return nodes.Field(position, node.names + names)
        if isinstance(node, nodes.Variable):
            return nodes.Variable(position, node.names + names)
        if isinstance(node, nodes.Literal | nodes.Nil | nodes.Dot):
            raise self.error(f"unexpected . after term {quote(str(node))}")
        chain = nodes.Chain(position, node)
        chain.names = names
        return chain

    def _term(self) -> nodes.Node | None:
        token = self.next_word()
        kind = token.kind
        if kind is T.FIELD:
            return nodes.Field(token.position, [token.text[1:]])
        if kind is T.IDENTIFIER:
            return self._function(token)
        if kind in (T.STRING, T.RAW):
            return nodes.Literal(token.position, "string", token.text, self.unquoted(token))
        if kind is T.VARIABLE:
            if token.text not in self.variables:
                raise self.error(f"undefined variable {quote(token.text)}")
            return nodes.Variable(token.position, [token.text])
        if kind is T.DOT:
            return nodes.Dot(token.position)
        if kind is T.LEFT_PAREN:
            return self._parenthesized()
        if kind in (T.NUMBER, T.CHARACTER, T.COMPLEX):
            return self._number(token)
        if kind is T.BOOL:
            return nodes.Literal(token.position, "bool", token.text, token.text == "true")
        if kind is T.NIL:
            return nodes.Nil(token.position)
        self.backup()
        return None

    def _parenthesized(self) -> nodes.Pipe:
        if self.depth >= _DEEPEST:
            raise self.error("max expression depth exceeded")
        self.depth += 1
        found = self.pipeline("parenthesized pipeline", T.RIGHT_PAREN)
        self.depth -= 1
        return found

    def _function(self, token: Token) -> nodes.Node:
        if token.text in self.refused:
            raise self.error(
                f"function {quote(token.text)} not defined (refused, as it reaches the process or a network)"
            )
        if token.text not in self.functions:
            raise self.error(f"function {quote(token.text)} not defined")
        return nodes.Identifier(token.position, token.text)

    def _number(self, token: Token) -> nodes.Literal:
        try:
            return number(token)
        except ValueError as error:
            raise self.error(str(error)) from None
