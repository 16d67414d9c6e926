"""Objects of aggregated API servers, as the loops of this server need them: the content of a namespace that is being
deleted, and owners and dependents for the garbage collector.

Requests go out as `system:apiserver` with the group system:masters, and only to servers that are available. Discovery
says which resources there are; each is asked for in the preferred one of its versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import quote

import orjson

from hortus.apiserver.aggregation.apiservices import RemoteApi, RemoteApis
from hortus.apiserver.aggregation.documents import RemoteAnswer, RemoteDocuments, RemoteRequests
from hortus.apiserver.aggregation.servers import Unreachable
from hortus.apiserver.discovery import version_priority
from hortus.apiserver.gc import OwnerState, state_of
from hortus.apiserver.namespaces import SERVER, RemoteLeft
from hortus.kube.objects import Object

_DELETED: Final = b'{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}'
_MERGE: Final = "application/merge-patch+json"
_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_GONE: Final = frozenset({404, 405})
"""Codes of resources that cannot be listed or deleted so, whatever discovery says of them."""


class RemoteResource(NamedTuple):
    """One resource of another server."""

    api: RemoteApi
    plural: str
    kind: str
    namespaced: bool
    verbs: frozenset[str]

    def path(self, namespace: str = "", name: str = "") -> str:
        below = f"/namespaces/{quote(namespace, safe='')}" if namespace and self.namespaced else ""
        return f"{self.api.path}{below}/{self.plural}" + (f"/{quote(name, safe='')}" if name else "")

    @property
    def group_resource(self) -> str:
        return f"{self.plural}.{self.api.group}"


class RemoteContent:
    def __init__(self, apis: RemoteApis, documents: RemoteDocuments, requests: RemoteRequests) -> None:
        self._apis = apis
        self._documents = documents
        self._requests = requests

    async def delete(self, cluster: str, namespace: str) -> RemoteLeft:
        """Deletes the objects of a namespace; returns the remaining ones, and what could not be looked at."""
        left: dict[str, int] = {}
        failed: dict[str, str] = {}
        unknown: list[str] = []
        for api in self._apis.of(cluster).values():
            if self._documents.entry(cluster, api.group, api.version).get("freshness") != "Current":
                version = f"{api.group}/{api.version}"
                unknown.append(f"{version}: stale GroupVersion discovery: {version}")
        for resource in self.resources(cluster):
            if not resource.namespaced or "delete" not in resource.verbs:
                continue
            try:
                remaining = await self._emptied(cluster, resource, namespace)
            except Unreachable as error:
                failed[resource.group_resource] = str(error)
                continue
            if remaining:
                left[resource.group_resource] = remaining
        return RemoteLeft(left, tuple(sorted(unknown)), failed)

    def serves(self, cluster: str, group: str, version: str) -> bool:
        """Reports whether another server serves this version."""
        return self._apis.find(cluster, group, version) is not None

    async def state(self, cluster: str, namespace: str, owner: Object) -> OwnerState:
        """The state of the owner that a reference of an object in `namespace` names. Raises Unreachable."""
        group, _, version = str(owner.get("apiVersion", "")).rpartition("/")
        kind = owner.get("kind")
        found = next((each for each in self.resources(cluster) if each.api.group == group and each.kind == kind), None)
        if found is None:
            raise Unreachable(f"{kind} of {group}/{version} is not discovered")
        if found.namespaced and not namespace:
            return "present"  # as for kinds of this server: a cluster-scoped object cannot have such an owner
        known = await self.get(cluster, found, namespace, str(owner.get("name")))
        return state_of({} if known is None else known["metadata"], owner)

    async def delete_one(self, cluster: str, resource: RemoteResource, obj: Object) -> None:
        """Deletes exactly this state of an object. Raises Unreachable."""
        target, seen = _state(resource, obj)
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": seen}
        await self._delete(cluster, resource, target, orjson.dumps(options))

    async def own(self, cluster: str, resource: RemoteResource, obj: Object, owners: list[Object]) -> None:
        """Gives an object these owners alone. Raises Unreachable."""
        target, seen = _state(resource, obj)
        patch = orjson.dumps({"metadata": {**seen, "ownerReferences": owners}})
        answer = await self._requests.ask(
            cluster, resource.api, target, user=SERVER, method="PATCH", content=patch, content_type=_MERGE
        )
        _check(target, answer)

    async def get(self, cluster: str, resource: RemoteResource, namespace: str, name: str) -> Object | None:
        """One object, None where there is none. Raises Unreachable."""
        target = resource.path(namespace, name)
        answer = await self._requests.ask(cluster, resource.api, target, user=SERVER)
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise Unreachable(f"{target}: status {answer.status}")
        found: Object = orjson.loads(answer.body)
        return found

    def resources(self, cluster: str) -> Iterator[RemoteResource]:
        """Each resource in the preferred one of its versions, as far as they are known."""
        apis = sorted(
            self._apis.of(cluster).values(), key=lambda api: (-api.priority.version, version_priority(api.version))
        )
        seen: set[tuple[str, str]] = set()
        for api in apis:
            entry = self._documents.entry(cluster, api.group, api.version)
            for each in entry.get("resources") or () if api.available else ():
                if (api.group, each["resource"]) not in seen:
                    seen.add((api.group, each["resource"]))
                    kind = (each.get("responseKind") or {}).get("kind", "")
                    verbs = frozenset(each.get("verbs") or ())
                    yield RemoteResource(api, each["resource"], kind, each.get("scope") == "Namespaced", verbs)

    async def _emptied(self, cluster: str, resource: RemoteResource, namespace: str) -> int:
        """Deletes the objects of one resource; returns the number of remaining ones. Raises Unreachable."""
        target = resource.path(namespace)
        if "deletecollection" in resource.verbs:
            await self._delete(cluster, resource, target)
        if "list" not in resource.verbs:
            return 0
        names = await self._names(cluster, resource, target)
        if names and "deletecollection" not in resource.verbs:
            for name in names:
                await self._delete(cluster, resource, resource.path(namespace, name))
            names = await self._names(cluster, resource, target)
        return len(names)

    async def _delete(self, cluster: str, resource: RemoteResource, target: str, options: bytes = _DELETED) -> None:
        answer = await self._requests.ask(cluster, resource.api, target, user=SERVER, method="DELETE", content=options)
        _check(target, answer)

    async def _names(self, cluster: str, resource: RemoteResource, target: str) -> list[str]:
        answer = await self._requests.ask(cluster, resource.api, target, user=SERVER, accept=_METADATA)
        if answer.status in _GONE:
            return []
        if answer.status != 200:
            raise Unreachable(f"{target}: status {answer.status}")
        return [str(item["metadata"]["name"]) for item in orjson.loads(answer.body).get("items") or ()]


def _check(target: str, answer: RemoteAnswer) -> None:
    """Raises Unreachable where a write has failed; it has not where there is nothing to write to."""
    if answer.status >= 400 and answer.status not in _GONE:
        raise Unreachable(f"{target}: status {answer.status}")


def _state(resource: RemoteResource, obj: Object) -> tuple[str, dict[str, str]]:
    """The path of an object, and the preconditions of a write that is for this state of it alone."""
    metadata = obj["metadata"]
    seen = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    return resource.path(metadata.get("namespace", ""), metadata["name"]), seen
