"""Bad input: every obstacle is a condition with its contract's reason, and mended input is taken up."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.domains.stacks.addons.releases import config_map
from tests.domains.stacks.addons.test_stages import AFTER, BEFORE, NEXT, ONE, TWO, applied, chart
from tests.domains.stacks.addons.world import CONFIG_MAPS, HOME, V1BETA1, AddonWorld, condition, conditions

from hortus.domains.stacks.addons import workload
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import yaml

PLAIN = {"templates/a.yaml": yaml.dump(config_map("a"))}


@pytest.mark.parametrize(
    ("template", "reason", "said"),
    [
        ('a: {{ env "OCI_PASSWORD" }}', "TemplateNewClusterStackOverwriteFailed", "env is refused"),
        ("a: {{ if }}", "TemplateNewClusterStackOverwriteFailed", "cni/overwrite.yaml:1"),
        ("- a\n", "TemplateNewClusterStackOverwriteFailed", "must hold a mapping"),
    ],
)
async def test_a_values_template_that_fails_stops_the_stage(
    here: AddonWorld, template: str, reason: str, said: str
) -> None:
    """D18."""
    files = {**PLAIN, "overwrite.yaml": template}
    here.shelf.staged(ONE, {"cni": files, "csi": chart("csi")}, {AFTER: applied("cni", "csi")})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "HelmChartTemplated").get("status") == "False")
    found = condition(addon, "HelmChartTemplated")
    assert (found["reason"], found["severity"]) == (reason, "Error")
    assert said in found["message"]
    assert await here.names_inside() == set()


async def test_a_chart_that_fails_stops_the_stage(here: AddonWorld) -> None:
    files = {"templates/a.yaml": '{{ fail "no luck" }}'}
    here.shelf.staged(ONE, {"cni": files}, {AFTER: applied("cni")})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "HelmChartTemplated").get("status") == "False")
    found = condition(addon, "HelmChartTemplated")
    assert found["reason"] == "TemplateNewClusterStackFailed"
    assert "no luck" in found["message"]
    assert ONE in found["message"]


async def test_one_chart_whose_values_fail_is_reported(here: AddonWorld) -> None:
    here.shelf.single(ONE, PLAIN, values='values: |\n  a: {{ env "HOME" }}\n')
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "HelmChartApplied").get("status") == "False")
    found = condition(addon, "HelmChartApplied")
    assert (found["reason"], found["severity"]) == ("FailedToApplyObjects", "Error")
    assert "cluster-addon-values.yaml" in found["message"]


async def test_a_bad_config_is_reported(here: AddonWorld) -> None:
    here.shelf.staged(ONE, {"cni": chart("cni")}, {AFTER: [{"name": "../up", "action": "apply"}]})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "ClusterAddonConfigValidated").get("status") == "False")
    found = condition(addon, "ClusterAddonConfigValidated")
    assert (found["reason"], found["severity"]) == ("ParsingClusterAddonConfigFailed", "Error")
    assert "addonStages.AfterControlPlaneInitialized[0].name" in found["message"]


@pytest.mark.parametrize("data", [b"no archive", b""])
async def test_a_bad_archive_is_reported(here: AddonWorld, data: bytes) -> None:
    here.shelf.staged(ONE, {"cni": chart("cni")}, {AFTER: applied("cni")})
    archive = here.shelf.folder / "cluster-stacks" / ONE / "docker-plain-1-33-cluster-addon-v1.tgz"
    archive.write_bytes(data)
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "ClusterStackReleaseDownloaded").get("status") == "False")
    found = condition(addon, "ClusterStackReleaseDownloaded")
    assert (found["reason"], found["severity"]) == ("IssueWithReleaseAssets", "Error")
    assert archive.name in found["message"]


async def test_a_workload_cluster_that_never_answers_is_reported(
    here: AddonWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that answers again is seen at once."""
    monkeypatch.setattr(workload, "SILENT_AGAIN", 300.0)
    here.shelf.single(ONE, PLAIN)
    await here.cluster(ONE)
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "ClusterReady"))
        found = condition(addon, "ClusterReady")
        assert (found["reason"], found["severity"]) == ("ControlPlaneNotReady", "Warning")
        await here.kubeconfig(url="https://127.0.0.1:1")
        addon = await here.until(lambda obj: condition(obj, "ClusterReady").get("severity") == "Info")
        assert "Cluster stacks/shop" in condition(addon, "ClusterReady")["message"]
        await here.client.delete(SECRETS, "shop-kubeconfig", HOME)
        await here.kubeconfig()
        await here.installed(ONE)


