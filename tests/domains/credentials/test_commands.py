"""`hortus kubeconfig` hands a person what an object says, and an object is data, not the person's own file."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import pytest
from click.testing import CliRunner

from hortus.domains.credentials.commands import register
from hortus.kube import yaml
from hortus.kube.objects import Object
from hortus.terminal import CommandGroup, Connections

CLUSTER: Object = {
    "apiVersion": "infrastructuremanager.kyma-project.io/v1",
    "kind": "GardenerCluster",
    "metadata": {"name": "rt-1", "namespace": "kcp-system"},
    "spec": {
        "shoot": {"name": "c-1"},
        "kubeconfig": {"secret": {"name": "kubeconfig-rt-1", "namespace": "kcp-system", "key": "config"}},
    },
}


def kubeconfig(**user: object) -> Object:
    """Two clusters; the second one is the current one."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "b",
        "clusters": [{"name": n, "cluster": {"server": f"https://{n}.example.org"}} for n in "ab"],
        "contexts": [{"name": n, "context": {"cluster": n, "user": "u"}} for n in "ab"],
        "users": [{"name": "u", "user": user}],
    }


class _Listed:
    def __init__(self, items: list[Object]) -> None:
        self.items = items


class _Client:
    """The part of a client that the command needs, with one cluster and its Secret."""

    def __init__(self, content: bytes) -> None:
        metadata = {"name": "kubeconfig-rt-1", "namespace": "kcp-system"}
        self._secret = {"metadata": metadata, "data": {"config": base64.b64encode(content).decode()}}

    async def __aenter__(self) -> _Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def get(self, *_: object, **__: object) -> Object:
        return CLUSTER

    async def list(self, *_: object, **__: object) -> _Listed:
        return _Listed([self._secret])


@dataclass(frozen=True)
class _Connections(Connections):
    content: bytes = b""

    def management(self) -> _Client:  # type: ignore[override]
        return _Client(self.content)


def run(document: Object, *arguments: str) -> tuple[int, str, str]:
    app = CommandGroup()
    content = yaml.dump(document).encode()
    register(app, lambda: _Connections(local_state=Path("nowhere"), content=content))
    result = CliRunner().invoke(app, ["kubeconfig", "rt-1", *arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("merged", [True, False])
def test_a_kubeconfig_that_would_run_a_command_reaches_neither_terminal_nor_file(tmp_path: Path, merged: bool) -> None:
    target = tmp_path / "config"
    evil = kubeconfig(exec={"apiVersion": "client.authentication.k8s.io/v1", "command": "touch"})
    code, out, err = run(evil, *(["--merge", "--into", str(target)] if merged else []))
    assert (code, out, target.exists()) == (1, "", False)
    assert "secret kcp-system/kubeconfig-rt-1" in err
    assert "exec" in err


def test_what_is_merged_is_the_current_context_under_the_clusters_name(tmp_path: Path) -> None:
    target = tmp_path / "config"
    code, _, err = run(kubeconfig(token="t"), "--merge", "--into", str(target))
    assert (code, err) == (0, "")
    assert yaml.load(target.read_bytes()) == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "rt-1", "cluster": {"server": "https://b.example.org"}}],
        "contexts": [{"name": "rt-1", "context": {"cluster": "rt-1", "user": "rt-1"}}],
        "users": [{"name": "rt-1", "user": {"token": "t"}}],
    }
