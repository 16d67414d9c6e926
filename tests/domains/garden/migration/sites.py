"""The two sites of a real migration: etcd members, keys in files, and API servers as processes."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from tests.apiserver.store.etcdserver import find_etcd, free_port
from tests.domains.garden.migration.forwarding import Links
from tests.domains.garden.migration.router import HOST

from hortus.gardener.livemigration import ServerState, SiteMember, SiteState

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


class ServerEnded(Exception):
    """An API server ended before it was ready, as it does where etcd does not answer."""


class ServerProcess:
    """One API server of ours. Its authority and the keys of ServiceAccounts are in etcd, a user's token in a file."""

    def __init__(self, keys: Path) -> None:
        """`keys` is the folder with the keys of its site."""
        self.port = free_port()
        self.ca = ""
        self.keys = keys
        self._process: asyncio.subprocess.Process | None = None

    @staticmethod
    def write_keys(keys: Path, token: str) -> None:
        """Write the keys of a new control plane, whose administrator has this token."""
        write_key(keys / "token", token.encode())

    async def start(self, endpoints: Sequence[str], log: Path) -> None:
        with log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self.command(endpoints),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd=ROOT,
            )
        assert self._process.stdin is not None
        self._process.stdin.write(self.secret())
        self._process.stdin.close()

    def command(self, endpoints: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "tests.domains.garden.migration.served", str(self.port), HOST, *endpoints]

    def secret(self) -> bytes:
        """The content of its standard input."""
        return (self.keys / "token").read_bytes() + b"\n"

    async def ready(self) -> None:
        """Return once it serves. Raises ServerEnded."""
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            self.ca = (await self._process.stdout.readuntil(b"\0"))[:-1].decode()
        except asyncio.IncompleteReadError:
            raise ServerEnded from None

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


def write_key(path: Path, content: bytes) -> None:
    """Write a key all at once, for no one else to read."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    # Outside of the folder: half a key is no key of the site.
    unfinished = path.parent.with_suffix(".new")
    unfinished.touch(0o600)
    unfinished.write_bytes(content)
    unfinished.replace(path)


class SeedSite:
    """One site, and what its agent reports."""

    def __init__(
        self, name: str, folder: Path, names: Sequence[str], *, kind: type[ServerProcess], servers: int
    ) -> None:
        self.name = name
        self.folder = folder
        self.keys = folder / f"{name}-keys"
        self._kind = kind
        self._count = servers
        self.members = [MemberProcess(folder, one, name) for one in names]
        self.servers: list[ServerProcess] = []
        self.state = ServerState.STOPPED
        self.has_extensions = self.has_snapshot = False
        self.restarts = 0
        """Starts of API servers that ended before they were ready."""
        self._starting: asyncio.Task[None] | None = None

    def start_servers(self) -> None:
        if self.state == ServerState.STARTING:
            return
        self.servers = [self._kind(self.keys) for _ in range(self._count)]
        self.state = ServerState.STARTING
        self._starting = asyncio.create_task(self._start())

    async def _start(self) -> None:
        await asyncio.gather(*(self._started(number) for number in range(self._count)))
        self.state = ServerState.READY

    async def _started(self, number: int) -> None:
        """Return once a server serves; one that ends is started again, as a kubelet does."""
        server = self.servers[number]
        endpoints = [one.client_url for one in self.members if one.is_running]
        # Each server prefers another member, as with one endpoint for each kube-apiserver.
        first = number % len(endpoints)
        while True:
            await server.start([*endpoints[first:], *endpoints[:first]], self.folder / f"{self.name}-{number}.api.log")
            try:
                return await server.ready()
            except ServerEnded:
                await server.ended()
                self.restarts += 1

    def copy_keys(self, source: SeedSite) -> None:
        """Copy each key that is not here yet."""
        for key in source.keys.iterdir():
            if not (self.keys / key.name).exists():
                write_key(self.keys / key.name, key.read_bytes())

    def remove_keys(self) -> None:
        shutil.rmtree(self.keys)

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

    def report(self, connections: int, *, has_controllers: bool, is_reachable: bool = True) -> SiteState:
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
            keys={one.name: sha256(one.read_bytes()).hexdigest() for one in self.keys.glob("*")},
            has_extensions=self.has_extensions,
            has_controllers=has_controllers,
            has_snapshot=self.has_snapshot,
            is_reachable=is_reachable,
        )
