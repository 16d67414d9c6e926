"""Go's string literals as `%q` prints them (Go, src/strconv/quote.go), in messages of API server and templates."""

from __future__ import annotations

import re
import unicodedata

_PLAIN = re.compile(r"[ !#-\[\]-~]*")
ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
}
_NOT_PRINTED = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"))
SURROGATES = range(0xD800, 0xE000)
"""Code points by which texts carry bytes that are no UTF-8 (`surrogateescape`)."""


def is_printed(char: str) -> bool:
    """strconv.IsPrint: letters, marks, numbers, punctuation, symbols and the ASCII space."""
    if char.isascii():
        return " " <= char <= "~"
    return unicodedata.category(char) not in _NOT_PRINTED


def quote(text: str, *, ascii_only: bool = False, mark: str = '"') -> str:
    """A double-quoted Go literal, as `%q` prints; `ascii_only` as `%+q`."""
    if mark == '"' and _PLAIN.fullmatch(text):
        return f'"{text}"'
    return mark + "".join(_quoted(char, ascii_only=ascii_only, mark=mark) for char in text) + mark


def _quoted(char: str, *, ascii_only: bool, mark: str) -> str:
    if char == mark:
        return "\\" + char
    found = ESCAPES.get(char)
    if found:
        return found
    code = ord(char)
    if code < 0x80:
        return char if " " <= char <= "~" else f"\\x{code:02x}"
    if code in SURROGATES:
        return f"\\x{code - 0xDC00:02x}"
    if not ascii_only and is_printed(char):
        return char
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quote_rune(code: int, *, ascii_only: bool = False) -> str:
    """A single-quoted Go literal of one code point."""
    char = chr(code) if 0 <= code <= 0x10FFFF and code not in SURROGATES else "\ufffd"
    return quote(char, ascii_only=ascii_only, mark="'")
