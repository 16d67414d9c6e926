"""OpenAPI of what a logical cluster serves: /openapi/v3, one document per group and version (KEP-2896), and v2.

kubectl reads it for `explain` and to learn that the server validates fields itself (the parameter `fieldValidation` of
PATCH), so that it need not. A document is made when asked for and kept while what the cluster serves stays the same;
built-in ones are shared by all clusters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from hortus.apiserver.builtin import components
from hortus.apiserver.http.paths import ROOT_CLUSTER
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.settings import version_info
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
"""Documents; one of a big built-in group is about 300 KiB."""
_OPERATIONS = (("get", "get"), ("put", "update"), ("patch", "patch"), ("delete", "delete"))
_COLLECTION_OPERATIONS = (("get", "list"), ("post", "create"), ("delete", "deletecollection"))
_ACTIONS = {"update": "put", "create": "post"}
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")


class OpenApi:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._documents: dict[tuple[str, str], bytes] = {}

    def index(self, cluster: str) -> dict[str, Any]:
        """/openapi/v3: where the documents are; the hash in an address changes with its document."""
        base = "" if cluster == ROOT_CLUSTER else f"/clusters/{cluster}"
        paths = {
            path: {"serverRelativeURL": f"{base}/openapi/v3/{path}?hash={_digest(kinds)}"}
            for path, kinds in sorted(self._by_path(cluster).items())
        }
        return {"paths": paths}

    def document(self, cluster: str, path: str) -> bytes:
        """/openapi/v3/<path>. Raises NotFound."""
        kinds = self._by_path(cluster).get(path)
        if not kinds:
            raise NotFound("the server could not find the requested resource")
        key = (path, _digest(kinds))
        document = self._documents.get(key)
        if document is None:
            document = orjson.dumps(_document(kinds))
            if len(self._documents) >= _KEPT:
                del self._documents[next(iter(self._documents))]
            self._documents[key] = document
        return document

    def swagger(self, cluster: str) -> dict[str, Any]:
        """/openapi/v2 in JSON: the definitions of all kinds."""
        definitions, paths = {}, {}
        for kinds in self._by_path(cluster).values():
            definitions.update(_schemas(kinds, v2=True))
            paths.update(_paths(kinds, reference=V2_PREFIX))
        return {"swagger": "2.0", "info": _info(), "paths": paths, "definitions": definitions}

    def _by_path(self, cluster: str) -> dict[str, list[Kind]]:
        found: dict[str, list[Kind]] = {}
        for kind in self._registry.kinds(cluster):
            resource = kind.resource
            path = f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"
            found.setdefault(path, []).append(kind)
        return found


def _digest(kinds: Iterable[Kind]) -> str:
    """Changes when the kinds do. A Kind is immutable, so which ones they are says it all."""
    text = ",".join(sorted(f"{kind.group_kind}:{kind.digest}" for kind in kinds))
    return hashlib.sha256(text.encode()).hexdigest()[:32].upper()


def _info() -> dict[str, str]:
    return {"title": "Kubernetes", "version": version_info()["gitVersion"]}


def _document(kinds: list[Kind]) -> dict[str, Any]:
    return {
        "openapi": "3.0.0",
        "info": _info(),
        "paths": _paths(kinds, reference=V3_PREFIX),
        "components": {"schemas": _schemas(kinds)},
    }


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
    """Add what is referred to, and what that refers to, to the document."""
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
