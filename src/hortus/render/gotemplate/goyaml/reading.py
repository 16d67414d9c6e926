"""Read YAML as sigs.k8s.io/yaml does: yaml.v2's YAML 1.1 made JSON, and every number a float64.

Built on libyaml's events like `hortus.kube.yaml`, with the same bounds on size, depth and aliases; what differs is
what a scalar means (`yes` is true, `0o17` is text) and that a later duplicate key wins.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

import msgspec
import yaml

from hortus.kube.libyaml import Events
from hortus.kube.numbers import stored
from hortus.kube.yaml import is_merge
from hortus.render.gotemplate import formatting, numbers
from hortus.render.gotemplate.goyaml.scalars import NOT_TEXT, is_timestamp, resolve
from hortus.render.gotemplate.values import wire_text

_TAG = "tag:yaml.org,2002:"
_RESOLVED_TAGS = frozenset(_TAG + name for name in ("bool", "int", "float", "null", "timestamp"))


class GoYamlError(ValueError):
    """A text that the Go library refuses; worded as there: `yaml: line 2: ...`."""


class YamlLimits(msgspec.Struct, frozen=True):
    bytes: int = 16 << 20
    depth: int = 100
    nodes: int = 1_000_000


def read(text: str | bytes, *, exact: bool = False, limits: YamlLimits = YamlLimits()) -> Any:  # noqa: B008 - frozen
    """The first document of the text; None for an empty one. Raises GoYamlError.

    `exact` gives numbers as objects of Kubernetes hold them: whole ones are int.
    """
    if len(text) > limits.bytes:
        raise GoYamlError(f"yaml: more than the allowed {limits.bytes} bytes")
    if isinstance(text, str):
        # libyaml takes bytes; what was no UTF-8 is refused there.
        text = text.encode("utf-8", "surrogateescape")
    reader = None
    try:
        reader = Events(text)
        return _Builder(reader, limits, exact=exact).document()
    except yaml.MarkedYAMLError as error:
        raise GoYamlError(_problem(error)) from None
    except (yaml.YAMLError, UnicodeError) as error:
        reason = getattr(error, "reason", "") or "control characters are not allowed"
        raise GoYamlError(f"yaml: {reason}") from None
    finally:
        if reader is not None:
            reader.dispose()


def read_json(text: str | bytes, *, limits: YamlLimits = YamlLimits()) -> Any:  # noqa: B008 - frozen
    """Reads as `read` does, with the words that sigs.k8s.io/yaml puts before an error."""
    try:
        return read(text, limits=limits)
    except GoYamlError as error:
        raise GoYamlError(f"error converting YAML to JSON: {error}") from None


def _problem(error: yaml.MarkedYAMLError) -> str:
    problem = str(error.problem or "unknown problem parsing YAML content")
    line = 0
    if error.problem_mark and error.problem_mark.line:
        line = error.problem_mark.line + (1 if isinstance(error, yaml.scanner.ScannerError) else 0)
    elif error.context_mark:
        line = error.context_mark.line
    return f"yaml: line {line}: {problem}" if line else f"yaml: {problem}"


class _Builder:
    def __init__(self, reader: Events, limits: YamlLimits, *, exact: bool) -> None:
        self._next: Callable[[], Any] = reader.next
        self._limits = limits
        self._exact = exact
        self._count = 0
        self._anchors: dict[str, tuple[Any, int]] = {}

    def document(self) -> Any:
        self._next()
        if isinstance(self._next(), yaml.StreamEndEvent):
            return None
        found = self._value(self._next(), 0)
        # The end of the document is looked at too: what stands behind a value may make it none.
        self._next()
        return found

    def _value(self, event: Any, depth: int) -> Any:
        kind = type(event)
        self._count += 1
        if self._count > self._limits.nodes:
            raise GoYamlError("yaml: document contains excessive aliasing")
        if kind is yaml.ScalarEvent:
            found = self._scalar(event)
            if event.anchor is not None:
                self._anchors[event.anchor] = (found, 1)
            return found
        if kind is yaml.AliasEvent:
            return self._repeat(event)
        if depth >= self._limits.depth:
            raise GoYamlError(f"yaml: exceeded max depth of {self._limits.depth}")
        before = self._count
        found = self._sequence(depth + 1) if kind is yaml.SequenceStartEvent else self._mapping(depth + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = (found, self._count - before)
        return found

    def _repeat(self, event: Any) -> Any:
        known = self._anchors.get(event.anchor)
        if known is None:
            raise GoYamlError(f"yaml: unknown anchor '{event.anchor}' referenced")
        value, nodes = known
        self._count += nodes
        if self._count > self._limits.nodes:
            raise GoYamlError("yaml: document contains excessive aliasing")
        return _copied(value)

    def _sequence(self, depth: int) -> list[Any]:
        found = []
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            found.append(self._value(event, depth))
        return found

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while type(event := self._next()) is not yaml.MappingEndEvent:
            if type(event) is yaml.ScalarEvent:
                if event.value == "<<" and is_merge(event):
                    # Keys before it give way, keys after it do not; of several mappings the first one wins.
                    for other in reversed(_merges(self._value(self._next(), depth))):
                        found |= other
                    continue
                self._count += 1
                found_key = self._scalar(event, is_key=True)
                if found_key is None:
                    shown = formatting.sprintf("%#v", [self._value(self._next(), depth)])
                    raise GoYamlError(f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}")
                key = _key(found_key)
                if event.anchor is not None:
                    self._anchors[event.anchor] = (key, 1)
            else:
                key = _key(self._value(event, depth))
            found[key] = self._value(self._next(), depth)
        return found

    def _scalar(self, event: Any, *, is_key: bool = False) -> Any:
        text: str = event.value
        tag = event.tag
        if tag is None:
            if not event.implicit[0]:
                return text
        elif tag not in _RESOLVED_TAGS:
            return _binary(text) if tag == _TAG + "binary" else text
        value = resolve(text)
        if tag is not None:
            value = _tagged(value, text, tag.removeprefix(_TAG))
        if value is NOT_TEXT:
            return text
        if is_key or value is None or isinstance(value, bool):
            return value
        if isinstance(value, float) and numbers.special(value):
            raise GoYamlError(f"json: unsupported value: {numbers.special(value)}")
        return stored(value) if self._exact else float(value)


_TYPES: dict[type, str] = {bool: "bool", int: "int", float: "float", type(None): "null"}


def _tagged(value: Any, text: str, tag: str) -> Any:
    """A scalar with a tag must be of its type; a whole number may be a float."""
    found = "str" if value is NOT_TEXT else _TYPES[type(value)]
    if value is NOT_TEXT and is_timestamp(text):
        found = "timestamp"
    if tag == "float" and found == "int":
        return float(value)
    if found != tag:
        raise GoYamlError(f"yaml: cannot decode !!{found} `{text}` as a !!{tag}")
    return value


def _binary(text: str) -> str:
    try:
        return wire_text(base64.b64decode(text))
    except (ValueError, binascii.Error):
        raise GoYamlError("yaml: !!binary value contains invalid base64 data") from None


def _key(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        special = numbers.special(value)
        if special:
            return {"+Inf": ".inf", "-Inf": "-.inf", "NaN": ".nan"}[special]
        return numbers.general(value, single=True, high=21)
    shown = formatting.sprintf("%#v", [value]).replace("map[string]interface {}", "map[interface {}]interface {}")
    raise GoYamlError(f"yaml: invalid map key: {shown}")


def _merges(value: Any) -> list[dict[str, Any]]:
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, dict) for part in parts):
        raise GoYamlError("yaml: map merge requires map or sequence of maps as the value")
    return parts


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_copied(part) for part in value]
    return value
