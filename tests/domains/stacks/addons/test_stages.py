"""Addons in stages: order, phases, hooks, what leaves with an upgrade."""

from __future__ import annotations

from typing import Any

from tests.domains.stacks.addons.releases import WIDGETS, config_map
from tests.domains.stacks.addons.world import CONFIG_MAPS, HOME, AddonWorld, condition, conditions, is_installed

from hortus.domains.stacks.addons.service import TARGET
from hortus.domains.stacks.types import CLUSTER_ADDONS
from hortus.kube import yaml
from hortus.kube.objects import Object
from hortus.simulation.capi.definitions import CRDS

ONE, TWO, NEXT = "docker-plain-1-33-v1", "docker-plain-1-33-v2", "docker-plain-1-34-v1"
AFTER, BEFORE, LATER = "AfterControlPlaneInitialized", "BeforeClusterUpgrade", "AfterClusterUpgrade"


def applied(*names: str, **more: Any) -> list[Object]:
    return [{"name": name, "action": "apply", **more} for name in names]


def chart(*names: str, **data: str) -> list[Object]:
    return [config_map(name, **data) for name in names]


async def test_a_new_cluster_gets_the_stages_of_its_hook(here: AddonWorld) -> None:
    here.shelf.staged(
        ONE, {"cni": chart("cni"), "csi": chart("csi")}, {AFTER: applied("cni"), BEFORE: applied("cni", "csi")}
    )
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.installed(ONE)
    assert await here.names_inside() == {"cni"}
    assert addon["spec"]["version"] == "v1"
    assert addon["metadata"]["annotations"]["ClusterAddonStage"] == "created"
    assert not addon["status"].get("stages")
    assert conditions(addon) == {
        "Ready": "True",
        "ClusterAddonConfigValidated": "True",
        "ClusterReady": "True",
        "ClusterStackReleaseDownloaded": "True",
        "HelmChartApplied": "True",
        "HookServerReady": "True",
    }


async def test_a_hook_that_cluster_api_has_still_to_call_is_awaited(here: AddonWorld) -> None:
    here.shelf.staged(ONE, {"cni": chart("cni")}, {AFTER: applied("cni")})
    await here.cluster(ONE, pending=AFTER)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "HookServerReady"))
        found = condition(addon, "HookServerReady")
        assert (found["status"], found["reason"], found["severity"]) == ("False", "HookServerUnresponsive", "Info")
        assert await here.names_inside() == set()
        await here.hook(AFTER)
        await here.installed(ONE)
    assert await here.names_inside() == {"cni"}


async def test_a_release_for_the_same_kubernetes_is_installed_at_once(here: AddonWorld) -> None:
    here.shelf.staged(ONE, {"cni": chart("cni", "old")}, {AFTER: applied("cni"), BEFORE: applied("cni")})
    here.shelf.staged(
        TWO,
        {"cni": chart("cni", release="two"), "csi": chart("csi")},
        {AFTER: applied("cni", "csi"), BEFORE: applied("cni", "csi")},
    )
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(ONE)
        await here.move(TWO)
        addon = await here.installed(TWO)
        found = await here.inside_object(CONFIG_MAPS, "cni")
    assert found is not None
    assert found["data"] == {"release": "two"}
    assert await here.names_inside() == {"cni", "csi"}
    assert addon["metadata"]["annotations"]["ClusterAddonStage"] == "upgraded"
    assert addon["metadata"]["annotations"][TARGET] == f"{BEFORE}/{TWO}"


async def publish_two_versions(here: AddonWorld) -> None:
    """Releases for two versions of Kubernetes, and a Cluster of the first."""
    here.shelf.staged(ONE, {"cni": chart("cni")}, {AFTER: applied("cni")})
    here.shelf.staged(NEXT, {"cni": chart("cni", release="next")}, {BEFORE: applied("cni")}, kubernetes="v1.34.1")
    await here.cluster(ONE)
    await here.kubeconfig()


async def await_hook(here: AddonWorld) -> None:
    """Moves the Cluster to the next version, which waits for a hook."""
    await here.installed(ONE)
    await here.move(NEXT, version="v1.34.1")
    await here.until(lambda obj: condition(obj, "HookServerReady").get("status") == "False")


async def test_an_upgrade_of_kubernetes_waits_for_its_hook(here: AddonWorld) -> None:
    await publish_two_versions(here)
    async with here.controllers():
        await await_hook(here)
        await here.hook(BEFORE)
        await here.installed(NEXT)
    found = await here.inside_object(CONFIG_MAPS, "cni")
    assert found is not None
    assert found["data"] == {"release": "next"}