async def test_a_release_that_is_gone_in_the_middle_of_an_upgrade_is_awaited(here: AddonWorld) -> None:
    """The release before is not needed for an upgrade (D17), and the new one is taken up once it is there."""
    here.shelf.staged(ONE, {"cni": chart("cni", "old")}, {AFTER: applied("cni")})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(ONE)
        here.shelf.remove(ONE)
        await here.move(TWO)
        addon = await here.until(lambda obj: condition(obj, "ClusterStackReleaseDownloaded").get("status") == "False")
        found = condition(addon, "ClusterStackReleaseDownloaded")
        assert (found["reason"], found["severity"]) == ("ReleaseAssetsNotDownloadedYet", "Info")
        assert TWO in found["message"]
        here.shelf.staged(TWO, {"cni": chart("cni")}, {BEFORE: applied("cni")})
        await here.nudge()
        await here.installed(TWO)
    assert await here.names_inside() == {"cni"}


async def test_a_class_of_no_cluster_stack_is_said_to_be_none(here: AddonWorld) -> None:
    await here.cluster("docker-plain-1-33-v1-oops")
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "ClusterStackReleaseDownloaded"))
    assert "is of no cluster stack" in condition(addon, "ClusterStackReleaseDownloaded")["message"]


async def test_a_reference_to_an_object_that_is_gone_is_reported(here: AddonWorld) -> None:
    here.shelf.single(ONE, PLAIN)
    reference = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DockerCluster", "name": "gone"}
    await here.cluster(ONE, infrastructureRef=reference)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "HelmChartTemplated").get("status") == "False")
        assert "refers to DockerCluster gone" in condition(addon, "HelmChartTemplated")["message"]
        reference["name"] = "shop"
        await here.client.patch(V1BETA1, "shop", {"spec": {"infrastructureRef": reference}}, HOME)
        addon = await here.installed(ONE)
    assert "HelmChartTemplated" not in conditions(addon)


async def test_an_object_that_the_cluster_refuses_holds_only_itself_up(here: AddonWorld) -> None:
    bad = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Bad_Name"}}
    here.shelf.staged(NEXT, {"cni": [*chart("cni"), bad]}, {AFTER: applied("cni")})
    await here.cluster(NEXT, version="v1.33.1")
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "HelmChartApplied").get("status") == "False")
        assert await here.inside_object(CONFIG_MAPS, "cni") is not None
    states = {one["name"]: one["status"] for one in addon["status"]["resources"]}
    assert states == {"cni": "synced", "Bad_Name": "not-synced"}
    error = next(one["error"] for one in addon["status"]["resources"] if one["name"] == "Bad_Name")
    assert "Bad_Name" in error


async def test_an_archive_that_leaves_its_folder_is_refused(here: AddonWorld, tmp_path: Path) -> None:
    """D16."""
    import io
    import tarfile

    here.shelf.staged(ONE, {"cni": chart("cni")}, {AFTER: applied("cni")})
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        entry = tarfile.TarInfo("../escaped")
        entry.size = 1
        archive.addfile(entry, io.BytesIO(b"x"))
    file = here.shelf.folder / "cluster-stacks" / ONE / "docker-plain-1-33-cluster-addon-v1.tgz"
    file.write_bytes(made.getvalue())
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "ClusterStackReleaseDownloaded").get("status") == "False")
    assert condition(addon, "ClusterStackReleaseDownloaded")["reason"] == "IssueWithReleaseAssets"
    assert not list(tmp_path.rglob("escaped"))
