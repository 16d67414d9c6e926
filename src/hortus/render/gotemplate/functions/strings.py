"""Sprig's functions on strings."""

from __future__ import annotations

import base64
from typing import Any

from hortus.render.gotemplate.calls import Functions, table
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.formatting import sprintf, text_of
from hortus.render.gotemplate.functions.conversions import bounded, to_text, to_texts
from hortus.render.gotemplate.functions.encoded import IllegalData, decoded_32, decoded_64
from hortus.render.gotemplate.values import StringMap, Strings, length, wire_bytes, wire_text
from hortus.schema.quoting import quote

SPACES = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""The characters for which unicode.IsSpace is true."""
_BYTE_SPACES = frozenset("\t\n\v\f\r \x85\xa0")


def _mapped(text: str, method: str) -> str:
    """Change case rune by rune, as Go does: no letter becomes two."""
    if text.isascii():
        return str(getattr(text, method)())
    return "".join(_one(char, method) for char in text)


def _one(char: str, method: str) -> str:
    found = str(getattr(char, method)())
    if len(found) == 1:
        return found
    # The one letter whose small form Unicode writes with two code points and Go with one.
    return "i" if char == "\u0130" and method == "lower" else char


def upper(text: str) -> str:
    return _mapped(text, "upper")


def lower(text: str) -> str:
    return _mapped(text, "lower")


def _is_separator(char: str) -> bool:
    if char.isascii():
        return not (char.isalnum() or char == "_")
    return not (char.isalpha() or char.isdigit()) and char in SPACES


def title(text: str) -> str:
    """strings.Title: the first letter of each word."""
    out = []
    previous = " "
    for char in text:
        out.append(_one(char, "title") if _is_separator(previous) else char)
        previous = char
    return "".join(out)


def untitle(text: str) -> str:
    out = []
    begins = True
    for char in text:
        if char in SPACES:
            begins = True
        elif begins:
            char, begins = _one(char, "lower"), False
        out.append(char)
    return "".join(out)


def swapcase(text: str) -> str:
    out = []
    after_space = True
    for char in text:
        if char.isupper() or char.istitle():
            char, after_space = _one(char, "lower"), False
        elif char.islower():
            char, after_space = _one(char, "title" if after_space else "upper"), False
        else:
            after_space = char in SPACES
        out.append(char)
    return "".join(out)


def _latin(text: str) -> str:
    # Some of goutils go through bytes and take each for a character.
    return wire_bytes(text).decode("latin-1")


def nospace(text: str) -> str:
    if not text.isascii():
        as_bytes = _latin(text)
        kept = "".join(char for char in as_bytes if char not in _BYTE_SPACES)
        return text if len(kept) == len(as_bytes) else kept
    return "".join(char for char in text if char not in _BYTE_SPACES)


def initials(text: str) -> str:
    out = []
    gap = True
    for char in _latin(text):
        if char in _BYTE_SPACES:
            gap = True
        elif gap:
            out.append(char)
            gap = False
    return "".join(out)


def _cut(text: str, start: int, end: int | None) -> str:
    """Go's text[start:end], in bytes. Raises FunctionError outside the bounds."""
    size = length(text)
    stop = size if end is None else end
    if stop > size:
        raise FunctionError(f"runtime error: slice bounds out of range [:{stop}] with length {size}")
    if stop < 0:
        raise FunctionError(f"runtime error: slice bounds out of range [:{stop}]")
    if start > stop:
        raise FunctionError(f"runtime error: slice bounds out of range [{start}:{stop}]")
    if text.isascii():
        return text[start:stop]
    return wire_text(wire_bytes(text)[start:stop])


def trunc(count: int, text: str) -> str:
    size = length(text)
    if count < 0 and size + count > 0:
        return _cut(text, size + count, None)
    return _cut(text, 0, count) if 0 <= count < size else text


def substr(start: int, end: int, text: str) -> str:
    if start < 0:
        return _cut(text, 0, end)
    if end < 0 or end > length(text):
        return _cut(text, start, None)
    return _cut(text, start, end)


def repeat(count: int, text: str) -> str:
    if count < 0:
        raise FunctionError("strings: negative Repeat count")
    bounded(count * len(text))
    return text * count


