"""The fields in which a live object differs from the wanted one, with the manager of each.

Items of a list are paired as the last apply understood the list (managedFields: by keys, as a set, or as one value);
a list that nobody applied yet is one value. Fields that others added are not drift. Values of Secrets are not shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from hortus.kube.objects import Object

_ABSENT = object()
_HIDDEN = "(hidden)"
_SERVER_FIELDS = frozenset(("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"))


class FieldDrift(NamedTuple):
    """One field. `wanted` and `found` are JSON values, None when absent."""

    path: str
    """As `.spec.template.spec.containers[name=app].image`."""
    wanted: Any
    found: Any
    manager: str = ""
    """The field manager that owns it now, when that is somebody else."""

    def __str__(self) -> str:
        by = f", set by {self.manager}" if self.manager else ""
        return f"{self.path}: {_text(self.found)} instead of {_text(self.wanted)}{by}"


def drift(live: Object, config: Object, *, field_manager: str) -> list[FieldDrift]:
    """The fields of `config` that `live` holds otherwise, in the order of `config`."""
    entries = (live.get("metadata") or {}).get("managedFields") or ()
    own: Object = {}
    others: list[tuple[str, Object]] = []
    for entry in entries:
        fields = entry.get("fieldsV1") or {}
        if entry.get("manager") == field_manager and entry.get("operation") == "Apply":
            own = fields
        else:
            others.append((str(entry.get("manager", "")), fields))
    found = list(_differences(config, live, own, (), ""))
    secret = config.get("kind") == "Secret"
    return [
        FieldDrift(path, *_shown(path, wanted, now, secret=secret), manager=_owner(others, elements))
        for path, elements, wanted, now in found
    ]


def _shown(path: str, wanted: Any, found: Any, *, secret: bool) -> tuple[Any, Any]:
    if secret and path.startswith((".data", ".stringData")):
        return tuple(None if value is _ABSENT else _HIDDEN for value in (wanted, found))  # type: ignore[return-value]
    return wanted, None if found is _ABSENT else found


_Difference = tuple[str, tuple[str, ...], Any, Any]


def _differences(
    wanted: Any, found: Any, owned: Mapping[str, Any], elements: tuple[str, ...], path: str
) -> Iterator[_Difference]:
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key, value in wanted.items():
            if path == ".metadata" and key in _SERVER_FIELDS:
                continue
            element = f"f:{key}"
            below = owned.get(element) or {}
            yield from _differences(value, found.get(key, _ABSENT), below, (*elements, element), f"{path}.{key}")
    elif isinstance(wanted, list) and isinstance(found, list) and any(key.startswith("k:") for key in owned):
        yield from _items(wanted, found, owned, elements, path)
    elif isinstance(wanted, list) and isinstance(found, list) and any(key.startswith("v:") for key in owned):
        missing = [item for item in wanted if item not in found]
        if missing:
            yield path, elements, wanted, found
    elif wanted is not None and wanted != found and not _same_number(wanted, found):
        yield path, elements, wanted, found


def _items(
    wanted: list[Any], found: list[Any], owned: Mapping[str, Any], elements: tuple[str, ...], path: str
) -> Iterator[_Difference]:
    keys = {element: orjson.loads(element[2:]) for element in owned if element.startswith("k:")}
    for item in wanted:
        element = next((name for name, key in keys.items() if _has_key(item, key)), "")
        key = keys.get(element) or _guessed(item, keys.values())
        live = next((one for one in found if _has_key(one, key)), _ABSENT) if key else _ABSENT
        where = ",".join(f"{name}={value}" for name, value in key.items())
        below = owned.get(element) or {}
        yield from _differences(item, live, below, (*elements, element), f"{path}[{where}]")


def _has_key(item: Any, key: Mapping[str, Any]) -> bool:
    return isinstance(item, dict) and all(name not in item or item[name] == value for name, value in key.items())


def _guessed(item: Any, keys: Any) -> dict[str, Any]:
    """The key of an item that was not applied yet: the fields by which its neighbours are known."""
    names: dict[str, Any] = next(iter(keys), {})
    return {name: item[name] for name in names if isinstance(item, dict) and name in item}


def _same_number(one: Any, other: Any) -> bool:
    numbers = (int, float)
    return (
        isinstance(one, numbers)
        and isinstance(other, numbers)
        and not isinstance(one, bool)
        and not isinstance(other, bool)
        and one == other
    )


def _owner(others: list[tuple[str, Object]], elements: tuple[str, ...]) -> str:
    for manager, fields in others:
        place: Any = fields
        for element in elements:
            place = place.get(element) if isinstance(place, dict) else None
            if place is None:
                break
        if place is not None and elements:
            return manager
    return ""


def _text(value: Any) -> str:
    if value is None:
        return "nothing"
    text = orjson.dumps(value).decode()
    return text if len(text) <= 80 else text[:77] + "..."
