"""Go's string literals read back: strconv.Unquote."""

from __future__ import annotations

from hortus.render.gotemplate.values import wire_bytes, wire_text
from hortus.schema.quoting import ESCAPES, SURROGATES

_UNESCAPES = {escape[1]: char for char, escape in ESCAPES.items()}


def unquote(literal: str) -> str:
    """The string that a Go literal stands for. Raises ValueError with Go's words."""
    if literal[0] == "`":
        return literal[1:-1].replace("\r", "")
    body = literal[1:-1]
    if "\\" not in body:
        return body
    parts: list[bytes] = []
    at = 0
    while at < len(body):
        at = _next(body, at, parts, literal[0])
    return wire_text(b"".join(parts))


def unquote_rune(literal: str) -> int:
    """The code point of a character constant. Raises ValueError with Go's words."""
    body = literal[1:-1]
    if not body:
        raise ValueError("invalid syntax")
    if body[0] != "\\":
        if len(body) != 1:
            raise ValueError(f"malformed character constant: {literal}")
        return ord(body)
    parts: list[bytes] = []
    if body[1:2] == '"':
        raise ValueError("invalid syntax")
    end = _next(body, 0, parts, "'")
    if end != len(body):
        raise ValueError(f"malformed character constant: {literal}")
    if body[1] in "x01234567":
        return parts[0][0]
    return ord(wire_text(parts[0]))


def _next(body: str, at: int, parts: list[bytes], mark: str) -> int:
    char = body[at]
    if char != "\\":
        end = body.find("\\", at)
        end = len(body) if end < 0 else end
        parts.append(wire_bytes(body[at:end]))
        return end
    kind = body[at + 1 : at + 2]
    if kind in _UNESCAPES and kind:
        parts.append(_UNESCAPES[kind].encode())
        return at + 2
    if kind == mark:
        parts.append(kind.encode())
        return at + 2
    return _coded(body, at, kind, parts)


def _coded(body: str, at: int, kind: str, parts: list[bytes]) -> int:
    digits, base, start = {"x": (2, 16, 2), "u": (4, 16, 2), "U": (8, 16, 2)}.get(kind, (3, 8, 1))
    text = body[at + start : at + start + digits]
    allowed = "0123456789abcdefABCDEF" if base == 16 else "01234567"
    if len(text) < digits or any(char not in allowed for char in text):
        raise ValueError("invalid syntax")
    code = int(text, base)
    if kind in ("u", "U"):
        if code > 0x10FFFF or code in SURROGATES:
            raise ValueError("invalid syntax")
        parts.append(chr(code).encode())
    elif code > 255:
        raise ValueError("invalid syntax")
    else:
        parts.append(bytes((code,)))
    return at + start + digits
