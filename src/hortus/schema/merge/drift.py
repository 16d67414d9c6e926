"""Drift detection: reports from a cached object alone whether another apply of a configuration would change anything.

This needs no schema: managedFields of the last apply show how each part of the configuration was read (a leaf, a map, a
list by its keys). The answer errs on one side: True means that no value would change, False that one may. Only a schema
could separate an atomic map from a map that was null or empty when it was applied; in that case True is possible
although the ownership of the map's present content is missing.

An atomic value is owned as a whole, and the server completes it with defaults. As long as `manager` owns it nobody else
has changed it, so members that only the server's object has are compared with the known defaults of built-in types.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import orjson

from hortus.schema.merge.comparison import same
from hortus.schema.merge.elements import SELF, keys_element, set_element
from hortus.schema.merge.fieldset import FieldSet

Value = Any
Object = dict[str, Any]

_NOT_OWNED = frozenset(
    ("name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion")
)

_Defaults = Mapping[str, Mapping[str, Value]]
_MATCHING: Final = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_RBAC: Final = "rbac.authorization.k8s.io"
WITHIN_ATOMIC: Final[_Defaults] = MappingProxyType(
    {
        "fieldRef": {"apiVersion": "v1"},
        "resourceFieldRef": {"divisor": "0"},
        "fileKeyRef": {"optional": False},
        "serviceAccountToken": {"expirationSeconds": 3600},
        "ports": {"protocol": "TCP", "name": ""},
        "rules": {"scope": "*"},
        "resourceRules": {"scope": "*"},
        "excludeResourceRules": {"scope": "*"},
        "matchConstraints": _MATCHING,
        "matchResources": _MATCHING,
        "roleRef": {"apiGroup": _RBAC},
        "subjects": {"apiGroup": _RBAC},
        "volumeClaimTemplates": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}},
        "metadata": {"creationTimestamp": None},
        "spec": {"volumeMode": "Filesystem", "resources": {}},
        "status": {"phase": "Pending"},
        "endpoints": {"conditions": {}},
        "service": {"port": {}},
        "resource": {"apiGroup": None},
        "dataSource": {"apiGroup": None},
        "dataSourceRef": {"apiGroup": None},
    }
)
"""By the name of a field within an atomic value of a built-in kind: the members that a server adds, with their values.

