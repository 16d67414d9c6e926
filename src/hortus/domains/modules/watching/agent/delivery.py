"""Delivery of events to the control plane: in order for each manager, again and again until it is accepted.

One event is tried three times with growing pauses, as Kyma's runtime-watcher does. Then that counts as a failure, and
the event stays at the head of its lane until a later round succeeds.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Self
from urllib.parse import quote

import aiohttp
import structlog

from hortus.domains.modules.watching.agent.buffer import Buffered, EventBuffer
from hortus.domains.modules.watching.agent.certificates import CertificateFiles
from hortus.domains.modules.watching.agent.metrics import FAILED_REQUEST, REQUEST_SETUP, AgentMetrics
from hortus.domains.modules.watching.agent.settings import AgentSettings
from hortus.domains.modules.watching.events import encode
from hortus.engine.backoff import Backoff
from hortus.kube.clock import Clock

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

TRIES = 3
BETWEEN_TRIES = Backoff(first=0.5, cap=10.0, jitter=0.5)
BETWEEN_ROUNDS = Backoff(first=2.0, cap=60.0, jitter=0.5)
SETTLING = 0.1
"""Seconds from the answer to the API server until the event is sent: it stores the object only after the answer, and
the control plane should read what it stored."""
_TIMEOUT = aiohttp.ClientTimeout(total=180.0, sock_connect=10.0, sock_read=60.0)
_LONGEST_PAUSE = 300.0
"""Seconds that a Retry-After may ask for."""


class _Refused(Exception):
    """An attempt failed; `pause` is the time that the control plane asked for."""

    def __init__(self, message: str, pause: float = 0.0) -> None:
        super().__init__(message)
        self.pause = pause


class Deliverer:
    """Empties the buffer. `async with`; one task for each manager that has events."""

    def __init__(
        self,
        settings: AgentSettings,
        buffer: EventBuffer,
        certificates: CertificateFiles,
        metrics: AgentMetrics,
        *,
        clock: Clock,
        session: Callable[[], aiohttp.ClientSession] = aiohttp.ClientSession,
    ) -> None:
        self._settings = settings
        self._buffer = buffer
        self._certificates = certificates
        self._metrics = metrics
        self._clock = clock
        self._make_session = session
        self._session: aiohttp.ClientSession | None = None
        self._lanes: dict[str, tuple[asyncio.Event, asyncio.Task[None]]] = {}
        self._random = random.Random()  # noqa: S311 - jitter, not secrecy

    def wake(self, manager: str) -> None:
        """Look at a manager's events: one more has come."""
        if manager not in self._lanes:
            news = asyncio.Event()
            self._lanes[manager] = news, asyncio.create_task(self._empty(manager, news), name=f"deliver {manager}")
        self._lanes[manager][0].set()

    async def __aenter__(self) -> Self:
        self._session = self._make_session()
        for manager in self._buffer.managers:
            self.wake(manager)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = [task for _, task in self._lanes.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _empty(self, manager: str, news: asyncio.Event) -> None:
        failures = 0
        while True:
            await news.wait()
            news.clear()
            await self._clock.sleep(SETTLING)
            while (one := self._buffer.begin(manager)) is not None:
                pause = await self._round(manager, one)
                if pause is None:
                    self._buffer.done(manager, one.number)
                    failures = 0
                    continue
                await self._clock.sleep(max(pause, BETWEEN_ROUNDS.delay(failures, random=self._random)))
                failures += 1

    async def _round(self, manager: str, one: Buffered) -> float | None:
        """Up to three tries; None when it was accepted, else the pause that the control plane asked for."""
        for attempt in range(TRIES):
            try:
                await self._post(manager, one)
            except _Refused as error:
                _log.warning("an event was not accepted", manager=manager, attempt=attempt + 1, error=str(error))
                if error.pause or attempt == TRIES - 1:
                    self._metrics.failures.labels(FAILED_REQUEST).inc()
                    return error.pause
                await self._clock.sleep(BETWEEN_TRIES.delay(attempt, random=self._random))
            except ValueError as error:
                self._metrics.failures.labels(REQUEST_SETUP).inc()
                _log.error("an event cannot be sent", manager=manager, error=str(error))
                return _LONGEST_PAUSE
            else:
                return None
        raise AssertionError("unreachable")

    async def _post(self, manager: str, one: Buffered) -> None:
        """Raises _Refused."""
        assert self._session is not None, "the deliverer is used within its context"
        settings = self._settings
        url = f"https://{settings.address}/{quote(settings.contract)}/{quote(manager, safe='')}/event"
        self._metrics.requests.inc()
        try:
            async with self._session.post(
                url,
                data=encode(one.event, sender=settings.runtime_id),
                headers={"Content-Type": "application/json"},
                ssl=self._certificates.client,
                allow_redirects=False,
                timeout=_TIMEOUT,
            ) as answer:
                if answer.status != HTTPStatus.OK:
                    raise _Refused(f"{url}: {answer.status} {answer.reason}", _pause(answer.headers))
        except aiohttp.InvalidURL as error:
            raise ValueError(f"KCP_ADDR {settings.address!r} gives no URL: {error}") from None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _Refused(f"{url}: {error or type(error).__name__}") from error


def _pause(given: Mapping[str, str]) -> float:
    """The seconds of Retry-After, as far as they are reasonable."""
    text = given.get("Retry-After")
    return min(float(text), _LONGEST_PAUSE) if text and text.isascii() and text.isdigit() else 0.0
