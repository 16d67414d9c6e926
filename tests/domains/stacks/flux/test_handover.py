"""Addons that Flux applies: what it is given, in which order, what comes back, and the way there and back."""

from __future__ import annotations

from tests.domains.stacks.addons.test_stages import AFTER, BEFORE, NEXT, ONE, TWO, applied, chart
from tests.domains.stacks.addons.world import CONFIG_MAPS, HOME, V1BETA1, condition, conditions, is_installed
from tests.domains.stacks.flux.world import FluxWorld

from hortus.domains.stacks.flux.objects import HANDED, HELM_RELEASES, REPOSITORIES, release_name, storage_namespace
from hortus.domains.stacks.types import CLUSTER_ADDONS
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube.objects import Object, Resource
from hortus.testing.waiting import wait_for, wait_gone

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CNI, CSI = release_name("shop", "cni"), release_name("shop", "csi")
TEMPLATE = {
    "templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-{{ .Values.of }}'}\n",
    "overwrite.yaml": "of: {{ .Cluster.metadata.name }}\nport: {{ .Cluster.spec.controlPlaneEndpoint.port }}\n",
}


def by_flux(obj: Object, class_name: str) -> bool:
    handed = HANDED in obj["metadata"].get("annotations", {})
    return is_installed(obj, class_name) and handed and condition(obj, "FluxReleasesReady").get("status") == "True"


def by_hortus(obj: Object, class_name: str) -> bool:
    handed = HANDED in obj["metadata"].get("annotations", {})
    return is_installed(obj, class_name) and not handed


async def test_flux_installs_the_charts_with_resolved_values(there: FluxWorld) -> None:
    here = there.here
    here.shelf.staged(ONE, {"cni": TEMPLATE}, {AFTER: applied("cni")})
    await here.cluster(ONE)
    await there.choose("flux")
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: by_flux(obj, ONE))
    (release,) = (await there.handed()).values()
    (source,) = (await there.handed(REPOSITORIES)).values()
    spec = release["spec"]
    assert spec["values"] == {"of": "shop", "port": 6443}
    assert spec["kubeConfig"] == {"secretRef": {"name": "shop-kubeconfig", "key": "value"}}
    assert spec["chartRef"] == {"kind": "OCIRepository", "name": source["metadata"]["name"]}
    assert (spec["releaseName"], spec["targetNamespace"]) == ("cluster-addon", "kube-system")
    assert source["spec"]["url"] == f"oci://127.0.0.1:{here.port}/{HOME}/{ONE}/cni"
    assert await here.names_inside() == {"cluster-addon-shop"}
    assert there.flux.actions == [("install", "cni")]
    assert conditions(addon) == {
        "Ready": "True",
        "ClusterAddonConfigValidated": "True",
        "ClusterReady": "True",
        "ClusterStackReleaseDownloaded": "True",
        "FluxReleasesReady": "True",
        "HelmChartApplied": "True",
        "HookServerReady": "True",
    }
    assert [(one["name"], one["status"]) for one in addon["status"]["resources"]] == [("cluster-addon-shop", "synced")]


async def test_addons_go_to_flux_and_back_without_an_object_created_again(there: FluxWorld) -> None:
    here = there.here
    here.shelf.staged(ONE, {"cni": chart("cni", "x"), "csi": chart("csi")}, {AFTER: applied("cni", "csi")})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(ONE)
        before = await there.identities()
        await there.choose("flux")
        await here.until(lambda obj: by_flux(obj, ONE))
        assert await there.identities() == before
        assert sorted(await there.handed()) == sorted((CNI, CSI))
        await there.choose("hortus")
        addon = await here.until(lambda obj: by_hortus(obj, ONE))
    assert await there.identities() == before
    assert there.flux.actions == [("install", "cni"), ("install", "csi")]
    for kind in (HELM_RELEASES, REPOSITORIES):
        assert await there.handed(kind) == {}
    assert (await here.client.list(SECRETS, HOME, labels="fleet.hortus.dev/flux")).items == []
    assert (await here.inside.list(SECRETS, labels="owner=helm")).items == []
    assert "FluxReleasesReady" not in conditions(addon)
    assert {one["name"] for one in addon["status"]["resources"]} == {"cni", "x", "csi"}


