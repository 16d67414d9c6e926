"""The state directory: one holder at a time, and what the others are told."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from hortus.cli.up import state as module
from hortus.cli.up.session import PortTaken, free_port
from hortus.cli.up.state import Run, StateDirectory, StateError, default_directory, write_private
from hortus.cli.up.status import UNHEALTHY, look


@pytest.fixture
def held(tmp_path: Path) -> StateDirectory:
    directory = StateDirectory(tmp_path / "state")
    directory.acquire()
    return directory


def test_only_one_holds_it(held: StateDirectory) -> None:
    other = StateDirectory(held.path)
    assert other.held_elsewhere()
    assert other.holder() == os.getpid()
    with pytest.raises(
        StateError, match=f"already runs on {held.path}.*stop it with `hortus down --state-dir {held.path}`"
    ):
        other.acquire()
    held.release()
    assert not other.held_elsewhere()
    other.acquire()
    other.release()


def test_its_end_is_waited_for_as_long_as_one_likes(held: StateDirectory) -> None:
    other = StateDirectory(held.path)
    assert not other.wait_until_free(0.01)
    held.release()
    assert other.wait_until_free(60)
    assert StateDirectory(held.path / "nobody-was-here").wait_until_free(0)


def test_a_recorded_process_is_named_only_while_it_is_the_holder(held: StateDirectory) -> None:
    stale = Run(pid=1, server="https://127.0.0.1:1", version="0", started="2026-01-01T00:00:00Z")
    held.write_run(stale)
    with pytest.raises(StateError) as refused:
        StateDirectory(held.path).acquire()
    assert "https://127.0.0.1:1" not in str(refused.value)
    held.release()


def test_children_of_a_holder_that_was_killed_are_waited_for(
    held: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert held.lock is not None
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[held.lock]) as orphan:
        with subprocess.Popen(["true"]) as ended:
            pass
        (held.path / "lock").write_text(str(ended.pid))
        run = Run(pid=ended.pid, server="", version="0", started="2026-01-01T00:00:00Z", processes={"cat": orphan.pid})
        held.write_run(run)
        held.release()
        monkeypatch.setattr(module, "ORPHANS_END", 0.05)
        with pytest.raises(StateError, match=f"a Hortus that was killed still hold .*process ids {orphan.pid}"):
            StateDirectory(held.path).acquire()
        monkeypatch.undo()
        assert orphan.stdin is not None
        orphan.stdin.close()
        StateDirectory(held.path).acquire()


def test_what_has_just_begun_is_running_and_not_healthy(held: StateDirectory) -> None:
    found = look(StateDirectory(held.path))
    assert (found.running, found.healthy, found.exit_code) == (True, False, UNHEALTHY)
    assert "just starting" in found.problem
    held.release()


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=r"cannot use .*/file/state as state directory: Not a directory"):
        StateDirectory(tmp_path / "file" / "state").acquire()


def test_files_are_private_from_their_first_byte(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        write_private(tmp_path / "secret", b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [tmp_path / "secret"]


@pytest.mark.parametrize(("given", "found"), [("/x/y", "/x/y/hortus"), ("", "/home/me/.local/state/hortus")])
def test_the_default_is_where_the_xdg_specification_says(
    monkeypatch: pytest.MonkeyPatch, given: str, found: str
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_STATE_HOME", given)
    assert str(default_directory()) == found


def test_a_port_is_kept_where_it_can_be() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} on 127"):
            free_port(port)
        assert free_port(0, before=port) not in (0, port)
    assert free_port(0, before=port) == port
    assert free_port(port) == port
