"""Server-sent events of one open page: the parts that changed, and the end of the session.

A page is drawn again only when an object that it shows has changed, or the reasons why something is not shown. At rest
a stream sends nothing but keep-alives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import Final

from aiohttp import web

from hortus.dashboard.composing import Composer
from hortus.dashboard.filters import Filters
from hortus.dashboard.guarding import protect
from hortus.dashboard.rendering import Drawn
from hortus.dashboard.sessions import ViewerSession, ViewerSessions
from hortus.engine.pages import FleetPage, ItemKey
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError

_LOOK: Final = 2.0
"""Seconds between looks at what is no change of an object: problems of watches, and the session's end."""
KEEP_ALIVE: Final = 20.0
"""Seconds of silence after which a comment is sent, so that proxies keep the connection."""


class PageStream:
    """One open page."""

    def __init__(
        self,
        composer: Composer,
        sessions: ViewerSessions,
        session: ViewerSession,
        clock: Clock,
        *,
        page: FleetPage,
        key: ItemKey | None,
        namespace: str,
        filters: Filters,
    ) -> None:
        self._composer = composer
        self._sessions = sessions
        self._session = session
        self._clock = clock
        self._page = page
        self._key = key
        self._namespace = namespace
        self._filters = filters
        self._kinds = composer.kinds(page, key)
        self._changed = asyncio.Event()

    async def run(self, request: web.Request, have: Iterable[str]) -> web.StreamResponse:
        """Sends until the page is closed, or the session ends. `have` are the digests that the browser shows.

        Raises TooManyAtOnce.
        """
        viewer = self._session.viewer
        stop = viewer.watch(self._namespace).subscribe(self._changed.set)
        try:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
            protect(response)
            await response.prepare(request)
            with viewer.page():
                await self._send_all(response, set(have))
        except ConnectionError:
            pass  # the page was closed
        finally:
            stop()
        return response

    async def _send_all(self, response: web.StreamResponse, have: Collection[str]) -> None:
        state: object = None
        silent = 0.0
        clock = self._clock
        while await self._is_open():
            self._changed.clear()
            # The state is that before the picture: what changes while it is drawn is drawn again.
            if (before := self._state()) != state and (drawn := await self._draw()) is not None:
                state, change, have = before, drawn.change(have), drawn.digests
                if change:
                    await _send(response, "change", change)
                    silent = clock.monotonic()
            if clock.monotonic() - silent >= KEEP_ALIVE:
                await response.write(b": keep-alive\n\n")
                silent = clock.monotonic()
            # Pages of a fleet that changes all the time are drawn at the same beats, so that they show the same states.
            await clock.sleep(self._composer.beats.left())
            await self._wait()
        await _send(response, "end", b"{}")

    async def _is_open(self) -> bool:
        viewer = self._session.viewer
        expired = viewer.watch(self._namespace).expired
        return not expired and self._sessions.is_open(self._session) and await viewer.still_known()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(_LOOK):
                await self._changed.wait()
        except TimeoutError:
            pass

    def _state(self) -> object:
        """Differs when the page may have to be drawn again."""
        return self._session.viewer.watch(self._namespace).seen(self._kinds), self._composer.judged

    async def _draw(self) -> Drawn | None:
        """The page as it is now; None while the API server does not answer."""
        try:
            content = await self._composer.compose(
                self._session.viewer, self._page, self._key, namespace=self._namespace, filters=self._filters
            )
        except KubeError:
            return None
        return await self._composer.drawings.of(content, csrf=self._session.csrf, now=self._clock.now())


async def _send(response: web.StreamResponse, event: str, data: bytes) -> None:
    await response.write(b"event: %b\ndata: %b\n\n" % (event.encode(), data))
