"""A bounded pool of worker processes, started when first needed, that keeps rendering off the event loop.

Each rendering has a time limit, after which its worker is ended and the next rendering gets a fresh one; the memory
limit is the worker's own. The worker used last is used first, as it has the charts that are asked for. A caller that
is cancelled in the middle takes its worker with it, since that is in the middle too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from hortus.render.helm import protocol
from hortus.render.helm.errors import ChartError, RenderTimeout

Reader = Callable[[str, str, str, str], Awaitable[dict[str, Any]]]
"""apiVersion, kind, namespace, name: what `lookup` gives to templates."""
_STOP_SECONDS = 5.0


class PoolSettings(msgspec.Struct, frozen=True):
    """The share of the machine that rendering may take."""

    workers: int = 2
    seconds: float = 30.0
    """For one rendering, the start of a worker not counted."""
    start_seconds: float = 60.0
    memory: int = 1 << 30
    """Bytes of address space of one worker."""
    waiting: int = 1000
    """Renderings that may wait for a worker; more are refused."""


class WorkerPool:
    """`async with WorkerPool(settings) as pool: await pool.render(...)`"""

    def __init__(self, settings: PoolSettings = PoolSettings()) -> None:  # noqa: B008 - frozen
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.workers)
        self._idle: list[_Worker] = []
        self._ending: set[asyncio.Task[None]] = set()
        """Waits for workers that were ended: a process that nobody waits for outlives the loop."""
        self._waiting = 0
        self._closed = False

    async def __aenter__(self) -> WorkerPool:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all workers."""
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*(worker.stop() for worker in idle), *self._ending)

    async def render(
        self, message: protocol.Render, files: tuple[tuple[str, bytes], ...], reader: Reader | None
    ) -> protocol.Done:
        """Render in a worker. Raises ChartError, RenderTimeout when it takes too long."""
        if self._closed:
            raise ChartError("the renderer is closed")
        if self._waiting >= self._settings.waiting:
            raise ChartError(f"more than {self._settings.waiting} renderings wait already; try again later")
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            return await self._rendered(message, files, reader)
        finally:
            self._slots.release()

    async def _rendered(
        self, message: protocol.Render, files: tuple[tuple[str, bytes], ...], reader: Reader | None
    ) -> protocol.Done:
        worker = self._idle.pop() if self._idle else _Worker(self._settings)
        is_fresh = not worker.has_rendered
        answer = await self._asked(worker, message, files, reader)
        if isinstance(answer, protocol.Failed) and answer.wants_memory and not is_fresh:
            # Earlier renderings may hold the memory that this chart needs.
            answer = await self._asked(_Worker(self._settings), message, files, reader)
        if isinstance(answer, protocol.Failed):
            raise ChartError(answer.message)
        return answer

    async def _asked(
        self, worker: _Worker, message: protocol.Render, files: tuple[tuple[str, bytes], ...], reader: Reader | None
    ) -> protocol.Done | protocol.Failed:
        keep = False
        try:
            answer = await worker.render(message, files, reader)
            keep = not answer.is_last
        finally:
            if keep and not self._closed:
                self._idle.append(worker)
            else:
                self._end(worker)
        return answer

    def _end(self, worker: _Worker) -> None:
        """End a worker now; `close` waits until it is gone."""
        worker.kill()
        task = asyncio.create_task(worker.stop(), name="end of a renderer")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


class _Worker:
    """One process, started with its first rendering."""

    def __init__(self, settings: PoolSettings) -> None:
        self._settings = settings
        self._process: asyncio.subprocess.Process | None = None
        self._known: set[str] = set()
        self.has_rendered = False

    async def render(
        self, message: protocol.Render, files: tuple[tuple[str, bytes], ...], reader: Reader | None
    ) -> protocol.Done | protocol.Failed:
        seconds = self._settings.seconds
        if self._process is None:
            await self._start()
            seconds += self._settings.start_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(message, files, reader)
        except TimeoutError:
            raise RenderTimeout(
                f"rendering took longer than {self._settings.seconds:g} s; its worker was ended."
                " Look for a range without end in the chart's templates"
            ) from None
        except (asyncio.IncompleteReadError, BrokenPipeError, ConnectionResetError, msgspec.DecodeError):
            raise RenderTimeout(
                "the worker ended while rendering; most likely the chart wanted more memory than"
                f" {self._settings.memory >> 20} MiB"
            ) from None

    async def _start(self) -> None:
        # The worker gets nothing of this process's environment: templates are untrusted, environments hold secrets.
        environment = {key: os.environ[key] for key in ("TZ", "TZDIR", "PYTHONPATH", "LANG") if key in os.environ}
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # `-m` alone looks for modules in the working folder first, which may be untrusted
            "-m",
            "hortus.render.helm.worker",
            str(self._settings.memory),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            limit=1 << 20,
        )

    async def _exchange(
        self, message: protocol.Render, files: tuple[tuple[str, bytes], ...], reader: Reader | None
    ) -> protocol.Done | protocol.Failed:
        sends = message.digest not in self._known
        await self._send(msgspec.structs.replace(message, files=files) if sends else message)
        while True:
            answer: protocol.FromWorker = await self._receive()
            if isinstance(answer, protocol.Unknown):
                await self._send(msgspec.structs.replace(message, files=files))
            elif isinstance(answer, protocol.Lookup):
                await self._send(await _found(answer, reader))
            else:
                self.has_rendered = True
                if isinstance(answer, protocol.Done):
                    self._known.add(message.digest)
                return answer

    async def _send(self, message: Any) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(protocol.framed(message))
        await self._process.stdin.drain()

    async def _receive(self) -> protocol.FromWorker:
        assert self._process is not None and self._process.stdout is not None
        size = int.from_bytes(await self._process.stdout.readexactly(protocol.HEADER), "big")
        if size > protocol.LARGEST_FRAME:
            raise ChartError("the rendered chart is too large")
        found: protocol.FromWorker = protocol.from_worker.decode(await self._process.stdout.readexactly(size))
        return found

    def kill(self) -> None:
        """End the process now."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def stop(self) -> None:
        """End the process and wait until it is gone."""
        if self._process is None:
            return
        self.kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()


async def _found(wanted: protocol.Lookup, reader: Reader | None) -> protocol.Found:
    if reader is None:
        return protocol.Found({})
    try:
        return protocol.Found(await reader(wanted.version, wanted.kind, wanted.namespace, wanted.name))
    except Exception as error:
        # Any exception of the reader becomes an error of the template that asked.
        return protocol.Found({}, str(error) or type(error).__name__)
