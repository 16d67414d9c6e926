"""Addons of one chart: installed, changed with the class of the Cluster, and never left half-made unseen."""

from __future__ import annotations

from pathlib import Path

from tests.domains.stacks.addons.releases import WIDGETS, config_map
from tests.domains.stacks.addons.world import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HOME,
    INFRA,
    AddonWorld,
    condition,
    conditions,
    is_installed,
)

from hortus.domains.stacks.types import CLUSTER_ADDONS
from hortus.engine.finalizers import is_deleting
from hortus.kube import yaml

V1, V2 = "docker-ferrol-1-27-v1", "docker-ferrol-1-27-v2"
PLAIN = "docker-plain-1-33-v1"


async def test_the_releases_of_the_go_system_install_and_upgrade(here: AddonWorld, upstream: Path) -> None:
    """A11, and D12: what has the same name in both releases is changed."""
    here.shelf.upstream(upstream, V1, V2)
    await here.cluster(V1, version="v1.27.3")
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.installed(V1)
        assert addon["spec"]["version"] == "v1"
        assert addon["metadata"]["annotations"]["ClusterAddonStage"] == "created"
        assert addon["metadata"]["finalizers"] == ["clusteraddon.clusterstack.x-k8s.io"]
        assert {one["status"] for one in addon["status"]["resources"]} == {"synced"}
        assert all("error" not in one for one in addon["status"]["resources"])
        server = await here.inside.get(DEPLOYMENTS, "metrics-server", "kube-system")
        assert server["metadata"]["labels"]["clusterAddonVersion"] == "v1"
        assert server["metadata"]["labels"]["domain"] == "shop.example.org"
        assert server["metadata"]["labels"]["clusterstack.x-k8s.io/instance"] == "owned"
        assert server["spec"]["template"]["metadata"]["labels"]["clusterstack.x-k8s.io/instance"] == "owned"
        assert {one["manager"] for one in server["metadata"]["managedFields"]} == {"kubectl"}
        assert await here.inside_object(DEPLOYMENTS, "web") is not None
        assert conditions(addon) == {
            "Ready": "True",
            "ClusterReady": "True",
            "ClusterStackReleaseDownloaded": "True",
            "HelmChartApplied": "True",
        }

        await here.move(V2)
        addon = await here.installed(V2)
        assert addon["spec"]["version"] == "v2"
        server = await here.inside.get(DEPLOYMENTS, "metrics-server", "kube-system")
        assert server["metadata"]["labels"]["clusterAddonVersion"] == "v2"
        assert await here.inside_object(DEPLOYMENTS, "web") is None
        assert "web" not in {one["name"] for one in addon["status"]["resources"]}
        assert addon["metadata"]["annotations"]["ClusterAddonStage"] == "upgraded"


async def test_at_rest_nothing_is_asked(here: AddonWorld) -> None:
    here.shelf.single(PLAIN, {"templates/a.yaml": yaml.dump(config_map("a"))})
    await here.cluster(PLAIN)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(PLAIN)
    async with here.controllers():
        assert await here.requests_of_a_reconcile() == []
        assert here.renderer.requests == 1


