"""Replacements: values copied from a field of one resource into fields of others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from hortus.render.kustomize.documents import (
    FieldOptions,
    Replacement,
    ReplacementSource,
    ReplacementTarget,
    read_yaml,
    typed,
)
from hortus.render.kustomize.errors import KustomizeError
from hortus.render.kustomize.loading import Loader
from hortus.render.kustomize.resources import Resource, Resources, copied, text
from hortus.render.kustomize.scalars import resolved, retyped
from hortus.render.kustomize.selecting import marks, selects
from hortus.schema.patterns import PatternError, matcher

_DEFAULT_PATH = "metadata.name"
MISSING = object()
"""Stands for a field that is not there."""
_ITEM = re.compile(r"\[([^=]*)=(.*)\]", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,6}")


class _Place(NamedTuple):
    """A field: the map or list that holds it, and its key or index there."""

    holder: Any
    key: Any


def replace(replacement: Replacement, resources: Resources, loader: Loader, place: str) -> None:
    """Carry out one entry of `replacements`. Raises KustomizeError."""
    for one in _loaded(replacement, loader, place):
        if one.source is None or one.targets is None:
            raise KustomizeError(place, "replacements: an entry needs a source and targets")
        value = _value(one.source, resources, place)
        for target in one.targets:
            _replace_in(target, value, resources, place)


def _loaded(replacement: Replacement, loader: Loader, place: str) -> list[Replacement]:
    if not replacement.path:
        return [replacement]
    if replacement.source is not None or replacement.targets:
        raise KustomizeError(place, "replacements: an entry has either a path or a source and targets")
    found = read_yaml(loader.read(replacement.path), f"{place}: {replacement.path}")
    entries = found if isinstance(found, list) else [found]
    return [typed(entry, Replacement, f"{place}: {replacement.path}") for entry in entries]


def _value(source: ReplacementSource, resources: Resources, place: str) -> Any:
    found = [one for one in resources if selects(source, one)]
    shown = " ".join(filter(None, (source.group, source.version, source.kind, source.namespace, source.name)))
    if len(found) != 1:
        raise KustomizeError(place, f"replacements: the source {shown!r} means {len(found)} resources instead of one")
    path = source.field_path or _DEFAULT_PATH
    value = lookup(found[0].obj, split_field_path(path), place)
    if value is MISSING or value in (None, {}, []):
        raise KustomizeError(place, f"replacements: {found[0].current} has nothing at {path!r}")
    if not source.options.delimiter:
        return value
    parts = _scalar(value, path, place).split(source.options.delimiter)
    if not 0 <= source.options.index < len(parts):
        raise KustomizeError(place, f"replacements: {path!r} has no part {source.options.index}")
    return retyped(value, parts[source.options.index])


def _replace_in(target: ReplacementTarget, value: Any, resources: Resources, place: str) -> None:
    if target.select is None:
        raise KustomizeError(place, "replacements: a target needs select")
    wanted = marks(target.select, place)
    unwanted = [marks(one, place) for one in target.reject if one.label_selector or one.annotation_selector]
    rejected = [one for one in target.reject if any((one.group, one.version, one.kind, one.name, one.namespace))]
    for resource in resources:
        if not wanted(resource) or any(one(resource) for one in unwanted):
            continue
        if selects(target.select, resource) and not any(selects(one, resource) for one in rejected):
            for path in target.field_paths or (_DEFAULT_PATH,):
                _copy(resource, path, value, target.options, place)


def _copy(resource: Resource, path: str, value: Any, options: FieldOptions, place: str) -> None:
    where = f"{place}: {resource.current}"
    parts = split_field_path(path)
    places = list(_Finder(value if options.create else MISSING, where).places(_Place([resource.obj], 0), parts))
    if not places:
        raise KustomizeError(where, f"replacements: there is no field {path!r}")
    for holder, key in places:
        holder[key] = _written(holder[key], value, options, path, where)


def _written(old: Any, value: Any, options: FieldOptions, path: str, place: str) -> Any:
    if options.delimiter:
        if isinstance(old, _Created):
            old = _Created("")
        parts = ("" if isinstance(old, _Created) else _scalar(old, path, place)).split(options.delimiter)
        added = text(value)
        if options.index < 0:
            parts.insert(0, added)
        elif options.index >= len(parts):
            parts.append(added)
        else:
            parts[options.index] = added
        joined = options.delimiter.join(parts)
        return resolved(joined) if isinstance(old, _Created) else retyped(old, joined)
    if isinstance(old, _Created):
        return copied(value) if isinstance(value, dict | list) else resolved(text(value)) if value is not None else None
    if isinstance(old, dict | list):
        return copied(value)
    return retyped(old, text(value))


def _scalar(value: Any, path: str, place: str) -> str:
    if isinstance(value, dict | list):
        raise KustomizeError(place, f"replacements: {path!r} is no scalar, as a delimiter needs it")
    return text(value)


class _Created(NamedTuple):
    """Stands in a field that was just made and has no value yet."""

    value: str


class _Finder:
    """Finds the fields of a path, and makes them when there is a `value` for them to hold."""

    def __init__(self, value: Any, place: str) -> None:
        self._value = value
        self._place = place

    @property
    def _creates(self) -> bool:
        return self._value is not MISSING

    def places(self, at: _Place, path: list[str]) -> Iterator[_Place]:
        if not path:
            yield at
            return
        part, value = path[0], at.holder[at.key]
        if _NUMBER.fullmatch(part) and not isinstance(value, dict):
            yield from self._index(value, int(part), path)
        elif item := _ITEM.fullmatch(part):
            yield from self._items(value, item[1], item[2], path)
        elif part == "*":
            for place in range(len(self._list(value, part))):
                yield from self.places(_Place(value, place), path[1:])
        else:
            yield from self._field(at, part, path)

    def _field(self, at: _Place, name: str, path: list[str]) -> Iterator[_Place]:
        value = at.holder[at.key]
        if value is None and self._creates:
            value = at.holder[at.key] = {}
        if not isinstance(value, dict):
            raise KustomizeError(self._place, f"replacements: {name!r} is looked for in what is no map")
        if name not in value:
            if not self._creates:
                return
            value[name] = self._new(path)
        yield from self.places(_Place(value, name), path[1:])

    def _index(self, value: Any, index: int, path: list[str]) -> Iterator[_Place]:
        items = self._list(value, path[0])
        if index == len(items) and self._creates:
            items.append(self._new(path))
        if index >= len(items):
            raise KustomizeError(self._place, f"replacements: a list of {len(items)} has no item {index}")
        yield from self.places(_Place(items, index), path[1:])

    def _items(self, value: Any, name: str, wanted: str, path: list[str]) -> Iterator[_Place]:
        items = self._list(value, path[0])
        matches = self._matcher(wanted)
        found = [place for place, item in enumerate(items) if _is_item(item, name, matches)]
        inner = path[1:] if name else []
        reached = [one for place in found for one in self.places(_Place(items, place), inner)]
        if not reached and self._creates:
            items.append({name: resolved(wanted)} if name else resolved(wanted))
            reached = list(self.places(_Place(items, len(items) - 1), inner))
        yield from reached

    def _matcher(self, pattern: str) -> Any:
        """Values of items are searched for by a regular expression (RE2), not anchored."""
        try:
            return matcher(pattern)
        except PatternError:
            raise KustomizeError(self._place, f"replacements: {pattern[:100]!r} is no regular expression") from None

    def _list(self, value: Any, part: str) -> list[Any]:
        if not isinstance(value, list):
            raise KustomizeError(self._place, f"replacements: {part!r} is looked for in what is no list")
        return value

    def _new(self, path: list[str]) -> Any:
        if len(path) == 1:
            value = self._value
            return {} if isinstance(value, dict) else [] if isinstance(value, list) else _Created("")
        following = path[1]
        return [] if _ITEM.fullmatch(following) or _NUMBER.fullmatch(following) else {}


def _is_item(item: Any, name: str, matches: Any) -> bool:
    if not name:
        return not isinstance(item, dict | list) and bool(matches(text(item)))
    return isinstance(item, dict) and name in item and bool(matches(text(item[name])))


def lookup(value: Any, path: list[str], place: str) -> Any:
    """The value at a path, by plain comparison, or `MISSING`."""
    for part in path:
        if item := _ITEM.fullmatch(part):
            items = value if isinstance(value, list) else []
            value = next((one for one in items if _is_item(one, item[1], item[2].__eq__)), MISSING)
        elif isinstance(value, list):
            value = _indexed(value, part, place)
        else:
            value = value.get(part, MISSING) if isinstance(value, dict) else MISSING
        if value is MISSING:
            return MISSING
    return value


def _indexed(items: list[Any], part: str, place: str) -> Any:
    if part == "*":
        raise KustomizeError(place, "replacements: a source is one field, not every one of a list (*)")
    if part == "-":
        return items[-1] if items else MISSING
    return items[int(part)] if _NUMBER.fullmatch(part) and int(part) < len(items) else MISSING


def split_field_path(path: str) -> list[str]:
    """The parts of a path with dots: `\\.` is a dot within a name, as is any within `[...]`."""
    split: list[str] = []
    for part in path.removeprefix(".").split("."):
        if split and split[-1].endswith("\\"):
            split[-1] = f"{split[-1][:-1]}.{part}"
        else:
            split.append(part)
    parts: list[str] = []
    while split:
        part = split.pop(0)
        if part.startswith("[") and not part.endswith("]"):
            while split and not part.endswith("]"):
                part += "." + split.pop(0)
            part = part if "=" in part else part.strip("[]")
        parts.append(part)
    return parts
