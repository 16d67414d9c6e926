"""The Go operator and Hortus take over from each other: what either left is as the other would have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.domains.stacks.catalog.world import CLASSES, HOME, CatalogWorld, condition

from hortus.domains.stacks.types import CLUSTER_STACK_RELEASES, CLUSTER_STACKS
from hortus.engine.applysets import DiscoveredKinds
from hortus.engine.applysets.resources import gvk_of
from hortus.kube import PatchKind
from hortus.kube.objects import Object
from hortus.render.helm import ChartSource, Release, load_archive, render_chart

TAG = "docker-ferrol-1-27-v1"
LONG_AGO = "2025-06-01T10:00:00Z"


def go_conditions(*kinds: str) -> list[Object]:
    return [{"type": kind, "status": "True", "lastTransitionTime": LONG_AGO} for kind in ("Ready", *sorted(kinds))]


def rendered(folder: Path) -> list[Object]:
    """The objects of the release as `helm template` prints them."""
    data = (folder / TAG / "docker-ferrol-1-27-cluster-class-v1.tgz").read_bytes()
    assert ChartSource.from_archive(data).digest
    return list(render_chart(load_archive(data), {}, release=Release("docker-ferrol-1-27", HOME)).objects)


def go_resource(obj: Object) -> Object:
    """An entry of status.resources; Go leaves out what is empty, and a chart without namespaces has none."""
    group, _, version = obj["apiVersion"].rpartition("/")
    entry = {"group": group, "version": version, "kind": obj["kind"], "name": obj["metadata"]["name"]}
    namespace = obj["metadata"].get("namespace")
    return {**entry, **({"namespace": namespace} if namespace else {}), "status": "synced"}


def go_status(folder: Path) -> Object:
    return {
        "ready": True,
        "kubernetesVersion": "v1.27.3",
        "resources": [go_resource(obj) for obj in rendered(folder)],
        "conditions": go_conditions(
            "AssetsClientAPIAvailable",
            "ClusterStackReleaseDownloaded",
            "HelmChartApplied",
            "ProviderClusterStackReleaseReady",
        ),
    }


async def as_go_left_it(here: CatalogWorld, folder: Path) -> list[tuple[Any, Object]]:
    """A stack with one release, written as the Go operator writes: owners, finalizer, label, manager, status."""
    stack = await here.stack("v1")
    owner = {
        "apiVersion": stack["apiVersion"],
        "kind": "ClusterStack",
        "name": "stack",
        "uid": stack["metadata"]["uid"],
    }
    metadata = {"finalizers": ["clusterstackrelease.clusterstack.x-k8s.io"], "ownerReferences": [owner]}
    await here.create(CLUSTER_STACK_RELEASES, TAG, metadata=metadata, spec={})
    patch: Object = {"status": go_status(folder)}
    await here.client.patch(CLUSTER_STACK_RELEASES, TAG, patch, HOME, PatchKind.MERGE, "status")
    patch = {
        "status": {
            "latestRelease": f"{TAG} | v1.27.3",
            "usableVersions": "v1",
            "summary": [{"name": "v1", "ready": True, "phase": "done"}],
            "conditions": go_conditions("ClusterStackReleaseAvailable", "ClusterStackReleasesSynced"),
        }
    }
    await here.client.patch(CLUSTER_STACKS, "stack", patch, HOME, PatchKind.MERGE, "status")
    kinds, written = DiscoveredKinds(here.client), []
    for obj in rendered(folder):
        resource = await kinds.resource(gvk_of(obj))
        labels = {**(obj["metadata"].get("labels") or {}), "clusterstack.x-k8s.io/instance": "owned"}
        config = {**obj, "metadata": {**obj["metadata"], "namespace": HOME, "labels": labels}}
        written.append((resource, await here.client.apply(resource, config, field_manager="kubectl")))
    return written


async def test_hortus_writes_nothing_to_what_the_go_operator_left(here: CatalogWorld, upstream: Path) -> None:
    (here.folder / "cluster-stacks").symlink_to(upstream / "cso/releases")
    written = await as_go_left_it(here, upstream / "cso/releases")
    before = [
        *written,
        (CLUSTER_STACKS, await here.client.get(CLUSTER_STACKS, "stack", HOME)),
        (CLUSTER_STACK_RELEASES, await here.client.get(CLUSTER_STACK_RELEASES, TAG, HOME)),
    ]
    async with here.controllers():
        await here.stack("v2", name="later")
        # Workers take objects in turn, so the first release has been reconciled when the second one is ready.
        await here.ready("docker-ferrol-1-27-v2")
        await here.until(CLUSTER_STACKS, "later", lambda obj: condition(obj, "Ready"))
    for resource, obj in before:
        now = await here.client.get(resource, obj["metadata"]["name"], HOME)
        assert now == obj


async def test_the_go_operator_finds_what_it_would_have_written(here: CatalogWorld, upstream: Path) -> None:
    (here.folder / "cluster-stacks").symlink_to(upstream / "cso/releases")
    await here.stack("v1")
    async with here.controllers():
        release = await here.ready(TAG)
        stack = await here.until(CLUSTER_STACKS, "stack", lambda obj: obj.get("status", {}).get("usableVersions"))
    expected = go_status(upstream / "cso/releases")
    found = release["status"]
    # A folder needs no client of a source, so nothing is reported of one.
    kinds = [one["type"] for one in expected["conditions"] if one["type"] != "AssetsClientAPIAvailable"]
    assert [(one["type"], one["status"]) for one in found.pop("conditions")] == [(kind, "True") for kind in kinds]
    del expected["conditions"]
    assert found == expected
    assert stack["status"]["latestRelease"] == f"{TAG} | v1.27.3"
    made = await here.client.get(CLASSES, TAG, HOME)
    assert {entry["manager"] for entry in made["metadata"]["managedFields"]} == {"kubectl"}
