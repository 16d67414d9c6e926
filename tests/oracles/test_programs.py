"""The two parts of the oracles, and the checks that `make oracles` makes once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.oracles import __main__ as command
from tests.oracles import programs

ROOT = Path(__file__).parents[2]


def test_each_program_is_in_one_part() -> None:
    short, long = programs.programs(soak=False), programs.programs(soak=True)
    assert set(long) == programs.SOAK
    assert not set(short) & set(long)
    assert {folder.parent.name for folder in programs.SOURCES.glob("*/go.mod")} <= {*short, *long}


@pytest.mark.parametrize("name", sorted(programs.SOAK))
def test_a_program_of_the_soak_part_is_used_by_tests_marked_soak_alone(name: str) -> None:
    users = [file for file in ROOT.glob("tests/**/*.py") if f'"{name}"' in file.read_text()]
    users = [file for file in users if file.parent != programs.SOURCES]
    assert users
    for file in users:
        assert "pytestmark = pytest.mark.soak\n" in file.read_text(), file


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parts that the command builds, which it does not do here."""
    names: list[str] = []
    monkeypatch.setattr(command, "_make", lambda part: names.append(part.name))
    monkeypatch.setattr(command, "toolchain", lambda: "go")
    return names


@pytest.fixture
def oracles(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run `python -m tests.oracles` with these words."""

    def run(*words: str) -> None:
        monkeypatch.setattr("sys.argv", ["oracles", *words])
        command.main()

    return run


def test_each_part_builds_its_programs(
    made: list[str], oracles: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "SOAK", frozenset({"flux"}))
    oracles("--soak")
    assert made == ["flux"]
    made.clear()
    oracles()
    assert {"ocm", "kubeapiserver", "greeter", "helm"} <= set(made)
    assert "flux" not in made
    made.clear()
    oracles("flux", "helm")
    assert sorted(made) == ["flux", "helm"]


def test_an_empty_part_is_reported_and_is_no_failure(
    made: list[str], oracles: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(programs, "SOAK", frozenset())
    oracles("--soak")
    assert made == []
    assert capsys.readouterr().out == "no program is in this part: nothing to build\n"


def test_a_skip_names_the_part_that_builds_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "SOAK", frozenset({"flux"}))
    monkeypatch.setattr(programs, "toolchain", lambda: "go")
    assert programs.why_not("flux").endswith("run `make oracles-soak`")
    assert programs.why_not("ocm").endswith("run `make oracles`")


def test_a_program_is_vetted_once_for_each_state_of_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, ...]] = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(programs, "_VETTED", {"shown": tmp_path / "shown"})
    monkeypatch.setattr(programs, "go", lambda folder, *words: ran.append(words))
    (tmp_path / "shown").mkdir()
    source = tmp_path / "shown" / "main.go"
    for text in ("package main", "package main // changed"):
        source.write_text(text)
        assert not programs.is_vetted("shown")
        for _ in range(2):
            programs.vet("shown")
            assert programs.is_vetted("shown")
    assert ran == [("vet", "."), ("vet", ".")]
