"""YAML to JSON-like data and back, safe for untrusted input.

Built on libyaml's events, not on PyYAML's nodes and constructors, so that size, depth and alias growth are bounded
while reading, and no tag can make anything but data. Scalars follow YAML 1.2's core schema (`on`, `yes`, `2020-01-01`
stay strings), with one exception: `0644` is octal as every Kubernetes tool reads it, since file modes are written so.
Numbers are those that an API object would hold: `2.0` is the integer 2. Duplicate keys are refused with their line.
Output quotes every text that a YAML 1.1 or 1.2 reader would not read as a string.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import yaml

from hortus.kube.libyaml import Events
from hortus.kube.numbers import stored

_MERGE = "tag:yaml.org,2002:merge"
_CORE_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")}
_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+|[-+]?0[0-7]+")
_NOT_JSON = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_NUMBER_ELSEWHERE = re.compile(
    r"[-+]?(?:[0-9_]*\.?[0-9_]*(?:[eE][-+]?[0-9_]+)?|0[xXoObB][0-9a-fA-F_.]*(?:[pP][-+]?[0-9_]+)?)"
)
"""Texts that YAML 1.1, YAML 1.2 or Go may read as a number, and a few more."""
_SHORT = frozenset(("<<", "=", "y", "Y", "n", "N"))
"""Words with a meaning in YAML 1.1 that PyYAML's own resolver does not know."""
_LONGEST_INTEGER = 4000
"""Digits, far more than any number has that JSON can hold."""


class YamlError(ValueError):
    """A document that cannot be read; the message names the line."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem if line is None else f"line {line}: {problem}")
        self.line = line


class TextLimits(msgspec.Struct, frozen=True):
    """Bounds on one text. `nodes` counts every value as often as aliases repeat it."""

    bytes: int = 16 << 20
    depth: int = 100
    nodes: int = 2_000_000


def load(text: str | bytes, *, limits: TextLimits = TextLimits(), own_keys_win: bool = False) -> Any:  # noqa: B008 - frozen
    """The one document in `text` (None for an empty one). Raises YamlError, also when there are more."""
    documents = load_all(text, limits=limits, own_keys_win=own_keys_win)
    found = next(documents, None)
    for _ in documents:
        raise YamlError("more than one document: expected a single one")
    return found


def load_all(
    text: str | bytes,
    *,
    limits: TextLimits = TextLimits(),  # noqa: B008 - frozen
    own_keys_win: bool = False,
    blank: Any = None,
) -> Iterator[Any]:
    """The documents in `text`, one by one, as dict, list, str, int, float, bool and None. Raises YamlError.

    A merge key (`<<`) takes the place of keys before it and gives way to those after it, as in sigs.k8s.io/yaml;
    with `own_keys_win` it gives way to both, as in YAML's own description and in kustomize. `blank` is what stands for
    a null that is not written out (`key:`).
    """
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > limits.bytes:
        raise YamlError(f"{size} bytes are more than the allowed {limits.bytes}")
    reader = None
    try:
        reader = Events(text)
        yield from _Builder(reader, limits, own_keys_win=own_keys_win, blank=blank).documents()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(error.problem or "not YAML", mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise YamlError(f"not YAML text: {getattr(error, 'reason', 'unreadable characters')}") from None
    finally:
        if reader is not None:
            reader.dispose()


class _Builder:
    """Builds data from events."""

    def __init__(self, reader: Events, limits: TextLimits, *, own_keys_win: bool, blank: Any) -> None:
        self._blank = blank
        self._next: Callable[[], Any] = reader.next
        self._limits = limits
        self._own_keys_win = own_keys_win
        self._count = 0
        self._anchors: dict[str, tuple[Any, int]] = {}

    def documents(self) -> Iterator[Any]:
        self._next()
        while not isinstance(self._next(), yaml.StreamEndEvent):
            self._anchors.clear()
            yield self._value(self._next(), 0)
            self._next()

    def _value(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._repeat(event)
        before = self._count
        self._spend(1, event)
        if event.tag is not None and event.tag != "!" and event.tag not in _CORE_TAGS:
            raise YamlError(f"tag {event.tag!r} is not allowed: only plain data is read", event.start_mark.line + 1)
        if isinstance(event, yaml.ScalarEvent):
            unwritten = not event.value and event.tag is None and event.implicit[0]
            found = self._blank if unwritten else _scalar(event)
        elif depth >= self._limits.depth:
            raise YamlError(f"nested deeper than {self._limits.depth} levels", event.start_mark.line + 1)
        elif isinstance(event, yaml.SequenceStartEvent):
            found = self._sequence(depth + 1)
        else:
            found = self._mapping(depth + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = (found, self._count - before)
        return found

    def _sequence(self, depth: int) -> list[Any]:
        found = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            found.append(self._value(event, depth))
        return found

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        own: set[str] = set()
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if is_merge(event):
                for other in reversed(_merges(self._value(self._next(), depth), event)):
                    found |= {key: other[key] for key in other.keys() - own} if self._own_keys_win else other
                continue
            line = event.start_mark.line + 1
            key = _key(self._value(event, depth), event)
            if key in own:
                raise YamlError(f"key {key!r} stands twice in one mapping", line)
            own.add(key)
            found[key] = self._value(self._next(), depth)
        return found

    def _repeat(self, event: Any) -> Any:
        known = self._anchors.get(event.anchor)
        if known is None:
            raise YamlError(f"alias *{event.anchor} has no anchor before it", event.start_mark.line + 1)
        value, nodes = known
        self._spend(nodes, event)
        return _copy(value)

    def _spend(self, nodes: int, event: Any) -> None:
        self._count += nodes
        if self._count > self._limits.nodes:
            raise YamlError(f"more than {self._limits.nodes} values, aliases counted", event.start_mark.line + 1)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_copy(part) for part in value]
    return value


def is_merge(event: Any) -> bool:
    """Reports whether the key merges other mappings into its own: `<<`, plain or with the tag that says so."""
    return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and (event.implicit[0] or event.tag == _MERGE)


def _merges(value: Any, event: Any) -> list[dict[str, Any]]:
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(part, dict) for part in found):
        raise YamlError("a merge key (<<) takes a mapping or a list of mappings", event.start_mark.line + 1)
    return found


def _key(value: Any, event: Any) -> str:
    """JSON has text keys alone; numbers and booleans become text as in sigs.k8s.io/yaml."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(stored(value))
    raise YamlError("a key must be a string, a number or a boolean", event.start_mark.line + 1)


