"""Write YAML as yaml.v2 (what `toYaml` gives) and yaml.v3 (`toYamlPretty`) do.

`write` goes the way of sigs.k8s.io/yaml: a value is what JSON keeps of it. Lines fold at 80 columns as there;
`write_pretty` indents lists below their key and never folds.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from hortus.render.gotemplate import gojson, numbers
from hortus.render.gotemplate.goyaml.scalars import is_plain_text
from hortus.render.gotemplate.values import ABSENT, NIL_TYPES, Struct, wire_bytes, wrap_int64

_SIMPLE = re.compile(r"[A-Za-z_/][A-Za-z0-9_./\-]*")
"""Text that needs no look at its characters; it may still be a word such as `yes`."""
_UNREADABLE = re.compile("[\x7f-\x84\x86-\x9f\ufffe\uffff]")
"""The characters that yaml.v2's reader refuses in the JSON it is given."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAKS = frozenset("\n\r\x85\u2028\u2029")
_NOT_PRINTED = re.compile("[^\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]")
_NOT_PRINTED_3 = re.compile("[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]")
_INDICATOR = re.compile(r"""^[#,\[\]{}&*!|>'"%@`]|^[?:-](?=[ \t\n\r\x85\u2028\u2029]|$)|:[ \t]|[ \t]#|:$""")
"""Text that would be read as something else than plain text in a block."""
_ESCAPES = {
    "\0": "0",
    "\a": "a",
    "\b": "b",
    "\t": "t",
    "\n": "n",
    "\v": "v",
    "\f": "f",
    "\r": "r",
    "\x1b": "e",
    '"': '"',
    "\\": "\\",
    "\x85": "N",
    "\xa0": "_",
    "\u2028": "L",
    "\u2029": "P",
}
_LINE_ENDS = re.compile("[\u2028\u2029\x85]+(?=.)")
_WIDTH = 80
_MOST_PIECES = 1_000_000
_LONGEST_SIMPLE_KEY = 128
_LONGEST_JSON_KEY = 1024


class Unwritable(ValueError):
    """A value that the Go library refuses to write."""


def write(value: Any) -> str:
    """The value as sigs.k8s.io/yaml writes it, with the final line break. Raises Unwritable."""
    return _Writer(2, _WIDTH).document(value)


def write_pretty(value: Any) -> str:
    """The value as yaml.v3 writes it with an indent of two, with the final line break. Raises Unwritable."""
    return _Writer(3, 1 << 31).document(value)


