"""A small OpenID Connect provider, and an API server that accepts its ID tokens: both speak real HTTP on loopback."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from hortus.domains import free_port
from hortus.kube import Access
from hortus.kube.clock import Clock
from hortus.testing.apiserver import TestServer

CLIENT, SECRET = "hortus", "c4n4ry-of+the/client"
_HASH = ec.ECDSA(hashes.SHA256())


class OidcServer:
    """The provider. `claims` and the other attributes make it misbehave."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}/realm"
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.user = "anna"
        self.life = 300.0
        self.claims: dict[str, Any] = {}
        self.document: dict[str, Any] = {}
        self.refreshes = True
        self.asked: list[str] = []
        self.answers = asyncio.Event()
        self.answers.set()
        self.revoked: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}
        self._refreshing: dict[str, dict[str, str]] = {}

    def app(self) -> web.Application:
        app = web.Application()
        app.add_routes(
            [
                web.get("/realm/.well-known/openid-configuration", self._configuration),
                web.get("/realm/authorize", self._form),
                web.post("/realm/authorize", self._authorize),
                web.post("/realm/token", self._token),
                web.post("/realm/revoke", self._revoke),
                web.get("/realm/logout", self._form),
            ]
        )
        return app

    async def _configuration(self, request: web.Request) -> web.Response:
        places = {"authorization": "authorize", "token": "token", "revocation": "revoke", "end_session": "logout"}
        found = {f"{name}_endpoint": f"{self.issuer}/{path}" for name, path in places.items()}
        return web.json_response({
            "issuer": self.issuer, **found, "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True, **self.document,
        })  # fmt: skip

    async def _form(self, request: web.Request) -> web.Response:
        text = "<!doctype html><form method=post><button>I am Anna</button></form>"
        return web.Response(text=text, content_type="text/html")

    async def _authorize(self, request: web.Request) -> web.Response:
        code = secrets.token_urlsafe(16)
        self._codes[code] = dict(request.query)
        back = {"code": code, "state": request.query["state"], "iss": self.issuer}
        return web.Response(status=303, headers={"Location": f"{request.query['redirect_uri']}?{urlencode(back)}"})

    async def _token(self, request: web.Request) -> web.Response:
        form = dict(await request.post())
        self.asked.append(str(form["grant_type"]))
        await self.answers.wait()
        pair = base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")).decode()
        if pair != f"{CLIENT}:c4n4ry-of%2Bthe%2Fclient":
            return web.json_response({"error": "invalid_client"}, status=401)
        if form["grant_type"] == "refresh_token":
            asked = self._refreshing.pop(str(form["refresh_token"]), None) if self.refreshes else None
        else:
            asked = self._codes.pop(str(form["code"]), None)
            if asked is not None and not self._proven(asked, form):
                asked = None
        if asked is None:
            return web.json_response({"error": "invalid_grant"}, status=400)
        refresh = secrets.token_urlsafe(16)
        self._refreshing[refresh] = asked
        return web.json_response({
            "id_token": self.id_token(asked["nonce"]), "refresh_token": refresh, "token_type": "Bearer",
            "access_token": "unused",
        })  # fmt: skip

    async def _revoke(self, request: web.Request) -> web.Response:
        self.revoked.append(str((await request.post())["token"]))
        return web.Response()

    @staticmethod
    def _proven(asked: dict[str, str], form: dict[str, Any]) -> bool:
        challenge = _unpadded(hashlib.sha256(str(form["code_verifier"]).encode()).digest())
        return challenge == asked["code_challenge"] and form["redirect_uri"] == asked["redirect_uri"]

    def id_token(self, nonce: str) -> str:
        claims = {
            "iss": self.issuer, "sub": self.user, "aud": CLIENT, "nonce": nonce, "iat": self.clock.now(),
            "exp": self.clock.now() + self.life, "jti": secrets.token_hex(4), **self.claims,
        }  # fmt: skip
        text = ".".join(_unpadded(json.dumps(part).encode()) for part in ({"alg": "ES256"}, claims))
        return f"{text}.{_unpadded(self.key.sign(text.encode(), _HASH))}"

    def accepts(self, token: str) -> dict[str, Any] | None:
        """The claims of a token that this provider signed for our client and that has not ended."""
        with suppress(ValueError, InvalidSignature):
            text, _, signature = token.rpartition(".")
            self.key.public_key().verify(_bytes(signature), text.encode(), _HASH)
            claims: dict[str, Any] = json.loads(_bytes(text.split(".")[1]))
            fits = (claims["iss"], claims["aud"]) == (self.issuer, CLIENT)
            return claims if fits and claims["exp"] > self.clock.now() else None
        return None


class AcceptingFront:
    """An API server by OIDC: it verifies an ID token, and passes the call on for the person that the token names."""

    def __init__(self, target: TestServer, admin: Access, provider: OidcServer) -> None:
        self.tokens: list[str] = []
        self.port = free_port()
        self._target = target
        self._provider = provider
        self._session: aiohttp.ClientSession | None = None
        self._tls = ssl.create_default_context(cadata=admin.ca.decode())
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "admin.pem"
            assert admin.credentials.key is not None
            file.write_bytes(admin.credentials.certificate + b"\n" + admin.credentials.key.reveal().encode())
            self._tls.load_cert_chain(file)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._pass)
        app.cleanup_ctx.append(self._connected)
        return app

    async def _connected(self, app: web.Application) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(ssl=self._tls)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as self._session:
            yield

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        claims = self._provider.accepts(token)
        if claims is None:
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "code": 401}
            return web.json_response(status, status=401)
        self.tokens.append(token)
        kept = {name: value for name, value in request.headers.items() if name in ("Accept", "Content-Type")}
        headers = {**kept, "Impersonate-User": f"oidc:{claims['sub']}", "Impersonate-Group": "system:authenticated"}
        assert self._session is not None
        url = self._target.url + request.rel_url.raw_path_qs
        async with self._session.request(
            request.method, url, data=await request.read() or None, headers=headers
        ) as found:
            answer = web.StreamResponse(status=found.status, headers={"Content-Type": found.headers["Content-Type"]})
            await answer.prepare(request)
            with suppress(ConnectionError, aiohttp.ClientError):
                async for piece in found.content.iter_any():
                    await answer.write(piece)
            return answer


@asynccontextmanager
async def serving(app: web.Application, port: int) -> AsyncIterator[None]:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield
    finally:
        await runner.cleanup()


def _unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
