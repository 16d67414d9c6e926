"""The HTTP side of the registry: distribution-spec 1.1 (https://github.com/opencontainers/distribution-spec)."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Self

import orjson
from aiohttp import web

from hortus.engine.health import Address
from hortus.engine.serving.listening import HttpListener
from hortus.kube.listeners import ListenerLimits
from hortus.simulation.registry.folder import RegistryFolder, StoredManifest

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_ROUTE = re.compile(
    rf"/v2/(?P<name>{_PART}(?:/{_PART})*)/(?P<kind>manifests|blobs/uploads|blobs|tags|referrers)/(?P<rest>.*)"
)
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_RANGE = re.compile(r"bytes=(\d{1,15})-(\d{0,15})")
_CHUNK = re.compile(r"(?:bytes )?(\d{1,15})-(\d{1,15})(?:/.*)?")
_INDEX = "application/vnd.oci.image.index.v1+json"
_BYTES = "application/octet-stream"
_LARGEST_MANIFEST = 4 << 20
_LARGEST_BLOB = 256 << 20
_LIMITS = ListenerLimits(bodies=4 * _LARGEST_BLOB)
_READING = ("GET", "HEAD")

Intercept = Callable[[web.BaseRequest], Awaitable[web.StreamResponse | None]]
"""Answers a request in place of the registry, or None to let it answer."""


class RegistryServer:
    """The running registry. `intercept` stands for faults; a port that is taken gives way to any other."""

    def __init__(
        self,
        folder: RegistryFolder,
        *,
        users: Mapping[str, str] | None = None,
        private: bool = False,
        port: int = 0,
        limits: ListenerLimits = _LIMITS,
    ) -> None:
        """With `private`, pulling needs one of the `users` too."""
        self.folder = folder
        self.intercept: Intercept | None = None
        self._users = dict(users or {})
        self._private = private
        self._port = port
        self._limits = limits
        self._listener: HttpListener | None = None

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        try:
            self._listener = await self._listening(self._port)
        except OSError:
            self._listener = await self._listening(0)
        self._port = self._listener.port
        return self

    async def _listening(self, port: int) -> HttpListener:
        listener = HttpListener(Address("127.0.0.1", port), self._answer, limits=self._limits)
        await listener.start()
        return listener

    async def __aexit__(self, *reason: object) -> None:
        if self._listener is not None:
            await self._listener.stop()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.intercept is not None and (answer := await self.intercept(request)) is not None:
            return answer
        if not self._admitted(request):
            return _error(401, "UNAUTHORIZED", "give credentials", {"WWW-Authenticate": 'Basic realm="hortus"'})
        if request.path in ("/v2", "/v2/"):
            return web.Response(headers={"Docker-Distribution-API-Version": "registry/2.0"})
        if request.path == "/v2/_catalog":
            return _page(request, "repositories", self.folder.repositories(), {})
        found = _ROUTE.fullmatch(request.path)
        if found is None:
            return _error(404, "NAME_UNKNOWN", "no such address")
        name, kind, rest = found["name"], found["kind"], found["rest"]
        match kind:
            case "manifests" if _TAG.fullmatch(rest) or _DIGEST.fullmatch(rest):
                return await self._manifest(request, name, rest)
            case "blobs" if _DIGEST.fullmatch(rest):
                return self._blob(request, name, rest)
            case "blobs/uploads":
                return await self._upload(request, name, rest)
            case "tags" if rest == "list" and self.folder.manifests(name):
                return _page(request, "tags", self.folder.tags(name), {"name": name})
            case "referrers" if _DIGEST.fullmatch(rest):
                return self._referrers(request, name, rest)
        return _error(404, "NAME_UNKNOWN", "no such repository, tag or digest")

    def _admitted(self, request: web.BaseRequest) -> bool:
        if not self._users or (request.method in _READING and not self._private):
            return True
        scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
        try:
            user, _, password = base64.b64decode(encoded).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        known = self._users.get(user)
        return scheme.lower() == "basic" and known is not None and hmac.compare_digest(known, password)

    async def _manifest(self, request: web.BaseRequest, name: str, reference: str) -> web.StreamResponse:
        if request.method == "PUT":
            return await self._put_manifest(request, name, reference)
        if request.method == "DELETE":
            return _deleted(self.folder.remove(name, "manifests", reference), "MANIFEST_UNKNOWN")
        found = self.folder.manifest(name, reference)
        if request.method not in _READING or found is None:
            return _error(404, "MANIFEST_UNKNOWN", f"{name} has no {reference}")
        headers = {"Docker-Content-Digest": found.digest, "Content-Type": found.media_type}
        if request.method == "HEAD":
            return web.Response(headers=headers | {"Content-Length": str(len(found.raw))})
        return web.Response(body=found.raw, headers=headers)

    async def _put_manifest(self, request: web.BaseRequest, name: str, reference: str) -> web.StreamResponse:
        raw = await _body(request, _LARGEST_MANIFEST)
        if raw is None:
            return _error(413, "SIZE_INVALID", "the manifest is too long")
        lacking = self._lacking(name, raw)
        if lacking:
            return _error(400, "MANIFEST_BLOB_UNKNOWN", lacking)
        tag = reference if _TAG.fullmatch(reference) else ""
        media_type = request.headers.get("Content-Type", "")
        stored = self.folder.put_manifest(name, raw, media_type, tag=tag)
        if not tag and stored.digest != reference:
            self.folder.remove(name, "manifests", stored.digest)
            return _error(400, "DIGEST_INVALID", "the manifest has another digest")
        headers = {"Location": f"/v2/{name}/manifests/{stored.digest}", "Docker-Content-Digest": stored.digest}
        subject = _document(raw).get("subject")
        if isinstance(subject, dict):
            headers["OCI-Subject"] = str(subject.get("digest", ""))
        return web.Response(status=201, headers=headers)

    def _lacking(self, name: str, raw: bytes) -> str:
        """The problem of a manifest that is no JSON object or names blobs that the repository lacks."""
        document = _document(raw)
        if not document:
            return "the manifest is not a JSON object"
        layers = document.get("layers")
        parts = [document.get("config"), *(layers if isinstance(layers, list) else [])]
        for part in parts:
            digest = part.get("digest", "") if isinstance(part, dict) else ""
            if digest and self.folder.blob(name, str(digest)) is None:
                return f"{name} has no blob {digest}"
        return ""

    def _blob(self, request: web.BaseRequest, name: str, digest: str) -> web.StreamResponse:
        if request.method == "DELETE":
            return _deleted(self.folder.remove(name, "blobs", digest), "BLOB_UNKNOWN")
        place = self.folder.blob(name, digest)
        if request.method not in _READING or place is None:
            return _error(404, "BLOB_UNKNOWN", f"{name} has no {digest}")
        headers = {"Docker-Content-Digest": digest, "Content-Type": _BYTES, "Accept-Ranges": "bytes"}
        size = place.stat().st_size
        if request.method == "HEAD":
            return web.Response(headers=headers | {"Content-Length": str(size)})
        asked = _RANGE.fullmatch(request.headers.get("Range", ""))
        if asked is None:
            return web.Response(body=place.read_bytes(), headers=headers)
        start, end = int(asked[1]), min(int(asked[2] or size - 1), size - 1)
        if start > end:
            return web.Response(status=416, headers={"Content-Range": f"bytes */{size}"})
        headers["Content-Range"] = f"bytes {start}-{end}/{size}"
        return web.Response(status=206, body=place.read_bytes()[start : end + 1], headers=headers)

    async def _upload(self, request: web.BaseRequest, name: str, upload: str) -> web.StreamResponse:
        if request.method == "POST" and not upload:
            return await self._begin(request, name)
        place = self.folder.upload(upload)
        if place is None:
            return _error(404, "BLOB_UPLOAD_UNKNOWN", "no such upload")
        held = place.stat().st_size
        if request.method == "GET":
            return _continued(name, upload, held, status=204)
        if request.method == "DELETE":
            place.unlink()
            return web.Response(status=204)
        if request.method not in ("PATCH", "PUT"):
            return _error(405, "UNSUPPORTED", "an upload takes PATCH, PUT, GET and DELETE")
        piece = _CHUNK.fullmatch(request.headers.get("Content-Range", ""))
        if piece is not None and int(piece[1]) != held:
            return _continued(name, upload, held, status=416)
        data = await _body(request, _LARGEST_BLOB - held)
        if data is None:
            place.unlink()
            return _error(413, "SIZE_INVALID", f"a blob has {_LARGEST_BLOB} bytes at most")
        with place.open("ab") as file:
            file.write(data)
        if request.method == "PATCH":
            return _continued(name, upload, held + len(data), status=202)
        return await self._finished(name, upload, request.query.get("digest", ""))

    async def _begin(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        source, digest = request.query.get("from", ""), request.query.get("mount", "")
        mountable = _DIGEST.fullmatch(digest) and _ROUTE.fullmatch(f"/v2/{source}/blobs/{digest}")
        if mountable and self.folder.mount(name, source, digest):
            return _created(name, digest)
        upload = self.folder.begin_upload()
        if "digest" not in request.query:
            return _continued(name, upload, 0, status=202)
        data = await _body(request, _LARGEST_BLOB)
        place = self.folder.upload(upload)
        if data is None or place is None:
            return _error(413, "SIZE_INVALID", f"a blob has {_LARGEST_BLOB} bytes at most")
        place.write_bytes(data)
        return await self._finished(name, upload, request.query["digest"])

    async def _finished(self, name: str, upload: str, digest: str) -> web.StreamResponse:
        if _DIGEST.fullmatch(digest):
            taken = await asyncio.to_thread(self.folder.finish_upload, name, upload, digest)
            if taken:
                return _created(name, digest)
        return _error(400, "DIGEST_INVALID", "the upload has another digest than it says")

    def _referrers(self, request: web.BaseRequest, name: str, digest: str) -> web.StreamResponse:
        wanted = request.query.get("artifactType", "")
        found = [_referring(one) for one in self.folder.manifests(name) if _subject(one) == digest]
        if wanted:
            found = [one for one in found if one["artifactType"] == wanted]
        index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": found}
        headers = {"Content-Type": _INDEX} | ({"OCI-Filters-Applied": "artifactType"} if wanted else {})
        return web.Response(body=orjson.dumps(index), headers=headers)


async def _body(request: web.BaseRequest, largest: int) -> bytes | None:
    """The whole body, or None for more than `largest` bytes."""
    parts, size = [], 0
    async for piece in request.content.iter_any():
        size += len(piece)
        if size > largest:
            return None
        parts.append(piece)
    return b"".join(parts)


def _document(raw: bytes) -> dict[str, object]:
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _subject(manifest: StoredManifest) -> str:
    subject = _document(manifest.raw).get("subject")
    return str(subject.get("digest", "")) if isinstance(subject, dict) else ""


def _referring(manifest: StoredManifest) -> dict[str, object]:
    document = _document(manifest.raw)
    config = document.get("config")
    kind = document.get("artifactType") or (config.get("mediaType") if isinstance(config, dict) else "")
    return {
        "mediaType": manifest.media_type,
        "digest": manifest.digest,
        "size": len(manifest.raw),
        "artifactType": kind,
        "annotations": document.get("annotations") or {},
    }


def _page(request: web.BaseRequest, key: str, names: list[str], rest: dict[str, str]) -> web.Response:
    """One page of a list of names, with the address of the next (query `n` and `last`)."""
    after, text = request.query.get("last", ""), request.query.get("n", "")
    left = [one for one in names if one > after]
    size = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else len(left)
    page = left[:size]
    headers = {}
    if page and len(page) < len(left):
        headers["Link"] = f'<{request.path}?n={size}&last={page[-1]}>; rel="next"'
    return web.Response(body=orjson.dumps(rest | {key: page}), content_type="application/json", headers=headers)


def _continued(name: str, upload: str, size: int, *, status: int) -> web.Response:
    headers = {"Location": f"/v2/{name}/blobs/uploads/{upload}", "Range": f"0-{max(size - 1, 0)}"}
    return web.Response(status=status, headers=headers | {"Docker-Upload-UUID": upload})


def _created(name: str, digest: str) -> web.Response:
    headers = {"Location": f"/v2/{name}/blobs/{digest}", "Docker-Content-Digest": digest}
    return web.Response(status=201, headers=headers)


def _deleted(found: bool, code: str) -> web.Response:
    return web.Response(status=202) if found else _error(404, code, "not there")


def _error(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    body = orjson.dumps({"errors": [{"code": code, "message": message}]})
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)
