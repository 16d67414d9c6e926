"""The state directory of `hortus up`: what lies where, who runs on it, and of which version it is.

kubeconfig            the management cluster, for people and tools, who may add contexts (0600)
controllers.kubeconfig  the management cluster, for the controllers (0600)
controllers.json      the flags of the controllers (0600)
garden.kubeconfig     the simulated garden (0600)
seed.kubeconfig       the simulated seed, where extensions of Gardener work (0600)
registry.json         the OCI registry, with the password of who may push (0600)
registry/             its content
clouds.yaml           the OpenStack cloud, with the password of its user (0600)
modules/              layers of modules that the controllers have fetched
state.db              every object (SQLite, written by the API server process alone)
format                the version of this layout; below it `state.db`, once that file has been made
dashboard.name        the name by which browsers of this machine reach the dashboard (0600)
dashboard.sock        gives the browser of `hortus ui` a ticket for the dashboard
run.json              who runs on it, or did last: process ids and addresses
logs/                 one file a process, JSON lines
lock                  held while somebody runs on it, whose process id is in it
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from shlex import quote

import msgspec

from hortus.cli.up.ownership import Unsafe, check_file, check_folder
from hortus.domains import REGISTRY_FILE, SEED_FILE

FLAGS_FILE = "controllers.json"
FORMAT = 1
"""Version of the layout above. Raised when an older Hortus could not read what a newer one wrote."""

ORPHANS_END = 15.0
"""Seconds to wait for children of a supervisor that was killed. Each ends by itself within `process.ORPHAN_GRACE` after
it has noticed, for which one that is loading first imports the rest of its modules."""


class StateError(Exception):
    """The state directory cannot be used; the message says why and what helps."""


class RunFile(msgspec.Struct):
    """The content of `run.json`."""

    pid: int
    """The supervisor's process id."""
    server: str
    """Base URL of the API server."""
    version: str
    started: str
    """RFC 3339."""
    ephemeral: bool = False
    dashboard: str = ""
    """Base URL of the dashboard for programs; browsers are given another by `hortus ui`."""
    parts: list[str] = []
    """Names of the processes that belong to this run."""
    processes: dict[str, int] = {}
    """The parts that run, with their process ids."""


def default_directory() -> Path:
    """`$XDG_STATE_HOME/hortus`, else `~/.local/state/hortus` (XDG Base Directory Specification 0.8)."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "hortus"


def cache_directory() -> Path:
    """`$XDG_CACHE_HOME/hortus`, else `~/.cache/hortus` (XDG Base Directory Specification 0.8)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "hortus"


def command_for(name: str, directory: Path) -> str:
    """`hortus NAME` as a person types it for the fleet of this directory."""
    where = "" if directory == default_directory() else f" --state-dir {quote(str(directory))}"
    return f"hortus {name}{where}"


