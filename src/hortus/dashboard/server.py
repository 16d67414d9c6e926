"""The web server of the dashboard: addresses, sign-in, pages as HTML and JSON, actions, streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import orjson
import structlog
from aiohttp import BodyPartReader, web
from yarl import URL

from hortus.dashboard import rendering
from hortus.dashboard.catalogue import CLUSTERS, Catalogue
from hortus.dashboard.composing import Composer
from hortus.dashboard.content import Content, document
from hortus.dashboard.filters import BadQuery, Filters, filters_of
from hortus.dashboard.guarding import Guard, local_path
from hortus.dashboard.health.page import HealthPage
from hortus.dashboard.health.sources import MetricsSource
from hortus.dashboard.oidc import OidcProvider, OidcTokens
from hortus.dashboard.oidcsessions import OidcSessions, SignIn
from hortus.dashboard.plans import LARGEST, PlansPage
from hortus.dashboard.sessions import ViewerSession, ViewerSessions
from hortus.dashboard.streams import PageStream
from hortus.dashboard.viewers import SignInRefused, TooManyAtOnce, Viewer, ViewerCredential, Viewers, token_credential
from hortus.domains import all_domains
from hortus.engine.pages import ActionRefused, FleetPage, ItemKey
from hortus.engine.planfile import PlanFileError
from hortus.kube import Access
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.errors import ApiError, Forbidden, KubeError, Unauthorized
from hortus.kube.naming import dns_label

COOKIE: Final = "__Host-hortus"
"""The prefix makes browsers refuse it without Secure, or for other paths and hosts."""
_BODY: Final = 64 * 1024
_MOST_PAGES: Final = 256
"""Pages that a user has open at once."""
_SWEEP: Final = 15.0
"""Seconds between looks for sessions that ended and viewers that left."""
_TYPES: Final = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_TITLES: Final = {400: "Not understood", 401: "Signed out", 403: "Not allowed", 404: "Not found"}
_SAID: Final = "said"
_SHOWN: Final = "shown."
"""Begins the names of the fields of a button by which an action knows what was shown."""
_FORGED: Final = "the form does not carry the token of this session: load the page again"
_LEFT: Final = "left"
"""In the address of the sign-in page after a sign-out."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class DashboardSettings(NamedTuple):
    """The cluster that is shown, and the addresses of the dashboard."""

    cluster: Access
    """The management cluster: address and trust. Credentials in it are never used."""
    origins: frozenset[str]
    """Scheme and authority of each address by which browsers reach the dashboard."""
    metrics: Sequence[MetricsSource] = ()
    """The places where the metrics of Hortus' replicas are read."""
    oidc: OidcProvider | None = None
    """The provider by which viewers may sign in."""


class _Asked(NamedTuple):
    """The page that an address names."""

    page: FleetPage
    key: ItemKey | None
    namespace: str
    filters: Filters