def replace(old: str, new: str, text: str) -> str:
    bounded(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def indent(spaces: int, text: str) -> str:
    if spaces < 0:
        raise FunctionError("strings: negative Repeat count")
    bounded(len(text) + spaces * (text.count("\n") + 1))
    pad = " " * spaces
    return pad + text.replace("\n", "\n" + pad)


def nindent(spaces: int, text: str) -> str:
    return "\n" + indent(spaces, text)


def _quote(*values: Any) -> str:
    return " ".join([quote(to_text(value)) for value in values if value is not None])


def squote(*values: Any) -> str:
    return " ".join(f"'{text_of(value)}'" for value in values if value is not None)


def cat(*values: Any) -> str:
    found = [value for value in values if value is not None]
    return sprintf("%v " * (len(found) - 1) + "%v" if found else "", found)


def plural(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


def join(separator: str, values: Any) -> str:
    texts = to_texts(values)
    bounded(sum(map(len, texts)) + len(texts) * len(separator))
    return separator.join(texts)


def _split_parts(separator: str, text: str, limit: int = -1) -> list[str]:
    """strings.SplitN."""
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    chars = list(text)
    if 0 < limit < len(chars):
        return [*chars[: limit - 1], "".join(chars[limit - 1 :])]
    return chars


def split(separator: str, text: str) -> StringMap:
    return StringMap((f"_{number}", part) for number, part in enumerate(_split_parts(separator, text)))


def splitn(separator: str, limit: int, text: str) -> StringMap:
    return StringMap((f"_{number}", part) for number, part in enumerate(_split_parts(separator, text, limit)))


def split_list(separator: str, text: str) -> Strings:
    return Strings(_split_parts(separator, text))


def wrap(width: int, text: str) -> str:
    return wrap_with(width, "\n", text)


def wrap_with(width: int, line: str, text: str) -> str:
    """goutils.WrapCustom with long words cut; widths count bytes."""
    data = wire_bytes(text)
    width = max(width, 1)
    out: list[bytes] = []
    at = 0
    break_ = wire_bytes(line or "\n")
    while len(data) - at > width:
        if data[at] == 0x20:
            at += 1
            continue
        space = data.rfind(b" ", at, at + width + 1)
        end = space if space >= at else at + width
        out += (data[at:end], break_)
        at = end + 1 if space >= at else end
    out.append(data[at:])
    return wire_text(b"".join(out))


def abbrev(width: int, text: str) -> str:
    return text if width < 4 else _abbreviate(wire_bytes(text), 0, width)


def abbrevboth(offset: int, width: int, text: str) -> str:
    if width < 4 or (offset > 0 and width < 7):
        return text
    return _abbreviate(wire_bytes(text), offset, width)


def _abbreviate(data: bytes, offset: int, width: int) -> str:
    if len(data) <= width:
        return wire_text(data)
    offset = min(offset, len(data))
    if len(data) - offset < width - 3:
        offset = len(data) - (width - 3)
    if offset <= 4:
        return wire_text(data[: width - 3]) + "..."
    if offset + width - 3 < len(data):
        return "..." + (_abbreviate(data[offset:], 0, width - 3) if width - 3 >= 4 else "")
    return "..." + wire_text(data[len(data) - (width - 3) :])


def b64dec(text: str) -> str:
    try:
        return decoded_64(text)
    except IllegalData as error:
        return str(error)


def b32dec(text: str) -> str:
    try:
        return decoded_32(text)
    except IllegalData as error:
        return str(error)


def _trim_prefix(prefix: str, text: str) -> str:
    return text.removeprefix(prefix)


def _trim_suffix(suffix: str, text: str) -> str:
    return text.removesuffix(suffix)


def _trim_all(chars: str, text: str) -> str:
    return text.strip(chars) if chars else text


STRINGS: Functions = table(
    ("hello", "", lambda: "Hello!"),
    ("abbrev", "int, string", abbrev),
    ("abbrevboth", "int, int, string", abbrevboth),
    ("trunc", "int, string", trunc),
    ("trim", "string", lambda text: text.strip(SPACES)),
    ("upper", "string", upper),
    ("lower", "string", lower),
    ("title", "string", title),
    ("untitle", "string", untitle),
    ("substr", "int, int, string", substr),
    ("repeat", "int, string", repeat),
    ("trimall", "string, string", _trim_all),
    ("trimAll", "string, string", _trim_all),
    ("trimSuffix", "string, string", _trim_suffix),
    ("trimPrefix", "string, string", _trim_prefix),
    ("nospace", "string", nospace),
    ("initials", "string", initials),
    ("swapcase", "string", swapcase),
    ("wrap", "int, string", wrap),
    ("wrapWith", "int, string, string", wrap_with),
    ("contains", "string, string", lambda part, text: part in text),
    ("hasPrefix", "string, string", lambda part, text: text.startswith(part)),
    ("hasSuffix", "string, string", lambda part, text: text.endswith(part)),
    ("quote", "...any", _quote),
    ("squote", "...any", squote),
    ("cat", "...any", cat),
    ("indent", "int, string", indent),
    ("nindent", "int, string", nindent),
    ("replace", "string, string, string", replace),
    ("plural", "string, string, int", plural),
    ("toString", "any", to_text),
    ("toStrings", "any", lambda value: Strings(to_texts(value))),
    ("join", "string, any", join),
    ("split", "string, string", split),
    ("splitn", "string, int, string", splitn),
    ("splitList", "string, string", split_list),
    ("b64enc", "string", lambda text: base64.b64encode(wire_bytes(text)).decode()),
    ("b64dec", "string", b64dec),
    ("b32enc", "string", lambda text: base64.b32encode(wire_bytes(text)).decode()),
    ("b32dec", "string", b32dec),
)
