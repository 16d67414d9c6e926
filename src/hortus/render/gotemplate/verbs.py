"""The text of one value by one verb of Go's fmt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hortus.render.gotemplate import numbers
from hortus.render.gotemplate.errors import LimitExceeded
from hortus.render.gotemplate.values import (
    ABSENT,
    ELEMENTS,
    NIL_TYPES,
    Struct,
    Uint8,
    type_name,
    wire_bytes,
    wire_text,
)
from hortus.schema.quoting import is_printed, quote, quote_rune

_MOST_ENTRIES = 500_000


class Flags:
    """One verb's flags, width and precision."""

    __slots__ = ("left", "minus", "plus", "plus_v", "precision", "sharp", "sharp_v", "space", "width", "zero")

    def __init__(self, flags: str = "") -> None:
        self.plus = "+" in flags
        self.minus = "-" in flags
        self.sharp = "#" in flags
        self.space = " " in flags
        self.zero = "0" in flags
        self.plus_v = False
        self.sharp_v = False
        self.width: int | None = None
        self.precision: int | None = None
        self.left = _MOST_ENTRIES

    def spend(self, entries: int) -> None:
        """Count entries of lists and maps: a value may hold itself many times over. Raises LimitExceeded."""
        self.left -= entries + 1
        if self.left < 0:
            raise LimitExceeded(f"a value of more than {_MOST_ENTRIES} entries is not printed")


