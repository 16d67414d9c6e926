"""encoding/json: the bytes that Go writes for a value, and what it reads.

Keys are sorted, `<`, `>` and `&` are escaped unless asked otherwise, floats have an exponent outside 1e-6..1e21,
a nil list is null. Reading gives float64 for every number.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from hortus.render.gotemplate import numbers
from hortus.render.gotemplate.values import ABSENT, NIL_TYPES, Struct
from hortus.schema.quoting import quote_rune

_MOST_PIECES = 1_000_000
_SPECIAL = re.compile(r'[\x00-\x1f"\\<>&\u2028\u2029\ud800-\udfff]')
_SPECIAL_RAW = re.compile(r'[\x00-\x1f"\\\u2028\u2029\ud800-\udfff]')
_NAMED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


class JsonError(ValueError):
    """A text that is no JSON, or a value that has none; worded as by Go."""


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    found = _NAMED.get(char)
    if found:
        return found
    return "\\ufffd" if 0xD800 <= ord(char) < 0xE000 else f"\\u{ord(char):04x}"


def string(text: str, *, html: bool = True) -> str:
    """A JSON string literal."""
    return '"' + (_SPECIAL if html else _SPECIAL_RAW).sub(_escape, text) + '"'


def number(value: float) -> str:
    """A float64 as encoding/json writes it. Raises JsonError for infinities and NaN."""
    if numbers.special(value):
        raise JsonError(f"json: unsupported value: {numbers.special(value)}")
    sign, digits, point = numbers.shortest(value)
    if digits != "0" and not -6 <= point - 1 < 21:
        text = numbers.exponential(sign, digits, point)
        return text.replace("e-0", "e-")
    return numbers.positional(sign, digits, point)


class _Out(list[str]):
    """The text written so far; too much of it is refused, as a value may hold itself many times over."""

    def __init__(self) -> None:
        super().__init__()
        self.write = self.append

    def check(self) -> None:
        if len(self) > _MOST_PIECES:
            raise JsonError(f"json: a value of more than {_MOST_PIECES} parts is not written")


def dumps(value: Any, *, html: bool = True, indent: str = "") -> str:
    """The value as JSON; `indent` as json.MarshalIndent with no prefix. Raises JsonError."""
    out = _Out()
    _write(value, out, html, indent, "\n" if indent else "")
    return "".join(out)


def _write(value: Any, out: _Out, html: bool, indent: str, line: str) -> None:
    kind = type(value)
    if kind is str:
        out.write(string(value, html=html))
    elif value is None or value is ABSENT or kind in NIL_TYPES:
        out.write("null")
    elif kind is bool:
        out.write("true" if value else "false")
    elif kind is float:
        out.write(number(value))
    elif isinstance(value, int):
        out.write(str(int(value)))
    elif isinstance(value, dict):
        _object([(key, value[key]) for key in sorted(value)], out, html, indent, line)
    elif isinstance(value, bytes):
        out.write('"' + base64.b64encode(value).decode() + '"')
    elif isinstance(value, list):
        _array(value, out, html, indent, line)
    else:
        _write_struct(value, out, html, indent, line)


def _write_struct(value: Struct, out: _Out, html: bool, indent: str, line: str) -> None:
    if value.tags is None:
        if value.text is not None:
            out.write(string((value.encoded or value.text)(), html=html))
            return
        pairs = list(value.fields.items())
    else:
        pairs = [
            (key, value.fields[field])
            for field, key, omits in value.tags
            if not (omits and _is_empty(value.fields[field]))
        ]
    _object(pairs, out, html, indent, line)


def _is_empty(value: Any) -> bool:
    return not isinstance(value, Struct) and not value


def _object(pairs: list[tuple[str, Any]], out: _Out, html: bool, indent: str, line: str) -> None:
    if not pairs:
        out.write("{}")
        return
    out.check()
    inner = line + indent if line else ""
    colon = ": " if line else ":"
    mark = "{"
    for key, part in pairs:
        out.write(mark + inner + string(key, html=html) + colon)
        _write(part, out, html, indent, inner)
        mark = ","
    out.write(line + "}")


def _array(value: list[Any], out: _Out, html: bool, indent: str, line: str) -> None:
    if not value:
        out.write("[]")
        return
    out.check()
    inner = line + indent if line else ""
    mark = "["
    for part in value:
        out.write(mark + inner)
        _write(part, out, html, indent, inner)
        mark = ","
    out.write(line + "]")


def _refuse(_name: str) -> Any:
    raise ValueError


_SURROGATE = re.compile("[\ud800-\udfff]")


def _float(text: str) -> float:
    value = float(text)
    if numbers.special(value):
        raise JsonError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return value


def loads(text: str) -> Any:
    """The value that Go reads into an interface {}. Raises JsonError."""
    try:
        found = json.loads(text, parse_int=_float, parse_float=_float, parse_constant=_refuse)
    except JsonError:
        raise
    except (ValueError, RecursionError):
        raise JsonError(problem(text)) from None
    return _cleaned(found) if "\\u" in text or not text.isascii() else found


def _cleaned(value: Any) -> Any:
    """Lone surrogates and bytes that are not UTF-8 become U+FFFD."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_cleaned(part) for part in value]
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(part) for key, part in value.items()}
    return value