async def test_a_namespace_of_somebody_else_outlives_the_records_of_helm_in_it(there: FluxWorld) -> None:
    here = there.here
    here.shelf.staged(ONE, {"cni": chart("cni"), "csi": chart("csi")}, {AFTER: applied("cni", "csi")})
    theirs, ours = storage_namespace("cni"), storage_namespace("csi")
    before = await here.inside.create(NAMESPACES, {"metadata": {"name": theirs}})
    await here.cluster(ONE)
    await there.choose("flux")
    await here.kubeconfig()
    async with here.controllers():
        await here.until(lambda obj: by_flux(obj, ONE))
        await there.choose("hortus")
        await here.until(lambda obj: by_hortus(obj, ONE))
        await wait_gone(here.inside, NAMESPACES, ours)
    now = await here.inside.get(NAMESPACES, theirs)
    assert (now["metadata"]["uid"], now["metadata"].get("deletionTimestamp")) == (before["metadata"]["uid"], None)
    assert (await here.inside.list(SECRETS, labels="owner=helm")).items == []


async def test_a_stage_waits_for_the_helm_release_of_the_one_before(there: FluxWorld) -> None:
    here = there.here
    here.shelf.staged(ONE, {"cni": chart("cni"), "csi": chart("csi")}, {AFTER: applied("cni", "csi")})
    there.flux.failing.add("cni")
    await here.cluster(ONE)
    await there.choose("flux")
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "HelmChartApplied").get("severity") == "Error")
        found = condition(addon, "HelmChartApplied")
        assert found["reason"] == "FailedToApplyObjects"
        assert found["message"] == f"HelmRelease {HOME}/{CNI}: InstallFailed: cni cannot be installed"
        assert list(await there.handed()) == [CNI]
        assert addon["status"]["resources"][0]["error"] == found["message"]
        assert [stage["phase"] for stage in addon["status"]["stages"]] == ["applyingOrDeleting", "Pending"]
        there.flux.failing.clear()
        await there.request(CNI, "1")
        await here.until(lambda obj: by_flux(obj, ONE))
    assert there.flux.actions == [("install", "cni"), ("install", "csi")]


async def test_an_upgrade_in_stages_hands_over_what_stays_and_deletes_the_rest(there: FluxWorld) -> None:
    here = there.here
    charts = {"cni": chart("cni", "leaves"), "csi": chart("csi"), "old": chart("old"), "gone": chart("gone")}
    here.shelf.staged(ONE, charts, {AFTER: applied("cni", "csi", "old", "gone")})
    here.shelf.staged(
        NEXT,
        {"cni": chart("cni", release="next"), "csi": chart("csi"), "old": chart("old")},
        {BEFORE: [*applied("cni", "csi"), {"name": "old", "action": "delete"}]},
        kubernetes="v1.34.1",
    )
    await here.cluster(ONE)
    await there.choose("flux")
    await here.kubeconfig()
    async with here.controllers():
        await here.until(lambda obj: by_flux(obj, ONE))
        before = await there.identities()
        await here.move(NEXT, version="v1.34.1")
        await here.hook(BEFORE)
        addon = await here.until(lambda obj: by_flux(obj, NEXT))
        after = await there.identities()
    assert after == {name: before[name] for name in ("cni", "csi")}
    assert sorted(await there.handed()) == sorted((CNI, CSI))
    assert len(await there.handed(REPOSITORIES)) == 2
    assert ("uninstall", "old") not in there.flux.actions
    assert addon["metadata"]["annotations"][HANDED] == "cni csi"
    found = await here.inside_object(CONFIG_MAPS, "cni")
    assert found is not None
    assert found["data"] == {"release": "next"}


async def test_a_chart_with_another_name_is_upgraded_without_being_uninstalled(there: FluxWorld) -> None:
    """The name of the one chart holds the Kubernetes version; helm-controller uninstalls on another name."""
    here = there.here
    files = {"templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cni}\n"}
    here.shelf.single(ONE, files)
    here.shelf.single(NEXT, files, kubernetes="v1.34.1")
    await here.cluster(ONE)
    await there.choose("flux")
    await here.kubeconfig()
    async with here.controllers():
        await here.until(lambda obj: by_flux(obj, ONE))
        before = await there.identities()
        await here.move(NEXT, version="v1.34.1")
        await here.until(lambda obj: by_flux(obj, NEXT))
        assert await there.identities() == before
    assert [action for action, _ in there.flux.actions] == ["install", "upgrade"]


