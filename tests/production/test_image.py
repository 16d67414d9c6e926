"""The image of the Dockerfile, without a container engine: its own steps in a folder, run by an unprivileged user."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Dockerfile").read_text()


def instructions() -> list[tuple[str, str]]:
    joined = re.sub(r"\\\n", " ", TEXT)
    lines = [line for line in joined.splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def test_the_image_runs_as_nobody_and_starts_hortus() -> None:
    last_stage = stages()[-1]
    said = dict(last_stage)
    assert said["USER"] == "65532:65532"
    assert (said["ENTRYPOINT"], said["CMD"]) == ('["hortus"]', '["run"]')
    assert [rest for word, rest in last_stage if word == "COPY"] == ["--from=build /opt/hortus /opt/hortus"]


def test_both_stages_begin_with_one_image_by_digest() -> None:
    said = instructions()
    assert [rest.partition(" ")[0] for word, rest in said if word == "FROM"] == ["${BASE}", "${BASE}"]
    [base] = [rest for word, rest in said if word == "ARG"]
    assert re.fullmatch(r"BASE=python:3\.\d+\.\d+-slim-[a-z]+@sha256:[0-9a-f]{64}", base)


def test_nothing_in_the_image_installs_or_builds() -> None:
    first, last = stages()
    assert [rest for word, rest in last if word == "RUN" and re.search(r"\b(apt|install|curl|wget)\b", rest)] == []
    removed = next(rest for word, rest in first if word == "RUN" and "uninstall" in rest)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    tools = {requirement.partition(">")[0] for requirement in project["dependency-groups"]["build"]}
    assert {*tools, "pip"} <= set(removed.split())
    [run] = [rest for word, rest in last if word == "RUN"]
    assert "pip uninstall" in run
    assert "ensurepip" in run
    assert [word for word, _ in last].index("USER") > [word for word, _ in last].index("RUN")


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage, from its FROM on."""
    found: list[list[tuple[str, str]]] = []
    for instruction in instructions():
        if instruction[0] == "FROM":
            found.append([])
        if found:
            found[-1].append(instruction)
    return found


def test_everything_that_is_copied_exists_and_is_let_through() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [
        word for verb, rest in instructions() if verb == "COPY" and "--from" not in rest for word in rest.split()[:-1]
    ]
    assert {f"!{name}" for name in copied} <= set(ignored)
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_what_the_steps_build_runs_for_a_user_who_may_write_nothing() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        source, target = Path(folder) / "src", Path(folder) / "hortus"
        source.mkdir()
        _follow(source, target)
        nobody = [] if os.getuid() else ["setpriv", "--reuid=65532", "--regid=65532", "--clear-groups"]
        variables = {"PATH": f"{target}/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/nonexistent"}
        for words, code, expected in (
            (["--version"], 0, "hortus "),
            (["install", "--export"], 0, "kind: Deployment"),
            (["run"], 2, "no kubeconfig"),
        ):
            command = [*nobody, f"{target}/bin/hortus", *words]
            done = subprocess.run(command, capture_output=True, text=True, env=variables, cwd="/")
            assert done.returncode == code, done.stderr
            assert expected in done.stdout + done.stderr


def _follow(source: Path, target: Path) -> None:
    """Do what the first stage says, with `source` for its folder and `target` for /opt/hortus."""
    for word, rest in stages()[0]:
        if word == "COPY" and "--from" not in rest:
            *names, to = rest.split()
            for name in names:
                into = source / (to.removeprefix("./") or name)
                into.parent.mkdir(parents=True, exist_ok=True)
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, into)
                else:
                    shutil.copy(ROOT / name, into)
        elif word == "RUN":
            step = "umask 022; " + rest.replace("/opt/hortus", str(target))
            done = subprocess.run(step, shell=True, cwd=source, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[-2000:]