class _Writer:
    def __init__(self, version: int, width: int) -> None:
        self.version = version
        self.width = width
        self.out: list[str] = []
        self.not_printed = _NOT_PRINTED if version == 2 else _NOT_PRINTED_3
        self.sort_key = functools.cmp_to_key(functools.partial(_compare, version=version))

    def document(self, value: Any) -> str:
        self.node(value, 0, 0, compact=True)
        return "".join(self.out) + "\n"

    def check(self) -> None:
        """Refuse to write without end: a value may hold itself many times over."""
        if len(self.out) > _MOST_PIECES:
            raise Unwritable(f"a value of more than {_MOST_PIECES} parts is not written")

    def node(self, value: Any, indent: int, column: int, *, compact: bool) -> None:
        """Write a value at `column`. `compact` says that a collection may begin on this line, after a `- ` or so."""
        if isinstance(value, dict) and type(value) not in NIL_TYPES:
            self.mapping(list(value.items()), indent, column, compact=compact)
        elif isinstance(value, list) and type(value) not in NIL_TYPES:
            self.sequence(value, indent, column, compact=compact)
        elif isinstance(value, Struct) and value.text is None:
            self.mapping(self._fields(value), indent, column, compact=compact, is_sorted=self.version == 3)
        else:
            self.put_scalar(value, indent, column)

    def _fields(self, value: Struct) -> list[tuple[str, Any]]:
        if self.version == 3:
            return [(name.lower(), part) for name, part in value.fields.items()]
        tags = value.tags or tuple((name, name, False) for name in value.fields)
        return [
            (key, value.fields[field])
            for field, key, omits in tags
            if not (omits and not isinstance(value.fields[field], Struct) and not value.fields[field])
        ]

    def put_scalar(self, value: Any, indent: int, column: int) -> None:
        text = self.scalar(value, indent + 2 if self.version == 2 or indent or column else 2, column)
        self.out.append(text)

    def mapping(
        self, pairs: list[tuple[str, Any]], indent: int, column: int, *, compact: bool, is_sorted: bool = False
    ) -> None:
        if not pairs:
            self.out.append("{}" if not column or compact else " {}")
            return
        self.check()
        if len(pairs) > 1 and not is_sorted:
            pairs = self.sorted(pairs)
        out = self.out
        margin = "\n" + " " * indent
        first = compact
        for key, part in pairs:
            if not first:
                out.append(margin)
            first = False
            self.pair(key, part, indent)

    def sorted(self, pairs: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        if all(key.isalpha() for key, _ in pairs):
            return sorted(pairs)
        return sorted(pairs, key=lambda pair: self.sort_key(pair[0]))

    def pair(self, key: str, part: Any, indent: int) -> None:
        key = self.cleaned(key)
        if self.version == 2 and len(key) > _LONGEST_JSON_KEY // 6 and len(gojson.string(key)) > _LONGEST_JSON_KEY:
            raise Unwritable("a key is too long")
        if (
            len(key) > _LONGEST_SIMPLE_KEY // 4 and len(wire_bytes(key)) > _LONGEST_SIMPLE_KEY
        ) or not _BREAKS.isdisjoint(key):
            self.out.append("? ")
            self.put_scalar(key, indent, indent + 2)
            self.out.append("\n" + " " * indent + ": ")
            if isinstance(part, dict | list):
                self.node(part, indent + 2, indent + 2, compact=True)
            else:
                self.put_scalar(part, indent, indent + 2)
            return
        text = self.text(key, indent + 2, indent, is_key=True)
        self.out.append(text + ":")
        if isinstance(part, dict | list | Struct) and part and type(part) not in NIL_TYPES:
            if isinstance(part, list):
                self.sequence(part, indent if self.version == 2 else indent + 2, indent, compact=False)
            elif isinstance(part, Struct) and part.text is not None:
                self.out.append(" ")
                self.put_scalar(part, indent, indent + len(text) + 2)
            else:
                self.node(part, indent + 2, indent + 1, compact=False)
            return
        self.out.append(" ")
        self.node(part, indent, indent + len(text) + 2, compact=True)

    def sequence(self, parts: list[Any], indent: int, column: int, *, compact: bool) -> None:
        if not parts:
            self.out.append("[]")
            return
        self.check()
        margin = "\n" + " " * indent
        first = compact
        for part in parts:
            self.out.append("- " if first else margin + "- ")
            first = False
            if isinstance(part, dict | list) or (isinstance(part, Struct) and part.text is None):
                self.node(part, indent + 2, indent + 2, compact=True)
            else:
                self.put_scalar(part, indent, indent + 2)

    # Scalars

    def cleaned(self, text: str) -> str:
        if self.version == 3:
            return text
        if not text.isascii() or "\x7f" in text:
            text = _SURROGATE.sub("\ufffd", text)
            if _UNREADABLE.search(text):
                raise Unwritable("control characters are not allowed")
        return text

    def scalar(self, value: Any, indent: int, column: int) -> str:
        kind = type(value)
        if kind is str:
            return self.text(self.cleaned(value), indent, column)
        if value is None or value is ABSENT or kind in NIL_TYPES:
            return "null"
        if kind is bool:
            return "true" if value else "false"
        if kind is float:
            return self.float(value)
        if isinstance(value, int):
            return str(int(value))
        return self._other(value, indent, column)

    def _other(self, value: Any, indent: int, column: int) -> str:
        if isinstance(value, bytes):
            if self.version == 2:
                return self.text(gojson.dumps(value)[1:-1], indent, column)
            raise Unwritable("[]byte in yaml.v3")
        assert isinstance(value, Struct) and value.text is not None
        return self.text((value.encoded or value.text)(), indent, column)

    def float(self, value: float) -> str:
        special = numbers.special(value)
        if special:
            if self.version == 2:
                raise Unwritable(f"json: unsupported value: {special}")
            return {"+Inf": ".inf", "-Inf": "-.inf", "NaN": ".nan"}[special]
        if self.version == 2:
            text = gojson.number(value)
            if text.lstrip("-").isdigit() and -(1 << 63) <= int(text) < 1 << 64:
                return str(int(text))
        return numbers.general(value)

    def text(self, text: str, indent: int, column: int, *, is_key: bool = False) -> str:
        """One string in the style that the emitter chooses."""
        if _SIMPLE.fullmatch(text) and is_plain_text(text, version=self.version):
            return text
        if self.version == 3 and _SURROGATE.search(text):
            raise Unwritable("invalid UTF-8")
        plain, single, block = self.allowed(text)
        if "\n" in text and not is_key:
            if block:
                return _literal(text, indent)
        elif "\n" not in text and is_plain_text(text, version=self.version):
            if plain and text:
                return self.folded(text, indent, column, is_key=is_key)
            if single:
                return "'" + self.folded(text, indent, column + 1, quoted="'", is_key=is_key) + "'"
        return '"' + self.escaped(text, indent, column + 1, is_key=is_key) + '"'

    def allowed(self, text: str) -> tuple[bool, bool, bool]:
        """The styles that the text may have: plain, single-quoted, a block."""
        if not text:
            return True, True, False
        odd = bool(self.not_printed.search(text))
        if odd:
            return False, False, False
        plain = single = block = True
        if text.startswith(("---", "...")) or _INDICATOR.search(text):
            plain = False
        if text[0] == " " or text[-1] == " " or text[0] in _BREAKS or text[-1] in _BREAKS:
            plain = False
        if text[-1] == " ":
            block = False
        return self._broken(text, plain=plain, single=single, block=block)

    def _broken(self, text: str, *, plain: bool, single: bool, block: bool) -> tuple[bool, bool, bool]:
        if self.version == 3 and "\t" in text:
            plain = single = False
        if not _BREAKS.isdisjoint(text):
            plain = False
            if any(c in _BREAKS and text[i + 1 : i + 2] == " " for i, c in enumerate(text)):
                single = False
            if any(c in _BREAKS and i and text[i - 1] == " " for i, c in enumerate(text)):
                single = block = False
            if re.search("[:#]", text):
                plain = False
        return plain, single, block

    def folded(self, text: str, indent: int, column: int, *, quoted: str = "", is_key: bool = False) -> str:
        """Plain or single-quoted text, broken at single blanks beyond the width."""
        if quoted:
            text = _LINE_ENDS.sub(lambda found: found[0] + " " * indent, text.replace("'", "''"))
        if is_key or column + len(text) <= self.width or " " not in text:
            return text
        out: list[str] = []
        spaces = False
        last = len(text) - 1
        for at, char in enumerate(text):
            if char != " ":
                spaces = False
            elif not spaces and column > self.width and (not quoted or 0 < at < last) and text[at + 1 : at + 2] != " ":
                out.append("\n" + " " * indent)
                column, spaces = indent, True
                continue
            else:
                spaces = True
            out.append(char)
            column += 1
        return "".join(out)

    def escaped(self, text: str, indent: int, column: int, *, is_key: bool = False) -> str:
        out: list[str] = []
        spaces = False
        last = len(text) - 1
        for at, char in enumerate(text):
            shown = char
            if char in '"\\' or char in _BREAKS or char == "\ufeff" or _NOT_PRINTED.match(char):
                shown, spaces = _escape(char), False
            elif char == " ":
                if not is_key and not spaces and column > self.width and 0 < at < last:
                    shown = "\n" + " " * indent + ("\\" if text[at + 1] == " " else "")
                    out.append(shown)
                    column, spaces = indent + (text[at + 1] == " "), True
                    continue
                spaces = True
            else:
                spaces = False
            out.append(shown)
            column += len(shown)
        return "".join(out)


def _escape(char: str) -> str:
    found = _ESCAPES.get(char)
    if found:
        return "\\" + found
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _literal(text: str, indent: int) -> str:
    hints = "2" if text[0] == " " or text[0] in _BREAKS else ""
    if text[-1] not in _BREAKS:
        hints += "-"
    elif len(text) == 1 or text[-2] in _BREAKS:
        hints += "+"
    margin = " " * indent
    lines = text.split("\n")
    if text.endswith("\n"):
        lines.pop()
    body = "\n".join(margin + line if line else "" for line in lines)
    return f"|{hints}\n{body}"


def _compare(first: str, second: str, *, version: int) -> int:
    """The order of keys: runs of digits by their value, letters after everything else."""
    digits = False
    for at, (a, b) in enumerate(zip(first, second, strict=False)):
        if a == b:
            digits = a.isdigit()
            continue
        a_letter, b_letter = a.isalpha(), b.isalpha()
        if a_letter and b_letter:
            return -1 if a < b else 1
        if a_letter or b_letter:
            before = a_letter if digits and version == 3 else b_letter
            return -1 if before else 1
        return _compare_digits(first, second, at)
    return len(first) - len(second)


def _compare_digits(first: str, second: str, at: int) -> int:
    begin = 0
    if first[at] == "0" or second[at] == "0":
        back = at - 1
        while back >= 0 and first[back].isdigit():
            if first[back] != "0":
                begin = 1
                break
            back -= 1
    a, a_end = _digits(first, at, begin)
    b, b_end = _digits(second, at, begin)
    if a != b:
        return -1 if a < b else 1
    if a_end != b_end:
        return a_end - b_end
    return -1 if first[at] < second[at] else 1


def _digits(text: str, at: int, value: int) -> tuple[int, int]:
    while at < len(text) and text[at].isdigit():
        value = value * 10 + ord(text[at]) - ord("0")
        at += 1
    return wrap_int64(value), at
