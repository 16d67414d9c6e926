"""An API server in a dict, without sockets: for tests that move time by hand and break things at an exact moment."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from typing import Any

from hortus.kube import ObjectList, PatchKind, WatchEvent
from hortus.kube.errors import AlreadyExists, Conflict, Expired, Invalid, NotFound
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.kube.patches import PatchError, apply_json_patch, apply_merge_patch

WIDGETS = Resource("example.org", "v1", "widgets", "Widget")
SECRETS = Resource("", "v1", "secrets", "Secret")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")


def widget(name: str, namespace: str = "default", **fields: Any) -> Object:
    metadata = {"name": name, "namespace": namespace, **fields.pop("metadata", {})}
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": metadata, **fields}


class _Stream:
    def __init__(self, api: FakeApi, resource: Resource, namespace: str, version: int) -> None:
        self._api, self._resource, self._namespace = api, resource, namespace
        self.version = version
        self.closed = False
        self.wake = asyncio.Event()
        self.failure: Exception | None = None

    def __aiter__(self) -> AsyncIterator[WatchEvent]:
        return self

    async def __anext__(self) -> WatchEvent:
        while True:
            if self.failure is not None:
                raise self.failure
            if self.closed:
                raise StopAsyncIteration
            if self.version < self._api.compacted:
                raise Expired(f"too old resource version: {self.version} ({self._api.compacted})")
            for version, resource, kind, obj in self._api.history:
                if version > self.version:
                    self.version = version
                    namespace = obj["metadata"].get("namespace", "")
                    if resource == self._resource and self._namespace in ("", namespace):
                        return WatchEvent(kind, copy.deepcopy(obj))
            self.wake.clear()
            await self.wake.wait()

    async def aclose(self) -> None:
        self.closed = True
        if self in self._api.streams:
            self._api.streams.remove(self)


class FakeApi:
    def __init__(self) -> None:
        self.objects: dict[tuple[Resource, ObjectKey], Object] = {}
        self.history: list[tuple[int, Resource, str, Object]] = []
        self.version = 0
        self.compacted = 0
        self.streams: list[_Stream] = []
        self.calls: list[tuple[str, ...]] = []
        self.failures: list[Exception | None] = []
        """The exceptions that the next calls raise, one per call; a call whose entry is None succeeds."""
        self.down: Exception | None = None
        """Raised by every call while set."""
        self.silent = False
        """Calls hang while set."""

    async def _call(self, *what: str) -> None:
        self.calls.append(what)
        while self.silent:
            await asyncio.sleep(3600)
        if self.down is not None:
            raise self.down
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure

    def count(self, verb: str) -> int:
        return sum(call[0] == verb for call in self.calls)

    # Writes of other clients.

    def put(self, resource: Resource, obj: Object) -> Object:
        key = ObjectKey(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        known = self.objects.get((resource, key))
        obj = copy.deepcopy(obj)
        metadata = obj["metadata"]
        metadata["uid"] = known["metadata"]["uid"] if known else f"uid-{self.version + 1}"
        metadata["generation"] = known["metadata"]["generation"] if known else 1
        if known is not None and known.get("spec") != obj.get("spec"):
            metadata["generation"] += 1
        return self._record(resource, "MODIFIED" if known else "ADDED", key, obj)

    def remove(self, resource: Resource, name: str, namespace: str = "default") -> None:
        key = ObjectKey(namespace, name)
        obj = copy.deepcopy(self.objects[resource, key])
        self._record(resource, "DELETED", key, obj)
        del self.objects[resource, key]

    def _record(self, resource: Resource, kind: str, key: ObjectKey, obj: Object) -> Object:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.objects[resource, key] = obj
        self.history.append((self.version, resource, kind, copy.deepcopy(obj)))
        for stream in self.streams:
            stream.wake.set()
        return copy.deepcopy(obj)

    def bookmark(self, resource: Resource, namespace: str = "default") -> None:
        self.version += 1
        marker = {"metadata": {"resourceVersion": str(self.version), "namespace": namespace}}
        self.history.append((self.version, resource, "BOOKMARK", marker))
        for stream in self.streams:
            stream.wake.set()

    def compact(self) -> None:
        """Forget all history: watches that are behind get 410."""
        self.compacted = self.version
        self.history.clear()

    def drop_watches(self, failure: Exception | None = None) -> None:
        for stream in list(self.streams):
            stream.failure = failure
            stream.closed = True
            stream.wake.set()
        self.streams.clear()

    # The calls of a client.

    async def pages(
        self, resource: Resource, namespace: str = "", labels: object = "", fields: object = "", limit: int = 500
    ) -> AsyncIterator[ObjectList]:
        await self._call("list", resource.plural)
        found = [
            copy.deepcopy(obj)
            for (kind, key), obj in self.objects.items()
            if kind == resource and namespace in ("", key.namespace)
        ]
        yield ObjectList(found, str(self.version))

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str = "",
        labels: object = "",
        fields: object = "",
        bookmarks: bool = True,
        on_bookmark: Callable[[str], None] | None = None,
    ) -> _Stream:
        self.calls.append(("watch", resource.plural, resource_version))
        if self.down is not None:
            raise self.down
        stream = _Stream(self, resource, namespace, int(resource_version))
        self.streams.append(stream)
        return stream

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        await self._call("get", resource.plural, name)
        return copy.deepcopy(self._find(resource, name, namespace))

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "", field_manager: str = "") -> Object:
        name = obj["metadata"]["name"]
        await self._call("create", resource.plural, name)
        namespace = namespace or obj["metadata"].get("namespace", "")
        if (resource, ObjectKey(namespace, name)) in self.objects:
            raise AlreadyExists(f"{resource.plural} {name!r} already exists")
        return self.put(resource, {**obj, "metadata": {**obj["metadata"], "namespace": namespace}})

    async def replace(
        self, resource: Resource, obj: Object, *, subresource: str = "", field_manager: str = ""
    ) -> Object:
        metadata = obj["metadata"]
        await self._call("replace", resource.plural, metadata["name"])
        known = self._find(resource, metadata["name"], metadata.get("namespace", ""))
        self._check(known, obj)
        return self.put(resource, obj)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str = "",
        kind: PatchKind = PatchKind.MERGE,
        subresource: str = "",
        field_manager: str = "",
        *,
        force: bool = False,
    ) -> Object:
        await self._call("patch", resource.plural, name, kind.name.lower(), subresource)
        known = copy.deepcopy(self._find(resource, name, namespace))
        if kind is PatchKind.JSON:
            try:
                return self.put(resource, apply_json_patch(known, patch))
            except PatchError as error:
                raise Invalid(str(error)) from None
        self._check(known, patch)
        return self.put(resource, apply_merge_patch(known, patch))

    async def apply(
        self,
        resource: Resource,
        obj: Object,
        *,
        field_manager: str,
        force: bool = True,
        subresource: str = "",
    ) -> Object:
        metadata = obj["metadata"]
        await self._call("apply", resource.plural, metadata["name"])
        key = ObjectKey(metadata.get("namespace", ""), metadata["name"])
        known = copy.deepcopy(self.objects.get((resource, key), {}))
        return self.put(resource, apply_merge_patch(known, obj))

    async def delete(self, resource: Resource, name: str, namespace: str = "", *, uid: str = "") -> Object:
        await self._call("delete", resource.plural, name)
        self._find(resource, name, namespace)
        self.remove(resource, name, namespace)
        return {"kind": "Status", "status": "Success"}

    def _find(self, resource: Resource, name: str, namespace: str) -> Object:
        try:
            return self.objects[resource, ObjectKey(namespace, name)]
        except KeyError:
            raise NotFound(f"{resource.plural} {name!r} not found") from None

    def _check(self, known: Object, sent: Object) -> None:
        version = (sent.get("metadata") or {}).get("resourceVersion")
        if version is not None and version != known["metadata"]["resourceVersion"]:
            raise Conflict("the object has been modified; please apply your changes to the latest version")