async def test_two_kinds_of_one_name_are_two_objects(here: AddonWorld) -> None:
    """D12: the key of an entry is group, kind, namespace and name."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "same"}}
    here.shelf.single(PLAIN, {"templates/a.yaml": yaml.dump_all([config_map("same"), account])})
    second = PLAIN.replace("v1", "v2")
    here.shelf.single(second, {"templates/a.yaml": yaml.dump(account)})
    await here.cluster(PLAIN)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.installed(PLAIN)
        assert [one["kind"] for one in addon["status"]["resources"]] == ["ServiceAccount", "ConfigMap"]
        await here.move(second)
        addon = await here.installed(second)
    assert [one["kind"] for one in addon["status"]["resources"]] == ["ServiceAccount"]
    assert await here.inside_object(CONFIG_MAPS, "same") is None


async def test_objects_go_to_the_namespace_that_they_name(here: AddonWorld) -> None:
    """D13, and the entry keeps the namespace as the chart writes it."""
    objects = [config_map("there", "default"), config_map("here")]
    here.shelf.single(PLAIN, {"templates/a.yaml": yaml.dump_all(objects)})
    await here.cluster(PLAIN)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.installed(PLAIN)
    assert await here.inside_object(CONFIG_MAPS, "there", "default") is not None
    assert await here.inside_object(CONFIG_MAPS, "here") is not None
    assert {one["name"]: one.get("namespace") for one in addon["status"]["resources"]} == {
        "here": None,
        "there": "default",
    }


async def test_a_definition_and_its_object_may_come_together(here: AddonWorld) -> None:
    widget = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "one"}}
    here.shelf.single(PLAIN, {"crds/a.yaml": yaml.dump(WIDGETS), "templates/b.yaml": yaml.dump(widget)})
    await here.cluster(PLAIN)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.installed(PLAIN)
    assert {one["status"] for one in addon["status"]["resources"]} == {"synced"}


async def test_an_object_of_a_kind_that_is_not_served_is_named_and_the_others_are_applied(here: AddonWorld) -> None:
    widget = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "one"}}
    here.shelf.single(PLAIN, {"templates/b.yaml": yaml.dump_all([widget, config_map("a")])})
    await here.cluster(PLAIN)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "HelmChartApplied"))
        assert await here.inside_object(CONFIG_MAPS, "a") is not None
    found = condition(addon, "HelmChartApplied")
    assert (found["status"], found["reason"], found["severity"]) == ("False", "FailedToApplyObjects", "Info")
    assert "Widget" in found["message"]
    assert not addon["spec"].get("clusterStack")


async def test_a_cluster_without_a_topology_gets_no_addon(here: AddonWorld) -> None:
    here.shelf.single(PLAIN, {"templates/a.yaml": yaml.dump(config_map("a"))})
    classic = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "spec": {}}
    from tests.domains.stacks.addons.world import V1BETA1

    await here.client.create(V1BETA1, {**classic, "metadata": {"name": "classic", "namespace": HOME}})
    await here.cluster(PLAIN)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(PLAIN)
    found = await here.client.list(CLUSTER_ADDONS, HOME)
    assert [one["metadata"]["name"] for one in found.items] == ["cluster-addon-shop"]


async def test_a_cluster_that_loses_its_topology_keeps_its_addons(here: AddonWorld) -> None:
    here.shelf.single(PLAIN, {"templates/a.yaml": yaml.dump(config_map("a"))})
    await here.cluster(PLAIN)
    await here.kubeconfig()
    from tests.domains.stacks.addons.world import V1BETA1

    async with here.controllers():
        before = await here.installed(PLAIN)
        await here.client.patch(V1BETA1, "shop", {"spec": {"topology": None}}, HOME)
        key = next(iter(here.controller.wiring.cache.raw))
        await here.controller.reconcile(key)
        after = await here.client.get(CLUSTER_ADDONS, "cluster-addon-shop", HOME)
    assert after["status"] == before["status"]
    assert await here.names_inside() == {"a"}


async def test_a_deleted_addon_is_released_and_comes_again(here: AddonWorld) -> None:
    here.shelf.single(PLAIN, {"templates/a.yaml": yaml.dump(config_map("a"))})
    await here.cluster(PLAIN)
    await here.kubeconfig()
    async with here.controllers():
        before = await here.installed(PLAIN)
        await here.client.delete(CLUSTER_ADDONS, "cluster-addon-shop", HOME)
        after = await here.until(
            lambda obj: (
                obj["metadata"]["uid"] != before["metadata"]["uid"]
                and not is_deleting(obj)
                and is_installed(obj, PLAIN)
            )
        )
    assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]


async def test_values_come_from_the_live_control_plane_and_infrastructure(here: AddonWorld) -> None:
    """As real stacks use them: the network of the InfraCluster is known once the provider has made it."""
    content = {"templates/a.yaml": yaml.dump(config_map("a", plane="{{ .Values.plane }}", network="{{ .Values.net }}"))}
    values = """\
values: |
  plane: {{ .ControlPlane.metadata.name }} in {{ .ControlPlane.status.version }}
  net: {{ .InfraCluster.status.network.id }}
"""
    here.shelf.single(PLAIN, content, values=values)
    await here.cluster(PLAIN)
    status = {"status": {"network": {"id": "net-1"}}}
    await here.client.patch(INFRA, "shop", status, HOME, subresource="status")
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(PLAIN)
    found = await here.inside_object(CONFIG_MAPS, "a")
    assert found is not None
    assert found["data"] == {"plane": "shop in v1.33.1", "network": "net-1"}
