"""Programs of ours take no code from the folder that they are started in, which may be anybody's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hortus.cli import replicas
from hortus.cli.flags import FLAGS
from hortus.engine.flags import FlagSet
from hortus.render.helm import BuiltinRenderer, ChartSource, RenderRequest

_PLANTED = ("hortus", "orjson", "msgspec", "aiohttp", "uvloop", "structlog")


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder whose modules leave a mark when they are imported."""
    folder = tmp_path / "planted"
    folder.mkdir()
    for name in _PLANTED:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'a').write({name!r})\n")
    return folder


def test_up_and_its_children_import_nothing_from_the_working_folder(planted: Path, tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    commands = ["up", "-d", "--ephemeral", "--clusters", "0", "--port", "0"], ["down"]
    for words in commands:
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "hortus", *words, "--state-dir", state],
            cwd=planted,
            capture_output=True,
            text=True,
            timeout=100,
            env={name: value for name, value in os.environ.items() if not name.endswith("KUBECONFIG")},
        )
        assert (ended.returncode, (tmp_path / "mark").exists()) == (0, False), ended.stdout + ended.stderr


def test_a_replica_imports_nothing_from_the_working_folder(planted: Path, tmp_path: Path) -> None:
    command = replicas._command(["--no-such-flag"], FlagSet(FLAGS).parse([]), 0)
    ended = subprocess.run(command, cwd=planted, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert not (tmp_path / "mark").exists()
    assert "no-such-flag" in ended.stdout + ended.stderr


async def test_a_renderer_imports_nothing_from_the_working_folder(
    planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(planted)
    files = {
        "Chart.yaml": b"apiVersion: v2\nname: c\nversion: 1.0.0\n",
        "templates/a.yaml": b"kind: {{ .Chart.Name }}\n",
    }
    async with BuiltinRenderer() as renderer:
        found = await renderer.render(RenderRequest(ChartSource.from_files(files)))
        assert found.objects == [{"kind": "c"}]
    assert not (tmp_path / "mark").exists()
