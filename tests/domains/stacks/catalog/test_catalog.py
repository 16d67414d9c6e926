"""ClusterStacks and ClusterStackReleases from end to end, against the embedded server."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.domains.stacks.catalog.world import (
    CLASSES,
    CLUSTERS,
    HOME,
    PROVIDERS,
    TEAM,
    TEMPLATES,
    CatalogWorld,
    condition,
    is_ready,
    resources,
)
from tests.domains.stacks.releasing import CLUSTER_CLASS

from hortus.domains.stacks.clusters import cluster_cache, releases_in_use
from hortus.domains.stacks.releases import LocalLibrary, ReleaseFolder, SourceFailed
from hortus.domains.stacks.releases.library import ReleaseListing
from hortus.domains.stacks.types import CLUSTER_STACK_RELEASES, CLUSTER_STACKS, STACK_POLICIES
from hortus.engine import Manager
from hortus.kube import Resource
from hortus.simulation.capi.definitions import CRDS
from hortus.testing.waiting import wait_for

V1, V2, V3 = (f"docker-ferrol-1-27-v{number}" for number in (1, 2, 3))
CAPI = "cluster.x-k8s.io"


async def test_a_release_of_the_go_operators_tests_becomes_a_class_once_its_provider_is_ready(
    here: CatalogWorld, upstream: Path
) -> None:
    (here.folder / "cluster-stacks").symlink_to(upstream / "cso/releases")
    await here.template("controlplaneamd64-v1", "workeramd64-v1")
    reference = {"apiVersion": PROVIDERS.api_version, "kind": f"{PROVIDERS.kind}Template", "name": "template"}
    await here.stack("v1", "v2", noProvider=False, providerRef=reference)
    async with here.controllers():
        waiting = await here.until(
            CLUSTER_STACK_RELEASES, V1, lambda obj: condition(obj, "ProviderClusterStackReleaseReady")
        )
        assert condition(waiting, "ProviderClusterStackReleaseReady")["reason"] == "ProcessOngoing"
        assert condition(waiting, "ProviderClusterStackReleaseReady")["severity"] == "Info"
        assert not is_ready(waiting)
        await here.provider_ready(V1)
        done = await here.ready(V1)
        assert done["status"]["kubernetesVersion"] == "v1.27.3"
        assert condition(done, "HelmChartApplied") == {"status": "True"}
        assert condition(done, "Ready") == {"status": "True"}
        assert resources(done) == [
            ("ClusterClass", V1, "synced"),
            ("DockerClusterTemplate", f"{V1}-cluster", "synced"),
            ("DockerMachineTemplate", f"{V1}-machinetemplate-docker", "synced"),
            ("KubeadmConfigTemplate", f"{V1}-worker-bootstraptemplate-docker", "synced"),
            ("KubeadmControlPlaneTemplate", f"{V1}-control-plane", "synced"),
        ]
        found = await here.client.get(CLASSES, V1, HOME)
        assert found["metadata"]["labels"]["clusterstack.x-k8s.io/instance"] == "owned"
        assert [one["manager"] for one in found["metadata"]["managedFields"]] == ["kubectl"]
        made = await here.client.get(PROVIDERS, V1, HOME)
        assert made["spec"] == {"nodeImages": ["controlplaneamd64-v1", "workeramd64-v1"]}
        owner = made["metadata"]["ownerReferences"]
        assert [(one["kind"], one["name"], one["controller"]) for one in owner] == [("ClusterStackRelease", V1, True)]
        assert await here.names() == [V1, V2]
        await here.client.patch(CLUSTER_STACKS, "stack", {"spec": {"versions": ["v1"]}}, HOME)
        await here.until_gone(CLUSTER_STACK_RELEASES, V2)
        await here.until_gone(PROVIDERS, V2)
    assert await here.names() == [V1]
    assert {"CreateProviderStackRelease", "ClusterStackReleaseCreated"} <= await here.reasons()


async def test_a_stack_without_provider_reports_its_releases(here: CatalogWorld) -> None:
    here.release(V1)
    here.release(V2)
    await here.stack("v2", "v1", "v3")
    async with here.controllers():
        await here.ready(V1)
        await here.ready(V2)
        stack = await here.until(
            CLUSTER_STACKS, "stack", lambda obj: obj.get("status", {}).get("usableVersions") == "v1, v2"
        )
        assert stack["status"]["latestRelease"] == f"{V2} | v1.27.3"
        assert condition(stack, "ClusterStackReleaseAvailable") == {"status": "True"}
        assert condition(stack, "ClusterStackReleasesSynced") == {"status": "True"}
        assert condition(stack, "Ready") == {"status": "True"}
        failed = await here.until(
            CLUSTER_STACK_RELEASES, V3, lambda obj: "does not exist" in condition(obj, "Ready").get("message", "")
        )
        assert condition(failed, "ClusterStackReleaseDownloaded")["reason"] == "ReleaseAssetsNotDownloadedYet"
        stack = await here.until(
            CLUSTER_STACKS,
            "stack",
            lambda obj: (
                [one.get("phase") for one in obj.get("status", {}).get("summary", ())][2:] not in ([], [None], [""])
            ),
        )
        assert stack["status"]["summary"] == [
            {"name": "v1", "ready": True, "phase": "done"},
            {"name": "v2", "ready": True, "phase": "done"},
            {
                "name": "v3",
                "ready": False,
                "phase": "downloading release assets",
                "message": "ReleaseAssetsNotDownloadedYet",
            },
        ]
    release = await here.client.get(CLUSTER_STACK_RELEASES, V1, HOME)
    assert release["spec"] == {}
    assert release["metadata"]["finalizers"] == ["clusterstackrelease.clusterstack.x-k8s.io"]
    owner = {"apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack", "name": "stack"}
    assert release["metadata"]["ownerReferences"] == [{**owner, "uid": stack["metadata"]["uid"]}]


async def test_the_latest_release_is_subscribed_to(here: CatalogWorld) -> None:
    for number in (1, 9, 10):
        here.release(f"docker-ferrol-1-27-v1-alpha-{number}")
    here.release(V1)
    await here.stack(autoSubscribe=True, channel="custom")
    async with here.controllers():
        await here.ready("docker-ferrol-1-27-v1-alpha-10")
        await here.until(
            CLUSTER_STACKS, "stack", lambda obj: obj.get("status", {}).get("usableVersions") == "v1-alpha.10"
        )
        assert await here.names() == ["docker-ferrol-1-27-v1-alpha-10"]


async def test_a_release_in_use_stays_until_no_cluster_of_any_namespace_uses_it(here: CatalogWorld) -> None:
    hashed = "docker-ferrol-1-27-v0-sha-hipstsw"
    here.release(hashed)
    here.release("docker-ferrol-1-27-v0-sha-later00")
    await here.stack("v0-sha.hipstsw", "v0-sha.later00", channel="custom")
    class_name = "docker-ferrol-1-27-v0-sha.hipstsw"
    await here.cluster("shop", class_name, namespace=TEAM, classNamespace=HOME)
    async with here.controllers():
        await here.ready(hashed)
        await here.ready("docker-ferrol-1-27-v0-sha-later00")
        await here.client.patch(CLUSTER_STACKS, "stack", {"spec": {"versions": ["v0-sha.later00"]}}, HOME)
        await here.until(CLUSTER_STACKS, "stack", lambda obj: obj["metadata"]["generation"] == 2)
        # Deleted by hand it stays with its objects as well.
        await here.client.delete(CLUSTER_STACK_RELEASES, hashed, HOME)
        await here.until(CLUSTER_STACK_RELEASES, hashed, lambda obj: obj["metadata"].get("deletionTimestamp"))
        await here.client.get(CLASSES, class_name, HOME)
        await here.client.delete(CLUSTERS, "shop", TEAM)
        await here.until_gone(CLUSTER_STACK_RELEASES, hashed)
        await here.until_gone(CLASSES, class_name)
    templates = Resource(f"infrastructure.{CAPI}", "v1beta1", "dockerclustertemplates", "DockerClusterTemplate")
    assert await here.names(templates) == ["docker-ferrol-1-27-v0-sha.later00-cluster"]


async def test_what_is_deleted_or_edited_by_hand_comes_back_at_once(here: CatalogWorld) -> None:
    here.release(V1)
    await here.stack("v1")
    async with here.controllers():
        await here.ready(V1)
        before = await here.client.get(CLASSES, V1, HOME)
        await here.client.delete(CLASSES, V1, HOME)
        again = await wait_for(
            here.client, CLASSES, V1, HOME, until=lambda obj: obj["metadata"]["uid"] != before["metadata"]["uid"]
        )
        assert again["spec"] == before["spec"]
        edited = {"spec": {"infrastructure": {"ref": {"name": "another"}}}}
        await here.client.patch(CLASSES, V1, edited, HOME)
        await here.until(CLASSES, V1, lambda obj: obj["spec"] == before["spec"])
        assert is_ready(await here.client.get(CLUSTER_STACK_RELEASES, V1, HOME))


async def test_the_descriptions_of_variables_reach_the_class(here: CatalogWorld, upstream: Path) -> None:
    (here.folder / "cluster-stacks").symlink_to(upstream / "cso/releases")
    await here.stack("v1")
    async with here.controllers():
        await here.ready(V1)
    (variable,) = (await here.client.get(CLASSES, V1, HOME))["spec"]["variables"]
    assert variable["name"] == "imageRepository"
    assert variable["schema"]["openAPIV3Schema"] == {
        "type": "string",
        "default": "",
        "example": "registry.k8s.io",
        "description": "imageRepository sets the container registry to pull images from. If empty, nothing will be set "
        "and the from of kubeadm will be used.",
    }


async def test_a_release_is_removed_with_its_objects_although_its_files_are_gone(here: CatalogWorld) -> None:
    here.release(V1)
    await here.stack("v1")
    async with here.controllers():
        await here.ready(V1)
    shutil.rmtree(here.folder / "cluster-stacks")
    async with here.controllers():
        await here.client.patch(CLUSTER_STACKS, "stack", {"spec": {"versions": []}}, HOME)
        # The one that is ready stays as the latest, as long as its ClusterStack is there.
        await here.client.delete(CLUSTER_STACK_RELEASES, V1, HOME)
        await here.until_gone(CLUSTER_STACK_RELEASES, V1)
        await here.until_gone(CLASSES, V1)
    assert (await here.client.list(CLASSES, HOME)).items == []


async def test_a_chart_whose_class_has_another_name_is_refused_before_anything_is_applied(here: CatalogWorld) -> None:
    here.release(
        V1, templates={"class.yaml": f"apiVersion: {CAPI}/v1beta1\nkind: ClusterClass\nmetadata: {{name: b}}\n"}
    )
    await here.stack("v1")
    async with here.controllers():
        failed = await here.until(CLUSTER_STACK_RELEASES, V1, lambda obj: condition(obj, "HelmChartApplied"))
    assert condition(failed, "HelmChartApplied")["reason"] == "FailedToApplyObjects"
    assert f"no ClusterClass {V1} but b" in condition(failed, "HelmChartApplied")["message"]
    assert await here.names(CLASSES) == []


async def test_a_kind_that_does_not_exist_yet_keeps_the_whole_release_back(here: CatalogWorld) -> None:
    image = "apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Image\nmetadata:\n  name: image\n"
    here.release(V1, templates={"class.yaml": CLUSTER_CLASS, "image.yaml": image})
    await here.stack("v1")
    async with here.controllers():
        failed = await here.until(CLUSTER_STACK_RELEASES, V1, lambda obj: condition(obj, "HelmChartApplied"))
    assert "Image" in condition(failed, "HelmChartApplied")["message"]
    assert await here.names(CLASSES) == []


async def test_a_release_that_no_policy_approves_is_not_offered(here: CatalogWorld) -> None:
    here.release(V1)
    here.release(V2)
    await here.create(STACK_POLICIES, "approved", spec={"provider": "docker", "versions": ["v1"]})
    await here.stack(autoSubscribe=True)
    async with here.controllers():
        await here.ready(V1)
        assert await here.names() == [V1]
        await here.client.patch(STACK_POLICIES, "approved", {"spec": {"versions": ["v1", "v2"]}}, HOME)
        await here.ready(V2)


async def test_a_template_that_does_not_exist_is_reported_until_it_does(here: CatalogWorld) -> None:
    here.release(V1)
    reference = {"apiVersion": PROVIDERS.api_version, "kind": f"{PROVIDERS.kind}Template", "name": "template"}
    await here.stack("v1", noProvider=False, providerRef=reference)
    async with here.controllers():
        failed = await here.until(
            CLUSTER_STACKS, "stack", lambda obj: condition(obj, "ProviderClusterStackReleasesSynced")
        )
        found = condition(failed, "ProviderClusterStackReleasesSynced")
        assert (found["reason"], found["severity"]) == ("ProviderTemplateNotFound", "Error")
        await here.template()
        await here.provider_ready(V1)
        await here.ready(V1)


async def test_a_change_of_the_template_changes_the_providers_object(here: CatalogWorld) -> None:
    here.release(V1)
    reference = {"apiVersion": PROVIDERS.api_version, "kind": f"{PROVIDERS.kind}Template", "name": "template"}
    await here.template("image-v1")
    await here.stack("v1", noProvider=False, providerRef=reference)
    async with here.controllers():
        await here.provider_ready(V1)
        await here.ready(V1)
        before = await here.client.get(PROVIDERS, V1, HOME)
        wanted = {"template": {"spec": {"nodeImages": ["image-v2", "image-v3"]}}}
        await here.client.patch(TEMPLATES, "template", {"spec": wanted}, HOME)
        # Templates are of any kind and not watched: the ClusterStack looks at each resync and each change of its own.
        await here.client.patch(CLUSTER_STACKS, "stack", {"metadata": {"labels": {"tier": "gold"}}}, HOME)
        after = await here.until(PROVIDERS, V1, lambda obj: obj["spec"] != before["spec"])
        assert after["spec"] == wanted["template"]["spec"]
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert is_ready(after)
    assert "UpdateProviderStackRelease" in await here.reasons()


class DownLibrary(LocalLibrary):
    """A source that stops answering."""

    down = False

    async def listing(self) -> ReleaseListing:
        if self.down:
            raise SourceFailed("registry.example.org: cannot be reached")
        return await super().listing()


async def test_a_source_that_does_not_answer_is_reported_and_nothing_is_deleted(here: CatalogWorld) -> None:
    here.release(V1)
    here.release(V2, changed={"metadata.yaml": b"bad: ["})
    here.library = library = DownLibrary(ReleaseFolder(here.folder), clock=here.clock)
    await here.stack("v1", autoSubscribe=True)
    async with here.controllers():
        await here.ready(V1)
        await here.until(CLUSTER_STACK_RELEASES, V2, lambda obj: condition(obj, "ClusterStackReleaseDownloaded"))
        library.down = True
        await here.client.patch(CLUSTER_STACKS, "stack", {"spec": {"versions": []}}, HOME)
        stack = await here.until(
            CLUSTER_STACKS, "stack", lambda obj: condition(obj, "ReleasesSynced").get("status") == "False"
        )
    assert condition(stack, "ReleasesSynced") == {
        "status": "False",
        "severity": "Warning",
        "reason": "FailedToSync",
        "message": "registry.example.org: cannot be reached",
    }
    # The latest release is not ready, and not known any more: it stays.
    assert await here.names() == [V1, V2]


async def test_clusters_are_followed_in_the_version_that_is_served(here: CatalogWorld) -> None:
    await here.cluster("shop", V1)
    manager = Manager(here.client, grace=0.0)
    cache = cluster_cache(manager, here.client, namespace="")
    definition = await here.client.get(CRDS, "clusters.cluster.x-k8s.io")
    served = [{**one, "served": one["name"] == "v1beta1"} for one in definition["spec"]["versions"]]
    await here.client.patch(CRDS, "clusters.cluster.x-k8s.io", {"spec": {"versions": served}})
    async with manager.running():
        await cache.synced()
        assert [obj["apiVersion"] for obj in cache.values()] == ["cluster.x-k8s.io/v1beta1"]
        assert {name.tag for name in releases_in_use(cache, HOME)} == {V1}
