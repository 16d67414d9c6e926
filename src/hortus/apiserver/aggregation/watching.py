"""Watches of the objects that other servers have, for the garbage collector: their metadata, no more.

One task for each resource that can be listed, watched and deleted (kube-controller-manager's garbage collector looks at
the same), on a server that is available. A task lists, watches from there, and begins again when the watch cannot go
on. Deletions that no watch has shown are found by the next list, so the names and uids of objects are kept
(k8s.io/client-go, tools/cache) as long as their version has an APIService: also while its server is unavailable.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import orjson

from hortus.apiserver.aggregation.content import RemoteContent, RemoteResource
from hortus.apiserver.aggregation.documents import RemoteDocuments, RemoteRequests
from hortus.apiserver.aggregation.servers import Unreachable
from hortus.apiserver.namespaces import SERVER
from hortus.kube.clock import Clock
from hortus.kube.objects import Object

_NEEDED: Final = frozenset({"delete", "list", "watch"})
_FORM: Final = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1,application/json"
_FIRST_WAIT, _LAST_WAIT = 0.5, 30.0
"""Seconds until a failed task begins again, doubling up to the last."""
_WATCH_SECONDS = 300
"""Seconds that a watch lasts, and up to twice that."""
_MORE_SECONDS = 30.0
"""Seconds that a server has to end a watch whose time is up."""
_LIST_SECONDS = 60.0
"""Seconds for the list of all objects (kube-apiserver, --request-timeout)."""
_SHORTEST_WATCH = 1.0
"""Seconds below which a watch counts as failed (k8s.io/client-go, tools/cache)."""


class RemoteChange(NamedTuple):
    """An object of another server. `gone` is True for one that was deleted."""

    cluster: str
    resource: RemoteResource
    metadata: Object
    gone: bool = False


class _Collection(NamedTuple):
    """A resource, whatever else changes about its APIService."""

    cluster: str
    group: str
    version: str
    plural: str


def _collection(cluster: str, resource: RemoteResource) -> _Collection:
    return _Collection(cluster, resource.api.group, resource.api.version, resource.plural)


class RemoteWatches:
    """`look` is called with every object and every change of one, `ended` for a resource that is no longer watched."""

    def __init__(
        self,
        content: RemoteContent,
        requests: RemoteRequests,
        documents: RemoteDocuments,
        look: Callable[[RemoteChange], None],
        ended: Callable[[str, RemoteResource], None],
        clock: Clock,
    ) -> None:
        self._content = content
        self._requests = requests
        self._look = look
        self._ended = ended
        self._clock = clock
        self._tasks: dict[tuple[str, RemoteResource], asyncio.Task[None]] = {}
        self._known: dict[_Collection, dict[tuple[str, str], str]] = {}
        """The uids of objects by namespace and name."""
        documents.on_change(self.follow)

    def follow(self, cluster: str) -> None:
        """Watches the resources that a cluster has now, and no others."""
        wanted = {(cluster, each) for each in self._content.resources(cluster) if each.verbs >= _NEEDED}
        present = {key for key in self._tasks if key[0] == cluster}
        for key in present - wanted:
            self._tasks.pop(key).cancel()
            self._ended(*key)
        for kept in [each for each in self._known if each.cluster == cluster]:
            if not self._content.serves(cluster, kept.group, kept.version):
                del self._known[kept]
        for key in wanted - present:
            self._tasks[key] = asyncio.get_running_loop().create_task(self._keep(*key), name=f"watch {key[1].plural}")

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, cluster: str, resource: RemoteResource) -> None:
        wait = _FIRST_WAIT
        while True:
            # A server that is away, or does not speak as others do, is asked again later.
            with contextlib.suppress(Unreachable, TimeoutError, ValueError, KeyError, TypeError):
                revision = await self._list(cluster, resource)
                lasted = True
                while revision and lasted:
                    began = self._clock.monotonic()
                    try:
                        revision = await self._watch(cluster, resource, revision)
                    finally:
                        lasted = self._clock.monotonic() - began >= _SHORTEST_WATCH
                        if lasted:
                            wait = _FIRST_WAIT
            await self._clock.sleep(wait * random.uniform(0.8, 1.2))  # noqa: S311 - spreads load, protects nothing
            wait = min(wait * 2, _LAST_WAIT)

    async def _list(self, cluster: str, resource: RemoteResource) -> str:
        """Shows every object; returns the revision to watch from. Raises Unreachable, ValueError."""
        answer = await self._requests.ask(
            cluster, resource.api, resource.path(), user=SERVER, accept=_FORM.format("List"), within=_LIST_SECONDS
        )
        if answer.status != 200:
            raise Unreachable(f"status {answer.status}")
        listed = orjson.loads(answer.body)
        found: dict[tuple[str, str], Object] = {}
        for item in listed.get("items") or ():
            metadata: Object = item["metadata"]
            found[_place(metadata)] = metadata
        known = self._known.get(_collection(cluster, resource), {})
        for namespace, name in known.keys() - found.keys():
            metadata = {"namespace": namespace, "name": name, "uid": known[namespace, name]}
            self._show(cluster, resource, metadata, gone=True)
        for metadata in found.values():
            self._show(cluster, resource, metadata)
        return str(listed["metadata"].get("resourceVersion", ""))

    async def _watch(self, cluster: str, resource: RemoteResource, revision: str) -> str:
        """Shows changes; returns the revision of the last one, empty where the watch cannot go on from there."""
        seconds = _WATCH_SECONDS + random.randrange(_WATCH_SECONDS)  # noqa: S311 - spreads load, protects nothing
        query = f"watch=true&allowWatchBookmarks=true&resourceVersion={revision}&timeoutSeconds={seconds}"
        lines = self._requests.lines(
            cluster, resource.api, f"{resource.path()}?{query}", user=SERVER, accept=_FORM.format("")
        )
        async with asyncio.timeout(seconds + _MORE_SECONDS):
            async for line in lines:
                event: dict[str, Any] = orjson.loads(line)
                if event["type"] == "ERROR":
                    return ""
                metadata: Object = event["object"]["metadata"]
                revision = str(metadata.get("resourceVersion") or revision)
                if event["type"] != "BOOKMARK":
                    self._show(cluster, resource, metadata, gone=event["type"] == "DELETED")
        return revision

    def _show(self, cluster: str, resource: RemoteResource, metadata: Object, *, gone: bool = False) -> None:
        known = self._known.setdefault(_collection(cluster, resource), {})
        place, uid = _place(metadata), str(metadata.get("uid", ""))
        replaced = known.pop(place, uid)
        if replaced != uid:
            self._look(RemoteChange(cluster, resource, {**metadata, "uid": replaced}, gone=True))
        if not gone:
            known[place] = uid
        self._look(RemoteChange(cluster, resource, metadata, gone))


def _place(metadata: Object) -> tuple[str, str]:
    return metadata.get("namespace", ""), metadata["name"]
