"""The registry from which Flux fetches charts: read-only, on the HTTPS server of the runtime hooks.

`/v2/<namespace>/<release>/<chart>/manifests|blobs/<digest>` (opencontainers/distribution-spec, `spec.md`). A chart is
made of the release at each request and never stored: every replica answers for every chart, and needs nothing but the
releases. Each namespace has a password, derived of the server's key, so that charts of a private source stay private.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Final, NamedTuple

import structlog
from aiohttp import hdrs, web

from hortus.domains.stacks.addons.config import AddonConfigError
from hortus.domains.stacks.addons.rendering import AddonReleases, AddonRendering, ArchiveInvalid
from hortus.domains.stacks.flux.artifacts import ChartBundle, ChartBundles
from hortus.domains.stacks.names import BadName, parse_tag
from hortus.domains.stacks.releases.errors import ReleaseError
from hortus.engine.serving import ServingPair
from hortus.kube import Secret
from hortus.render.helm import ChartError
from hortus.render.oci import OCI_MANIFEST

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

ONE_CHART: Final = "addons"
"""The name under which the one chart of a release without stages is served."""
_ROUTE: Final = re.compile(
    r"/v2/[a-z0-9][-a-z0-9]{0,62}/([-a-z0-9_]{1,128})/([A-Za-z0-9._-]{1,128})/(manifests|blobs)/(sha256:[0-9a-f]{64})"
)
_PURPOSE: Final = b"hortus: password for charts of namespace "


class ChartAccess(NamedTuple):
    """The way to the registry for one namespace."""

    host: str
    username: str
    password: Secret
    bundle: bytes
    """Authorities of the server in PEM; empty where those of the system do."""


class ChartRegistry:
    """Serves the charts of releases. `host` is the name, with a port where it is not 443, by which Flux calls."""

    def __init__(self, host: str, *, releases: AddonReleases, rendering: AddonRendering) -> None:
        self.host = host
        self._releases = releases
        self._rendering = rendering
        self._pair: ServingPair | None = None
        self._changed: list[Callable[[], None]] = []
        self.bundles = ChartBundles()

    def identify(self, pair: ServingPair) -> None:
        """The server shows this certificate from now on, and passwords follow its key."""
        self._pair = pair
        for call in self._changed:
            call()

    def on_identity(self, call: Callable[[], None]) -> None:
        """Call `call` whenever the access changes."""
        self._changed.append(call)

    def access(self, namespace: str) -> ChartAccess | None:
        """The access of a namespace; None before the server has a certificate."""
        if self._pair is None:
            return None
        return ChartAccess(self.host, namespace, self._password(self._pair, namespace), self._pair.bundle)

    def _password(self, pair: ServingPair, namespace: str) -> Secret:
        made = hmac.new(pair.key.reveal().encode(), _PURPOSE + namespace.encode(), hashlib.sha256)
        return Secret(made.hexdigest())

    # The wire.

    async def answer(self, request: web.Request) -> web.Response:
        """Answers a GET or HEAD below /v2/."""
        user = self._user(request)
        if user is None:
            return _refused(401, "UNAUTHORIZED", {"WWW-Authenticate": 'Basic realm="hortus"'})
        if request.path in ("/v2", "/v2/"):
            return web.Response(headers={"Docker-Distribution-API-Version": "registry/2.0"})
        found = _ROUTE.fullmatch(request.path)
        if found is None or not request.path.startswith(f"/v2/{user}/"):
            return _refused(404, "NAME_UNKNOWN")
        tag, chart, kind, digest = found.groups()
        bundle = await self._bundle(tag, chart)
        if bundle is None:
            return _refused(404, "MANIFEST_UNKNOWN")
        return _content(bundle, kind, digest)

    def _user(self, request: web.Request) -> str | None:
        scheme, _, text = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        try:
            user, _, given = base64.b64decode(text, validate=True).decode().partition(":")
        except ValueError:
            return None
        if scheme.lower() != "basic" or self._pair is None or not user:
            return None
        expected = self._password(self._pair, user).reveal()
        return user if hmac.compare_digest(given.encode(), expected.encode()) else None

    async def _bundle(self, tag: str, chart: str) -> ChartBundle | None:
        try:
            release = await self._releases.fetch(parse_tag(tag))
            if not release.is_multi_stage:
                source = await self._rendering.only_chart(release) if chart == ONE_CHART else None
            else:
                source = (await self._rendering.staged(release)).charts.get(chart)
            return None if source is None else await asyncio.to_thread(self.bundles.of, source)
        except (BadName, ReleaseError, ArchiveInvalid, AddonConfigError, ChartError) as error:
            _log.warning("a chart cannot be served", release=tag, chart=chart, error=str(error))
            return None


def _content(bundle: ChartBundle, kind: str, digest: str) -> web.Response:
    manifest = kind == "manifests"
    data = (bundle.manifest if digest == bundle.digest else None) if manifest else bundle.blobs.get(digest)
    if data is None:
        return _refused(404, "MANIFEST_UNKNOWN" if manifest else "BLOB_UNKNOWN")
    kind_of = OCI_MANIFEST if manifest else "application/octet-stream"
    return web.Response(body=data, content_type=kind_of, headers={"Docker-Content-Digest": digest})


def _refused(status: int, code: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"errors": [{"code": code}]}, status=status, headers=headers)
