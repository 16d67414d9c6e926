"""The tokens of one text in their order, and the errors that name their lines."""

from __future__ import annotations

from hortus.render.gotemplate import nodes
from hortus.render.gotemplate.errors import ParseError
from hortus.render.gotemplate.lexer import T, Token, tokens


class TokenReader:
    """Reads the tokens of one text one by one."""

    def __init__(self, source: nodes.SourceText) -> None:
        self.source = source
        self.tokens = tokens(source.text)
        self.at = 0
        self.action_line = 0
        """Line on which the present action begins; 0 outside of one."""

    def next(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def peek(self) -> Token:
        try:
            return self.tokens[self.at]
        except IndexError:
            return self.tokens[-1]

    def backup(self) -> None:
        self.at -= 1

    def next_word(self) -> Token:
        token = self.peek_word()
        self.at += 1
        return token

    def peek_word(self) -> Token:
        token = self.peek()
        while token.kind is T.SPACE:
            self.at += 1
            token = self.peek()
        return token

    def expect(self, context: str, *kinds: str) -> Token:
        token = self.next_word()
        if token.kind not in kinds:
            raise self.unexpected(token, context)
        return token

    # Errors

    def error(self, message: str, line: int | None = None) -> ParseError:
        if line is None:
            line = self.tokens[min(max(self.at - 1, 0), len(self.tokens) - 1)].line
        return ParseError(f"template: {self.source.name}:{line}: {message}")

    def unexpected(self, token: Token, context: str) -> ParseError:
        if token.kind is not T.ERROR:
            return self.error(f"unexpected {token.described()} in {context}")
        extra = ""
        if self.action_line not in (0, token.line):
            extra = f" in action started at {self.source.name}:{self.action_line}"
            if token.text.endswith(" action"):
                extra = extra[len(" in action") :]
        return self.error(token.text + extra, token.line)

    # Structure
