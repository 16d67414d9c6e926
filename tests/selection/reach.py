"""The lines of the product that each test reaches, in its own process and in those it starts. Needs Python 3.12.

`sys.monitoring` reports a line once and then no more, until `restart_events`: a test costs little more than without.
A process that runs this file (`enable` has every interpreter of an environment do so at its start) appends the lines it
reaches to a file of its own, at once, so that kill -9 loses none. The process of the tests reads these files after each
test. A line that a long-lived process reaches again for a later test is not seen again; it counts for the first alone.

Standard library only: it runs before anything else is loaded.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from types import CodeType

_PRODUCT = "/src/hortus/"
_FOLDER = "HORTUS_TEST_REACH"
"""The environment variable with the folder of one worker's files."""
_COPY = "hortus_test_reach"


def enable() -> None:
    """Each interpreter of this virtual environment runs a copy of this file at its start from now on."""
    packages = Path(sysconfig.get_path("purelib"))
    (packages / f"{_COPY}.py").write_text(Path(__file__).read_text())
    (packages / f"{_COPY}.pth").write_text(f"import os; {_FOLDER!r} in os.environ and __import__({_COPY!r})\n")


class Monitor:
    """Collects lines as `path:number`, the path below src/hortus."""

    def __init__(self) -> None:
        self.lines: set[str] = set()
        self._file = -1
        monitoring = sys.monitoring
        self._tool = monitoring.COVERAGE_ID
        monitoring.use_tool_id(self._tool, "hortus-test-reach")
        monitoring.register_callback(self._tool, monitoring.events.PY_START, self._start)
        monitoring.register_callback(self._tool, monitoring.events.LINE, self._line)
        monitoring.set_events(self._tool, monitoring.events.PY_START)

    def into(self, folder: str) -> None:
        """Append each line to a file in `folder` from now on, in this process and in its forks."""
        self._folder = folder
        self._open()
        os.register_at_fork(after_in_child=self._open)

    def restart(self) -> set[str]:
        """Returns the lines since the last call, and sees all lines again from now on."""
        found, self.lines = self.lines, set()
        sys.monitoring.restart_events()
        return found

    def _open(self) -> None:
        name = Path(self._folder, str(os.getpid()))
        self._file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _start(self, code: CodeType, _offset: int) -> object:
        if _PRODUCT in code.co_filename:
            sys.monitoring.set_local_events(self._tool, code, sys.monitoring.events.LINE)
        return sys.monitoring.DISABLE

    def _line(self, code: CodeType, number: int) -> object:
        line = f"{code.co_filename.rpartition(_PRODUCT)[2]}:{number}"
        if self._file >= 0:
            os.write(self._file, f"{line}\n".encode())
        else:
            self.lines.add(line)
        return sys.monitoring.DISABLE


class Reach:
    """The lines of one worker's processes."""

    @staticmethod
    def is_possible() -> bool:
        return sys.version_info >= (3, 12)

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        os.environ[_FOLDER] = str(folder)
        self._folder = folder
        self._read: dict[str, int] = {}
        self._monitor = Monitor()

    def since_last(self) -> set[str]:
        """Returns the lines that were reached since the last call, here and in other processes of this worker."""
        found = self._monitor.restart()
        for path in list(self._folder.iterdir()):
            with path.open("rb") as file:
                file.seek(self._read.get(path.name, 0))
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read[path.name] = self._read.get(path.name, 0) + len(whole)
            found.update(whole.decode().split())
            if not Path(f"/proc/{path.name}").exists():
                path.unlink()
                del self._read[path.name]
        return found


if __name__ == _COPY and sys.version_info >= (3, 12):
    Monitor().into(os.environ[_FOLDER])
