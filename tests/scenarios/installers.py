"""Two installers, `hortus install` and helm, and the clusters on which tests try them."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.production.rendering import objects
from tests.scenarios.running import environment, typed

from hortus.cli.install.applying import Installation
from hortus.cli.install.chart import chart_folder
from hortus.kube import Client, Resource, yaml
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.terminal import CommandError

HERE = "hortus-system"
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
EACH_ONCE = pytest.mark.parametrize(
    ("site", "tool"),
    [
        ("ours", "hortus"),
        pytest.param("original", "helm", marks=[pytest.mark.real_apiserver, pytest.mark.oracle]),
        pytest.param("ours", "helm", marks=[pytest.mark.oracle, pytest.mark.soak]),
        pytest.param("original", "hortus", marks=[pytest.mark.real_apiserver, pytest.mark.soak]),
    ],
    indirect=True,
)
"""The mark of expensive tests: each server and each installer once, and all pairs among the long tests."""
_PAUSE = 0.05
"""Seconds between two looks at an object that another process changes."""
REVISION = "deployment.kubernetes.io/revision"


class Site(NamedTuple):
    """A cluster with the kinds of Prometheus' operator."""

    client: Client
    kubeconfig: Path
    counts_revisions: bool

    async def pods(self, name: str = "hortus") -> tuple[str, Object | None]:
        """The revision of the Deployment, empty where nobody counts, and its pods' template; None without it."""
        try:
            found = await self.client.get(DEPLOYMENTS, name, HERE)
            while self.counts_revisions and _unseen(found):
                await asyncio.sleep(_PAUSE)
                found = await self.client.get(DEPLOYMENTS, name, HERE)
        except NotFound:
            return "", None
        return (found["metadata"].get("annotations") or {}).get(REVISION, ""), found["spec"]["template"]


def _unseen(deployment: Object) -> bool:
    """True until the controller has counted the present template."""
    metadata = deployment["metadata"]
    seen = (deployment.get("status") or {}).get("observedGeneration", 0)
    return bool(seen < metadata["generation"] or REVISION not in (metadata.get("annotations") or {}))


class Hortus:
    """`hortus install` without its command, and `hortus uninstall` as typed."""

    flags: tuple[str, ...] = ()

    def __init__(self, site: Site) -> None:
        self._site = site

    async def install(self, values: dict[str, Any]) -> str:
        await Installation(self._site.client, objects(HERE, values), str, namespace=HERE).apply()
        return ""

    async def refused(self, values: dict[str, Any]) -> str:
        with pytest.raises(CommandError) as caught:
            await self.install(values)
        return str(caught.value)

    async def uninstall(self, *, all_traces: bool = True) -> set[str]:
        """Returns what is to stay of all traces."""
        words = ("uninstall", "--yes", *(("--delete-crds", "--delete-namespace") if all_traces else ()))
        done = await asyncio.to_thread(typed, "--kubeconfig", str(self._site.kubeconfig), *words)
        assert done.returncode == 0, done.stderr
        return set()


class Helm:
    """The real helm."""

    flags: tuple[str, ...] = ()
    """Further ones of `helm upgrade --install`."""

    def __init__(self, site: Site, program: str) -> None:
        self._site = site
        self._program = program

    async def install(self, values: dict[str, Any]) -> str:
        """Returns what helm prints."""
        done = await self._run(values)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def refused(self, values: dict[str, Any]) -> str:
        done = await self._run(values)
        assert done.returncode != 0
        return done.stderr

    async def uninstall(self, *, all_traces: bool = True) -> set[str]:
        done = await self.call("uninstall", "hortus")
        assert done.returncode == 0, done.stderr
        crds = {f"CustomResourceDefinition/{obj['metadata']['name']}" for obj in objects(HERE, {}) if _is_crd(obj)}
        return {*crds, f"Namespace/{HERE}"}

    async def _run(self, values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        words = ("upgrade", "--install", "hortus", str(chart_folder()), "--create-namespace", *self.flags)
        return await self.call(*words, "-f", "-", values=values)

    async def call(self, *words: str, values: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
        command = [self._program, "-n", HERE, "--kubeconfig", str(self._site.kubeconfig), *words]
        return await asyncio.to_thread(
            subprocess.run,
            command,
            input=yaml.dump(values or {}),
            capture_output=True,
            text=True,
            timeout=250,
            env=environment(HOME=str(self._site.kubeconfig.parent)),
        )


def _is_crd(obj: Object) -> bool:
    return bool(obj["kind"] == CRDS.kind)


Tool = Hortus | Helm
