"""Number literals of templates: one text, and all that it may stand for where a type is wanted."""

from __future__ import annotations

from hortus.render.gotemplate.lexer import T, Token
from hortus.render.gotemplate.nodes import Literal
from hortus.render.gotemplate.numbers import INT64_MAX, INT64_MIN, UINT64_MAX, parse_float, parse_integer
from hortus.render.gotemplate.quoting import quote, unquote_rune


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