Besides defaults these are members that Kubernetes' types write although they are empty. A custom resource may have
such a field without the default.
"""
_BUILT_IN: Final = frozenset(
    ("", "apps", "batch", "networking.k8s.io", "discovery.k8s.io", "admissionregistration.k8s.io", _RBAC)
)
"""The groups of the kinds in which these fields occur."""
_NONE: Final[_Defaults] = MappingProxyType({})


def owned_matches(live: Object, config: Object, manager: str, *, subresource: str = "") -> bool:
    """Reports whether `manager` owns in `live` exactly the fields of `config`, all with their values."""
    entry = _entry(live, manager, subresource)
    if entry is None or entry.get("apiVersion") != config.get("apiVersion"):
        return False
    fields: FieldSet = entry.get("fieldsV1") or {}
    if live.get("kind") != config.get("kind"):
        return False
    wanted = {key: value for key, value in config.items() if key not in ("apiVersion", "kind", "metadata")}
    owned = {key: below for key, below in fields.items() if key != "f:metadata"}
    group = config.get("apiVersion", "").rpartition("/")[0]
    defaults = WITHIN_ATOMIC if group in _BUILT_IN else _NONE
    return _metadata_matches(live, config, fields.get("f:metadata")) and _map_matches(live, wanted, owned, defaults)


def _entry(live: Object, manager: str, subresource: str) -> Object | None:
    entries = (live.get("metadata") or {}).get("managedFields") or ()
    for entry in entries:
        if (
            entry.get("manager") == manager
            and entry.get("operation") == "Apply"
            and entry.get("subresource", "") == subresource
        ):
            found: Object = entry
            return found
    return None


def _metadata_matches(live: Object, config: Object, owned: FieldSet | None) -> bool:
    current: Object = live.get("metadata") or {}
    wanted: Object = config.get("metadata") or {}
    given = [key for key in wanted if key in _NOT_OWNED and wanted[key] is not None]
    if any(not same(current.get(key), wanted[key]) for key in given):
        return False
    rest = {key: value for key, value in wanted.items() if key not in _NOT_OWNED}
    return _map_matches(current, rest, owned, _NONE) if owned is not None else not rest


def _matches(live: Value, config: Value, owned: FieldSet, name: str, defaults: _Defaults) -> bool:
    if not owned:
        return same(live, config) or (bool(defaults) and _same_but_defaults(live, config, name, defaults))
    if isinstance(config, dict) and isinstance(live, dict):
        return _map_matches(live, config, owned, defaults)
    if isinstance(config, list) and isinstance(live, list):
        return _list_matches(live, config, owned, name, defaults)
    return False


def _same_but_defaults(live: Value, config: Value, name: str, defaults: _Defaults) -> bool:
    """Reports whether `live` is `config`, the value of the field `name`, with defaults that the server has added."""
    if isinstance(live, dict) and isinstance(config, dict):
        known = defaults.get(name, {})
        return config.keys() <= live.keys() and all(
            _same_but_defaults(value, config[key], key, defaults)
            if key in config
            else key in known and same(value, known[key])
            for key, value in live.items()
        )
    if isinstance(live, list) and isinstance(config, list) and len(live) == len(config):
        return all(_same_but_defaults(*pair, name, defaults) for pair in zip(live, config, strict=True))
    return same(live, config)


def _map_matches(live: Mapping[str, Value], config: Mapping[str, Value], owned: FieldSet, defaults: _Defaults) -> bool:
    for key, wanted in config.items():
        below = owned.get("f:" + key)
        if below is None:
            return False
        held = _matches(live[key], wanted, below, key, defaults) if key in live else _left_out(wanted, below)
        if not held:
            return False
    return len(config) == _size(owned)


def _left_out(wanted: Value, owned: FieldSet) -> bool:
    """Reports whether `wanted` was applied and is absent because servers omit empty values of typed kinds."""
    return not owned and wanted is not None and not wanted


def _size(owned: FieldSet) -> int:
    return len(owned) - (SELF in owned)


def _list_matches(live: list[Value], config: list[Value], owned: FieldSet, name: str, defaults: _Defaults) -> bool:
    """Reports whether each item is owned and has its value in `live`, in the same order."""
    if len(config) != _size(owned):
        return False
    keys = [orjson.loads(element[2:]) for element in owned if element.startswith("k:")]
    place = -1
    for item in config:
        element, index = _set_place(item, live) if not keys else _keyed_place(item, live, keys)
        below = owned.get(element)
        if below is None or index <= place:
            return False
        if keys and not _matches(live[index], item, below, name, defaults):
            return False
        place = index
    return True


def _set_place(item: Value, live: list[Value]) -> tuple[str, int]:
    if item is None or isinstance(item, dict | list):
        return "", -1
    return set_element(item), next((index for index, one in enumerate(live) if same(one, item)), -1)


def _keyed_place(item: Value, live: list[Value], keys: list[Object]) -> tuple[str, int]:
    """The element by which `item` is owned, and its place. A key that the item omits was filled with a default."""
    if not isinstance(item, dict):
        return "", -1
    fitting = [key for key in keys if all(name not in item or same(item[name], key[name]) for name in key)]
    if len(fitting) != 1:
        return "", -1
    (key,) = fitting
    where = (
        index
        for index, one in enumerate(live)
        if isinstance(one, dict) and all(name not in one or same(one[name], value) for name, value in key.items())
    )
    return keys_element(key.items()), next(where, -1)
