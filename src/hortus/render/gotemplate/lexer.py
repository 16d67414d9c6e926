"""Tokens of a template.

One regular expression per kind of token instead of Go's state functions; the tokens, their positions and the words of
the errors are the same (text/template/parse). The whole text is cut at once into a list; an error is the last token.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from hortus.schema.quoting import quote

_SPACE = " \t\r\n"
_TEXT = re.compile(r"\{\{")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?|0[oO][0-7_]*(?:\.[0-7_]*)?"
    r"|0[bB][01_]*(?:\.[01_]*)?|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)i?"
)
_WORD = re.compile(r"\w*")
_SPACES = re.compile(r"[ \t\r\n]+")
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
_RAW = re.compile(r"`[^`]*`")
_CHARACTER = re.compile(r"'(?:[^'\\\n]|\\[^\n])*'")
_END = r"(?=[ \t\r\n.,|:)(]|\}\}|\Z)"
_COMMON = re.compile(
    rf"([ \t\r\n]++(?!-\}}\}}))|(\.[A-Za-z_]\w*+{_END})|([A-Za-z_]\w*+{_END})"
    rf'|("(?:[^"\\\n]|\\[^\n])*+")|(\|)|(\$\w*+{_END})|(\.{_END})|([0-9]++(?=[ )|}}]))|(:=)|(\()|(=)'
)
"""The tokens of which nearly all actions consist, where nothing about them is odd."""
_TERMINATORS = frozenset(" \t\r\n.,|:)(")


class T:
    """Kinds of tokens. Plain words, as looking up the members of an enumeration takes a part of the time to parse."""

    ERROR: Final = "error"
    BOOL: Final = "bool"
    CHAR: Final = "char"
    CHARACTER: Final = "character"
    COMPLEX: Final = "complex"
    ASSIGN: Final = "assign"
    DECLARE: Final = "declare"
    EOF: Final = "eof"
    FIELD: Final = "field"
    IDENTIFIER: Final = "identifier"
    LEFT: Final = "left"
    LEFT_PAREN: Final = "left paren"
    NUMBER: Final = "number"
    PIPE: Final = "pipe"
    RAW: Final = "raw"
    RIGHT: Final = "right"
    RIGHT_PAREN: Final = "right paren"
    SPACE: Final = "space"
    STRING: Final = "string"
    TEXT: Final = "text"
    VARIABLE: Final = "variable"
    DOT: Final = "dot"
    NIL: Final = "nil"
    BLOCK: Final = "block"
    BREAK: Final = "break"
    CONTINUE: Final = "continue"
    DEFINE: Final = "define"
    ELSE: Final = "else"
    END: Final = "end"
    IF: Final = "if"
    RANGE: Final = "range"
    TEMPLATE: Final = "template"
    WITH: Final = "with"


KEYWORDS = {
    "block": T.BLOCK,
    "break": T.BREAK,
    "continue": T.CONTINUE,
    "define": T.DEFINE,
    "else": T.ELSE,
    "end": T.END,
    "if": T.IF,
    "range": T.RANGE,
    "nil": T.NIL,
    "template": T.TEMPLATE,
    "with": T.WITH,
}
WORDS = {**KEYWORDS, "true": T.BOOL, "false": T.BOOL}
_COMMON_KINDS = (
    T.ERROR,
    T.SPACE,
    T.FIELD,
    T.IDENTIFIER,
    T.STRING,
    T.PIPE,
    T.VARIABLE,
    T.DOT,
    T.NUMBER,
    T.DECLARE,
    T.LEFT_PAREN,
    T.ASSIGN,
)
_KEYWORD_KINDS = frozenset(KEYWORDS.values()) | {T.DOT}
_SINGLE = {"=": T.ASSIGN, "|": T.PIPE}


class Token(NamedTuple):
    kind: str
    text: str
    position: int
    line: int

    def described(self) -> str:
        """The token as Go's error messages show it."""
        if self.kind is T.EOF:
            return "EOF"
        if self.kind is T.ERROR:
            return self.text
        if self.kind in _KEYWORD_KINDS:
            return f"<{self.text}>"
        return quote(self.text[:10]) + "..." if len(self.text.encode("utf-8", "replace")) > 10 else quote(self.text)


