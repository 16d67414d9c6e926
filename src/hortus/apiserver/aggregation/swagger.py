"""Parts of other servers' /openapi/v2 in the one of this server.

Of each document only the paths of its version are taken, with the definitions that they refer to. A definition whose
name is taken by another one gets a name of its own, as in k8s.io/kube-openapi, pkg/aggregator: `Name_v2`.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Any, NamedTuple

import orjson

from hortus.kube.objects import Object

_PREFIX = "#/definitions/"


class RemoteSwagger(NamedTuple):
    """A version's server's whole document; `tag` changes with it. The document is not changed."""

    group: str
    version: str
    tag: str
    document: Object


def merge(
    remote: Iterable[RemoteSwagger], paths: MutableMapping[str, bytes], definitions: MutableMapping[str, bytes]
) -> None:
    """Adds the parts to encoded paths and definitions by name. Paths that are there already stay."""
    for each in remote:
        prefix = f"/apis/{each.group}/{each.version}/" if each.group else f"/api/{each.version}/"
        own = {
            path: value
            for path, value in (each.document.get("paths") or {}).items()
            if path.startswith(prefix) and path not in paths
        }
        referred = _referred(own, each.document.get("definitions") or {})
        names = _names(referred, definitions)
        for path, value in own.items():
            paths[path] = orjson.dumps(_renamed(value, names))
        for name, value in referred.items():
            definitions[names.get(name, name)] = orjson.dumps(_renamed(value, names))


def _referred(paths: Object, definitions: Object) -> dict[str, Any]:
    """The definitions that the paths refer to, directly or through others."""
    found: dict[str, Any] = {}
    waiting: list[Any] = [paths]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).removeprefix(_PREFIX)
            if name in definitions and name not in found:
                found[name] = definitions[name]
                waiting.append(found[name])
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return found


def _names(referred: dict[str, Any], definitions: MutableMapping[str, bytes]) -> dict[str, str]:
    """New names of the definitions whose names stand for something else already."""
    found: dict[str, str] = {}
    for name, value in referred.items():
        number, chosen = 1, name
        while chosen in definitions and orjson.loads(definitions[chosen]) != value:
            number += 1
            chosen = f"{name}_v{number}"
        if chosen != name:
            found[name] = chosen
    return found


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if not names:
        return value
    if isinstance(value, dict):
        changed = {key: _renamed(inner, names) for key, inner in value.items()}
        reference = value.get("$ref")
        if isinstance(reference, str) and (name := reference.removeprefix(_PREFIX)) in names:
            changed["$ref"] = _PREFIX + names[name]
        return changed
    if isinstance(value, list):
        return [_renamed(inner, names) for inner in value]
    return value
