"""The durable log of the SQLite store: one append-only table, a row for each revision.

Everything here blocks and runs on the store's one writer thread. Rows are written in batches and read once, when the
store starts and replays them. A row is needed while it is an object's present state or part of the history; `forget`
deletes the others.

**Durability.** `journal_mode=WAL` with `synchronous=FULL`: SQLite syncs the WAL before a commit returns, so
acknowledged writes survive a power failure; with NORMAL they would only survive a crash of the process
(sqlite.org/pragma.html#pragma_synchronous). `fullfsync` does the same on macOS, where fsync does not reach the disk.

**One statement per batch.** Each step of a statement releases the interpreter lock, and getting it back from a busy
event loop takes up to a switch interval. A batch is therefore a single INSERT in autocommit mode: one release, around
writing and syncing.

**After an error** it is unknown which pages reached the disk, and a second fsync may report success for pages that the
kernel has dropped. The connection is opened again, the WAL is emptied into the synced database file, so that nothing
new is written behind frames of unknown state, and rows above the last acknowledged revision are deleted.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import stat
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hortus.apiserver.store._lock import FileLock
from hortus.apiserver.store._reserve import Reserve
from hortus.apiserver.store.backend import StoreFailed

FORMAT = 1
_APPLICATION_ID = int.from_bytes(b"HRTS", "big")
BATCH_ROWS = 500
"""Most rows in one statement; 5 parameters each, below SQLite's 32,766 (SQLITE_MAX_VARIABLE_NUMBER since 3.32)."""

_VACUUM_PAGES = 256
_VACUUMS = 32
"""Pages moved within the file between two checkpoints, and repetitions, while the disk is full: 32 MiB."""

_PROBE_BYTES = 65536
"""Free bytes that are required before a disk that was full is used again."""

PUT, DELETE, DROP = 0, 1, 2

_SCHEMA = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID",
    "CREATE TABLE log (revision INTEGER PRIMARY KEY, kind INTEGER NOT NULL, bucket TEXT NOT NULL, name TEXT NOT NULL,"
    " value BLOB)",
    "INSERT INTO meta VALUES ('format', {format}), ('revision', 0), ('compacted', 0)",
    "PRAGMA application_id = {application}",
    "PRAGMA user_version = {format}",
)

_SETTINGS = (
    "synchronous = FULL",
    "fullfsync = ON",
    "checkpoint_fullfsync = ON",
    "wal_autocheckpoint = 2000",  # pages of 4 KiB; the writer thread does it, within a commit
)

Connect = Callable[[Path], sqlite3.Connection]


class LogRow(NamedTuple):
    revision: int
    kind: int
    """PUT: `value` is kept. DELETE: `value` is the object's final state or None. DROP: `bucket` is the prefix."""
    bucket: str
    name: str
    value: bytes | None


