"""A module's folder in a git repository, and a registry in a thread of its own."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.domains.modules.publishing.test_config import LEAST

from hortus.cli.shell import app
from hortus.kube import yaml
from hortus.simulation.registry import RegistryFolder, RegistryServer

MANIFEST = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: hellos.operator.kyma-project.io}
spec:
  group: operator.kyma-project.io
  names: {kind: Hello, plural: hellos}
  scope: Cluster
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: hello}
spec: {template: {spec: {containers: [{name: manager, image: "example.com/team/hello:1.0.3"}]}}}
"""
DEFAULT_CR = "apiVersion: operator.kyma-project.io/v1alpha1\nkind: Hello\nmetadata: {name: default}\n"


class ModuleFolder:
    """The files of one module, and commands typed in their folder."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        monkeypatch.chdir(path)
        self.write()

    def write(self, **changed: object) -> None:
        keys = LEAST | {"defaultCR": "default-cr.yaml"} | changed
        (self.path / "module-config.yaml").write_text(yaml.dump(keys))

    def type(self, *words: str, code: int = 0) -> Result:
        found = CliRunner().invoke(app, ["module", *words])
        assert found.exit_code == code, found.output
        return found

    def document(self, name: str) -> dict[str, object]:
        found: dict[str, object] = yaml.load((self.path / name).read_bytes())
        return found


def _git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleFolder:
    path = tmp_path / "module"
    path.mkdir()
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    (path / "manifest.yaml").write_text(MANIFEST)
    (path / "default-cr.yaml").write_text(DEFAULT_CR)
    _git(path, "init", "-q", ".")
    _git(path, "add", "-A")
    _git(path, "commit", "-q", "-m", "begin")
    return ModuleFolder(path, monkeypatch)


@pytest.fixture
def commit(folder: ModuleFolder) -> str:
    return _git(folder.path, "rev-parse", "HEAD")


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[RegistryServer]:
    """A registry that lets the user `author` push; commands run event loops of their own."""
    server = RegistryServer(RegistryFolder(tmp_path / "registry"), users={"author": "right"})
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(60)
    yield server
    asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
