"""A stack's folder of our own, commands typed next to it, a registry and a GitHub on loopback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hortus.cli.shell import app
from hortus.simulation.registry import RegistryFolder, RegistryServer
from hortus.simulation.releases import GitHubServer

CONFIG = """apiVersion: csctl.clusterstack.x-k8s.io/v1alpha1
config:
  kubernetesVersion: v1.27.7
  clusterStackName: ferrol
  provider:
    type: docker
    apiVersion: docker.csctl.clusterstack.x-k8s.io/v1alpha1
"""
CLASS = """apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata:
  name: {{ .Release.Name }}-{{ .Chart.Version }}
"""


def chart(name: str) -> str:
    return f"# comments are lost\napiVersion: v2\nname: {name}\ntype: application\nversion: v0\n"


FILES = {
    "csctl.yaml": CONFIG,
    "cluster-class/Chart.yaml": chart("docker-ferrol-1-27-cluster-class"),
    "cluster-class/templates/class.yaml": CLASS,
    "cluster-addon/Chart.yaml": chart("docker-ferrol-1-27-cluster-addon"),
    "cluster-addon/templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: addon}\n",
    "cluster-addon-values.yaml": 'host: "{{ .Cluster.metadata.name }}"\nversion: << .ClusterAddonVersion >>\n',
}
STAGES = """apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1
addonStages:
  AfterControlPlaneInitialized:
    - name: cni
      action: apply
"""


class StackFolder:
    """The files of one stack in `stack`, and commands typed in the folder around it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        file = self.path / "stack" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def remove(self, name: str) -> None:
        (self.path / "stack" / name).unlink()

    def stage(self) -> None:
        """Make the add-ons several charts, applied in stages."""
        for name in ("cluster-addon/Chart.yaml", "cluster-addon/templates/config.yaml", "cluster-addon-values.yaml"):
            self.remove(name)
        (self.path / "stack" / "cluster-addon" / "templates").rmdir()
        self.write("cluster-addon/cni/Chart.yaml", chart("cni"))
        self.write("cluster-addon/cni/overwrite.yaml", "host: {{ .Cluster.metadata.name }}\n")
        self.write("clusteraddon.yaml", STAGES)

    def type(self, *words: str, code: int = 0) -> Result:
        found = CliRunner().invoke(app, ["stack", *words])
        assert found.exit_code == code, found.output
        return found

    def refused(self, *words: str) -> str:
        return self.type(*words, code=1).output

    def release(self, name: str) -> Path:
        return self.path / ".release" / name


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StackFolder:
    monkeypatch.chdir(tmp_path)
    for name in ("OCI_REGISTRY", "OCI_REPOSITORY", "OCI_ACCESS_TOKEN", "OCI_USERNAME", "OCI_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    return StackFolder(tmp_path)


class Loop:
    """An event loop in a thread, since commands run event loops of their own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def loop() -> Iterator[Loop]:
    found = Loop()
    yield found
    found.close()


@pytest.fixture
def registry(folder: StackFolder, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryServer]:
    """A registry that the environment names, with the credentials of its one user."""
    server = RegistryServer(RegistryFolder(folder.path / "registry"), users={"author": "right-password"})
    loop.run(server.__aenter__())
    monkeypatch.setenv("OCI_REPOSITORY", f"http://{server.address}/team/stacks")
    monkeypatch.setenv("OCI_USERNAME", "author")
    monkeypatch.setenv("OCI_PASSWORD", "right-password")
    yield server
    loop.run(server.__aexit__())


@pytest.fixture
def github(folder: StackFolder, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubServer]:
    """A GitHub that the environment names; each folder in `releases` is a release."""
    releases = folder.path / "releases"
    releases.mkdir()
    server = GitHubServer(releases, owner="team", repository="stacks", token="a-long-token", page=1)
    loop.run(server.__aenter__())
    monkeypatch.setenv("GIT_API_URL", server.url)
    monkeypatch.setenv("GIT_ORG_NAME", "team")
    monkeypatch.setenv("GIT_REPOSITORY_NAME", "stacks")
    monkeypatch.setenv("GIT_ACCESS_TOKEN", "a-long-token")
    yield server
    loop.run(server.__aexit__())
