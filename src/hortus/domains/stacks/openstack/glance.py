"""Glance v2: find, create, import, observe and delete images of one cloud.

Documents: https://docs.openstack.org/api-ref/image/v2/. A token serves until shortly before its end, and is replaced
once when the service refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec
from yarl import URL

from hortus.domains.stacks.openstack.clouds import CloudAccess
from hortus.domains.stacks.openstack.errors import AuthRefused, BadReply, RequestRefused
from hortus.domains.stacks.openstack.keystone import CloudToken, authenticate
from hortus.domains.stacks.openstack.transport import CloudAnswer, CloudTransport
from hortus.domains.stacks.types import ImageOptions
from hortus.kube import Clock
from hortus.kube.shapes import decode_json

_T = TypeVar("_T")
_MARGIN: Final = 60.0
"""Seconds before its end that a token is not used any more."""
_MOST_PAGES: Final = 100
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


class CloudImage(msgspec.Struct, frozen=True):
    """An image, as far as it is used here."""

    id: str
    status: str = ""
    disk_format: str | None = None
    container_format: str | None = None
    os_hash_algo: str | None = None
    os_hash_value: str | None = None


class ImportMethod(msgspec.Struct, frozen=True):
    """The way of an import."""

    name: str = ""
    uri: str = ""


class _ImportRequest(msgspec.Struct, frozen=True):
    method: ImportMethod = ImportMethod()


class _TaskInput(msgspec.Struct, frozen=True):
    import_req: _ImportRequest = _ImportRequest()


class ImportTask(msgspec.Struct, frozen=True):
    """One import of an image: `pending`, `processing`, `success` or `failure`."""

    status: str = ""
    message: str | None = None
    created_at: str = ""
    input: _TaskInput = _TaskInput()

    @property
    def uri(self) -> str:
        """The address of the download; empty for another way of import."""
        return self.input.import_req.method.uri


class _Page(msgspec.Struct):
    images: list[CloudImage] = []
    next: str | None = None


class _Tasks(msgspec.Struct):
    tasks: list[ImportTask] = []


class ImageService(Protocol):
    """The image service of one cloud. Every method raises OpenStackError."""

    async def connect(self) -> None:
        """Authenticate, unless a token is there."""

    async def find(self, options: ImageOptions) -> Sequence[CloudImage]:
        """The images with the ID of the options, or without one with their name and all their tags."""

    async def create(self, options: ImageOptions) -> CloudImage:
        """Create an image without data."""

    async def start_import(self, image: str, url: str) -> bool:
        """Let Glance download the data; returns False where an import has begun already."""

    async def tasks(self, image: str) -> Sequence[ImportTask]:
        """The imports of an image, the latest first; none where the service does not tell."""

    async def delete(self, image: str) -> None:
        """Delete an image, if it is there."""

    async def close(self) -> None:
        """Drop all connections."""


OpenService = Callable[[CloudAccess], ImageService]
"""Makes the service of a cloud. Raises BadCloud."""


class GlanceService:
    """The image service over HTTP."""

    def __init__(self, access: CloudAccess, transport: CloudTransport, clock: Clock) -> None:
        self._access = access
        self._transport = transport
        self._clock = clock
        self._token: CloudToken | None = None

    async def close(self) -> None:
        await self._transport.close()

    async def connect(self) -> None:
        await self._valid_token()

    async def find(self, options: ImageOptions) -> Sequence[CloudImage]:
        wanted = (
            [("id", options.id)] if options.id else [("name", options.name), *(("tag", one) for one in options.tags)]
        )
        if options.os_hidden:
            wanted.append(("os_hidden", "true"))
        path = f"images?{urlencode(wanted)}"
        found: list[CloudImage] = []
        for _ in range(_MOST_PAGES):
            page = _decoded(await self._call("GET", path, what=f"images named {options.name}"), _Page)
            found += page.images
            if not page.next:
                return found
            path = page.next.removeprefix("/v2/")
        raise BadReply("the list of images does not end")

    async def create(self, options: ImageOptions) -> CloudImage:
        body = create_request(options)
        return _decoded(await self._call("POST", "images", body, what=f"a new image {options.name}"), CloudImage)

    async def start_import(self, image: str, url: str) -> bool:
        body = {"method": {"name": "web-download", "uri": url}}
        try:
            await self._call("POST", f"images/{image}/import", body, what=f"the import of image {image}")
        except RequestRefused as error:
            if error.status == _CONFLICT:
                return False
            raise
        return True

    async def tasks(self, image: str) -> Sequence[ImportTask]:
        try:
            answer = await self._call("GET", f"images/{image}/tasks", what=f"the imports of image {image}")
        except RequestRefused:
            # Before API version 2.12 there is no such list, and policies may hide it.
            return ()
        return sorted(_decoded(answer, _Tasks).tasks, key=lambda task: task.created_at, reverse=True)

    async def delete(self, image: str) -> None:
        try:
            await self._call("DELETE", f"images/{image}", what=f"the deletion of image {image}")
        except RequestRefused as error:
            if error.status != _NOT_FOUND:
                raise

    async def _call(self, method: str, path: str, body: Any = None, *, what: str) -> CloudAnswer:
        token = await self._valid_token()
        data = msgspec.json.encode(body) if body is not None else None
        url = URL(f"{token.image}/{path}", encoded=True)
        try:
            return await self._transport.call(method, url, body=data, token=token.secret, what=what)
        except AuthRefused:
            self._token = None
        token = await self._valid_token()
        url = URL(f"{token.image}/{path}", encoded=True)
        return await self._transport.call(method, url, body=data, token=token.secret, what=what)

    async def _valid_token(self) -> CloudToken:
        if self._token is None or self._token.ends - self._clock.now() < _MARGIN:
            self._token = await authenticate(self._transport, self._access)
        return self._token


def create_request(options: ImageOptions) -> dict[str, Any]:
    """The body of the request that creates an image: properties stand next to the other fields."""
    fields: dict[str, Any] = {"name": options.name}
    for name in ("id", "visibility", "container_format", "disk_format", "min_disk", "min_ram"):
        if value := getattr(options, name):
            fields[name] = value
    if options.tags:
        fields["tags"] = list(options.tags)
    for name in ("os_hidden", "protected"):
        if getattr(options, name):
            fields[name] = True
    return {**options.properties, **fields}


def _decoded(answer: CloudAnswer, kind: type[_T]) -> _T:
    try:
        return decode_json(answer.body, kind)
    except msgspec.DecodeError as error:
        problem = str(error) if isinstance(error, msgspec.ValidationError) else "not JSON"
        raise BadReply(f"the answer of the image service cannot be read: {problem}", status=answer.status) from None
