"""One run of `hortus up`, from the lock on the state directory to the end of the last child."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from hortus import __version__, domains
from hortus.cli.up.progress import Display
from hortus.cli.up.state import RunFile, StateDirectory, metrics_socket
from hortus.cli.up.supervisor import LOAD_FIRST, MODULE, Child, ChildFailed, ChildReport, Listener
from hortus.kube.objects import format_time


class UpOptions(msgspec.Struct, frozen=True):
    """Options of `hortus up` from its command line."""

    state: Path
    port: int
    """Port of the API server; 0 for any free one."""
    clusters: int
    """Minimum number of simulated clusters."""
    ephemeral: bool = False
    config: Path | None = None
    """A configuration file for the simulation and the controllers."""
    controllers: int = 1
    """Number of controller processes, which share the clusters."""
    audit_policy: Path | None = None
    """File with the policy of the audit log of requests, logs/audit.log; None for no log."""
    store: str = ""
    """URL of the etcd that keeps objects; empty for the database in the state directory."""
    serve_only: bool = False
    """Starts the API server alone."""
    dashboard_port: int = 0
    """Port of the dashboard; 0 for the one it had, or any free one."""


class PortTaken(Exception):
    """The requested port is not available; the message has the reason and the fix."""


RECORD_AGAIN = 5.0
"""Seconds until a failed write of run.json is repeated."""


def free_port(port: int, *, before: int = 0, flag: str = "--port") -> int:
    """`port` itself if it can be listened on; for 0 the one it was `before`, else any free one. Raises PortTaken.

    Kubeconfigs that were handed out name a port, so keeping it is worth a try.
    """
    if not port and before:
        with suppress(PortTaken):
            return free_port(before, flag=flag)
    port = port or domains.free_port()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            raise PortTaken(
                f"port {port} needs permissions that you do not have. Choose one above 1023: {flag} 6443"
            ) from None
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise PortTaken(f"cannot listen on 127.0.0.1:{port}: {error.strerror}") from None
            raise PortTaken(
                f"port {port} on 127.0.0.1 is taken by another program. Choose another with {flag} N, "
                f"or any free one with {flag} 0."
            ) from None
        return int(probe.getsockname()[1])


class Session:
    """Starts the children in order, keeps them, and ends them in reverse order."""

    def __init__(self, options: UpOptions, state: StateDirectory, display: Display) -> None:
        self._options = options
        self._state = state
        self._display = display
        self._children: list[Child] = []
        self._stop = asyncio.Event()
        self._later: asyncio.TimerHandle | None = None
        self._started = format_time(time.time())
        self._dashboard_url = ""
        """That of the run before, until the dashboard is started."""

    async def run(self) -> None:
        """Start everything, then stay until SIGINT or SIGTERM. Raises ChildFailed, PortTaken."""
        began = time.monotonic()
        last = self._state.run()
        port = free_port(self._options.port, before=(urlsplit(last.server).port or 0) if last else 0)
        self._dashboard_url = last.dashboard if last else ""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop.set)
        try:
            if await self._unless_stopped(self._start(port)):
                self._display.up(time.monotonic() - began, self._summary())
                await self._unless_stopped(self._kept())
        finally:
            self._display.stopping()
            if self._later is not None:
                self._later.cancel()
            for child in reversed(self._children):
                await child.stop()

    async def _kept(self) -> None:
        """Waits for ever. Raises ChildFailed for a child that is not restarted any more."""
        await asyncio.gather(*(child.kept() for child in self._children))

    async def _unless_stopped(self, starting: Coroutine[None, None, None]) -> bool:
        """Waits for `starting`; returns false if a request to stop came first."""
        task = asyncio.create_task(starting)
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if task.done():
            await task
            return True
        task.cancel()
        with suppress(asyncio.CancelledError, ChildFailed):
            await task
        return False

    async def _start(self, port: int) -> None:
        arguments = ["--ephemeral"] if self._options.ephemeral else []
        if self._options.audit_policy:
            arguments += ["--audit-policy", str(self._options.audit_policy)]
        if self._options.store:
            arguments += ["--store", self._options.store]
        server = self._child("apiserver", "--port", str(port), *arguments)

        prepared = asyncio.Event()

        def heard(name: str, said: ChildReport) -> None:
            if said.state == "prepared":
                prepared.set()
            # `hortus status` reads run.json, which must not name a process that was restarted since.
            self._record(port)
            self._display.report(name, said)

        simulation, controllers = None, list[Child]()
        if not self._options.serve_only:
            simulation = self._child("simulation", LOAD_FIRST, "--clusters", str(self._options.clusters))
            controllers = self._controllers()
        self._record(port)
        begun = asyncio.create_task(server.start(heard), name="start the API server")
        try:
            await asyncio.gather(*(child.load() for child in (simulation, *controllers) if child is not None))
            await begun
        finally:
            begun.cancel()
        if simulation is not None:
            dashboard = self._dashboard()
            await self._start_others(simulation, [*controllers, dashboard], heard, prepared)

    async def _start_others(
        self, simulation: Child, controllers: Sequence[Child], heard: Listener, prepared: asyncio.Event
    ) -> None:
        """Begin the controllers once the simulation has its registry, whose address is one of their flags."""
        begun = asyncio.create_task(simulation.start(heard), name="start the simulation")
        begun.add_done_callback(lambda _: prepared.set())
        try:
            await prepared.wait()
            if begun.done():
                begun.result()
            await asyncio.gather(begun, *(child.start(heard) for child in controllers))
        finally:
            begun.cancel()

    def _controllers(self) -> list[Child]:
        if self._options.controllers == 1:
            return [self._child("controllers", LOAD_FIRST)]
        numbers = range(self._options.controllers)
        return [self._child("controllers", LOAD_FIRST, "--replica", str(number), number=number) for number in numbers]

    def _dashboard(self) -> Child:
        """The dashboard reads address and trust of the API server from the controllers' file, and no credential."""
        before = urlsplit(self._dashboard_url).port or 0
        port = free_port(self._options.dashboard_port, before=before, flag="--dashboard-port")
        self._dashboard_url = f"http://127.0.0.1:{port}"
        command = [*MODULE, "hortus.dashboard.main", "serve", "--supervised", "--port", str(port)]
        command += ["--kubeconfig", str(self._state.controllers_kubeconfig), "--state-dir", str(self._state.path)]
        sockets = [metrics_socket(self._state, number) for number in range(self._options.controllers)]
        command += [word for socket in sockets for word in ("--metrics-from", f"unix:{socket}")]
        child = Child("dashboard", command, log=self._state.logs / "dashboard.log", inherited=self._state.lock)
        self._children.append(child)
        return child

    def _child(self, kind: str, *arguments: str, number: int = 0) -> Child:
        name = f"{kind}-{number + 1}" if number else kind
        command = [*MODULE, "hortus.cli.up.processes", kind, "--state-dir", str(self._state.path)]
        command += ["--lock", str(self._state.lock)] if self._state.lock is not None else []
        if self._options.config:
            command += ["--config", str(self._options.config)]
        child = Child(name, [*command, *arguments], log=self._state.logs / f"{name}.log", inherited=self._state.lock)
        self._children.append(child)
        return child

    def _record(self, port: int) -> None:
        """Write who runs, for `hortus status`. A full disk must not keep a child from being started again."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        run = RunFile(
            pid=os.getpid(),
            server=f"https://127.0.0.1:{port}",
            version=__version__,
            started=self._started,
            ephemeral=self._options.ephemeral,
            dashboard=self._dashboard_url,
            parts=[child.name for child in self._children],
            processes={child.name: child.pid for child in self._children if child.pid},
        )
        try:
            self._state.write_run(run)
        except OSError as error:
            self._display.trouble(f"`hortus status` is out of date: cannot write run.json: {error.strerror or error}")
            self._later = asyncio.get_running_loop().call_later(RECORD_AGAIN, self._record, port)

    def _summary(self) -> dict[str, str]:
        facts: dict[str, str] = {}
        for child in self._children:
            facts.update(child.facts)
        return facts