async def test_a_cluster_that_goes_back_waits_for_no_hook(here: AddonWorld) -> None:
    await publish_two_versions(here)
    async with here.controllers():
        await await_hook(here)
        await here.move(ONE, version="v1.33.1")
        addon = await here.until(lambda obj: condition(obj, "Ready").get("status") == "True")
    assert addon["spec"]["clusterStack"] == ONE
    assert conditions(addon)["HookServerReady"] == "True"


async def test_charts_of_other_hooks_stay_through_an_upgrade(here: AddonWorld) -> None:
    """D19: what any hook of the new release applies is not left over."""
    hooks = {AFTER: applied("cni", "ccm"), BEFORE: applied("cni")}
    for tag in (ONE, TWO):
        here.shelf.staged(tag, {"cni": chart("cni"), "ccm": chart("ccm")}, hooks)
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(ONE)
        await here.move(TWO)
        await here.installed(TWO)
    assert await here.names_inside() == {"cni", "ccm"}


async def test_leftovers_go_with_every_upgrade(here: AddonWorld) -> None:
    """D19: also with the second one."""
    three = "docker-plain-1-33-v3"
    for tag, name in ((ONE, "a"), (TWO, "b"), (three, "c")):
        here.shelf.staged(tag, {"cni": chart(name)}, {AFTER: applied("cni"), BEFORE: applied("cni")})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(ONE)
        for tag, name in ((TWO, "b"), (three, "c")):
            await here.move(tag)
            await here.installed(tag)
            assert await here.names_inside() == {name}


async def test_a_stage_deletes_a_chart(here: AddonWorld) -> None:
    charts = {"old": chart("old"), "new": chart("new")}
    here.shelf.staged(ONE, charts, {AFTER: applied("old")})
    here.shelf.staged(TWO, charts, {BEFORE: [*applied("new"), {"name": "old", "action": "delete"}]})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(ONE)
        await here.move(TWO)
        addon = await here.installed(TWO)
    assert await here.names_inside() == {"new"}
    assert [one["name"] for one in addon["status"]["resources"]] == ["new"]


async def test_an_object_that_lost_our_label_is_not_deleted(here: AddonWorld) -> None:
    here.shelf.staged(ONE, {"cni": chart("kept", "cni")}, {AFTER: applied("cni")})
    here.shelf.staged(TWO, {"cni": chart("cni")}, {BEFORE: applied("cni")})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(ONE)
        unlabelled = {"metadata": {"labels": {"clusterstack.x-k8s.io/instance": None}}}
        await here.inside.patch(CONFIG_MAPS, "kept", unlabelled, "kube-system")
        await here.move(TWO)
        await here.installed(TWO)
    assert await here.inside_object(CONFIG_MAPS, "kept") is not None


async def test_a_missing_chart_stops_the_run(here: AddonWorld) -> None:
    """D18."""
    here.shelf.staged(ONE, {"cni": chart("cni"), "csi": chart("csi")}, {AFTER: applied("cni", "gone", "csi")})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "HelmChartFound").get("status") == "False")
    found = condition(addon, "HelmChartFound")
    assert (found["reason"], found["severity"]) == ("HelmChartMissing", "Info")
    assert "has no chart gone" in found["message"]
    assert "cni, csi" in found["message"]
    assert [one["phase"] for one in addon["status"]["stages"]] == ["done", "applyingOrDeleting", "Pending"]
    assert addon["status"]["ready"] is False
    assert not addon["spec"].get("clusterStack")
    assert await here.names_inside() == {"cni"}


async def test_another_class_leaves_a_faulty_release(here: AddonWorld) -> None:
    """Issue 212: the stages of the class that a Cluster has left do not count."""
    here.shelf.staged(ONE, {"cni": chart("cni")}, {AFTER: applied("cni", "gone")})
    here.shelf.staged(TWO, {"cni": chart("cni", release="two")}, {AFTER: applied("cni"), BEFORE: applied("cni")})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.until(lambda obj: condition(obj, "HelmChartFound").get("status") == "False")
        await here.move(TWO)
        addon = await here.installed(TWO)
    assert "HelmChartFound" not in conditions(addon)
    found = await here.inside_object(CONFIG_MAPS, "cni")
    assert found is not None
    assert found["data"] == {"release": "two"}


async def test_a_hook_that_is_set_again_is_taken_off(here: AddonWorld) -> None:
    """Issue 195: a hook is not left behind, and its stages are not run twice."""
    here.shelf.staged(ONE, {"cni": chart("cni")}, {AFTER: applied("cni")})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(ONE)
        before = here.renderer.requests
        await here.hook(AFTER)
        await here.installed(ONE)
    assert here.renderer.requests == before


