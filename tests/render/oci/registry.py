"""A small OCI registry: enough of distribution-spec 1.1 for every path of the client, with faults to switch on."""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from aiohttp import web
from tests.render.serving import Site

from hortus.render.artifacts import digest_of

ROUTE = re.compile(r"/v2/(?P<name>.+)/(?P<kind>manifests|blobs/uploads|blobs|tags|referrers)/(?P<rest>.*)")
Fault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]


class Registry:
    """`users` by name; with some, calls need a token for the repository, or basic credentials when `basic`."""

    def __init__(self) -> None:
        self.blobs: dict[tuple[str, str], bytes] = {}
        self.manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.tags: dict[str, dict[str, str]] = {}
        self.uploads: dict[str, bytes] = {}
        self.users: dict[str, str] = {}
        self.identity_tokens: set[str] = set()
        self.basic = False
        self.realm = ""
        self.tokens: dict[str, str] = {}
        self.token_number = 0
        self.page = 2
        self.chunk_minimum = 0
        self.fault: Fault | None = None
        self.site: Site | None = None

    def add(self, name: str, raw: bytes, media_type: str, *tags: str) -> str:
        digest = digest_of(raw)
        self.manifests[name, digest] = media_type, raw
        for tag in tags:
            self.tags.setdefault(name, {})[tag] = digest
        return digest

    def add_blob(self, name: str, data: bytes) -> str:
        self.blobs[name, digest_of(data)] = data
        return digest_of(data)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.fault is not None and (answer := await self.fault(request)) is not None:
            return answer
        if request.path == "/token":
            return await self._token(request)
        found = ROUTE.fullmatch(request.path)
        if found is None:
            return self._error(404, "NAME_UNKNOWN")
        name, kind, rest = found["name"], found["kind"], found["rest"]
        if (refused := self._denied(request, name)) is not None:
            return refused
        match kind:
            case "manifests":
                return await self._manifest(request, name, rest)
            case "blobs":
                return self._blob(request, name, rest)
            case "blobs/uploads":
                return await self._upload(request, name, rest)
            case "tags":
                return self._tags(request, name)
        return self._error(404, "UNSUPPORTED")

    def _denied(self, request: web.Request, name: str) -> web.Response | None:
        if not self.users and not self.realm:
            return None
        header = request.headers.get("Authorization", "")
        if self.basic:
            if self._user(header):
                return None
            return self._error(401, "UNAUTHORIZED", {"WWW-Authenticate": 'Basic realm="here, there"'})
        action = "pull" if request.method in ("GET", "HEAD") else "push"
        scope = self.tokens.get(header.removeprefix("Bearer "), "")
        if any(part.startswith(f"repository:{name}:") and action in part for part in scope.split()):
            return None
        realm = self.realm or f"{self.site.url if self.site else ''}/token"
        challenge = f'Bearer realm="{realm}",service="registry, ours",scope="repository:{name}:pull"'
        return self._error(401, "UNAUTHORIZED", {"WWW-Authenticate": challenge})

    def _user(self, header: str) -> bool:
        name, _, password = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
        return self.users.get(name) == password if name else False

    async def _token(self, request: web.Request) -> web.Response:
        fields = await request.post() if request.method == "POST" else request.query
        if request.method == "POST":
            if fields.get("refresh_token") not in self.identity_tokens:
                return web.Response(status=401)
        elif self.users and not self._user(request.headers.get("Authorization", "")):
            return web.Response(status=401)
        self.token_number += 1
        token = f"token-{self.token_number}"
        self.tokens[token] = str(fields["scope"])
        return web.json_response({"token": token, "expires_in": 300})

    async def _manifest(self, request: web.Request, name: str, rest: str) -> web.Response:
        if request.method == "PUT":
            raw = await request.read()
            digest = self.add(name, raw, request.headers["Content-Type"], *([] if ":" in rest else [rest]))
            return web.Response(status=201, headers={"Docker-Content-Digest": digest})
        digest = self.tags.get(name, {}).get(rest, rest)
        if (name, digest) not in self.manifests:
            return self._error(404, "MANIFEST_UNKNOWN")
        media_type, raw = self.manifests[name, digest]
        headers = {"Content-Type": media_type, "Docker-Content-Digest": digest}
        return web.Response(body=raw if request.method == "GET" else b"", headers=headers)

    def _blob(self, request: web.Request, name: str, digest: str) -> web.Response:
        data = self.blobs.get((name, digest))
        if data is None:
            return self._error(404, "BLOB_UNKNOWN")
        if request.method == "HEAD":
            return web.Response()
        asked = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
        if asked and int(asked[1]) < len(data):
            start = int(asked[1])
            headers = {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
            return web.Response(status=206, body=data[start:], headers=headers)
        return web.Response(body=data)

    async def _upload(self, request: web.Request, name: str, rest: str) -> web.Response:
        if request.method == "POST":
            source, digest = request.query.get("from", ""), request.query.get("mount", "")
            if (source, digest) in self.blobs:
                self.blobs[name, digest] = self.blobs[source, digest]
                return web.Response(status=201)
            rest = f"upload-{len(self.uploads)}"
            self.uploads[rest] = b""
            headers = {"OCI-Chunk-Min-Length": str(self.chunk_minimum)} if self.chunk_minimum else {}
            return web.Response(status=202, headers={"Location": self._place(name, rest), **headers})
        held = self.uploads[rest]
        if request.method == "GET":
            headers = {"Location": self._place(name, rest), "Range": f"0-{len(held) - 1}"}
            return web.Response(status=204, headers=headers)
        if request.query["state"] != f"a=b&c/{len(held)}":
            return self._error(404, "BLOB_UPLOAD_UNKNOWN")
        data = await request.read()
        if request.method == "PATCH":
            start = int(request.headers["Content-Range"].partition("-")[0])
            if start != len(held):
                return web.Response(status=416, headers={"Location": self._place(name, rest)})
            self.uploads[rest] = held + data
            return web.Response(status=202, headers={"Location": self._place(name, rest)})
        data = held + data
        if digest_of(data) != request.query["digest"]:
            return self._error(400, "DIGEST_INVALID")
        self.blobs[name, digest_of(data)] = data
        return web.Response(status=201)

    def _place(self, name: str, upload: str) -> str:
        state = quote(f"a=b&c/{len(self.uploads[upload])}", safe="")
        return f"/v2/{name}/blobs/uploads/{upload}?state={state}"

    def _tags(self, request: web.Request, name: str) -> web.Response:
        tags = sorted(self.tags.get(name, {}))
        if not tags:
            return self._error(404, "NAME_UNKNOWN")
        after = request.query.get("last", "")
        rest = [tag for tag in tags if tag > after]
        page = rest[: self.page]
        headers = {"Link": f'</v2/{name}/tags/list?last={page[-1]}&n=1>; rel="next"'} if len(rest) > len(page) else {}
        return web.json_response({"name": name, "tags": page}, headers=headers)

    def _error(self, status: int, code: str, headers: dict[str, str] | None = None) -> web.Response:
        errors = {"errors": [{"code": code, "message": f"the {code} of \x1b[31mtests"}]}
        return web.json_response(errors, status=status, headers=headers)