_TOKENS = re.compile(
    r'[ \t\r\n]*(?:("(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")'
    r"|(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"
    r"|(true|false|null)|([\[{\]},:]))"
)


def problem(text: str) -> str:
    """The reason why Go refuses the text."""
    stack: list[str] = []
    wants = "value"
    at = 0
    while True:
        found = _TOKENS.match(text, at)
        at = len(text) - len(text[at:].lstrip(" \t\r\n")) if not found else at
        if found is None:
            return _odd(text, at, wants, stack)
        shown = found.start(found.lastindex or 0)
        following = _after(found[found.lastindex or 0], found.lastindex or 0, wants, stack)
        if following is None:
            return _odd(text, shown, wants, stack)
        wants, at = following, found.end()


def _after(word: str, kind: int, wants: str, stack: list[str]) -> str | None:
    """The next state, or None when the word is out of place."""
    is_value = kind != 4 or word in "[{"
    if wants in ("value", "first element") and is_value:
        if word in ("[", "{") and kind == 4:
            stack.append(word)
            return "first element" if word == "[" else "first key"
        return "next" if stack else "end"
    if wants in ("key", "first key") and kind == 1:
        return "colon"
    if wants == "colon" and word == ":":
        return "value"
    if wants == "next" and word == ",":
        return "value" if stack[-1] == "[" else "key"
    closes = {"first element": "]", "first key": "}"}.get(wants)
    if wants == "next":
        closes = "]" if stack[-1] == "[" else "}"
    if closes and word == closes:
        stack.pop()
        return "next" if stack else "end"
    return None


_PLACES = {
    "value": "looking for beginning of value",
    "first element": "looking for beginning of value",
    "key": "looking for beginning of object key string",
    "first key": "looking for beginning of object key string",
    "colon": "after object key",
    "end": "after top-level value",
}


def _odd(text: str, at: int, wants: str, stack: list[str]) -> str:
    if at >= len(text):
        return "unexpected end of JSON input"
    place = _PLACES.get(wants)
    if place is None:
        place = "after array element" if stack and stack[-1] == "[" else "after object key:value pair"
    if text[at] in ".eE" and text[at - 1 : at].isdigit() and wants in ("next", "end"):
        char, place = _number_end(text, at)
    else:
        char, place = (
            _inside(text, at, place)
            if wants in ("value", "first element") or (text[at] == '"' and wants in ("key", "first key"))
            else (text[at], place)
        )
    if not char:
        return "unexpected end of JSON input"
    shown = {"'": "'\\''", '"': "'\"'"}.get(char)
    if shown is None:
        shown = quote_rune(ord(char))
    return f"invalid character {shown} {place}"


def _number_end(text: str, at: int) -> tuple[str, str]:
    if text[at] == ".":
        return text[at + 1 : at + 2] or " ", "after decimal point in numeric literal"
    at += 2 if text[at + 1 : at + 2] in ("+", "-") else 1
    return text[at : at + 1] or " ", "in exponent of numeric literal"


def _inside(text: str, at: int, place: str) -> tuple[str, str]:
    """The character at fault within a literal that begins well."""
    for word in ("true", "false", "null"):
        if text[at] == word[0]:
            for offset, wanted in enumerate(word):
                if text[at + offset : at + offset + 1] != wanted:
                    return text[at + offset : at + offset + 1] or " ", f"in literal {word} (expecting '{wanted}')"
    if text[at] == '"':
        return _inside_string(text, at + 1)
    if text[at] == "-":
        return text[at + 1 : at + 2] or " ", "in numeric literal"
    return text[at], place


def _inside_string(text: str, at: int) -> tuple[str, str]:
    while at < len(text):
        char = text[at]
        if char < " ":
            return char, "in string literal"
        if char != "\\":
            at += 1
            continue
        kind = text[at + 1 : at + 2]
        if kind == "u":
            for offset in range(2, 6):
                digit = text[at + offset : at + offset + 1]
                if not digit or digit not in "0123456789abcdefABCDEF":
                    return digit, "in \\u hexadecimal character escape"
        elif kind not in tuple('"\\/bfnrt'):
            return kind, "in string escape code"
        at += 2
    return "", ""