async def test_what_people_change_or_delete_is_given_to_flux_again(there: FluxWorld) -> None:
    here = there.here
    here.shelf.staged(ONE, {"cni": chart("cni")}, {AFTER: applied("cni")})
    await here.cluster(ONE)
    await there.choose("flux")
    await here.kubeconfig()
    async with here.controllers():
        await here.until(lambda obj: by_flux(obj, ONE))
        await here.client.patch(HELM_RELEASES, CNI, {"spec": {"releaseName": "other"}}, HOME)
        await wait_for(
            here.client, HELM_RELEASES, CNI, HOME, until=lambda obj: obj["spec"]["releaseName"] == "cluster-addon"
        )
        (source,) = await there.handed(REPOSITORIES)
        uid = (await here.client.get(REPOSITORIES, source, HOME))["metadata"]["uid"]
        await here.client.delete(REPOSITORIES, source, HOME)
        await wait_for(here.client, REPOSITORIES, source, HOME, until=lambda obj: obj["metadata"]["uid"] != uid)
        addon = await here.until(lambda obj: by_flux(obj, ONE))
    assert addon["status"]["ready"]


async def test_a_release_that_fails_later_is_reported(there: FluxWorld) -> None:
    here = there.here
    here.shelf.staged(ONE, {"cni": chart("cni")}, {AFTER: applied("cni")})
    await here.cluster(ONE)
    await there.choose("flux")
    await here.kubeconfig()
    async with here.controllers():
        await here.until(lambda obj: by_flux(obj, ONE))
        there.flux.failing.add("cni")
        await there.request(CNI, "1")
        addon = await here.until(lambda obj: condition(obj, "FluxReleasesReady").get("status") == "False")
        found = condition(addon, "Ready")
        assert (found["reason"], found["severity"]) == ("HelmReleaseNotReady", "Warning")
        assert found["message"] == f"HelmRelease {HOME}/{CNI}: UpgradeFailed: cni cannot be installed"
        assert addon["status"]["ready"] is False
        there.flux.failing.clear()
        await there.request(CNI, "2")
        addon = await here.until(lambda obj: by_flux(obj, ONE))
    assert addon["status"]["ready"] is True


async def test_a_cluster_that_is_deleted_leaves_its_addons_and_no_helm_release(there: FluxWorld) -> None:
    here = there.here
    here.shelf.staged(ONE, {"cni": chart("cni")}, {AFTER: applied("cni")})
    await here.cluster(ONE)
    await there.choose("flux")
    await here.kubeconfig()
    async with here.controllers():
        await here.until(lambda obj: by_flux(obj, ONE))
        await here.client.delete(V1BETA1, "shop", HOME)
        await here.client.delete(CLUSTER_ADDONS, "cluster-addon-shop", HOME)
        await wait_gone(here.client, CLUSTER_ADDONS, "cluster-addon-shop", HOME)
        await wait_gone(here.client, HELM_RELEASES, CNI, HOME)
    assert await here.names_inside() == {"cni"}
    assert there.flux.actions == [("install", "cni")]


async def test_a_chart_that_is_left_over_from_own_apply_is_deleted_after_a_handover(there: FluxWorld) -> None:
    here = there.here
    here.shelf.staged(ONE, {"cni": chart("cni", "leaves")}, {AFTER: applied("cni"), BEFORE: applied("cni")})
    here.shelf.staged(TWO, {"cni": chart("cni", "comes")}, {AFTER: applied("cni"), BEFORE: applied("cni")})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(ONE)
        await there.choose("flux")
        await here.move(TWO)
        await here.until(lambda obj: by_flux(obj, TWO))
        await here.gone_inside(CONFIG_MAPS, "leaves")
    assert await here.names_inside() == {"cni", "comes"}


async def test_at_rest_nothing_is_asked_and_nothing_is_written(there: FluxWorld) -> None:
    here = there.here
    here.shelf.staged(ONE, {"cni": TEMPLATE}, {AFTER: applied("cni")})
    await here.cluster(ONE)
    await there.choose("flux")
    await here.kubeconfig()
    async with here.controllers():
        await here.until(lambda obj: by_flux(obj, ONE))
    async with here.controllers() as manager:
        await here.at_rest(manager)  # the first reconcile waits for the caches of Flux's objects
        await here.requests_of_a_reconcile(until=0)
        for _ in range(3):
            assert await here.requests_of_a_reconcile() == []
