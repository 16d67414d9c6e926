"""OpenAPI of a logical cluster: /openapi/v3, one document per group and version (KEP-2896), and v2.

kubectl reads it for `explain` and to learn that the server validates fields itself (the parameter `fieldValidation` of
PATCH), so that it need not. Documents are made on request, kind by kind with turns in between, and cached while the set
of kinds stays the same. The part of a kind in v2 is cached with the kind, so that a new CRD costs its own part and not
the whole document; built-in parts are shared by all clusters and never evicted by those of tenants.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import orjson

from hortus.apiserver.aggregation.swagger import RemoteSwagger, merge
from hortus.apiserver.builtin import components
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.settings import version_info
from hortus.apiserver.tenants import ROOT_CLUSTER
from hortus.apiserver.turns import TurnPace
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.schema.openapi import (
    META_SCHEMAS,
    V2_PREFIX,
    V3_PREFIX,
    Published,
    component,
    published,
    published_list,
)

_KEPT = 64
"""Documents of groups with custom kinds."""
_KEPT_SWAGGER = 8
"""Documents of v2, of several MiB each: clusters with custom kinds have their own, all others share one."""
_OPERATIONS = (("get", "get"), ("put", "update"), ("patch", "patch"), ("delete", "delete"))
_COLLECTION_OPERATIONS = (("get", "list"), ("post", "create"), ("delete", "deletecollection"))
_ACTIONS = {"update": "put", "create": "post"}
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")


class _Part(NamedTuple):
    """The paths and definitions of one kind in v2, encoded, by name."""

    paths: dict[str, bytes]
    definitions: dict[str, bytes]


class RemoteDescriptions(Protocol):
    """Descriptions of the versions that other servers serve in a cluster."""

    def openapi(self, cluster: str) -> Mapping[str, str]:
        """The addresses of their /openapi/v3 documents, by path."""

    async def swaggers(self, cluster: str) -> Sequence[RemoteSwagger]:
        """Their /openapi/v2 documents."""


class OpenApi:
    def __init__(self, registry: Registry, remote: RemoteDescriptions) -> None:
        self._registry = registry
        self._remote = remote
        self._built_in: dict[tuple[str, str], bytes] = {}
        self._custom: dict[tuple[str, str], bytes] = {}
        self._parts: WeakKeyDictionary[Kind, _Part] = WeakKeyDictionary()
        self._swagger: dict[Hashable, bytes] = {}

    def index(self, cluster: str) -> dict[str, Any]:
        """/openapi/v3: the addresses of the documents; the hash in an address changes with its document."""
        base = "" if cluster == ROOT_CLUSTER else f"/clusters/{cluster}"
        paths = {
            path: {"serverRelativeURL": f"{base}/openapi/v3/{path}?hash={_digest(kinds)}"}
            for path, kinds in self._by_path(cluster).items()
        }
        for path, address in self._remote.openapi(cluster).items():
            paths[path] = {"serverRelativeURL": f"{base}{address}"}
        return {"paths": dict(sorted(paths.items()))}

    async def document(self, cluster: str, path: str, pace: TurnPace) -> bytes:
        """/openapi/v3/<path>. Raises NotFound."""
        kinds = self._by_path(cluster).get(path)
        if not kinds:
            raise NotFound("the server could not find the requested resource")
        kept, key = self._custom if any(kind.custom for kind in kinds) else self._built_in, (path, _digest(kinds))
        document = kept.get(key)
        if document is None:
            document = orjson.dumps(await _document(kinds, pace))
            if kept is self._custom and len(kept) >= _KEPT:
                del kept[next(iter(kept))]
            kept[key] = document
        return document

    async def swagger(self, cluster: str, pace: TurnPace) -> bytes:
        """/openapi/v2 in JSON: the definitions of all kinds."""
        remote = await self._remote.swaggers(cluster)
        tags = tuple((each.group, each.version, each.tag) for each in remote)
        served = self._registry.signature(cluster), (cluster, tags) if tags else None
        found = self._swagger.get(served)
        if found is None:
            found = await self._made_swagger(list(self._registry.kinds(cluster)), remote, pace)
            if len(self._swagger) >= _KEPT_SWAGGER:
                del self._swagger[next(iter(self._swagger))]
            self._swagger[served] = found
        return found

    async def _made_swagger(self, kinds: Iterable[Kind], remote: Sequence[RemoteSwagger], pace: TurnPace) -> bytes:
        definitions = {name: orjson.dumps(schema) for name, schema in META_SCHEMAS.items()}
        paths: dict[str, bytes] = {}
        for kind in kinds:
            part = self._parts.get(kind)
            if part is None:
                if pace.due:
                    await pace.turn()
                part = self._parts[kind] = _part(kind)
            definitions |= part.definitions
            paths |= part.paths
        if remote:
            await pace.aside(partial(merge, remote, paths, definitions))
        return b'{"swagger":"2.0","info":%s,"paths":%s,"definitions":%s}' % (
            orjson.dumps(_info()),
            _joined(paths),
            _joined(definitions),
        )

    def _by_path(self, cluster: str) -> dict[str, list[Kind]]:
        found: dict[str, list[Kind]] = {}
        for kind in self._registry.kinds(cluster):
            resource = kind.resource
            path = f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"
            found.setdefault(path, []).append(kind)
        return found


def _digest(kinds: Iterable[Kind]) -> str:
    """Changes with the set of kinds. A Kind is immutable, so their identities suffice."""
    text = ",".join(sorted(f"{kind.group_kind}:{kind.digest}" for kind in kinds))
    return hashlib.sha256(text.encode()).hexdigest()[:32].upper()


def _info() -> dict[str, str]:
    return {"title": "Kubernetes", "version": version_info()["gitVersion"]}


def _part(kind: Kind) -> _Part:
    schemas = _schemas([kind], v2=True)
    paths = _paths([kind], reference=V2_PREFIX)
    return _Part(
        {name: orjson.dumps(path) for name, path in paths.items()},
        {name: orjson.dumps(schema) for name, schema in schemas.items() if name not in META_SCHEMAS},
    )


def _joined(members: Mapping[str, bytes]) -> bytes:
    return b"{%s}" % b",".join([b"%s:%s" % (orjson.dumps(name), value) for name, value in members.items()])


async def _document(kinds: list[Kind], pace: TurnPace) -> dict[str, Any]:
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for kind in kinds:
        if pace.due:
            await pace.turn()
        schemas |= _schemas([kind])
        paths |= _paths([kind], reference=V3_PREFIX)
    return {"openapi": "3.0.0", "info": _info(), "paths": paths, "components": {"schemas": schemas}}


def _names(kind: Kind) -> Published:
    resource = kind.resource
    return Published(resource.group, resource.version, resource.kind, kind.definition.list_kind, resource.plural)


def _schemas(kinds: list[Kind], *, v2: bool = False) -> dict[str, Any]:
    schemas: dict[str, Any] = dict(META_SCHEMAS)
    parts = {} if v2 or any(kind.custom for kind in kinds) else components()
    shared = {id(schema): name for name, schema in parts.items()}
    for kind in kinds:
        names = _names(kind)
        schemas[names.name] = published(kind.definition.schema, names, v2=v2, shared=shared)
        schemas[f"{names.name}List"] = published_list(names, v2=v2)
    if shared:
        _add_components(schemas, parts, shared)
    return schemas


def _add_components(schemas: dict[str, Any], parts: Mapping[str, Object], shared: Mapping[int, str]) -> None:
    """Adds the referenced components to the document, recursively."""
    waiting: list[Any] = list(schemas.values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).removeprefix(V3_PREFIX)
            if name in parts and name not in schemas:
                schemas[name] = component(parts[name], shared)
                waiting.append(schemas[name])
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _gvk(kind: Kind) -> dict[str, str]:
    resource = kind.resource
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _paths(kinds: list[Kind], *, reference: str) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for kind in kinds:
        resource = kind.resource
        collection = resource.path("{namespace}" if resource.namespaced else "")
        schema = {"$ref": reference + _names(kind).name}
        paths[collection] = _operations(kind, _COLLECTION_OPERATIONS, schema)
        paths[f"{collection}/{{name}}"] = _operations(kind, _OPERATIONS, schema)
        if kind.definition.status:
            paths[f"{collection}/{{name}}/status"] = _operations(kind, _OPERATIONS[:3], schema)
    return paths


def _operations(kind: Kind, operations: Iterable[tuple[str, str]], schema: dict[str, str]) -> dict[str, Any]:
    return {
        method: {
            "x-kubernetes-action": _ACTIONS.get(verb, verb),
            "x-kubernetes-group-version-kind": _gvk(kind),
            "parameters": _parameters(method),
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
        }
        for method, verb in operations
        if verb in kind.definition.verbs
    }


def _parameters(method: str) -> list[dict[str, Any]]:
    names = _WRITE_PARAMETERS if method in ("put", "patch", "post") else ()
    if method == "patch":
        names = (*names, "force")
    return [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
