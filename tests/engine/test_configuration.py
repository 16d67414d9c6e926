"""Values of flags from a command line, an environment and a file, and what of it a running process takes over."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from hortus.engine.configuration import FlagValues
from hortus.engine.files import FileWatch
from hortus.engine.flags import Flag, FlagError, FlagSet
from hortus.engine.hostflags import CONFIG
from hortus.engine.reloading import Reloader
from hortus.testing import FakeClock

FLAGS = FlagSet(
    (
        CONFIG,
        Flag("workers", "int", 25, "Workers."),
        Flag("qps", "int", 5, "Calls a second.", reloadable=True),
        Flag("ratio", "float", 0.5, "Share.", reloadable=True),
        Flag("period", "duration", 60.0, "Period."),
        Flag("leader-elect", "bool", False, "Elect."),
        Flag("watch-namespace", "string", "kcp-system", "Namespace."),
    )
)


def loaded(file: Path, text: str, *arguments: str, **environment: str) -> dict[str, Any]:
    file.write_text(text)
    return FlagValues(FLAGS, [f"--config={file}", *arguments], environment).load()


def test_the_command_line_wins_over_the_environment_which_wins_over_the_file(tmp_path: Path) -> None:
    text = "workers: 1\nqps: 1\nratio: 1\nperiod: 1h30m\nleader-elect: true\n"
    values = loaded(tmp_path / "c", text, "--workers=3", HORTUS_WORKERS="2", HORTUS_QPS="2")
    del values["config"]
    assert values == {
        "workers": 3,
        "qps": 2,
        "ratio": 1.0,
        "period": 5400.0,
        "leader-elect": True,
        "watch-namespace": "kcp-system",
    }


def test_the_file_may_be_named_by_the_environment_and_be_json_or_empty(tmp_path: Path) -> None:
    file = tmp_path / "c"
    file.write_text('{"workers": 7}')
    assert FlagValues(FLAGS, [], {"HORTUS_CONFIG": str(file)}).load()["workers"] == 7
    assert loaded(file, "")["workers"] == 25


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("worker: 1", "worker is not the name of a flag; did you mean workers?"),
        ("config: x", "config is not the name of a flag"),
        ("workers: many", "workers is 'many', must be a value of type int"),
        ("workers: true", "workers is True, must be a value of type int"),
        ("workers:", "workers is None, must be a value of type int"),
        ("leader-elect: 1", "leader-elect is 1, must be a value of type bool"),
        ("period: 5", "period is 5, must be a duration such as 1h30m"),
        ("period: soon", "period: "),
        ("[]", "must be a mapping from the names of flags to values"),
        ("a: {", "c: "),
        ("workers: 1\nworkers: 2", "workers"),
    ],
)
def test_a_wrong_file_is_refused_by_name_key_and_value(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FlagError) as caught:
        loaded(tmp_path / "c", text)
    assert str(caught.value).startswith(f"--config {tmp_path / 'c'}: ")
    assert message in str(caught.value)


def test_a_file_that_is_not_there_and_a_wrong_variable_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FlagError, match=r"--config .*nowhere: cannot be read: No such file"):
        FlagValues(FLAGS, [f"--config={tmp_path}/nowhere"], {}).load()
    with pytest.raises(FlagError, match="HORTUS_WORKERS: invalid value 'x' for flag --workers"):
        FlagValues(FLAGS, [], {"HORTUS_WORKERS": "x"}).load()


class Running:
    """A process that follows its configuration."""

    def __init__(self, file: Path, text: str) -> None:
        self.file = file
        file.write_text(text)
        configuration = FlagValues(FLAGS, [f"--config={file}"], {})
        self.taken: list[tuple[int, float, int]] = []
        self.registry = CollectorRegistry()
        self.refuse = False
        self.clock = FakeClock()
        self.reloader = Reloader(
            configuration, FLAGS, configuration.load(), self.apply, registry=self.registry, clock=self.clock
        )

    def apply(self, values: Mapping[str, Any]) -> None:
        if self.refuse:
            raise FlagError("they do not go together")
        self.taken.append((values["qps"], values["ratio"], values["workers"]))

    def becomes(self, text: str) -> list[tuple[str, object]]:
        self.file.write_text(text)
        with capture_logs() as logs:
            self.reloader.reload()
        return [(line["event"], line.get("flags", line.get("error"))) for line in logs]

    @property
    def well(self) -> float | None:
        return self.registry.get_sample_value("hortus_config_last_reload_successful")


def test_only_what_may_change_while_running_is_taken_over(tmp_path: Path) -> None:
    running = Running(tmp_path / "c", "workers: 1\nqps: 1\n")
    logged = running.becomes("workers: 9\nqps: 2\nratio: 0.25\n")
    assert running.taken == [(2, 0.25, 1)]
    assert logged == [
        ("took over the configuration", ["qps", "ratio"]),
        ("these flags take effect at the next start", ["workers"]),
    ]
    assert running.becomes("workers: 9\nqps: 2\nratio: 0.25\n")[1:] == []
    assert running.taken == [(2, 0.25, 1)]


def test_a_file_that_became_wrong_changes_nothing_and_can_be_seen(tmp_path: Path) -> None:
    running = Running(tmp_path / "c", "qps: 1\n")
    assert running.well == 1.0
    [(event, error)] = running.becomes("qps: lots\n")
    assert event == "the configuration is wrong, keeping the one before"
    assert "qps is 'lots'" in str(error)
    assert (running.taken, running.well) == ([], 0.0)
    running.refuse = True
    assert running.becomes("qps: 3\n") == [
        ("the configuration is wrong, keeping the one before", "they do not go together")
    ]
    running.refuse = False
    running.becomes("qps: 3\n")
    assert (running.taken, running.well) == ([(3, 0.5, 25)], 1.0)


class Mount:
    """A folder as a kubelet mounts a ConfigMap: the file is a link into a folder that one link points at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "file"
        self._count = 0
        self.swap("first")
        self.file.symlink_to("..data/file")

    def swap(self, text: str) -> None:
        self._count += 1
        made = self.folder / f"..{self._count}"
        made.mkdir()
        (made / "file").write_text(text)
        (self.folder / "..tmp").symlink_to(made.name)
        (self.folder / "..tmp").rename(self.folder / "..data")


async def test_a_mounted_file_is_seen_to_change_once_and_an_equal_one_is_not(tmp_path: Path) -> None:
    mount, seen = Mount(tmp_path), asyncio.Queue[str]()
    watch = FileWatch(mount.file, lambda: seen.put_nowait(mount.file.read_text()))
    task = asyncio.create_task(watch.run())
    try:
        mount.swap("second")
        async with asyncio.timeout(60):
            assert await seen.get() == "second"
            mount.swap("second")
            mount.swap("third")
            assert await seen.get() == "third"
        assert seen.empty()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_a_file_that_is_gone_for_a_moment_has_not_changed(tmp_path: Path) -> None:
    file, seen = tmp_path / "f", list[str]()
    file.write_text("one")
    watch = FileWatch(file, lambda: seen.append(file.read_text()))
    file.unlink()
    watch.look()
    file.write_text("one")
    watch.look()
    assert seen == []
    file.write_text("two")
    watch.look()
    assert seen == ["two"]
