"""Reads `kinds.txt`, the compact description of Kubernetes' built-in types.

`tools/builtin_kinds` writes the file from the published Go packages. The schemas of built-in kinds and of fields of
their types, the JSON shape and the protobuf codec are all derived from it, so that they cannot disagree. A type is
parsed on first use: opening the description only costs a scan for type names.

The format, line by line:

    = core io.k8s.api.core.v1               a Go package: alias, OpenAPI prefix
    PodSpec                                 a struct; after the name `kind`: has apiVersion and kind in JSON,
                                            `atomic`: +structType=atomic
     containers 2 []Container !+ keys:name  a field: JSON name, protobuf number, Go type, flags, attributes
     < 2 VolumeSource                       an embedded struct: inlined in JSON, a field of its own in protobuf
    PullPolicy = Always|IfNotPresent|Never  an enumeration

Go types are written as in Go, with words for those of a form of their own: bytes, time, microtime, duration, quantity,
intstr, raw (RawExtension), fields (FieldsV1), json, strings (a list that is a message of its own), schemaOrBool,
schemaOrArray, schemaOrStrings. Flags: `!` required, `+` in JSON even when empty, `z` left out when a zero struct.
Attributes: keys:a,b (list map), set, atomic, patch:STRATEGY:KEY, default:JSON, as:GOTYPE (the type of a text that has
one of its own).
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any, NamedTuple

import orjson


class FieldDescription(NamedTuple):
    """One field of a struct. `kind` is a basic word of the format, or `struct` or `enum` with `ref` naming the type."""

    name: str
    """In JSON; empty for an embedded struct."""
    number: int
    """In protobuf; 0 where protobuf does not have the field."""
    shape: str
    """`list`, `map` (of strings to), or empty."""
    kind: str
    ref: str
    pointer: bool
    required: bool
    always: bool
    """Present in JSON even when empty (no omitempty)."""
    omit_zero: bool
    list_type: str
    """`map`, `set`, `atomic` or empty; for maps and structs `atomic` or empty."""
    keys: tuple[str, ...]
    patch: tuple[str, str]
    """Patch strategy and merge key."""
    default: dict[str, Any] | str | int | bool | None
    go_name: str = ""
    """The name of the type of a text that has one of its own."""
    within: str = ""
    """The embedded structs that hold it, in the description of another struct."""


class TypeDescription(NamedTuple):
    """A struct or, with `values`, an enumeration."""

    name: str
    """alias.Name, such as core.PodSpec."""
    atomic: bool
    typed: bool
    """Has apiVersion and kind in JSON."""
    values: tuple[str, ...]
    fields: tuple[FieldDescription, ...]


_PLAIN = FieldDescription("", 0, "", "string", "", False, False, False, False, "", (), ("", ""), None)
_TYPE_META = {name: _PLAIN._replace(name=name) for name in ("apiVersion", "kind")}


class Description:
    """The types of one description text, by alias.Name."""

    def __init__(self, text: str) -> None:
        self._prefixes: dict[str, str] = {}
        self._lines: dict[str, tuple[str, list[str]]] = {}
        self._types: dict[str, TypeDescription] = {}
        self._flat: dict[str, dict[str, FieldDescription]] = {}
        self._index(text)

    def _index(self, text: str) -> None:
        alias, body = "", []
        for line in text.split("\n"):
            if line.startswith(" "):
                body.append(line)
            elif line.startswith("= "):
                _, alias, prefix = line.split(" ")
                self._prefixes[alias] = prefix
            elif line and not line.startswith("#"):
                body = []
                self._lines[f"{alias}.{line.split(' ', 1)[0]}"] = (line, body)

    def __contains__(self, name: str) -> bool:
        return name in self._lines

    def names(self) -> list[str]:
        """Every type's alias.Name."""
        return list(self._lines)

    def openapi_name(self, name: str) -> str:
        """The definition's name in OpenAPI, such as io.k8s.api.core.v1.PodSpec."""
        alias, _, local = name.partition(".")
        return f"{self._prefixes[alias]}.{local}"

    def type(self, name: str) -> TypeDescription:
        """The type of that alias.Name; KeyError when the description has none."""
        found = self._types.get(name)
        if found is None:
            found = self._types[name] = self._parse(name)
        return found

    def json_fields(self, name: str) -> dict[str, FieldDescription]:
        """The fields of a struct by JSON name, those of embedded structs among them."""
        found = self._flat.get(name)
        if found is None:
            found = dict(_TYPE_META) if self.type(name).typed else {}
            for field in self.type(name).fields:
                if field.name:
                    found[field.name] = field
                else:
                    inner = self.json_fields(field.ref).items()
                    found |= {key: one._replace(within=_joined(field.ref, one.within)) for key, one in inner}
            self._flat[name] = found
        return found

    def _parse(self, name: str) -> TypeDescription:
        head, body = self._lines[name]
        local, _, rest = head.partition(" ")
        alias = name[: -len(local) - 1]
        if rest.startswith("= "):
            return TypeDescription(name, False, False, tuple(rest[2:].split("|")), ())
        fields = tuple(self._field(alias, line) for line in body)
        return TypeDescription(name, "atomic" in rest, "kind" in rest, (), fields)

    def _field(self, alias: str, line: str) -> FieldDescription:
        words = line.split()
        name, number, go_type = words[:3]
        flags, attributes = "", words[3:]
        if attributes and not attributes[0].strip("!+z"):
            flags, attributes = attributes[0], attributes[1:]
        shape, pointer, kind, ref = self._go_type(alias, go_type)
        go_name = next((word.removeprefix("as:") for word in attributes if word.startswith("as:")), "")
        list_type, keys, patch, default = _attributes([word for word in attributes if not word.startswith("as:")])
        return FieldDescription(
            name="" if name == "<" else name,
            number=0 if number == "-" else int(number),
            shape=shape,
            kind=kind,
            ref=ref,
            pointer=pointer,
            required="!" in flags,
            always="+" in flags,
            omit_zero="z" in flags,
            list_type=list_type,
            keys=keys,
            patch=patch,
            default=default,
            go_name=go_name,
        )

    def _go_type(self, alias: str, text: str) -> tuple[str, bool, str, str]:
        shape = ""
        if text.startswith("[]"):
            shape, text = "list", text[2:]
        elif text.startswith("map[string]"):
            shape, text = "map", text[len("map[string]") :]
        pointer = text.startswith("*")
        text = text.lstrip("*")
        if text[0].islower() and "." not in text:
            return shape, pointer, text, ""
        ref = text if "." in text else f"{alias}.{text}"
        kind = "enum" if self._lines[ref][0].partition(" ")[2].startswith("= ") else "struct"
        return shape, pointer, kind, ref


def _joined(ref: str, within: str) -> str:
    own = ref.partition(".")[2]
    return f"{own}.{within}" if within else own


def _attributes(
    words: list[str],
) -> tuple[str, tuple[str, ...], tuple[str, str], dict[str, Any] | str | int | bool | None]:
    list_type = ""
    keys: tuple[str, ...] = ()
    patch = ("", "")
    default: dict[str, Any] | str | int | bool | None = None
    for word in words:
        name, _, value = word.partition(":")
        if name == "keys":
            list_type, keys = "map", tuple(value.split(","))
        elif name == "patch":
            strategy, _, key = value.partition(":")
            patch = (strategy, key)
        elif name == "default":
            default = orjson.loads(value)
        else:
            list_type = name
    return list_type, keys, patch, default


@functools.cache
def builtin() -> Description:
    """The description that comes with the package."""
    return Description(resources.files(__package__).joinpath("kinds.txt").read_text("utf-8"))