class StateDirectory:
    """One state directory. Only the holder of `lock` writes in it."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.kubeconfig = self.path / "kubeconfig"
        self.controllers_kubeconfig = self.path / "controllers.kubeconfig"
        self.controllers_flags = self.path / FLAGS_FILE
        self.garden_kubeconfig = self.path / "garden.kubeconfig"
        self.seed_kubeconfig = self.path / SEED_FILE
        self.simulation_kubeconfig = self.path / "simulation.kubeconfig"
        self.token = self.path / "simulation.token"
        self.database = self.path / "state.db"
        self.logs = self.path / "logs"
        self._format = self.path / "format"
        self._run = self.path / "run.json"
        self._lock_path = self.path / "lock"
        self._lock: int | None = None

    def acquire(self) -> None:
        """Make the directory, see that it is ours, take its lock and check its format. Raises StateError."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.check_owner()
            self.logs.mkdir(mode=0o700, exist_ok=True)
            self._take_lock()
            self._check_format()
        except (OSError, StateError) as error:
            self.release()
            if isinstance(error, StateError):
                raise
            raise StateError(
                f"cannot use {self.path} as state directory: {error.strerror}. Choose another with --state-dir DIR."
            ) from None

    def check_owner(self) -> None:
        """See that nobody else can have written what lies here. Raises StateError.

        A user who could put a token, a kubeconfig or a key here would be administrator of everything made from it.
        """
        if not self.path.exists():
            return
        try:
            check_folder(self.path)
            own = (self.controllers_kubeconfig, self.simulation_kubeconfig, self.token, self.path / REGISTRY_FILE)
            secrets = {self.kubeconfig, self.garden_kubeconfig, self.seed_kubeconfig, *own}
            for path in sorted(self.path.iterdir()):
                with suppress(FileNotFoundError):  # files are replaced while somebody runs here
                    check_file(path, secret=path in secrets)
        except Unsafe as unsafe:
            raise StateError(f"{unsafe}. Or choose another directory with --state-dir DIR.") from None

    def _take_lock(self) -> None:
        descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            self._wait_for(descriptor)
        except StateError:
            os.close(descriptor)
            raise
        self._lock = descriptor
        # Written over, not cut first: on a full disk the block that the file has would be gone.
        os.ftruncate(descriptor, os.pwrite(descriptor, str(os.getpid()).encode(), 0))

    def _wait_for(self, descriptor: int) -> None:
        """Lock `descriptor`, once the children of a supervisor that was killed have ended."""
        patience = time.monotonic() + ORPHANS_END
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                run, holder = self.run(), self.holder()
            if holder is None or is_alive(holder):
                who = f" (process {holder}, {run.server})" if run and run.pid == holder else ""
                where = "" if self.path == default_directory() else f" --state-dir {self.path}"
                raise StateError(
                    f"Hortus already runs on {self.path}{who}. See it with `hortus status{where}`, stop it "
                    f"with `hortus down{where}`, or start another with --state-dir DIR --port PORT."
                )
            if time.monotonic() > patience:
                processes = ", ".join(str(pid) for pid in run.processes.values()) if run else "unknown"
                raise StateError(
                    f"processes of a Hortus that was killed still hold {self.path} (process ids {processes}). "
                    "End them, or choose another directory with --state-dir DIR."
                )
            # Not waited for by the lock itself: another `up` may be first, and then its process is to be named at once.
            time.sleep(0.02)

    @property
    def lock(self) -> int | None:
        """The descriptor of the lock while we hold it. Children inherit it: the directory is free when all ended."""
        return self._lock

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def held_elsewhere(self) -> bool:
        """Returns true while another process has the lock."""
        try:
            descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            # Shared: commands that ask at the same moment do not take each other for the holder.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def wait_until_free(self, seconds: float) -> bool:
        """Return when nobody holds the lock any more; False when somebody still does after so many seconds."""
        try:
            descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return True
        free = threading.Event()

        def wait() -> None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH)
            finally:
                os.close(descriptor)
            free.set()

        # flock knows no time limit; a thread that is left waiting ends with the process.
        threading.Thread(target=wait, name="lock", daemon=True).start()
        return free.wait(seconds)

    def holder(self) -> int | None:
        """The process that holds the lock, or held it last."""
        with suppress(OSError, ValueError):
            return int(self._lock_path.read_text())
        return None

    def run(self) -> RunFile | None:
        """The record of the present or last holder; None if it is missing or unreadable."""
        with suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
            return msgspec.json.decode(self._run.read_bytes(), type=RunFile)
        return None

    def write_run(self, run: RunFile) -> None:
        write_private(self._run, msgspec.json.format(msgspec.json.encode(run)))

    def holds_database(self) -> bool:
        """True when objects have been kept in `state.db`, which must then be there."""
        return self.database.name in self._format_lines()

    def note_database(self) -> None:
        """Remember that `state.db` holds objects from now on."""
        if not self.holds_database():
            write_private(self._format, f"{FORMAT}\n{self.database.name}\n".encode())

    def _format_lines(self) -> list[str]:
        return self._format.read_text(errors="replace").split() if self._format.exists() else []

    def _check_format(self) -> None:
        if not self._format.exists():
            if self.database.exists():
                raise StateError(
                    f"{self.path} holds a database but no format file, so its version is unknown. "
                    "Move the directory away, or choose another with --state-dir DIR."
                )
            write_private(self._format, f"{FORMAT}\n".encode())
            return
        found = "".join(self._format_lines()[:1])
        if found != str(FORMAT):
            raise StateError(
                f"the state in {self.path} is of format {found!r}, this Hortus reads format {FORMAT}. "
                "Run the version that wrote it, move the directory away, or choose another with --state-dir DIR."
            )


def stopped(folder: Path) -> str:
    """The remark that a fleet whose state directory this is does not run, with the fix; empty for all other folders."""
    state = StateDirectory(folder)
    if state.run() is None or state.held_elsewhere():
        return ""
    return f"the fleet in {state.path} is stopped: start it with `{command_for('up', state.path)}`"


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def write_private(path: Path, content: bytes) -> None:
    """Replaces `path` atomically by a file with `content` that only its owner reads. An equal file is kept."""
    with suppress(OSError):
        if path.read_bytes() == content and not path.stat().st_mode & 0o077:
            return
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


__all__ = [
    "FORMAT",
    "RunFile",
    "StateDirectory",
    "StateError",
    "default_directory",
    "is_alive",
    "stopped",
    "write_private",
]


def metrics_socket(state: StateDirectory, replica: int) -> Path:
    """The socket with the metrics of a replica, counted from 0. It has the name of the replica's process."""
    return state.path / (f"controllers-{replica + 1}.sock" if replica else "controllers.sock")
