"""A configuration document held against the table of its keys; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hortus.domains.clusters.configuration.keys import KEYS, MISPLACED, Key, KeyType
from hortus.kube import durations
from hortus.kube.versions import Version, VersionError
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid, required, type_invalid


def problems_of(document: object) -> list[FieldError]:
    """All that is wrong with the decoded converter configuration."""
    if not isinstance(document, dict):
        return [type_invalid("<document>", document, "must be an object with the keys converter and cluster")]
    found: list[FieldError] = []
    broken: set[str] = set()
    for key in KEYS:
        found += _key_problems(document, key, broken)
    return found + _dns_problems(document)


def misplaced(document: object) -> list[FieldError]:
    """Keys that are known, but not where they stand."""
    if not isinstance(document, dict):
        return []
    return [
        forbidden(path, f"this key has no effect here; it belongs at {place}")
        for path, place in MISPLACED.items()
        if at(document, path) is not None
    ]


def at(document: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path; None where it, or an object on the way, is absent."""
    value: Any = document
    for part in path.split("."):
        if not isinstance(value, Mapping) or (value := value.get(part)) is None:
            return None
    return value


def _key_problems(document: Mapping[str, Any], key: Key, broken: set[str]) -> Iterator[FieldError]:
    """Problems of one key; a parent that is no object is reported once, by way of `broken`."""
    parts = key.path.split(".")
    value: Any = document
    for count, part in enumerate(parts):
        if not isinstance(value, Mapping):
            parent = ".".join(parts[:count])
            if parent not in broken:
                broken.add(parent)
                yield type_invalid(parent, value, "must be an object")
            return
        value = value.get(part)
        if value is None:
            if key.required:
                yield required(key.path, key.meaning)
            return
    yield from _CHECKS[key.type](key, value)


def _text(key: Key, value: object) -> Iterator[FieldError]:
    if not isinstance(value, str):
        yield type_invalid(key.path, value, "must be a text")
    elif key.required and not value:
        yield required(key.path, key.meaning)


def _truth(key: Key, value: object) -> Iterator[FieldError]:
    if not isinstance(value, bool):
        yield type_invalid(key.path, value, "must be true or false, without quotes")


def _texts(key: Key, value: object) -> Iterator[FieldError]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        yield type_invalid(key.path, value, "must be a list of texts")
    elif key.required and not all(value or [""]):
        yield required(key.path, "at least one, none of them empty")


def _version(key: Key, value: object) -> Iterator[FieldError]:
    yield from (problems := list(_text(key, value)))
    if problems or not isinstance(value, str):
        return
    try:
        Version(value)
    except VersionError:
        yield invalid(key.path, value, "must be a version such as 1.31 or 1.31.4")


def _duration(key: Key, value: object) -> Iterator[FieldError]:
    try:
        if not isinstance(value, str) or durations.parse(value) <= 0:
            yield invalid(key.path, value, "must be a duration above zero, such as 720h")
    except durations.DurationError as error:
        yield invalid(key.path, value, f"must be a duration such as 720h: {error}")


def _gates(key: Key, value: object) -> Iterator[FieldError]:
    if not isinstance(value, Mapping) or not all(isinstance(item, bool) for item in value.values()):
        yield type_invalid(key.path, value, "must be an object of names, each with true or false")


_CHECKS: dict[KeyType, Callable[[Key, object], Iterator[FieldError]]] = {
    "text": _text,
    "true or false": _truth,
    "list of texts": _texts,
    "version": _version,
    "duration": _duration,
    "gates": _gates,
}


def _dns_problems(document: Mapping[str, Any]) -> list[FieldError]:
    """Either all three, for a domain of the operator's own, or none, for one of Gardener's."""
    keys = [f"converter.dns.{name}" for name in ("secretName", "domainPrefix", "providerType")]
    missing = [key for key in keys if not at(document, key)]
    if len(missing) in (0, len(keys)):
        return []
    return [required(key, "give all of secretName, domainPrefix and providerType, or none") for key in missing]
