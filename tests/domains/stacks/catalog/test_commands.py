"""`hortus stack list|upgrade|why|graph` on a management cluster with releases and Clusters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.domains.stacks.catalog.world import CLUSTERS, HOME, TEAM, CatalogWorld, catalog_world

from hortus.domains.stacks.commands import using
from hortus.domains.stacks.types import CLUSTER_ADDONS, CLUSTER_STACK_RELEASES
from hortus.kube import Client, PatchKind, Resource
from hortus.terminal import CommandError
from hortus.testing.apiserver import TestServer

V1, V2 = "docker-ferrol-1-27-v1", "docker-ferrol-1-27-v2"
NEXT = "docker-ferrol-1-28-v1"


class Here:
    """The management cluster that the options of a command name."""

    def __init__(self, world: CatalogWorld) -> None:
        self.world = world

    @asynccontextmanager
    async def management(self) -> AsyncIterator[Client]:
        yield self.world.client

    async def status(self, resource: Resource, name: str, status: Any, namespace: str = HOME) -> None:
        await self.world.client.patch(resource, name, {"status": status}, namespace, PatchKind.MERGE, "status")

    async def release(self, tag: str, *, ready: bool = True, version: str = "v1.27.3") -> None:
        await self.world.create(CLUSTER_STACK_RELEASES, tag, spec={})
        conditions = [] if ready else [_failed("HelmChartApplied"), _failed("Ready")]
        await self.status(
            CLUSTER_STACK_RELEASES, tag, {"ready": ready, "kubernetesVersion": version, "conditions": conditions}
        )


def _failed(kind: str) -> dict[str, str]:
    return {
        "type": kind,
        "status": "False",
        "severity": "Error",
        "reason": "FailedToApplyObjects",
        "message": "the chart fails",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


@pytest.fixture
async def here(server: TestServer, tmp_path: Path) -> AsyncIterator[Here]:
    async with catalog_world(server, tmp_path) as world:
        made = Here(world)
        await made.release(V1)
        await made.release(V2)
        await made.release("docker-ferrol-1-27-v3", ready=False)
        await made.release(NEXT, version="v1.28.1")
        await made.release("docker-other-1-27-v9")
        await world.cluster("shop", V1, namespace=TEAM, classNamespace=HOME)
        yield made


async def test_releases_are_listed_with_their_users(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    await using._list(here)  # type: ignore[arg-type]
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [HOME, V1, "v1.27.3", "true", "<none>", "1", "<none>"] in lines
    assert [HOME, "docker-ferrol-1-27-v3", "v1.27.3", "false", "<none>", "0", "the", "chart", "fails"] in lines


async def test_a_cluster_moves_to_the_latest_release_and_then_to_the_next_minor(here: Here) -> None:
    for expected, version in ((V2, "v1.27.3"), (NEXT, "v1.28.1")):
        await using._upgrade(here, "shop", TEAM, "", yes=True)  # type: ignore[arg-type]
        cluster = await here.world.client.get(CLUSTERS, "shop", TEAM)
        assert cluster["spec"]["topology"] == {"class": expected, "classNamespace": HOME, "version": version}
    with pytest.raises(CommandError, match="has the latest release"):
        await using._upgrade(here, "shop", TEAM, "", yes=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("target", ["docker-ferrol-1-27-v3", "docker-other-1-27-v9", "nonsense"])
async def test_a_class_that_a_cluster_cannot_have_is_refused_with_those_it_can(here: Here, target: str) -> None:
    with pytest.raises(CommandError, match=f"cannot move to '{target}'; it can move to: {V2}, {NEXT}"):
        await using._upgrade(here, "shop", TEAM, target, yes=True)  # type: ignore[arg-type]


async def test_the_form_of_v1beta2_is_kept(here: Here) -> None:
    spec = {"topology": {"classRef": {"name": V1, "namespace": HOME}, "version": "v1.27.3"}}
    await here.world.create(CLUSTERS, "new", TEAM, spec=spec)
    await using._upgrade(here, "new", TEAM, V2, yes=True)  # type: ignore[arg-type]
    cluster = await here.world.client.get(CLUSTERS, "new", TEAM)
    assert cluster["spec"]["topology"] == {"classRef": {"name": V2, "namespace": HOME}, "version": "v1.27.3"}


async def test_the_state_of_a_cluster_is_explained_with_the_next_step(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    await here.world.create(
        CLUSTER_ADDONS, "cluster-addon-shop", TEAM, spec={"clusterRef": {"kind": "Cluster", "name": "shop"}}
    )
    status = {"ready": False, "conditions": [_failed("HelmChartApplied")]}
    await here.status(CLUSTER_ADDONS, "cluster-addon-shop", status, TEAM)
    await using._why(here, "shop", TEAM)  # type: ignore[arg-type]
    assert capsys.readouterr().out.splitlines() == [
        f"Cluster {TEAM}/shop uses class {V1} of namespace {HOME}",
        f"ClusterStackRelease {V1} is ready",
        "ClusterAddon cluster-addon-shop is not ready",
        "  HelmChartApplied: FailedToApplyObjects [Error]: the chart fails",
        "Next: the addons are tried again; a condition above says what they wait for.",
    ]
    with pytest.raises(CommandError, match="Cluster team/nobody does not exist"):
        await using._why(here, "nobody", TEAM)  # type: ignore[arg-type]


async def test_the_graph_shows_the_objects_as_they_are(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    await using._graph(here)  # type: ignore[arg-type]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "flowchart LR"
    nodes = {line.strip().partition("[")[0]: line for line in lines if "<br/>" in line}
    edge = next(line.split() for line in lines if "-->|uses|" in line)
    assert f"Cluster<br/>{TEAM}/shop" in nodes[edge[0]]
    assert f"ClusterStackRelease<br/>{HOME}/{V1}" in nodes[edge[2]]
    marked = lines[-1].split()
    assert marked[0] == "class"
    assert "docker-ferrol-1-27-v3" in nodes[marked[1]]


async def test_the_graph_is_drawn_from_live_objects(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    await using._graph(here, "svg")  # type: ignore[arg-type]
    root = ElementTree.fromstring(capsys.readouterr().out)
    groups = {group[0].text.split("\n")[0]: group for group in root.iter() if group.tag.endswith("}g")}  # type: ignore[union-attr]
    failed = groups[f"ClusterStackRelease {HOME}/docker-ferrol-1-27-v3"]
    assert failed.attrib["class"] == "failed"
    assert [text.text for text in failed if text.tag.endswith("}text")] == [
        f"ClusterStackRelease in {HOME}",
        "docker-ferrol-1-27-v3",
        "failed: FailedToApplyObjects",
        "the chart fails",
    ]
    assert groups[f"ClusterStackRelease {HOME}/{V1}"].attrib["class"] == "ready"
    assert f"Cluster {TEAM}/shop" in groups