class Dashboard:
    """One server. `app` is the application; run it, then `close`."""

    def __init__(self, settings: DashboardSettings, *, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._health = HealthPage(settings.metrics, self._clock)
        self._plans = PlansPage(self._clock)
        self._catalogue = Catalogue(all_domains(), [self._health, self._plans])
        self._composer = Composer(self._catalogue, self._clock)
        self.sessions = ViewerSessions(self._clock)
        self._viewers = Viewers(self._clock, self.sessions.signed_in)
        self._streams: dict[asyncio.Task[Any], str] = {}
        """Open pages, with the user of each."""
        self._guard = guard = Guard(settings.origins)
        self._oidc: OidcSessions | None = None
        if settings.oidc is not None:
            sign_in = SignIn(settings.cluster, self._signed_in, self._login_form)
            self._oidc = OidcSessions(settings.oidc, sign_in, guard, self._clock)
        self.app = web.Application(middlewares=[guard.middleware, self._problems], client_max_size=_BODY)
        self.app.add_routes(self._routes())
        self.app.cleanup_ctx.append(self._sweeping)
        self.app.on_shutdown.append(self._end_streams)

    def _routes(self) -> list[web.RouteDef]:
        item = "/{page}/{kind}/{namespace}/{name}"
        return [
            web.get("/healthz", _healthy),
            web.get("/", self._front),
            web.get("/static/{file}", _static),
            web.get("/login", self._login_page),
            web.post("/login", self._login),
            web.post("/logout", self._logout),
            *(self._oidc.routes() if self._oidc is not None else ()),
            web.get("/enter", self._enter),
            web.get("/stream", self._stream),
            web.post(f"/{PlansPage.name}", self._open_plan),
            web.get("/{page}", self._page),
            web.get(item, self._page),
            web.post(item + "/{action}", self._act),
        ]

    async def close(self) -> None:
        """Ends every watch and forgets every credential."""
        self.sessions.close()
        await self._viewers.close()

    # Signing in and out

    async def _front(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPSeeOther(f"/{CLUSTERS}")

    async def _login_page(self, request: web.Request) -> web.StreamResponse:
        left = self._oidc is not None and _LEFT in request.query
        end = await self._oidc.end_address(request) if self._oidc is not None and left else ""
        return self._login_form(local_path(request.query.get("next", "")), end=end)

    def _login_form(self, next: str, problem: str = "", status: int = 200, *, end: str = "") -> web.Response:
        host, provider = self._settings.cluster.server, self._oidc.provider.name if self._oidc is not None else ""
        values = {"host": host, "next": next, "problem": problem, "provider": provider, "end": end}
        return _html(rendering.document("login.html", **values), status)

    async def _login(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        next = local_path(str(form.get("next", "")))
        try:
            credential = token_credential(self._settings.cluster, str(form.get("token", "")))
            return await self._signed_in(request, credential, next)
        except SignInRefused as refused:
            return self._login_form(next, f"Not signed in: {refused}.", 401)
        except Unauthorized:
            return self._login_form(next, "Not signed in: the API server does not accept this token.", 401)
        except KubeError as error:
            return self._login_form(next, f"Not signed in: {error}", 502)

    async def _enter(self, request: web.Request) -> web.StreamResponse:
        credential = self.sessions.redeem(request.query.get("ticket", ""))
        if credential is None:
            return self._login_form(
                f"/{CLUSTERS}", "This link was used before, or is too old: run `hortus ui` again.", 401
            )
        try:
            return await self._signed_in(request, credential, f"/{CLUSTERS}")
        except (SignInRefused, KubeError) as error:
            return self._login_form(f"/{CLUSTERS}", f"Not signed in: {error}", 401)

    async def _signed_in(
        self, request: web.Request, credential: ViewerCredential, next: str, tokens: OidcTokens | None = None
    ) -> web.Response:
        origin = self._guard.origin_of(request)
        renewable = tokens is not None and tokens.refresh_token is not None
        viewer = await self._viewers.get(credential, renewable=renewable)
        cookie, session = self.sessions.open(viewer, origin, tokens)
        _log.info("a viewer signed in", user=viewer.username)
        answer = web.Response(status=303, headers={"Location": next})
        ends = session.last if renewable else session.ends
        left = max(0, int(ends - self._clock.now()))
        answer.set_cookie(COOKIE, cookie, max_age=left, path="/", secure=True, httponly=True, samesite="Lax")
        return answer

    async def _logout(self, request: web.Request) -> web.StreamResponse:
        session = self._session(request)
        if session is not None:
            await _confirm(request, session)
            self.sessions.end(request.cookies.get(COOKIE, ""))
            if self._oidc is not None:
                await self._oidc.end(session)
        answer = web.Response(status=303, headers={"Location": "/login" if self._oidc is None else f"/login?{_LEFT}=1"})
        answer.del_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="Lax")
        return answer

    # Pages

    async def _page(self, request: web.Request) -> web.StreamResponse:
        asked = self._asked(request.match_info, request.query)
        as_json = _wants_json(request)
        session = self._session(request)
        bearer = request.headers.get("Authorization", "")
        if session is not None:
            viewer = session.viewer
            if not await viewer.still_known():
                self.sessions.end(request.cookies.get(COOKIE, ""))
                raise Unauthorized("the credential was revoked")
        elif as_json and bearer.startswith("Bearer "):
            viewer = await self._viewers.get(token_credential(self._settings.cluster, bearer.removeprefix("Bearer ")))
        elif as_json:
            return _json({"error": "sign in, or send a bearer token"}, 401)
        else:
            raise web.HTTPSeeOther("/login?next=" + _quoted(request.rel_url.raw_path_qs))
        with viewer.page():
            content = await self._composed(viewer, asked, patient=as_json)
        status = 404 if content.gone else 200
        if as_json:
            return _json(document(content, self._clock.now()), status)
        assert session is not None, "only programs come without one"
        return await self._drawn(request, session, content, status)

    async def _drawn(
        self, request: web.Request, session: ViewerSession, content: Content, status: int
    ) -> web.StreamResponse:
        now = self._clock.now()
        frame = rendering.PageFrame(
            self._catalogue.pages.values(), session.viewer, session.csrf, request.rel_url.raw_path_qs, now,
            session.said.pop(request.query.get(_SAID, ""), ""),
        )  # fmt: skip
        drawn = await self._composer.drawings.of(content, csrf=session.csrf, now=now)
        return _html(rendering.page(drawn, content, frame), status)

    async def _composed(self, viewer: Viewer, asked: _Asked, *, patient: bool = False) -> Content:
        more = {"patience": 10.0} if patient else {}
        return await self._composer.compose(
            viewer, asked.page, asked.key, namespace=asked.namespace, filters=asked.filters, **more
        )

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        session = self._session(request)
        if session is None:
            return web.Response(status=401, text="sign in again\n")
        address = _address(request.query.get("at", ""))
        names = ("page", "kind", "namespace", "name")
        parts = [part for part in address.parts if part != "/"]
        asked = self._asked(dict(zip(names, parts, strict=False)), address.query)
        user = session.viewer.username
        if sum(one == user for one in self._streams.values()) >= _MOST_PAGES:
            raise TooManyAtOnce(f"you have {_MOST_PAGES} pages open: close a page to see another one live")
        stream = PageStream(
            self._composer, self.sessions, session, self._clock,
            page=asked.page, key=asked.key, namespace=asked.namespace, filters=asked.filters,
        )  # fmt: skip
        task = asyncio.current_task()
        assert task is not None
        self._streams[task] = user
        try:
            return await stream.run(request, request.query.get("have", "").split(","))
        finally:
            del self._streams[task]

    async def _act(self, request: web.Request) -> web.StreamResponse:
        session = self._session(request)
        if session is None:
            raise web.HTTPSeeOther("/login?next=" + _quoted(request.path.rpartition("/")[0]))
        form = await _confirm(request, session)
        shown = {name.removeprefix(_SHOWN): str(value) for name, value in form.items() if name.startswith(_SHOWN)}
        asked = self._asked(request.match_info, request.query)
        assert asked.key is not None, "the route has one"
        action = request.match_info["action"]
        try:
            said, status = await asked.page.act(session.viewer.client, asked.key, action, shown), 200
        except ActionRefused as refused:
            said, status = f"Not done: {refused}", 409
        except Forbidden as error:
            said, status = f"Not done, you may not: {error}", 403
        except KubeError as error:
            said, status = f"Not done: {error}", 502
        _log.info("a viewer acted", user=session.viewer.username, action=action, object=str(asked.key), status=status)
        if _wants_json(request):
            return _json({"message": said}, status)
        place = request.rel_url.raw_path.rpartition("/")[0]
        query = {"namespace": asked.namespace} if asked.namespace else {}
        target = request.rel_url.with_path(place, encoded=True).with_query({**query, _SAID: session.say(said)})
        raise web.HTTPSeeOther(str(target))

    async def _open_plan(self, request: web.Request) -> web.StreamResponse:
        session = self._session(request)
        if session is None:
            raise web.HTTPSeeOther(f"/login?next=/{PlansPage.name}")
        with self._plans.one_at_a_time(session.viewer):
            name, content = await _uploaded(request, session)
            try:
                key = await self._plans.open(session.viewer, name, content)
            except PlanFileError as refused:
                raise web.HTTPBadRequest(text=f"Not opened: {refused}") from None
        _log.info("a viewer opened a plan", user=session.viewer.username, size=len(content))
        raise web.HTTPSeeOther(rendering.address_of((PlansPage.name, key.kind, "-", key.name)))

    def _asked(self, parts: Any, query: Any) -> _Asked:
        page = self._catalogue.pages.get(parts.get("page", ""))
        if page is None:
            raise web.HTTPNotFound(text="there is no such page")
        place, key = str(query.get("namespace", "")).strip(), None
        if place and dns_label(place):
            raise web.HTTPBadRequest(text=f"namespace={place[:63]} is no name of a namespace")
        if "name" in parts:
            namespace = parts["namespace"]
            key = ItemKey(parts["kind"].lower(), "" if namespace == "-" else namespace, parts["name"])
        elif len(parts) > 1:
            raise web.HTTPNotFound(text="there is no such page")
        try:
            return _Asked(page, key, place, filters_of(query))
        except BadQuery as error:
            raise web.HTTPBadRequest(text=str(error)) from None

    def _session(self, request: web.Request) -> ViewerSession | None:
        cookie = request.cookies.get(COOKIE, "")
        return self.sessions.find(cookie, self._guard.origin_of(request)) if cookie else None

    @web.middleware
    async def _problems(self, request: web.Request, handler: Callable[..., Any]) -> web.StreamResponse:
        """Every problem as a page, or as JSON."""
        try:
            found: web.StreamResponse = await handler(request)
            return found
        except web.HTTPException as error:
            if error.status < 400:
                raise
            return _problem(request, error.status, error.text or error.reason)
        except Unauthorized:
            return _problem(request, 401, "the API server no longer accepts this credential: sign in again")
        except SignInRefused as error:
            return _problem(request, 401, str(error))
        except TooManyAtOnce as error:
            return _problem(request, 429, str(error))
        except ApiError as error:
            return _problem(request, 403 if isinstance(error, Forbidden) else 502, str(error))
        except KubeError as error:
            return _problem(request, 502, f"the API server does not answer: {error}")
        except ConnectionError:
            raise
        except Exception as error:
            _log.error("a page failed", path=request.path, exc_info=error)
            return _problem(request, 500, "a fault of the dashboard; its log has the details")

    async def _sweeping(self, app: web.Application) -> AsyncIterator[None]:
        async def sweep() -> None:
            while True:
                await self._clock.sleep(_SWEEP)
                if self._oidc is not None:
                    await self._oidc.renew(self.sessions.all())
                self.sessions.sweep()
                await self._viewers.sweep()
                await self._health.sample()

        task = asyncio.create_task(sweep(), name="sweep sessions")
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await self.close()

    async def _end_streams(self, app: web.Application) -> None:
        for task in list(self._streams):
            task.cancel()


async def _healthy(request: web.Request) -> web.Response:
    return web.Response(text="ok\n")


async def _static(request: web.Request) -> web.StreamResponse:
    path = rendering.STATIC / request.match_info["file"]
    if path.parent != rendering.STATIC or not path.is_file():
        raise web.HTTPNotFound(text="there is no such file")
    kind = _TYPES[path.suffix.lstrip(".")]
    # The address changes with the content.
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return web.Response(body=path.read_bytes(), content_type=kind, charset="utf-8", headers=headers)


async def _confirm(request: web.Request, session: ViewerSession) -> Mapping[str, object]:
    """The fields of a form of this session. Raises HTTPForbidden."""
    form = await request.post()
    if not session.confirms(str(form.get("csrf", ""))):
        raise web.HTTPForbidden(text=_FORGED)
    return form


async def _uploaded(request: web.Request, session: ViewerSession) -> tuple[str, bytes]:
    """Name and content of the file of a form, whose first field is the token of the session."""
    if not request.content_type.startswith("multipart/"):
        raise web.HTTPBadRequest(text="Not opened: choose a file")
    parts = await request.multipart()
    token, content = await parts.next(), bytearray()
    if not isinstance(token, BodyPartReader) or token.name != "csrf" or not await _confirms(token, session):
        raise web.HTTPForbidden(text=_FORGED)
    file = await parts.next()
    if not isinstance(file, BodyPartReader) or file.name != "file" or not file.filename:
        raise web.HTTPBadRequest(text="Not opened: choose a file")
    while piece := await file.read_chunk(1 << 16):
        content += piece
        if len(content) > LARGEST:
            text = (
                f"Not opened: {file.filename[:80]} is larger than {LARGEST >> 20} MiB; `hortus plan -o html` shows it"
            )
            raise web.HTTPRequestEntityTooLarge(LARGEST, len(content), text=text)
    return file.filename, bytes(content)


async def _confirms(token: BodyPartReader, session: ViewerSession) -> bool:
    return session.confirms((await token.read_chunk(1024)).decode(errors="replace"))


def _wants_json(request: web.Request) -> bool:
    return request.query.get("output") == "json" or request.headers.get("Accept", "").startswith("application/json")


def _problem(request: web.Request, status: int, message: str) -> web.Response:
    if _wants_json(request):
        return _json({"error": message}, status)
    return _html(
        rendering.document("problem.html", title=_TITLES.get(status, "That did not work"), message=message), status
    )


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html", charset="utf-8")


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def _quoted(text: str) -> str:
    return quote(text, safe="/")


def _address(text: str) -> URL:
    """An address of ours, as a page names itself."""
    try:
        return URL(local_path(text), encoded=True)
    except ValueError:
        raise web.HTTPBadRequest(text="at= is no address of a page") from None
