"""The verbs of the Kubernetes API on plain dicts.

A `Client` is one cluster as one user. It turns a `Resource` and options into a path and a query, hands bytes to
`Connection`, and decodes each answer once. It knows no kinds: the caller names them, or `discovery` finds them.
Semantics: Kubernetes docs, "API Concepts"; errors: `hortus.kube.errors`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

import orjson

from hortus.kube.access import Access, Impersonation
from hortus.kube.answers import Decode, ObjectList, check_identity, decoded, decoded_page
from hortus.kube.clock import Clock
from hortus.kube.errors import Gone, ResponseTooLarge
from hortus.kube.objects import Object, Resource
from hortus.kube.ratelimit import RateLimiter
from hortus.kube.requests import (
    PatchKind,
    Propagation,
    collection,
    delete_options,
    item,
    name_of,
    namespace_of,
    place,
    query_of,
    repeatable,
    write_options,
)
from hortus.kube.transport import JSON, Answer, CallOptions, ConnectionSettings, Transport
from hortus.kube.watch import Watch

if TYPE_CHECKING:
    from hortus.kube.metrics import RequestObserver

_METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
_RESTARTS = 3
"""Times that a paged list begins again after it expired, before it is requested in one piece."""


class Client:
    """One cluster as one user. `async with` or `close()`; cheap to make, connects when first used."""

    def __init__(
        self,
        access: Access,
        *,
        settings: ConnectionSettings | None = None,
        clock: Clock | None = None,
        observer: RequestObserver | None = None,
        limiter: RateLimiter | None = None,
    ) -> None:
        """`limiter` may be shared by several clients; without one `settings.qps` makes its own."""
        # Programs that bring a transport of their own (`over`) do without aiohttp.
        from hortus.kube.connection import Connection

        self._connection: Transport = Connection(
            access, settings=settings, clock=clock, observer=observer, limiter=limiter
        )

    @classmethod
    def over(cls, transport: Transport) -> Self:
        """A client over a connection that is made and kept elsewhere, for example in a pool."""
        made = cls.__new__(cls)
        made._connection = transport
        return made

    @classmethod
    def from_kubeconfig(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        context: str = "",
        settings: ConnectionSettings | None = None,
        clock: Clock | None = None,
        observer: RequestObserver | None = None,
    ) -> Self:
        """A client from the operator's own kubeconfig: `path`, else $KUBECONFIG, else ~/.kube/config.

        Raises KubeconfigError. Never for a kubeconfig out of an object: that is `kubeconfig.from_untrusted`.
        """
        from hortus.kube import kubeconfig

        access = kubeconfig.load(*([path] if path is not None else [])).access(context)
        return cls(kubeconfig.through_proxy(access), settings=settings, clock=clock, observer=observer)

    @classmethod
    def in_cluster(
        cls,
        *,
        settings: ConnectionSettings | None = None,
        clock: Clock | None = None,
        observer: RequestObserver | None = None,
    ) -> Self:
        """A client with the service account of the pod we run in. Raises KubeconfigError outside of one."""
        from hortus.kube import kubeconfig

        access = kubeconfig.through_proxy(kubeconfig.in_cluster())
        return cls(access, settings=settings, clock=clock, observer=observer)

    @property
    def access(self) -> Access:
        """The address, trust and credentials in use."""
        return self._connection.access

    def become(self, access: Access) -> None:
        """Uses `access` from the next call on, for example after a kubeconfig file was replaced; see
        `Connection.become`."""
        self._connection.become(access)

    def acting_as(self, user: Impersonation) -> Client:
        """A client over the same connection whose calls are made as `user`; it need not be closed.

        Raises TypeError for a client over a connection that is made elsewhere.
        """
        from hortus.kube.connection import ActingConnection, Connection

        if not isinstance(self._connection, Connection):
            raise TypeError(f"the connection to {self.host} is made elsewhere, and has one user")
        return Client.over(ActingConnection(self._connection, user))

    @property
    def host(self) -> str:
        """Host and port of the server, as metrics and errors name it."""
        return self._connection.host

    async def close(self) -> None:
        """Close all connections; calls and watches in flight fail."""
        await self._connection.close()

    def cut(self) -> None:
        """Shut every socket at once, so that no request that is still buffered is sent; may be called in a signal
        handler. Calls and watches in flight fail, new ones open new connections. A transport that was handed in is cut
        by its owner."""
        from hortus.kube.connection import Connection

        if isinstance(self._connection, Connection):
            self._connection.cut()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Reading

    async def get(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        resource_version: str = "",
        metadata_only: bool = False,
        timeout: float | None = None,
    ) -> Object:
        """The object of that name. Raises NotFound; Garbage when the server answers with another one."""
        target = item(resource, namespace, name, subresource) + query_of(resourceVersion=resource_version)
        accept = _METADATA if metadata_only else JSON
        obj = self._decoded(await self._connection.call("GET", target, accept=accept, timeout=timeout))
        if not subresource:
            check_identity(obj, name, namespace if resource.namespaced else "", self.host)
        return obj

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        labels: object = "",
        fields: object = "",
        limit: int = 500,
        *,
        resource_version: str = "",
        metadata_only: bool = False,
    ) -> ObjectList:
        """All objects, fetched in pages of `limit` (0: in one piece). An empty namespace means all of them.

        `labels` and `fields` are selectors as text or as selector objects. `resource_version="0"` accepts what the
        server has in its cache. Starts again when the list expires between two pages.
        """
        items: list[Object] = []
        version = ""
        async for page in self.pages(
            resource, namespace, labels, fields, limit, resource_version=resource_version, metadata_only=metadata_only
        ):
            if page.restarted:
                items = []
            items = items + page.items if items else page.items
            version = page.resource_version
        return ObjectList(items, version)

    async def pages(
        self,
        resource: Resource,
        namespace: str = "",
        labels: object = "",
        fields: object = "",
        limit: int = 500,
        *,
        resource_version: str = "",
        metadata_only: bool = False,
        decode: Decode = orjson.loads,
    ) -> AsyncIterator[ObjectList]:
        """The list page by page. A page with `restarted` means that the list expired and begins again with this
        page. `decode` makes of a body what JSON makes of it, for a caller that knows parts of it already."""
        accept = _METADATA_LIST if metadata_only else JSON
        path, token, restarts, restarted, size = collection(resource, namespace), "", 0, False, 0
        selectors = {"labelSelector": str(labels), "fieldSelector": str(fields)}
        while True:
            query = {**selectors, "limit": str(limit) if limit else "", "continue": token}
            query["resourceVersion"] = "" if token or restarts else resource_version
            try:
                answer = await self._connection.call("GET", path + query_of(**query), accept=accept)
            except Gone:
                if not token or restarts == _RESTARTS:
                    raise
                token, restarts, restarted, size = "", restarts + 1, True, 0
                limit = limit if restarts < _RESTARTS else 0
                continue
            size += len(answer.body)
            if size > self._connection.settings.max_list:
                raise self._too_long(resource, size)
            page, token = decoded_page(answer, resource, self.host, restarted=restarted, decode=decode)
            restarted = False
            yield page
            if not token:
                return

    async def page(
        self,
        resource: Resource,
        namespace: str = "",
        labels: object = "",
        *,
        limit: int,
        token: str = "",
        metadata_only: bool = False,
    ) -> tuple[ObjectList, str]:
        """One page of a list, and the token of the next one, which is empty after the last. Raises Gone for a token
        that has expired."""
        accept = _METADATA_LIST if metadata_only else JSON
        query = query_of(**{"labelSelector": str(labels), "limit": str(limit), "continue": token})
        answer = await self._connection.call("GET", collection(resource, namespace) + query, accept=accept)
        return decoded_page(answer, resource, self.host, restarted=False)

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str = "",
        labels: object = "",
        fields: object = "",
        name: str = "",
        bookmarks: bool = True,
        initial_events: bool = False,
        metadata_only: bool = False,
        timeout: float | None = None,
        on_bookmark: Callable[[str], None] | None = None,
        decode: Decode = orjson.loads,
    ) -> Watch:
        """The events after `resource_version`, without end: see `Watch`. BOOKMARK events are included, except those
        that `on_bookmark` takes: it is called with the versions of most, and no task is woken for them.

        `initial_events` asks for the present state first, ended by a bookmark (KEP-3157); `timeout` is the length of
        one stream in seconds, one to two watch periods of the connection when not given. `decode` reads a line.
        """
        path = collection(resource, namespace)
        query = {
            "labelSelector": str(labels),
            "fieldSelector": str(fields) or (f"metadata.name={name}" if name else ""),
        }
        query["allowWatchBookmarks"] = "true" if bookmarks or initial_events else ""

        def target(version: str, seconds: int) -> str:
            first = initial_events and version == resource_version
            return path + query_of(
                watch="true",
                resourceVersion=version,
                timeoutSeconds=str(seconds),
                sendInitialEvents="true" if first else "",
                resourceVersionMatch="NotOlderThan" if first else "",
                **query,
            )

        return Watch(
            self._connection,
            target,
            accept=_METADATA if metadata_only else JSON,
            resource_version=resource_version,
            resumable=not initial_events and resource_version not in ("", "0"),
            bookmarks=bookmarks or initial_events,
            timeout=timeout,
            on_bookmark=on_bookmark,
            decode=decode,
        )

    # Writing

    async def create(
        self,
        resource: Resource,
        obj: Object,
        *,
        namespace: str = "",
        field_manager: str = "",
        validation: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Create `obj` in its own namespace, or in `namespace`. Raises AlreadyExists, Invalid."""
        namespace = namespace or namespace_of(obj)
        target = collection(place(resource, namespace), namespace) + query_of(
            **write_options(field_manager, validation, dry_run)
        )
        return self._decoded(await self._connection.call("POST", target, orjson.dumps(obj)))

    async def replace(
        self,
        resource: Resource,
        obj: Object,
        *,
        subresource: str = "",
        field_manager: str = "",
        validation: str = "",
        dry_run: bool = False,
    ) -> Object:
        """PUT the whole object. With a resourceVersion in it, raises Conflict when the object has changed since."""
        target = item(resource, namespace_of(obj), name_of(obj), subresource)
        target += query_of(**write_options(field_manager, validation, dry_run))
        return self._decoded(await self._connection.call("PUT", target, orjson.dumps(obj)))

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Object | Sequence[Object] | bytes,
        namespace: str = "",
        kind: PatchKind = PatchKind.MERGE,
        subresource: str = "",
        field_manager: str = "",
        *,
        force: bool = False,
        validation: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Changes parts of an object. `patch` is a list of operations for PatchKind.JSON, else a partial object.

        A merge patch or apply without a resourceVersion is repeated after a broken connection, others are not.
        """
        written = write_options(field_manager, validation, dry_run)
        target = item(resource, namespace, name, subresource)
        target += query_of(force="true" if force else "", **written)
        answer = await self._connection.call(
            "PATCH",
            target,
            patch if isinstance(patch, bytes) else orjson.dumps(patch),
            content_type=kind.value,
            repeatable=repeatable(kind, patch),
        )
        return self._decoded(answer)

    async def apply(
        self,
        resource: Resource,
        obj: Object,
        *,
        field_manager: str,
        force: bool = True,
        subresource: str = "",
        validation: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Server-side apply: own exactly the fields of `obj` (KEP-555). Raises Conflict unless `force`."""
        body = obj
        if "apiVersion" not in obj or "kind" not in obj:
            body = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        return await self.patch(
            resource,
            name_of(obj),
            body,
            namespace_of(obj),
            PatchKind.APPLY,
            subresource,
            field_manager,
            force=force,
            validation=validation,
            dry_run=dry_run,
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        propagation: Propagation | None = None,
        grace: int | None = None,
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Delete one object; the answer is a Status, or the object while its finalizers hold it.

        `grace` is in seconds. Raises NotFound, and Conflict when `uid` or `resource_version` is not the object's.
        """
        body = delete_options(propagation, grace, uid, resource_version, dry_run=dry_run)
        target = item(resource, namespace, name)
        return self._decoded(await self._connection.call("DELETE", target, body))

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        labels: object = "",
        fields: object = "",
        *,
        propagation: Propagation | None = None,
        grace: int | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Delete all objects that the selectors match, in one call."""
        target = collection(resource, namespace) + query_of(labelSelector=str(labels), fieldSelector=str(fields))
        body = delete_options(propagation, grace, "", "", dry_run=dry_run)
        return self._decoded(await self._connection.call("DELETE", target, body))

    async def create_subresource(
        self,
        resource: Resource,
        name: str,
        subresource: str,
        obj: Object,
        namespace: str = "",
        *,
        timeout: float | None = None,
    ) -> Object:
        """POST to a subresource, as `serviceaccounts/token`, `pods/eviction` or `shoots/adminkubeconfig`."""
        target = item(resource, namespace, name, subresource)
        return self._decoded(await self._connection.call("POST", target, orjson.dumps(obj), timeout=timeout))

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        query: Mapping[str, str] | None = None,
        **options: Unpack[CallOptions],
    ) -> Answer:
        """Any call, as bytes. `path` is encoded, begins with "/" and is below the server's URL.

        The other options are those of `Connection.call`.
        """
        if not path.startswith("/"):
            raise ValueError(f"path {path!r} must begin with /")
        return await self._connection.call(method, path + query_of(**(query or {})), body, **options)

    async def get_raw(self, path: str, *, accept: str = JSON) -> Object:
        """GET any path and decode the JSON object there, such as `/version` or `/apis`."""
        return self._decoded(await self._connection.call("GET", path, accept=accept))

    def _decoded(self, answer: Answer) -> Object:
        return decoded(answer, self.host)

    def _too_long(self, resource: Resource, size: int) -> ResponseTooLarge:
        allowed = self._connection.settings.max_list
        problem = f"the list of {resource.plural} has {size} bytes and more; {allowed} are allowed"
        return ResponseTooLarge(self.host, problem, "select fewer objects or raise max_list")
