"""ClusterAddons that the Go system has left in the middle of its work, and what it finds of ours."""

from __future__ import annotations

import pytest
from tests.domains.stacks.addons.releases import config_map
from tests.domains.stacks.addons.test_stages import AFTER, BEFORE, NEXT, ONE, TWO, applied, chart
from tests.domains.stacks.addons.world import CONFIG_MAPS, HOME, AddonWorld, conditions

from hortus.domains.stacks.types import CLUSTER_ADDONS
from hortus.kube import yaml
from hortus.kube.objects import Object

NAME = "cluster-addon-shop"
TIME = "2026-01-01T00:00:00Z"


def true(*kinds: str) -> list[Object]:
    return [{"type": kind, "status": "True", "lastTransitionTime": TIME} for kind in kinds]


async def left_by_go(here: AddonWorld, spec: Object, status: Object, *names: str, stage: str = "created") -> None:
    """A ClusterAddon as the Go system writes it, and its objects in the workload cluster."""
    annotations = {"ClusterAddonStage": stage} if stage else {}
    reference = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "shop", "namespace": HOME}
    obj = {
        "apiVersion": CLUSTER_ADDONS.api_version,
        "kind": CLUSTER_ADDONS.kind,
        "metadata": {
            "name": NAME,
            "namespace": HOME,
            "annotations": annotations,
            "finalizers": ["clusteraddon.clusterstack.x-k8s.io"],
        },
        "spec": {"clusterRef": reference, **spec},
    }
    await here.client.create(CLUSTER_ADDONS, obj)
    await here.client.patch(CLUSTER_ADDONS, NAME, {"status": status}, HOME, subresource="status")
    for name in names:
        made = config_map(name, "kube-system")
        made["metadata"]["labels"] = {"clusterstack.x-k8s.io/instance": "owned"}
        await here.inside.apply(CONFIG_MAPS, made, field_manager="kubectl")


async def test_an_addon_at_rest_is_left_as_it_is(here: AddonWorld) -> None:
    here.shelf.single(ONE, {"templates/a.yaml": yaml.dump(config_map("a"))})
    await here.cluster(ONE)
    await here.kubeconfig()
    resource = {"version": "v1", "kind": "ConfigMap", "name": "a", "status": "synced"}
    status = {"ready": True, "resources": [resource], "conditions": true("ClusterReady", "HelmChartApplied", "Ready")}
    await left_by_go(here, {"clusterStack": ONE, "version": "v1"}, status, "a")
    before = await here.client.get(CLUSTER_ADDONS, NAME, HOME)
    async with here.controllers():
        await here.controller.reconcile(next(iter(here.controller.wiring.cache.raw)))
    after = await here.client.get(CLUSTER_ADDONS, NAME, HOME)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_stages_go_on_where_the_go_system_stopped(here: AddonWorld) -> None:
    """The first stage is done, and is not run again; what the release before had is found and deleted."""
    here.shelf.staged(ONE, {"cni": chart("cni", "old")}, {AFTER: applied("cni")})
    here.shelf.staged(
        NEXT, {"cni": chart("cni"), "csi": chart("csi")}, {BEFORE: applied("cni", "csi")}, kubernetes="v1.34.1"
    )
    await here.cluster(NEXT, version="v1.34.1")
    await here.upgraded("v1.33.1")
    await here.kubeconfig()
    stages = [
        {"name": "cni", "action": "apply", "phase": "done"},
        {"name": "csi", "action": "apply", "phase": "applyingOrDeleting"},
    ]
    status = {"ready": False, "stages": stages, "conditions": true("ClusterReady", "HookServerReady")}
    # The Go system writes the version before it applies.
    await left_by_go(here, {"clusterStack": ONE, "version": "v1", "hook": BEFORE}, status, "cni", "old")
    async with here.controllers():
        addon = await here.installed(NEXT)
    assert await here.names_inside() == {"cni", "csi"}
    assert addon["metadata"]["annotations"]["ClusterAddonStage"] == "upgraded"


@pytest.mark.parametrize("stage", ["created", "upgraded"])
async def test_an_upgrade_after_the_go_system_finds_the_objects_of_the_release_before(
    here: AddonWorld, stage: str
) -> None:
    """With stages the Go system leaves no list of objects."""
    here.shelf.staged(ONE, {"cni": chart("cni", "old")}, {AFTER: applied("cni"), BEFORE: applied("cni")})
    here.shelf.staged(TWO, {"cni": chart("cni")}, {BEFORE: applied("cni")})
    await here.cluster(ONE)
    await here.kubeconfig()
    status = {"ready": True, "conditions": true("ClusterReady", "HelmChartApplied", "Ready")}
    await left_by_go(here, {"clusterStack": ONE, "version": "v1"}, status, "cni", "old", stage=stage)
    async with here.controllers():
        await here.move(TWO)
        await here.installed(TWO)
    assert await here.names_inside() == {"cni"}


async def test_the_go_system_finds_what_it_needs(here: AddonWorld) -> None:
    """Field manager, label, finalizer, annotation, version with dashes, and entries as charts write them."""
    here.shelf.single(ONE, {"templates/a.yaml": yaml.dump_all([config_map("a"), config_map("b", "default")])})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.installed(ONE)
    found = await here.inside_object(CONFIG_MAPS, "a")
    assert found is not None
    assert found["metadata"]["labels"] == {"clusterstack.x-k8s.io/instance": "owned"}
    assert [one["manager"] for one in found["metadata"]["managedFields"]] == ["kubectl"]
    assert addon["status"]["resources"] == [
        {"version": "v1", "kind": "ConfigMap", "name": "a", "status": "synced"},
        {"version": "v1", "kind": "ConfigMap", "name": "b", "namespace": "default", "status": "synced"},
    ]
    assert conditions(addon)["HelmChartApplied"] == "True"
    assert "stages" not in addon["status"]
