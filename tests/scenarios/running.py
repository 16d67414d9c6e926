"""`hortus up` as people run it: a process of its own, seen through its output, its files and kubectl.

Commands are typed in the process of the test, unless their own process is what a test is about.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import orjson
from click.testing import CliRunner

from hortus.cli.shell import app
from hortus.cli.up.state import StateDirectory
from hortus.cli.up.status import Status, look
from hortus.kube import yaml

PATIENCE = 120.0
"""Seconds after which whatever was waited for fails the test."""
_PAUSE = 0.02
"""Seconds between two looks at other processes, which need the machine themselves."""
UP = "Ctrl-C stops it"


def environment(**more: str) -> dict[str, str]:
    """This process's, without what would point commands at another cluster, or make a part of another."""
    ours = ("KUBECONFIG", "GARDEN_KUBECONFIG", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return {**kept, "TERM": "dumb", **more}


def typed(*words: str, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """One command of ours, to its end, in this process: the start of an interpreter costs more than most commands.

    A coroutine calls it in a thread, and alone: output, environment and working folder are those of the process.
    """
    wanted = environment(**more)
    changes = {name: wanted.get(name) for name in {*os.environ, *wanted} if os.environ.get(name) != wanted.get(name)}
    with chdir(cwd or Path.cwd()):
        done = CliRunner(env=changes).invoke(app, words, prog_name="hortus")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(["hortus", *words], done.exit_code, done.stdout, done.stderr)


def hortus(*words: str, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """One command of ours, to its end, as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "hortus", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment(**more),
        cwd=cwd,
    )


def kubectl(kubeconfig: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["kubectl", "--kubeconfig", str(kubeconfig), *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        input=stdin,
        env=environment(KUBECACHEDIR=str(kubeconfig.parent / "kubectl-cache")),
    )


def until(answer: Callable[[], Any], what: str) -> Any:
    """The first true answer; for what happens in other processes and cannot be awaited."""
    end = time.monotonic() + PATIENCE
    while not (found := answer()):
        assert time.monotonic() < end, f"waited {PATIENCE:.0f} s in vain for: {what}"
        time.sleep(_PAUSE)
    return found


class Up:
    """One running `hortus up`."""

    def __init__(self, state: Path, process: subprocess.Popen[str]) -> None:
        self.state = state
        self.process = process
        self.kubeconfig = state / "kubeconfig"
        self.garden = state / "garden.kubeconfig"
        self.output = ""
        self._grown = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._grown:
                self.output += line
                self._grown.notify_all()
        with self._grown:
            self._grown.notify_all()

    def expect(self, text: str, *, times: int = 1) -> str:
        """Wait until `text` was printed that often; returns the output so far."""
        with self._grown:
            found = self._grown.wait_for(
                lambda: self.output.count(text) >= times or not self._reader.is_alive(), PATIENCE
            )
            assert found and self.output.count(text) >= times, f"no {text!r} in:\n{self.output}"
            return self.output

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal to the supervisor and wait for its end; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def processes(self) -> dict[str, int]:
        """The children's process ids, as `hortus status` reports them."""
        found: dict[str, int] = orjson.loads((self.state / "run.json").read_bytes())["processes"]
        return found

    def status(self) -> Status:
        """The output of `hortus status`, without a process for it."""
        return look(StateDirectory(self.state))


@contextmanager
def up(state: Path, *words: str, config: Any = None) -> Iterator[Up]:
    """Start it and wait until it says that it is up; ends it afterwards."""
    started = start(state, *words, config=config)
    try:
        started.expect(UP)
        yield started
    finally:
        started.end()
        assert started.process.stdout is not None
        started.process.stdout.close()


def start(state: Path, *words: str, config: Any = None) -> Up:
    command: Sequence[str] = ("up", "--state-dir", str(state), "--port", "0", *words)
    if config is not None:
        path = state.with_suffix(".yaml")
        path.write_bytes(yaml.dump(config).encode())
        command = (*command, "--config", str(path))
    process = subprocess.Popen(
        [sys.executable, "-m", "hortus", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
    )
    return Up(state, process)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