def text_of(value: Any) -> str:
    """One value by `%v`."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if kind is float:
        return numbers.general(value)
    return formatted(value, "v", Flags())


def argument(value: Any, verb: str, flags: Flags) -> str:
    if value is ABSENT:
        value = None
    if verb == "T":
        return _pad(type_name(value), flags)
    if value is None:
        return _pad("<nil>", flags) if verb == "v" else f"%!{verb}(<nil>)"
    if verb == "p":
        return f"%!p({type_name(value)}={text_of(value)})" if not isinstance(value, list | dict) else "0xc000000000"
    return formatted(value, verb, flags)


def _pad(text: str, flags: Flags) -> str:
    width = flags.width
    if width is None or len(text) >= width:
        return text
    if flags.minus:
        return text + " " * (width - len(text))
    return ("0" if flags.zero else " ") * (width - len(text)) + text


def _bad(value: Any, verb: str, flags: Flags) -> str:
    if value is None or value is ABSENT:
        return f"%!{verb}(<nil>)"
    return f"%!{verb}({type_name(value)}={formatted(value, 'v', flags)})"


def formatted(value: Any, verb: str, flags: Flags, depth: int = 0) -> str:
    """One value by one verb."""
    kind = type(value)
    printer = _PRINTERS.get(kind)
    if printer is not None:
        return printer(value, verb, flags)
    if value is None or value is ABSENT:
        return "interface {}(nil)" if flags.sharp_v else _pad("<nil>", flags)
    if isinstance(value, Struct):
        return _struct(value, verb, flags, depth)
    if kind is bytes:
        return _bytes(value, verb, flags)
    if isinstance(value, dict):
        return _map(value, verb, flags, depth)
    if isinstance(value, list):
        return _list(value, verb, flags, depth)
    return _integer(value, verb, flags)


def _bool(value: Any, verb: str, flags: Flags) -> str:
    if verb in ("t", "v"):
        return _pad("true" if value else "false", flags)
    return _bad(value, verb, flags)


def _text(value: Any, verb: str, flags: Flags) -> str:
    if verb == "v" and flags.sharp_v:
        return _quoted(value, flags)
    if verb in ("v", "s"):
        return _pad(value if flags.precision is None else value[: flags.precision], flags)
    if verb == "q":
        return _quoted(value, flags)
    if verb in ("x", "X"):
        return _hex(wire_bytes(value), verb, flags)
    return _bad(value, verb, flags)


def _quoted(value: str, flags: Flags) -> str:
    text = value if flags.precision is None else value[: flags.precision]
    if flags.sharp and "`" not in text and all(c == "\t" or (c >= " " and c not in "\x7f\ufeff") for c in text):
        return _pad(f"`{text}`", flags)
    return _pad(quote(text, ascii_only=flags.plus), flags)


def _hex(data: bytes, verb: str, flags: Flags) -> str:
    if flags.precision is not None:
        data = data[: flags.precision]
    prefix = f"0{verb}" if flags.sharp else ""
    if not data:
        return _pad("", flags)
    if flags.space:
        text = " ".join(prefix + f"{byte:02x}" for byte in data)
    else:
        text = prefix + data.hex()
    if verb == "X":
        text = text.upper()
    return _pad(text, flags)


_BASES = {"d": 10, "b": 2, "o": 8, "O": 8, "x": 16, "X": 16}
_PREFIXES = {"b": "0b", "o": "0", "O": "0o", "x": "0x", "X": "0X"}


def _integer(value: Any, verb: str, flags: Flags) -> str:
    number = int(value)
    if verb == "v":
        if flags.sharp_v and isinstance(value, Uint8):
            return _based(number, "x", flags, sharp=True)
        return _based(number, "d", flags, sharp=False)
    if verb in _BASES:
        return _based(number, verb, flags, sharp=flags.sharp or verb == "O")
    if verb == "c":
        return _pad(chr(number) if 0 <= number <= 0x10FFFF and not 0xD800 <= number < 0xE000 else "\ufffd", flags)
    if verb == "q":
        return _pad(quote_rune(number, ascii_only=flags.plus), flags)
    if verb == "U":
        char = f" '{chr(number)}'" if flags.sharp and 0 <= number <= 0x10FFFF and is_printed(chr(number)) else ""
        digits = f"{number & 0xFFFFFFFFFFFFFFFF:X}"
        return _pad("U+" + digits.zfill(max(4, flags.precision or 0)) + char, _unzeroed(flags))
    return _bad(value, verb, flags)


def _based(number: int, verb: str, flags: Flags, *, sharp: bool) -> str:
    digits = {10: "d", 2: "b", 8: "o", 16: "x"}[_BASES[verb]]
    text = format(abs(number), digits)
    if verb == "X":
        text = text.upper()
    sign = "-" if number < 0 else "+" if flags.plus else " " if flags.space else ""
    padded = flags
    if flags.precision is not None:
        if flags.precision == 0 and number == 0:
            return _pad("", _unzeroed(flags))
        text = text.zfill(flags.precision)
        padded = _unzeroed(flags)
    elif flags.zero and flags.width is not None and not flags.minus:
        text = text.zfill(flags.width - len(sign))
        padded = _unzeroed(flags)
    if sharp:
        prefix = _PREFIXES.get(verb, "")
        text = text if verb == "o" and text.startswith("0") else prefix + text
    return _pad(sign + text, padded)


def _unzeroed(flags: Flags) -> Flags:
    if not flags.zero:
        return flags
    copy = Flags()
    copy.minus, copy.width = flags.minus, flags.width
    return copy


def _float(value: Any, verb: str, flags: Flags) -> str:
    if verb == "v":
        return _float_padded(_signed(_shortest(value, flags), value, flags), value, flags)
    if verb in "gG":
        text = _g(value, flags)
    elif verb in "eE":
        text = _e(value, flags)
    elif verb in "fF":
        text = numbers.special(value) or f"{value:.{6 if flags.precision is None else flags.precision}f}"
    elif verb in "xX":
        text = _hex_float(value)
    elif verb == "b":
        text = _binary_float(value)
    else:
        return _bad(value, verb, flags)
    if verb in "GEX":
        text = text if numbers.special(value) else text.upper()
    if flags.sharp and verb in "gGeEfF":
        text = _with_point(text, verb, flags)
    return _float_padded(_signed(text, value, flags), value, flags)


def _shortest(value: float, flags: Flags) -> str:
    if flags.precision is not None:
        return _g(value, flags)
    return numbers.general(value)


def _signed(text: str, value: float, flags: Flags) -> str:
    if text[0] in "+-":
        return text
    if flags.plus:
        return "+" + text
    return " " + text if flags.space else text


def _float_padded(text: str, value: float, flags: Flags) -> str:
    special = numbers.special(value)
    if special:
        if text == "+Inf" and not flags.plus:
            text = " Inf" if flags.space else "+Inf"
        return _pad(text, _unzeroed(flags))
    if flags.zero and not flags.minus and flags.width is not None and text[0] in "+- " and len(text) < flags.width:
        return text[0] + text[1:].zfill(flags.width - 1) if text[0] != " " else " " + text[1:].zfill(flags.width - 1)
    return _pad(text, flags)


def _e(value: float, flags: Flags) -> str:
    special = numbers.special(value)
    if special:
        return special
    precision = 6 if flags.precision is None else flags.precision
    mantissa, _, power = f"{value:.{precision}e}".partition("e")
    return f"{mantissa}e{power[0]}{power[1:].zfill(2)}"


def _g(value: float, flags: Flags) -> str:
    special = numbers.special(value)
    if special:
        return special
    if flags.precision is None:
        return numbers.general(value)
    precision = flags.precision or 1
    text = f"{value:.{precision - 1}e}"
    mantissa, _, power = text.partition("e")
    sign, digits = ("-", mantissa[1:]) if mantissa[0] == "-" else ("", mantissa)
    digits = digits.replace(".", "").rstrip("0") or "0"
    point = int(power) + 1
    limit = precision
    if limit > len(digits) and len(digits) >= point:
        limit = len(digits)
    # strconv: the shortest form takes 6 for this bound, a given precision itself.
    if digits != "0" and (point - 1 < -4 or point - 1 >= limit):
        return numbers.exponential(sign, digits, point)
    return numbers.positional(sign, digits, point)


def _with_point(text: str, verb: str, flags: Flags) -> str:
    body, mark, power = text.partition("E" if verb in "GE" else "e")
    if verb in "gG":
        wanted = 6 if flags.precision is None else flags.precision
        digits = len(body.lstrip("-").replace(".", "").lstrip("0")) or (1 if "." not in body else 0)
        if "." not in body:
            body += "."
        body += "0" * max(0, wanted - digits)
    elif "." not in body:
        body += "."
    return body + mark + power


def _hex_float(value: float) -> str:
    special = numbers.special(value)
    if special:
        return special
    text = value.hex()
    mantissa, _, power = text.partition("p")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}p{power[0]}{power[1:].zfill(2)}"


def _binary_float(value: float) -> str:
    special = numbers.special(value)
    if special:
        return special
    mantissa, denominator = abs(value).as_integer_ratio()
    power = -(denominator.bit_length() - 1)
    shift = 53 - mantissa.bit_length() if mantissa else 0
    mantissa = mantissa << shift if shift >= 0 else mantissa >> -shift
    sign = "-" if value < 0 else ""
    return f"{sign}{mantissa}p{power - shift:+d}" if mantissa else "0p-1074"


def _bytes(value: bytes, verb: str, flags: Flags) -> str:
    if verb == "s":
        return _text(wire_text(value), verb, flags)
    if verb == "q":
        return _quoted(wire_text(value), flags)
    if verb in ("x", "X"):
        return _hex(value, verb, flags)
    # A file of a chart is printed byte by byte: how a byte looks is worked out once, not for each byte.
    if verb == "v" and flags.sharp_v:
        return "[]byte{" + _each(value, ", ", lambda byte: f"0x{byte:x}") + "}"
    if verb in ("v", "d"):
        return "[" + _each(value, " ", lambda byte: _based(byte, "d", flags, sharp=False)) + "]"
    return "[" + _each(value, " ", lambda byte: _integer(Uint8(byte), verb, flags)) + "]"


def _each(value: bytes, between: str, show: Callable[[int], str]) -> str:
    shown = {byte: show(byte) for byte in set(value)}
    return between.join(map(shown.__getitem__, value))


def _list(value: Any, verb: str, flags: Flags, depth: int) -> str:
    flags.spend(len(value))
    if verb in ("s", "q", "x", "X") and ELEMENTS.get(type(value)) == "uint8":
        return _bytes(bytes(value), verb, flags)
    if flags.sharp_v:
        if type(value) in NIL_TYPES:
            return type_name(value) + "(nil)"
        inner = ", ".join(formatted(part, verb, flags, depth + 1) for part in value)
        return f"{type_name(value)}{{{inner}}}"
    return "[" + " ".join([formatted(part, verb, flags, depth + 1) for part in value]) + "]"


def _map(value: dict[str, Any], verb: str, flags: Flags, depth: int) -> str:
    flags.spend(len(value))
    if flags.sharp_v:
        if type(value) in NIL_TYPES:
            return type_name(value) + "(nil)"
        inner = ", ".join(
            f"{_text(key, verb, flags)}:{formatted(value[key], verb, flags, depth + 1)}" for key in sorted(value)
        )
        return f"{type_name(value)}{{{inner}}}"
    parts = [f"{_text(key, verb, flags)}:{formatted(value[key], verb, flags, depth + 1)}" for key in sorted(value)]
    return "map[" + " ".join(parts) + "]"


def _struct(value: Struct, verb: str, flags: Flags, depth: int) -> str:
    if value.text is not None and not flags.sharp_v and verb in ("v", "s", "q", "x", "X"):
        return _text(value.text(), verb, flags)
    if value.pointer and depth:
        return "0xc000000000"
    mark = "&" if value.pointer else ""
    fields = [(name, value.fields[name]) for name in value.printed or value.fields]
    if flags.sharp_v:
        inner = ", ".join(f"{name}:{formatted(part, verb, flags, depth + 1)}" for name, part in fields)
        return f"{mark}{value.type_name}{{{inner}}}"
    if flags.plus_v:
        inner = " ".join(f"{name}:{formatted(part, verb, flags, depth + 1)}" for name, part in fields)
    else:
        inner = " ".join(formatted(part, verb, flags, depth + 1) for _, part in fields)
    return f"{mark}{{{inner}}}"


_PRINTERS: dict[type, Callable[[Any, str, Flags], str]] = {
    str: _text,
    bool: _bool,
    int: _integer,
    float: _float,
}
