"""The two sites of a real migration: etcd members and API servers as processes."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.apiserver.store.etcdserver import find_etcd, free_port
from tests.domains.garden.migration.forwarding import Links
from tests.domains.garden.migration.router import HOST

from hortus.engine.livemigration import ServerState, SiteMember, SiteState

ROOT = Path(__file__).parents[4]


class MemberProcess:
    """One member of etcd, with the two forwarders before its peer port."""

    def __init__(self, folder: Path, name: str, site: str) -> None:
        self.name = name
        self.site = site
        self.folder = folder / name
        self.client, self.peer = free_port(), free_port()
        # etcd tries peer URLs in their order, and a joining member waits for 7 s where the first one is refused.
        self.outside, self.inside = sorted((free_port(), free_port()))
        self.process: subprocess.Popen[bytes] | None = None
        self.initial = ""
        self.log = folder / f"{name}.log"

    @property
    def client_url(self) -> str:
        return f"http://127.0.0.1:{self.client}"

    @property
    def inside_url(self) -> str:
        return f"http://127.0.0.1:{self.inside}"

    @property
    def outside_url(self) -> str:
        return f"http://127.0.0.1:{self.outside}"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    async def forward(self, links: Links) -> None:
        await links.forward(self.inside, self.peer, site=self.site, is_inside=True)
        await links.forward(self.outside, self.peer, site=self.site, is_inside=False)

    def start(self, initial: str = "", *, state: str = "existing", own: str = "", more: Sequence[str] = ()) -> None:
        """Start it, or start it again with what it was started with."""
        if self.is_running:
            return
        self.initial = initial or self.initial
        binary = find_etcd()
        assert binary is not None
        listen, peer = self.client_url, f"http://127.0.0.1:{self.peer}"
        command = [binary, "--name", self.name, "--data-dir", str(self.folder), "--unsafe-no-fsync=true"]
        command += ["--listen-client-urls", listen, "--advertise-client-urls", listen, "--listen-peer-urls", peer]
        command += ["--initial-advertise-peer-urls", own or self.outside_url]
        command += ["--initial-cluster", self.initial, "--initial-cluster-state", state]
        command += ["--initial-cluster-token", "migrating", "--log-level", "warn"]
        # A joining member gets a snapshot, as of a cluster that is not new.
        command += ["--snapshot-count", "20", "--snapshot-catchup-entries", "10"]
        command += more
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def wipe(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class ServerProcess:
    """One API server."""

    def __init__(self, token: str) -> None:
        self.port = free_port()
        self.ca = ""
        self._token = token
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, endpoints: Sequence[str], log: Path) -> None:
        command = [sys.executable, "-m", "tests.domains.garden.migration.served"]
        with log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                str(self.port),
                HOST,
                *endpoints,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd=ROOT,
            )
        assert self._process.stdin is not None
        self._process.stdin.write(f"{self._token}\n".encode())
        self._process.stdin.close()

    async def ready(self) -> None:
        """Return once it serves."""
        assert self._process is not None
        assert self._process.stdout is not None
        self.ca = (await self._process.stdout.readuntil(b"\0"))[:-1].decode()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self.is_running:
            assert self._process is not None
            self._process.send_signal(number)

    async def ended(self) -> None:
        if self._process is not None:
            await self._process.wait()


class SeedSite:
    """One site, and what its agent reports."""

    def __init__(self, name: str, folder: Path, names: Sequence[str], *, token: str, servers: int) -> None:
        self.name = name
        self.folder = folder
        self._token = token
        self._count = servers
        self.members = [MemberProcess(folder, one, name) for one in names]
        self.servers: list[ServerProcess] = []
        self.state = ServerState.STOPPED
        self.has_keys = self.has_extensions = self.has_controllers = self.has_snapshot = False
        self._starting: asyncio.Task[None] | None = None

    def start_servers(self) -> None:
        if self.state == ServerState.STARTING:
            return
        self.servers = [ServerProcess(self._token) for _ in range(self._count)]
        self.state = ServerState.STARTING
        self._starting = asyncio.create_task(self._start())

    async def _start(self) -> None:
        endpoints = [one.client_url for one in self.members if one.is_running]
        for number, server in enumerate(self.servers):
            # Each server prefers another member, as with one endpoint for each kube-apiserver.
            first = number % len(endpoints)
            await server.start([*endpoints[first:], *endpoints[:first]], self.folder / f"{self.name}-{number}.api.log")
        await asyncio.gather(*(server.ready() for server in self.servers))
        self.state = ServerState.READY

    def drain(self) -> None:
        for server in self.servers:
            server.end()
        self.state = ServerState.DRAINING

    async def stop_servers(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
        for server in self.servers:
            server.end()
        await asyncio.gather(*(server.ended() for server in self.servers))
        self.state = ServerState.STOPPED

    async def kill(self) -> None:
        for server in self.servers:
            server.end(signal.SIGKILL)
        await self.stop_servers()
        for member in self.members:
            member.kill()

    def report(self, connections: int, *, is_reachable: bool = True) -> SiteState:
        members = tuple(
            SiteMember(
                name=one.name,
                peer_url=one.outside_url,
                internal_url=one.inside_url,
                is_running=one.is_running,
                has_data=one.folder.exists(),
            )
            for one in self.members
        )
        return SiteState(
            members=members,
            servers=self.state,
            connections=connections,
            has_keys=self.has_keys,
            has_extensions=self.has_extensions,
            has_controllers=self.has_controllers,
            has_snapshot=self.has_snapshot,
            is_reachable=is_reachable,
        )
