"""An upgrade leaves charts alone that the cluster has as they would be applied; remote calls are counted."""

from __future__ import annotations

from tests.domains.stacks.addons.test_stages import AFTER, BEFORE, ONE, TWO, applied, chart
from tests.domains.stacks.addons.world import CONFIG_MAPS, HOME, AddonWorld, condition

from hortus.domains.stacks.addons.applied import CHARTS, digest_of, installed, note, noted
from hortus.domains.stacks.addons.service import TARGET
from hortus.domains.stacks.types import CLUSTER_ADDONS, ClusterAddon
from hortus.engine import read

THREE = "docker-plain-1-33-v3"
VALUES = {
    "Chart.yaml": "apiVersion: v2\nname: csi\nversion: 1.0.0\n",
    "overwrite.yaml": "host: {{ .Cluster.spec.controlPlaneEndpoint.host }}\n",
    "templates/a.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: csi}\ndata: {host: '{{ .Values.host }}'}\n"
    ),
}


def remote(here: AddonWorld, since: int) -> list[str]:
    """The methods of the requests to the workload cluster."""
    return [method for method, host, _ in here.requests.answers[since:] if host == "remote"]


async def installed_one(here: AddonWorld, *names: str) -> None:
    """A cluster with a release whose charts all differ from those of `TWO` but for `csi`."""
    stages = {AFTER: applied(*names), BEFORE: applied(*names)}
    for tag in (ONE, TWO):
        charts = {name: chart(name, release=tag if name != "csi" else "any") for name in names}
        here.shelf.staged(tag, charts, stages)
    await here.cluster(ONE)
    await here.kubeconfig()


async def test_an_unchanged_chart_costs_an_upgrade_no_remote_call(here: AddonWorld) -> None:
    await installed_one(here, "cni", "csi")
    async with here.controllers():
        await here.installed(ONE)
        since = len(here.requests.answers)
        await here.move(TWO)
        await here.installed(TWO)
        # Readiness; discovery, in two calls; the one object that differs.
        assert remote(here, since) == ["GET", "GET", "GET", "GET", "PATCH"]
    found = await here.inside_object(CONFIG_MAPS, "cni")
    assert found is not None and found["data"] == {"release": TWO}
    assert await here.names_inside() == {"cni", "csi"}


async def test_an_upgrade_by_another_process_knows_what_the_cluster_has(here: AddonWorld) -> None:
    await installed_one(here, "csi")
    async with here.controllers():
        await here.installed(ONE)
    async with here.controllers():
        since = len(here.requests.answers)
        await here.move(TWO)
        addon = await here.installed(TWO)
        # The identity of a cluster that this process has not met; then as above, and no object.
        assert remote(here, since) == ["GET", "GET", "GET", "GET"]
    assert [one["status"] for one in addon["status"]["resources"]] == ["synced"]


async def test_values_that_have_changed_are_applied_with_an_upgrade(here: AddonWorld) -> None:
    stages = {AFTER: applied("csi"), BEFORE: applied("csi")}
    for tag in (ONE, TWO):
        here.shelf.staged(tag, {"csi": VALUES}, stages)
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(ONE)
        await here.move(TWO, controlPlaneEndpoint={"host": "other.example.org", "port": 6443})
        await here.installed(TWO)
    found = await here.inside_object(CONFIG_MAPS, "csi")
    assert found is not None and found["data"] == {"host": "other.example.org"}


async def test_a_release_that_was_left_in_the_middle_is_undone_by_the_one_before(here: AddonWorld) -> None:
    """The charts of the release before count as changed as soon as another run has begun."""
    stages = {AFTER: applied("cni"), BEFORE: applied("cni")}
    here.shelf.staged(ONE, {"cni": chart("cni", release=ONE)}, stages)
    here.shelf.staged(TWO, {"cni": chart("cni", release=TWO)}, {BEFORE: applied("cni", "absent")})
    await here.cluster(ONE)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(ONE)
        await here.move(TWO)
        await here.until(lambda obj: condition(obj, "HelmChartFound").get("status") == "False")
        await here.move(ONE)
        await here.installed(ONE)
        await here.until(lambda obj: condition(obj, "Ready").get("status") == "True")
    found = await here.inside_object(CONFIG_MAPS, "cni")
    assert found is not None and found["data"] == {"release": ONE}


async def test_objects_that_were_not_applied_are_applied_although_their_chart_is_the_same(here: AddonWorld) -> None:
    await installed_one(here, "csi")
    async with here.controllers():
        addon = await here.installed(ONE)
    listed = [{**one, "status": "not-synced"} for one in addon["status"]["resources"]]
    await here.client.patch(
        CLUSTER_ADDONS, addon["metadata"]["name"], {"status": {"resources": listed}}, HOME, subresource="status"
    )
    await here.inside.delete(CONFIG_MAPS, "csi", "kube-system")
    async with here.controllers():
        await here.move(TWO)
        await here.installed(TWO)
    assert await here.names_inside() == {"csi"}


def addon(class_name: str, annotations: dict[str, str]) -> ClusterAddon:
    metadata = {"name": "cluster-addon-shop", "namespace": HOME, "annotations": annotations}
    return read(ClusterAddon, {"metadata": metadata, "spec": {"clusterRef": {}, "clusterStack": class_name}})


def test_the_note_counts_only_for_the_class_that_was_installed_last() -> None:
    kept = note(ONE, {"cni": "a1", "csi": "b2"}, ["cni"])
    assert kept == f"{ONE} cni=a1"
    done = {CHARTS: kept, TARGET: f"{BEFORE}/{ONE}"}
    assert installed(addon(ONE, done)) == {"cni": "a1"}
    assert installed(addon(TWO, done)) == {}, "somebody else has installed another class since"
    assert installed(addon(ONE, {**done, TARGET: f"{BEFORE}/{TWO}"})) == {}, "a run for another class has begun"
    assert noted(addon(TWO, done)) == {"cni": "a1"}
    assert installed(addon("", {})) == {}
    assert note(ONE, {}, []) is None


def test_the_digest_is_of_the_objects_and_not_of_the_order_of_their_fields() -> None:
    one, two = {"kind": "A", "metadata": {"name": "a"}}, {"metadata": {"name": "a"}, "kind": "A"}
    assert digest_of([one]) == digest_of([two])
    assert digest_of([one]) != digest_of([one, one])