class Past(NamedTuple):
    revision: int
    compacted: int


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a file that exists; statements commit by themselves, one thread at a time may use it."""
    uri = f"file:{urllib.parse.quote(str(path))}?mode=rw"
    return sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, timeout=0.2, cached_statements=256
    )


class Log:
    def __init__(self, path: Path, *, connect: Connect = connect, must_exist: bool = False) -> None:
        """With `must_exist` a missing or empty file is refused: its content was lost."""
        self.path = path
        self._connect = connect
        self._must_exist = must_exist
        self._reserve = Reserve(path.with_name(path.name + ".reserve"))
        self._lock = FileLock(path.with_name(path.name + ".lock"))
        self._connection: sqlite3.Connection | None = None
        self._acknowledged = 0
        self.doubtful = False
        """True since a failed write: the content above the last acknowledged revision is unknown."""

    # Opening

    def open(self) -> Past:
        """Locks, creates or opens and checks the file; raises StoreFailed, which names the fix."""
        try:
            self._lock.acquire()
            self._create()
            connection = self._connection = self._configured()
            past = self._past(connection)
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise StoreFailed(f"cannot open the state in {self.path}: {error}; {self._advice(error)}") from error
        except StoreFailed:
            self.close()
            raise
        self._acknowledged = past.revision
        with contextlib.suppress(OSError):
            self._reserve.take()
        return past

    @property
    def tight(self) -> bool:
        """True when the disk was full and the reserve is in use: only deletions are written."""
        return not self._reserve.held

    def rows(self) -> Iterator[LogRow]:
        """Every row, in order of revision; raises StoreFailed when the file is damaged."""
        try:
            yield from map(LogRow._make, self._open_connection().execute("SELECT * FROM log ORDER BY revision"))
        except sqlite3.Error as error:
            raise StoreFailed(f"cannot read the state in {self.path}: {error}; {self._advice(error)}") from error

    def _create(self) -> None:
        """Makes the file with mode 0600 before SQLite writes to it; its WAL inherits the mode."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = not self.path.exists()
        if new or not self.path.stat().st_size:
            self._refuse_lost()
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077:
                os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
        if new:
            _sync_folder(self.path.parent)

    def _refuse_lost(self) -> None:
        """Refuses a WAL without its database, and an empty file that held objects before: both mean lost content."""
        wal = self.path.with_name(self.path.name + "-wal")
        if self._must_exist or (wal.exists() and wal.stat().st_size):
            raise StoreFailed(
                f"the state in {self.path} is lost: the file is {'empty' if self.path.exists() else 'missing'}, and it "
                f"held objects before. Restore {self.path.parent} from a backup; to start with nothing and new keys, "
                "move it away or choose another state directory"
            )

    def _configured(self) -> sqlite3.Connection:
        connection = self._connect(self.path)
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            new = self._check_format(connection)
            if new:  # on an existing file it would be a write, for which a full disk has no space
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
                raise StoreFailed(f"the file system of {self.path} does not allow SQLite's WAL: use a local disk")
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
            if new:
                with _transaction(connection):
                    for statement in _SCHEMA:
                        connection.execute(statement.format(format=FORMAT, application=_APPLICATION_ID))
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_format(self, connection: sqlite3.Connection) -> bool:
        """Reports whether the file is new; raises StoreFailed when it has another format."""
        version, application = (_pragma(connection, name) for name in ("user_version", "application_id"))
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if version == 0 and application == 0 and tables == 0:
            if self._acknowledged:
                raise sqlite3.OperationalError("the state file is empty; it held objects before")
            self._refuse_lost()
            return True
        if application != _APPLICATION_ID:
            raise StoreFailed(f"{self.path} is a database of another program: use another state directory")
        if version != FORMAT:
            raise StoreFailed(
                f"the state in {self.path} is of version {version}; this Hortus reads version {FORMAT}:"
                f" run the Hortus that wrote it, move {self.path.parent} away, or use another state directory"
            )
        return False

    def _past(self, connection: sqlite3.Connection) -> Past:
        meta = dict(connection.execute("SELECT key, value FROM meta"))
        (last,) = connection.execute("SELECT max(revision) FROM log").fetchone()
        return Past(max(meta["revision"], last or 0), meta["compacted"])

    # Writing

    def append(self, rows: Sequence[LogRow]) -> None:
        """Makes the rows durable, all or none; raises sqlite3.Error or OSError."""
        try:
            self._append(rows)
        except (sqlite3.Error, OSError) as error:
            if self.tight or not self._reserve.is_full(error):
                raise
            self._reserve.release()
            if any(row.kind == PUT for row in rows):
                raise
            self._append(rows)

    def _append(self, rows: Sequence[LogRow]) -> None:
        connection = self._sound()
        with self._doubting():
            connection.execute(_insert(len(rows)), [column for row in rows for column in row])
        self._acknowledged = rows[-1].revision

    def make_room(self) -> None:
        """Returns the space of deleted rows to the disk, some of it at a time; raises sqlite3.Error or OSError."""
        connection = self._sound()
        with self._doubting():
            for _ in range(_VACUUMS):
                if not _pragma(connection, "freelist_count"):
                    break
                _vacuum(connection)
                _checkpoint(connection)

    def relax(self) -> None:
        """Takes the reserve again, after which all writes are accepted; raises OSError while the disk is full."""
        self._reserve.take()

    def forget(self, revisions: Sequence[int], past: Past) -> None:
        """Deletes rows that are neither present nor history, and records that history begins at `past.compacted`."""
        connection = self._sound()
        with self._doubting(), _transaction(connection):
            for start in range(0, len(revisions), BATCH_ROWS):
                chunk = revisions[start : start + BATCH_ROWS]
                connection.execute(_delete(len(chunk)), chunk)
            connection.execute("UPDATE meta SET value = max(value, ?) WHERE key = 'revision'", (past.revision,))
            connection.execute("UPDATE meta SET value = max(value, ?) WHERE key = 'compacted'", (past.compacted,))
        with self._doubting():
            _vacuum(connection)

    def probe(self) -> None:
        """Tests the disk by a write; raises sqlite3.Error or OSError."""
        self.doubtful = True  # a connection from before cannot be trusted after a full disk
        connection = self._sound()
        with self._doubting():
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('probe', zeroblob(?))", (_PROBE_BYTES,))
            connection.execute("DELETE FROM meta WHERE key = 'probe'")

    def close(self) -> None:
        """Empties the WAL into the database and releases the file. Acknowledged writes are safe either way."""
        with contextlib.suppress(sqlite3.Error):
            if self._connection is not None:
                self._connection.close()
                self._reserve.release()
        self._connection = None
        self._lock.release()

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise sqlite3.OperationalError("the state file is not open")
        return self._connection

    @contextlib.contextmanager
    def _doubting(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.doubtful = True
            raise

    def _sound(self) -> sqlite3.Connection:
        """The connection; after an error a new one, to a file whose content is known."""
        if not self.doubtful:
            return self._open_connection()
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
        connection = self._configured()
        try:
            _checkpoint(connection)
            connection.execute("DELETE FROM log WHERE revision > ?", (self._acknowledged,))
        except BaseException:
            connection.close()
            raise
        self._connection, self.doubtful = connection, False
        return connection

    def _advice(self, error: Exception) -> str:
        text = str(error)
        if "locked" in text:
            return "another program has it open: close that, or use another state directory"
        if "malformed" in text or "not a database" in text:
            return f"it is damaged: restore {self.path.parent} from a backup, or move it away to start from scratch"
        return "check that the disk has space and that you may write there"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _vacuum(connection: sqlite3.Connection) -> None:
    # As a script: the statement frees one page a step, and `execute` makes one step of a statement without columns.
    connection.executescript(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})")


def _checkpoint(connection: sqlite3.Connection) -> None:
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise sqlite3.OperationalError("the WAL could not be emptied into the database")


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


@functools.lru_cache(maxsize=BATCH_ROWS)
def _insert(rows: int) -> str:
    return "INSERT INTO log VALUES {}".format(",".join(["(?,?,?,?,?)"] * rows))  # noqa: S608 (marks only)


@functools.lru_cache(maxsize=BATCH_ROWS)
def _delete(rows: int) -> str:
    return "DELETE FROM log WHERE revision IN ({})".format(",".join("?" * rows))  # noqa: S608 (marks only)