async def test_an_unknown_hook_is_named_and_taken_off(here: AddonWorld) -> None:
    here.shelf.staged(ONE, {"cni": chart("cni")}, {AFTER: applied("cni")})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(ONE)
        await here.hook("BeforeLunch")
        addon = await here.installed(ONE)
    assert addon["status"]["ready"] is True


async def test_both_ways_follow_each_other(here: AddonWorld) -> None:
    from hortus.kube import yaml

    here.shelf.single(ONE, {"templates/a.yaml": yaml.dump_all(chart("single", "both"))})
    here.shelf.staged(TWO, {"cni": chart("staged", "both")}, {BEFORE: applied("cni")})
    three = "docker-plain-1-33-v3"
    here.shelf.single(three, {"templates/a.yaml": yaml.dump_all(chart("single"))})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(ONE)
        assert await here.names_inside() == {"single", "both"}
        await here.move(TWO)
        await here.installed(TWO)
        assert await here.names_inside() == {"staged", "both"}
        await here.move(three)
        await here.installed(three)
        assert await here.names_inside() == {"single"}


async def test_a_run_that_ended_before_its_last_write_is_not_repeated(here: AddonWorld) -> None:
    here.shelf.staged(ONE, {"cni": chart("cni")}, {AFTER: applied("cni")})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.installed(ONE)
    # The state of a process that was killed between its last two writes.
    spec = {"clusterStack": None, "version": None, "hook": AFTER}
    await here.client.patch(CLUSTER_ADDONS, addon["metadata"]["name"], {"spec": spec}, HOME)
    before = here.renderer.requests
    async with here.controllers():
        addon = await here.until(lambda obj: is_installed(obj, ONE))
    assert here.renderer.requests == before
    assert addon["spec"]["version"] == "v1"


async def test_a_chart_sees_the_api_versions_of_its_cluster(here: AddonWorld) -> None:
    """Issue 250: a chart that comes after a definition finds its kind."""
    asking = """
{{- if .Capabilities.APIVersions.Has "example.org/v1" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: seen}
{{- end }}
"""
    await here.inside.create(CRDS, WIDGETS)
    here.shelf.staged(ONE, {"cni": {"templates/a.yaml": asking}}, {AFTER: applied("cni")})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(ONE)
    assert await here.names_inside() == {"seen"}


async def test_a_chart_sees_the_kubernetes_version_of_its_release(here: AddonWorld) -> None:
    """Issues 153 and 243: that of metadata.yaml, which the cluster runs once it is upgraded, not that of the API."""
    asking = yaml.dump(config_map("seen", version="{{ .Capabilities.KubeVersion.Version }}"))
    stages = {AFTER: applied("cni"), BEFORE: applied("cni")}
    here.shelf.staged(ONE, {"cni": {"templates/a.yaml": asking}}, stages, kubernetes="v1.33.1")
    here.shelf.staged(NEXT, {"cni": {"templates/a.yaml": asking}}, stages, kubernetes="v1.34.7")
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(ONE)
        first = await here.inside_object(CONFIG_MAPS, "seen")
        await here.move(NEXT, version="v1.34.7")
        await here.until(lambda obj: condition(obj, "HookServerReady").get("status") == "False")
        await here.hook(BEFORE)
        await here.installed(NEXT)
        second = await here.inside_object(CONFIG_MAPS, "seen")
    assert first is not None
    assert second is not None
    assert [one["data"]["version"] for one in (first, second)] == ["v1.33.1", "v1.34.7"]


async def test_a_paused_addon_is_left_alone_until_it_goes_on(here: AddonWorld) -> None:
    for tag in (ONE, TWO):
        stages = {AFTER: applied("cni"), BEFORE: applied("cni")}
        here.shelf.staged(tag, {"cni": chart("cni", of=tag)}, stages)
    for name in ("shop", "other"):
        await here.cluster(ONE, name)
        await here.kubeconfig(name)
    async with here.controllers():
        for name in ("shop", "other"):
            await here.installed(ONE, name)
        paused: Object = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": "true"}}}
        await here.client.patch(CLUSTER_ADDONS, "cluster-addon-shop", paused, HOME)
        await here.move(TWO, "shop")
        await here.move(TWO, "other")
        await here.installed(TWO, "other")
        addon = await here.client.get(CLUSTER_ADDONS, "cluster-addon-shop", HOME)
        assert is_installed(addon, ONE)
        paused["metadata"]["annotations"]["cluster.x-k8s.io/paused"] = None
        await here.client.patch(CLUSTER_ADDONS, "cluster-addon-shop", paused, HOME)
        await here.installed(TWO, "shop")