class _Failed(Exception):
    pass


def tokens(text: str) -> list[Token]:
    """All tokens of `text`; the last is EOF or ERROR."""
    return _Lexer(text).run()


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.line = 1
        self.found: list[Token] = []
        self.parens = 0

    def run(self) -> list[Token]:
        try:
            while self._text():
                self._action()
        except _Failed:
            return self.found
        self._emit(T.EOF, self.position)
        return self.found

    def _emit(self, kind: str, end: int) -> None:
        text = self.text[self.position : end]
        self.found.append(Token(kind, text, self.position, self.line))
        self._skip(end)

    def _skip(self, end: int) -> None:
        self.line += self.text.count("\n", self.position, end)
        self.position = end

    def _fail(self, message: str, *, at: int | None = None) -> _Failed:
        self.found.append(Token(T.ERROR, message, self.position if at is None else at, self.line))
        return _Failed()

    def _text(self) -> bool:
        """Emit the text before the next action; whether there is an action."""
        begin = self.text.find("{{", self.position)
        if begin < 0:
            if self.position < len(self.text):
                self._emit(T.TEXT, len(self.text))
            return False
        after = begin + 2
        trim = self._left_trim(after)
        end = begin
        if trim:
            while end > self.position and self.text[end - 1] in _SPACE:
                end -= 1
        if end > self.position:
            self._emit(T.TEXT, end)
        self._skip(begin)
        after += 2 if trim else 0
        if self.text.startswith("/*", after):
            self._skip(after)
            self._comment()
            return self._text_again()
        self.found.append(Token(T.LEFT, "{{", self.position, self.line))
        self._skip(after)
        self.parens = 0
        return True

    def _text_again(self) -> bool:
        # A comment is followed by text again; a loop here, as thousands of comments must not nest calls.
        while True:
            before = len(self.found)
            begin = self.text.find("{{", self.position)
            if begin < 0 or not self._comment_at(begin):
                return self._text()
            end = begin
            if self._left_trim(begin + 2):
                while end > self.position and self.text[end - 1] in _SPACE:
                    end -= 1
            if end > self.position:
                self._emit(T.TEXT, end)
            self._skip(begin + (4 if self._left_trim(begin + 2) else 2))
            self._comment()
            assert len(self.found) - before <= 1

    def _comment_at(self, begin: int) -> bool:
        after = begin + 2
        return self.text.startswith("/*", after + 2 if self._left_trim(after) else after)

    def _left_trim(self, after: int) -> bool:
        return self.text.startswith("-", after) and self.text[after + 1 : after + 2] in tuple(_SPACE)

    def _right_trim(self, at: int) -> bool:
        return self.text[at : at + 1] in tuple(_SPACE) and self.text.startswith("-}}", at + 1)

    def _comment(self) -> None:
        end = self.text.find("*/", self.position + 2)
        if end < 0:
            raise self._fail("unclosed comment")
        end += 2
        trim = self._right_trim(end)
        if not trim and not self.text.startswith("}}", end):
            raise self._fail("comment ends before closing delimiter")
        end += 4 if trim else 2
        if trim:
            end = self._after_spaces(end)
        self._skip(end)

    def _after_spaces(self, at: int) -> int:
        found = _SPACES.match(self.text, at)
        return found.end() if found else at

    def _action(self) -> None:
        """Emit what stands between the delimiters, and the right one."""
        while True:
            self._common()
            at = self.position
            trim = self._right_trim(at)
            if trim or self.text.startswith("}}", at):
                if self.parens:
                    raise self._fail("unclosed left paren")
                self._right(trim)
                return
            self._inside(at)

    def _common(self) -> None:
        """Emit common tokens as long as they come."""
        text, at, line, emit = self.text, self.position, self.line, self.found.append
        while match := _COMMON.match(text, at):
            word, end, group = match[0], match.end(), match.lastindex
            assert group is not None
            kind = _COMMON_KINDS[group]
            if kind is T.IDENTIFIER:
                kind = WORDS.get(word, kind)
            emit(Token._make((kind, word, at, line)))
            if kind is T.SPACE:
                line += word.count("\n")
            elif kind is T.LEFT_PAREN:
                self.parens += 1
            at = end
        self.position, self.line = at, line

    def _right(self, trim: bool) -> None:
        if trim:
            self._skip(self.position + 2)
        self._emit(T.RIGHT, self.position + 2)
        if trim:
            self._skip(self._after_spaces(self.position))

    def _inside(self, at: int) -> None:
        if at >= len(self.text):
            raise self._fail("unclosed action")
        c = self.text[at]
        if c in _SPACE:
            self._spaces(at)
        elif c in _SINGLE:
            self._emit(_SINGLE[c], at + 1)
        elif c == ":":
            if not self.text.startswith("=", at + 1):
                raise self._fail("expected :=")
            self._emit(T.DECLARE, at + 2)
        elif c in "\"`'":
            self._quoted(at, c)
        elif c == "$" or (c == "." and self.text[at + 1 : at + 2] not in tuple("0123456789")):
            self._field_or_variable(at, c)
        elif c in "+-.0123456789":
            self._number(at)
        elif c == "_" or c.isalpha() or c.isdigit():
            self._identifier(at)
        elif c in "()":
            self._paren(at, c)
        elif " " <= c < "\x7f":
            self._emit(T.CHAR, at + 1)
        else:
            raise self._fail(f"unrecognized character in action: {_unicode(c)}")

    def _spaces(self, at: int) -> None:
        end = self._after_spaces(at)
        if self._right_trim(end - 1):
            end -= 1
        if end > at:
            self._emit(T.SPACE, end)

    def _quoted(self, at: int, c: str) -> None:
        pattern, kind, name = {
            '"': (_QUOTED, T.STRING, "quoted string"),
            "`": (_RAW, T.RAW, "raw quoted string"),
            "'": (_CHARACTER, T.CHARACTER, "character constant"),
        }[c]
        found = pattern.match(self.text, at)
        if not found:
            raise self._fail(f"unterminated {name}")
        self._emit(kind, found.end())

    def _field_or_variable(self, at: int, c: str) -> None:
        kind = T.VARIABLE if c == "$" else T.FIELD
        end = at + 1
        if self._at_terminator(end):
            self._emit(T.VARIABLE if c == "$" else T.DOT, end)
            return
        self._word(at, end, kind)

    def _word(self, at: int, start: int, kind: str | None) -> None:
        found = _WORD.match(self.text, start)
        end = found.end() if found else start
        if not self._at_terminator(end):
            raise self._fail(f"bad character {_unicode(self.text[end])}")
        word = self.text[at:end]
        if kind is None:
            kind = WORDS.get(word, T.IDENTIFIER)
        self._emit(kind, end)

    def _identifier(self, at: int) -> None:
        self._word(at, at, None)

    def _at_terminator(self, at: int) -> bool:
        return at >= len(self.text) or self.text[at] in _TERMINATORS or self.text.startswith("}}", at)

    def _number(self, at: int) -> None:
        end = self._scan_number(at)
        kind = T.NUMBER
        if self.text[end : end + 1] in ("+", "-"):
            end = self._scan_number(end)
            if self.text[end - 1] != "i":
                raise self._fail(f'bad number syntax: "{self.text[at:end]}"')
            kind = T.COMPLEX
        self._emit(kind, end)

    def _scan_number(self, at: int) -> int:
        found = _NUMBER.match(self.text, at)
        end = found.end() if found else at
        following = self.text[end : end + 1]
        if following and (following == "_" or following.isalpha() or following.isdigit()):
            raise self._fail(f'bad number syntax: "{self.text[self.position : end + 1]}"')
        return end

    def _paren(self, at: int, c: str) -> None:
        self.parens += 1 if c == "(" else -1
        if self.parens < 0:
            raise self._fail("unexpected right paren")
        self._emit(T.LEFT_PAREN if c == "(" else T.RIGHT_PAREN, at + 1)


def _unicode(c: str) -> str:
    """The rune as `%#U` prints it."""
    shown = f" '{c}'" if c.isprintable() else ""
    return f"U+{ord(c):04X}{shown}"
