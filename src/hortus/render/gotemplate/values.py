"""Values as a Go template sees them.

Go's types decide how a value prints, compares and is passed to functions, so what Python cannot tell apart gets a type
of its own here. `int` stands for Go's int, `Int64` for int64, `float` for float64, `str` for string (bytes that are
not UTF-8 travel as surrogate escapes), `bytes` for []byte, `list` for []interface{}, `dict` for map[string]interface{},
None for a nil interface and ABSENT for no value at all (Go's invalid reflect.Value: what a missing key gives).
Everything with fields or methods is a `Struct`, which lists them: a template never reaches a Python attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, final


@final
class Absent:
    """The type of ABSENT."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = Absent()


class Int64(int):
    """int64: what arithmetic gives and what `--set` makes of digits."""

    __slots__ = ()


class Uint8(int):
    """One byte, as indexing a string gives."""

    __slots__ = ()


class Strings(list[Any]):
    """[]string."""

    __slots__ = ()


class Ints(list[Any]):
    """[]int."""

    __slots__ = ()


class Lists(list[Any]):
    """[][]interface{}."""

    __slots__ = ()


class StringMap(dict[str, Any]):
    """map[string]string."""

    __slots__ = ()


class NilList(list[Any]):
    """A nil []interface{}: empty, and `null` in JSON."""

    __slots__ = ()


class NilStrings(list[Any]):
    """A nil []string."""

    __slots__ = ()


class NilMap(dict[str, Any]):
    """A nil map[string]interface{}."""

    __slots__ = ()


class ValuesMap(dict[str, Any]):
    """chartutil.Values: a map with the methods AsMap, YAML, Table and PathValue."""

    __slots__ = ()


class FilesMap(dict[str, Any]):
    """Helm's files of a chart: names to bytes, with the methods Get, GetBytes, Glob, Lines, AsConfig, AsSecrets."""

    __slots__ = ()


class VersionSet(list[Any]):
    """chartutil.VersionSet: a []string with the method Has."""

    __slots__ = ()


class Struct:
    """A Go struct, or a pointer to one: fields and methods by name, nothing else.

    `methods` are `calls.Function`s, bound already. `tags` gives (field, key in JSON, left out when empty) in the order
    of JSON; `text` is its String method;
    `shown` is for a String method of the pointer alone, which Go finds only where an action prints the field itself.
    """

    __slots__ = ("encoded", "fields", "methods", "pointer", "printed", "shown", "state", "tags", "text", "type_name")

    def __init__(
        self,
        type_name: str,
        fields: Mapping[str, Any],
        *,
        methods: Mapping[str, Any] | None = None,
        tags: tuple[tuple[str, str, bool], ...] | None = None,
        text: Callable[[], str] | None = None,
        shown: str | None = None,
        pointer: bool = False,
        state: Any = None,
    ) -> None:
        self.type_name = type_name
        self.state = state
        """Part of its identity besides its fields; templates cannot read it."""
        self.fields = dict(fields)
        self.methods: dict[str, Any] = dict(methods or {})
        self.tags = tags
        self.text = text
        self.shown = shown
        self.printed: tuple[str, ...] | None = None
        """The fields that fmt shows, where some are there under a second name."""
        self.encoded: Callable[[], str] | None = None
        """The text in JSON and YAML, where it is not that of `text`."""
        self.pointer = pointer

    @property
    def is_comparable(self) -> bool:
        """True when Go compares it with `==`: pointers, and structs without maps and slices."""
        return self.pointer or not any(
            isinstance(part, list | dict | bytes) or (isinstance(part, Struct) and not part.is_comparable)
            for part in self.fields.values()
        )


TYPE_NAMES: dict[type, str] = {
    type(None): "<nil>",
    Absent: "<nil>",
    bool: "bool",
    int: "int",
    Int64: "int64",
    Uint8: "uint8",
    float: "float64",
    str: "string",
    bytes: "[]uint8",
    list: "[]interface {}",
    NilList: "[]interface {}",
    Strings: "[]string",
    NilStrings: "[]string",
    Ints: "[]int",
    Lists: "[][]interface {}",
    dict: "map[string]interface {}",
    NilMap: "map[string]interface {}",
    StringMap: "map[string]string",
    ValuesMap: "chartutil.Values",
    FilesMap: "engine.files",
    VersionSet: "chartutil.VersionSet",
}
_KINDS: dict[type, str] = {
    type(None): "invalid",
    Absent: "invalid",
    bool: "bool",
    int: "int",
    Int64: "int64",
    Uint8: "uint8",
    float: "float64",
    str: "string",
}
NIL_TYPES: Final = frozenset((NilList, NilStrings, NilMap))
ELEMENTS: dict[type, str] = {
    bytes: "uint8",
    Strings: "string",
    NilStrings: "string",
    VersionSet: "string",
    Ints: "int",
    Lists: "[]interface {}",
    StringMap: "string",
    FilesMap: "[]uint8",
}
"""Element types that are not interface {}."""
_ZEROS: dict[str, Any] = {"string": "", "int": 0, "uint8": Uint8(0), "[]interface {}": NilList(), "[]uint8": b""}


def type_name(value: Any) -> str:
    """The text that `%T` prints."""
    found = TYPE_NAMES.get(type(value))
    if found is not None:
        return found
    name = str(getattr(value, "type_name", "unknown"))
    return "*" + name if getattr(value, "pointer", False) else name


def declared_type(value: Any) -> str:
    """The type as Go's evaluator names it in errors: a nil interface is of type interface {}."""
    return "interface {}" if value is None else type_name(value)


def kind_name(value: Any) -> str:
    """The name of the value's reflect.Kind."""
    found = _KINDS.get(type(value))
    if found is not None:
        return found
    if isinstance(value, dict):
        return "map"
    if isinstance(value, list | bytes):
        return "slice"
    special: str = getattr(value, "kind", "struct")
    return "ptr" if getattr(value, "pointer", False) else special


def zero_element(container: Any) -> Any:
    """The value of an absent key where Go takes the zero of the element's type."""
    element = ELEMENTS.get(type(container))
    return None if element is None else _ZEROS[element]


def is_true(value: Any) -> bool:
    """Go's truth: false for zero, the empty and nil. A struct is always true."""
    return bool(value) if not isinstance(value, Struct) else True


def wire_bytes(text: str) -> bytes:
    """The bytes of a Go string."""
    return text.encode("utf-8", "surrogateescape")


def wire_text(data: bytes) -> str:
    """The Go string of bytes."""
    return data.decode("utf-8", "surrogateescape")


def length(text: str) -> int:
    """Go's len of a string: bytes."""
    return len(text) if text.isascii() else len(wire_bytes(text))


def wrap_int64(number: int) -> int:
    """Go's overflow of a 64-bit integer."""
    if -0x8000000000000000 <= number <= 0x7FFFFFFFFFFFFFFF:
        return number
    return (number + 0x8000000000000000) % 0x10000000000000000 - 0x8000000000000000