def _scalar(event: Any) -> Any:
    text: str = event.value
    if event.tag is None and event.implicit[0]:
        return _plain(text, event)
    if event.tag in (None, "!", "tag:yaml.org,2002:str"):
        return text
    value = _plain(text, event)
    kind = {"int": int, "float": float, "bool": bool, "null": type(None)}.get(event.tag.rpartition(":")[2], dict)
    if kind is float and type(value) is int:
        return value
    if type(value) is not kind:
        raise YamlError(f"{text[:80]!r} is not of the type its tag {event.tag!r} says", event.start_mark.line + 1)
    return value


def _plain(text: str, event: Any) -> Any:
    """A plain scalar by the core schema (YAML 1.2.2, 10.3.2)."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    first = text[0]
    if not (first.isdigit() or first in "+-."):
        return text
    if _BASED.fullmatch(text):
        sign, digits = (-1, text[1:]) if first == "-" else (1, text.lstrip("+"))
        return _whole(sign, digits, 16 if digits.startswith("0x") else 8, event)
    if _INTEGER.fullmatch(text):
        return _whole(1, text, 10, event)
    if _NUMBER.fullmatch(text):
        value = float(text)
        if math.isfinite(value):
            return stored(value)
    if _NOT_JSON.fullmatch(text) or _NUMBER.fullmatch(text):
        raise YamlError(f"{text[:80]} is not a number that JSON can hold", event.start_mark.line + 1)
    return text


def _whole(sign: int, digits: str, base: int, event: Any) -> int | float:
    try:
        # Python refuses to read more digits than that, and a float64 holds no more than 309.
        return stored(sign * int(digits[:_LONGEST_INTEGER], base))
    except OverflowError:
        raise YamlError("a number with too many digits", event.start_mark.line + 1) from None


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = (
        "|"
        if "\n" in text and not re.search(r"[ \t]\n|^[ \t\n]|[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\ufffd]", text)
        else None
    )
    if style is None and _ambiguous(text):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _ambiguous(text: str) -> bool:
    """Reports whether a reader of YAML 1.1, of 1.2 or Go's own mixture may read the plain text as something else."""
    return bool(_NUMBER_ELSEWHERE.fullmatch(text) or _NOT_JSON.fullmatch(text) or text in _SHORT)


_Dumper.add_representer(str, _represent_text)


def dump(value: Any, *, sort_keys: bool = False, ascii_only: bool = False) -> str:
    """One document. Keys stay in their order unless `sort_keys` (kubectl sorts); `ascii_only` escapes all else."""
    return str(_emit([value], sort_keys=sort_keys, allow_unicode=not ascii_only))


def dump_all(values: list[Any], *, sort_keys: bool = False) -> str:
    """Several documents, each after a `---`."""
    return str(_emit(values, sort_keys=sort_keys, explicit_start=True))


def _emit(values: list[Any], **options: Any) -> Any:
    options = {"allow_unicode": True, **options}
    return yaml.dump_all(values, Dumper=_Dumper, default_flow_style=False, width=2**31 - 1, **options)
