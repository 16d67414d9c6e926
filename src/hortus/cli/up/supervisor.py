"""Supervision of child processes.

Each child is a Python program of ours that keeps three rules: it reports its progress on standard output in JSON lines
(`ChildReport`); it logs to standard error, which is appended to a file; and it stops on SIGTERM, and at the end of its
standard input, so that no child survives a supervisor that is killed. One that is started with `LOAD_FIRST` imports
what it needs, and begins its work with the first line on its standard input: children load at the same time although
they begin in order.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

MODULE = (sys.executable, "-P", "-m")
"""Start of a command line that runs one of our modules. `-P` matters: `-m` alone looks in the working folder first,
where others may have put a module, as in /tmp or in an unpacked archive."""
LOAD_FIRST = "--load-first"
"""Flag of a child that begins with the first line on its standard input."""
STOP_GRACE = 10.0
"""Seconds a child has to stop by itself before it is killed; the API server needs well below one."""
RESTART_DELAYS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before the n-th restart in a row; the last one repeats."""
STEADY = 30.0
"""A child that ran this many seconds starts again at the first delay."""


State = Literal["progress", "prepared", "ready", "done", "failed"]
"""`prepared` means that what other children start from is there; `ready` comes once; `done` ends what the child reports
after that; `failed` means that a restart would not help."""


class ChildReport(msgspec.Struct, omit_defaults=True):
    """One line from a child."""

    state: State
    message: str = ""
    title: str = ""
    """The part that the line is about; empty for the child itself."""
    facts: dict[str, str] = {}


def report(state: State, message: str = "", *, title: str = "", **facts: str) -> None:
    """Reports the progress of this child process to its supervisor."""
    sys.stdout.buffer.write(msgspec.json.encode(ChildReport(state, message, title, facts)) + b"\n")
    sys.stdout.buffer.flush()


async def until_stopped() -> None:
    """Waits in a child for its cancellation, which is how it is stopped."""
    await asyncio.get_running_loop().create_future()


class CannotRun(Exception):
    """A child cannot run and a restart would not help; the message has the reason and the fix."""


class ChildFailed(Exception):
    """A child reported that it cannot run, or ended before it was ready."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


Listener = Callable[[str, ChildReport], None]
"""Callback for the reports of a child; it must not raise."""


class Child:
    """One supervised process: `start` returns when it is ready; from then on it is restarted whenever it ends.

    `load` may spawn it before that; it begins with `start`.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        log: Path | None,
        inherited: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """The child's standard error is appended to `log`, or is inherited if `log` is None.

        `inherited` is a file descriptor that the child keeps open until it ends.
        """
        self.name = name
        self.restarts = 0
        self.facts: dict[str, str] = {}
        self._arguments = list(arguments)
        self._log = log
        self._inherited = () if inherited is None else (inherited,)
        self._environment = {**os.environ, **(environment or {})}
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._stopping = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.returncode is None else None

    async def load(self) -> None:
        """Spawn it, so that it has imported what it needs by the time of `start`."""
        await self._spawn()

    async def start(self, listener: Listener) -> None:
        """Let it begin, and wait until it is ready. Raises ChildFailed."""
        if self._process is None:
            await self._spawn()
        self._begin()
        await self._until_ready(listener)
        self._keeper = asyncio.create_task(self._keep(listener), name=f"keep {self.name}")

    async def kept(self) -> None:
        """Waits while the child is kept running. Raises ChildFailed if it is not restarted any more."""
        assert self._keeper is not None, "started"
        await asyncio.wait((self._keeper,))
        if not self._stopping:
            raise ChildFailed(self.name, f"is not kept running any more: {_fault(self._keeper)}")

    async def stop(self) -> None:
        """End it by SIGTERM, after `STOP_GRACE` by SIGKILL.

        Its standard input stays open: the end of that means that this process is gone, and gives it less time.
        """
        self._stopping = True
        if self._keeper:
            self._keeper.cancel()
            await asyncio.wait((self._keeper,))  # and not for its result: `kept` reports that, and the child must end
        process = self._process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), STOP_GRACE)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _spawn(self) -> None:
        descriptor = None
        if self._log is not None:
            descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=descriptor,
                env=self._environment,
                pass_fds=self._inherited,
                start_new_session=True,
            )
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _begin(self) -> None:
        assert self._process is not None and self._process.stdin is not None
        with suppress(OSError):  # it may have ended, which `_until_ready` reports
            self._process.stdin.write(b"\n")

    async def _until_ready(self, listener: Listener) -> None:
        assert self._process is not None and self._process.stdout is not None
        async for line in self._process.stdout:
            said = _parse(line)
            if said is None:
                continue
            listener(self.name, said)
            if said.state == "failed":
                await self._process.wait()
                raise ChildFailed(self.name, said.message)
            if said.state == "ready":
                self.facts = said.facts
                return
        code = await self._process.wait()
        raise ChildFailed(self.name, f"ended with {_ending(code)} before it was ready{self._where}")

    async def _keep(self, listener: Listener) -> None:
        """Restart the child whenever it ends, waiting longer each time it does not last."""
        loop = asyncio.get_running_loop()
        row, since = 0, loop.time()
        ended = await self._survived(self._until_end(listener))
        while not self._stopping:
            row = 0 if loop.time() - since > STEADY else row + 1
            delay = RESTART_DELAYS[min(row, len(RESTART_DELAYS)) - 1] if row else RESTART_DELAYS[0]
            listener(self.name, ChildReport("progress", f"{ended}; starts again in {delay:g} s"))
            await asyncio.sleep(delay)
            self.restarts += 1
            since = loop.time()
            ended = await self._survived(self._once_more(listener))

    async def _once_more(self, listener: Listener) -> str:
        await self._spawn()
        self._begin()
        await self._until_ready(listener)
        return await self._until_end(listener)

    async def _survived(self, life: Coroutine[None, None, str]) -> str:
        """The end of one life of the child, in words. An error of ours ends it too; the next one is another attempt."""
        try:
            return await life
        except ChildFailed as failure:
            return str(failure)
        except Exception as error:
            if self._process is not None and self._process.returncode is None:
                with suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()
            return f"cannot be kept: {error or type(error).__name__}"

    async def _until_end(self, listener: Listener) -> str:
        assert self._process is not None and self._process.stdout is not None
        async for line in self._process.stdout:
            if (said := _parse(line)) is not None:
                listener(self.name, said)
        return f"ended with {_ending(await self._process.wait())}{self._where}"

    @property
    def _where(self) -> str:
        return "" if self._log is None else f"; its log is {self._log}"


def _fault(keeper: asyncio.Task[None]) -> str:
    if keeper.cancelled():
        return "its keeper was cancelled"
    return repr(keeper.exception())


def _parse(line: bytes) -> ChildReport | None:
    try:
        return msgspec.json.decode(line, type=ChildReport)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


def _ending(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


__all__ = ["LOAD_FIRST", "CannotRun", "Child", "ChildFailed", "ChildReport", "Listener", "report"]
