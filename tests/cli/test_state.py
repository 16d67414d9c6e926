"""The state directory: one holder at a time, and the error that others get."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from tests.apiserver.store.etcdserver import free_port as lasting_port

from hortus.cli.shell import app
from hortus.cli.up import state as module
from hortus.cli.up.server import with_others
from hortus.cli.up.session import PortTaken, free_port
from hortus.cli.up.state import RunFile, StateDirectory, StateError, default_directory, write_private
from hortus.cli.up.status import UNHEALTHY, look
from hortus.kube import Secret, yaml
from hortus.kube.kubeconfig import document, merge_into


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
    stale = RunFile(pid=1, server="https://127.0.0.1:1", version="0", started="2026-01-01T00:00:00Z")
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
        run = RunFile(
            pid=ended.pid, server="", version="0", started="2026-01-01T00:00:00Z", processes={"cat": orphan.pid}
        )
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
        port = lasting_port()
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with pytest.raises(PortTaken, match=f"port {port} on 127"):
            free_port(port)
        assert free_port(0, before=port) not in (0, port)
    assert free_port(0, before=port) == port
    assert free_port(port) == port


def test_a_port_that_cannot_be_had_for_another_reason_is_not_called_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(PortTaken, match=r"cannot listen on 127\.0\.0\.1:6443: Cannot assign requested address"):
        free_port(6443)


def test_a_disk_full_before_the_start_is_reported_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    directory = StateDirectory(tmp_path / "state")
    with pytest.raises(StateError, match="No space left on device"):
        directory.acquire()
    assert not directory.held_elsewhere()
    assert not [path for path in directory.path.iterdir() if path.name.startswith(".")]


def test_only_what_belongs_to_a_run_is_missed(held: StateDirectory) -> None:
    run = RunFile(pid=os.getpid(), server="https://127.0.0.1:1", version="0", started="2026-01-01T00:00:00Z")
    alone = msgspec.structs.replace(run, parts=["apiserver"], processes={"apiserver": os.getpid()})
    held.write_run(alone)
    assert "not up yet" not in look(held).problem
    held.write_run(msgspec.structs.replace(alone, parts=["apiserver", "controllers", "controllers-2"]))
    assert look(held).problem == "not up yet: controllers, controllers-2"
    held.release()


def test_a_database_is_missed_once_it_was_there(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path / "state")
    directory.acquire()
    assert not directory.holds_database()
    directory.note_database()
    directory.release()
    again = StateDirectory(tmp_path / "state")
    again.acquire()
    assert again.holds_database()
    again.release()


OTHER = 12345
"""A user that is neither root nor the one who runs the tests."""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away; the modes are tested for everybody")
@pytest.mark.parametrize("name", ["", "..", "simulation.token", "kubeconfig", "format", "lock", "state.db", "logs"])
def test_what_belongs_to_somebody_else_is_refused(tmp_path: Path, name: str) -> None:
    directory = StateDirectory(tmp_path / "above" / "state")
    directory.path.mkdir(parents=True, mode=0o700)
    planted = directory.path / name
    if not planted.exists():
        planted.touch(0o600)
    os.chown(planted, OTHER, OTHER)
    with pytest.raises(StateError, match=f"belongs to user {OTHER}"):
        directory.acquire()
    assert CliRunner().invoke(app, ["status", "--state-dir", str(directory.path)]).exit_code == 1


@pytest.mark.parametrize(
    ("name", "mode", "advice"),
    [
        ("", 0o777, "chmod go-w"),
        ("..", 0o777, "chmod go-w"),
        ("simulation.token", 0o644, "chmod go="),
        ("kubeconfig", 0o640, "chmod go="),
        ("state.db", 0o606, "chmod go-w"),
        ("format", 0o602, "chmod go-w"),
        ("logs", 0o707, "chmod go-w"),
    ],
)
def test_what_is_open_to_others_is_refused_with_what_to_do(tmp_path: Path, name: str, mode: int, advice: str) -> None:
    directory = StateDirectory(tmp_path / "above" / "state")
    directory.acquire()
    directory.release()
    planted = directory.path / name
    if not planted.exists():
        planted.touch()
    planted.chmod(mode)
    with pytest.raises(StateError, match=f"{advice} "):
        directory.acquire()


def test_what_is_no_file_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path / "state")
    directory.acquire()
    directory.release()
    (directory.path / "lock").unlink()
    os.mkfifo(directory.path / "lock", 0o600)
    with pytest.raises(StateError, match="is neither a file nor a folder"):
        directory.acquire()


def test_a_folder_of_ones_own_that_others_may_read_and_a_sticky_one_above_are_taken(tmp_path: Path) -> None:
    (tmp_path / "above").mkdir()
    (tmp_path / "above").chmod(0o1777)
    directory = StateDirectory(tmp_path / "above" / "state")
    directory.path.mkdir(mode=0o755)
    directory.acquire()
    assert (directory.path / "lock").stat().st_mode & 0o777 == 0o600
    directory.release()


def test_contexts_that_people_add_to_the_fleets_kubeconfig_outlive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    first = document("hortus", "https://127.0.0.1:1", token=Secret("old"))
    assert with_others(path, first) == first
    write_private(path, yaml.dump(first).encode())
    merge_into(path, document("mine", "https://example.org"), use=True)
    renewed = with_others(path, document("hortus", "https://127.0.0.1:2", token=Secret("new")))
    assert renewed["current-context"] == "mine"
    assert [part["name"] for part in renewed["contexts"]] == ["hortus", "mine"]
    assert renewed["users"][0] == {"name": "hortus", "user": {"token": "new"}}
    path.write_text("a: [")
    assert with_others(path, first) == first
