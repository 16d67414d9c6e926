"""`hortus install` and `uninstall` on an API server, as typed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.terminals import terminal
from tests.production.rendering import WITHOUT_CRDS, objects
from tests.production.test_permissions import gardener_cluster
from tests.scenarios.running import kubectl, typed
from tests.waiting import until

from hortus.cli.flags import FLAGS
from hortus.cli.install import contents
from hortus.cli.install.applying import Installation
from hortus.cli.install.removing import Removal, RemovalPlan
from hortus.cli.program import ELECTION_NAME
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.flags import FlagSet
from hortus.engine.leases import LEASES
from hortus.engine.rivals import MADE_LABELS
from hortus.kube import Client, Resource, yaml
from hortus.kube.errors import NotFound
from hortus.kube.objects import format_micro_time
from hortus.terminal import EXIT_TIMEOUT, CommandError
from hortus.testing.apiserver import TestServer, running_apiserver

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
PODS = Resource("", "v1", "pods", "Pod")
EVENTS = Resource("", "v1", "events", "Event")
POLICIES = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
SERVED = [
    *(
        f"{'warning' if one.reason else 'ok':<9}{one.resource.kind:<19}"
        + (f"not served: {one.reason}" if one.reason else "served")
        for one in contents.served_kinds(FlagSet(FLAGS).parse([]))
    ),
    "failed   Secret             hortus-system/gardener-credentials is missing; make it: kubectl -n hortus-system "
    "create secret generic gardener-credentials --from-file=kubeconfig=garden.yaml",
]


def on(server: TestServer, *words: str) -> list[str]:
    done = typed("--kubeconfig", str(server.kubeconfig), *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_it_installs_upgrades_and_leaves_what_is_the_clusters(server: TestServer) -> None:
    kubectl(server.kubeconfig, "create", "namespace", "kcp-system")
    first = on(server, "install", "--no-wait")
    assert first[0] == "namespace/hortus-system created"
    assert "deployment/hortus in hortus-system created" in first
    assert {line.rpartition(" ")[2] for line in first[: -len(SERVED)]} == {"created"}
    assert first[-len(SERVED) :] == SERVED
    again = on(server, "install", "--no-wait")
    assert {line.rpartition(" ")[2] for line in again[: -len(SERVED)]} == {"unchanged"}
    changed = on(server, "install", "--no-wait", "--set", "replicaCount=3", "--set", "image.tag=v2")
    assert [line for line in changed if line.endswith("configured")] == [
        "deployment/hortus in hortus-system configured"
    ]
    shown = kubectl(server.kubeconfig, "-n", "hortus-system", "get", "deployment", "hortus", "-o", "yaml").stdout
    deployment = yaml.load(shown)
    assert deployment["spec"]["replicas"] == 3
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "hortus:v2"
    removed = on(server, "uninstall", "--yes")
    assert "deployment/hortus in hortus-system deleted" in removed
    assert removed[removed.index("This stays:") + 1 :] == [
        *(f"  customresourcedefinition/{kind.plural}.{kind.group}, 0 objects" for kind in contents.KINDS),
        "  namespace/hortus-system",
    ]
    assert kubectl(server.kubeconfig, "get", "crd", "-o", "name").stdout != ""
    assert kubectl(server.kubeconfig, "-n", "hortus-system", "get", "deployment,role,secret", "-o", "name").stdout == ""


def test_what_it_prints_can_be_applied_by_kubectl(server: TestServer, tmp_path: Path) -> None:
    file = tmp_path / "hortus.yaml"
    printed = typed("install", "--export", "-n", "default", "--set", "watchNamespace=default")
    file.write_text(printed.stdout)
    applied = kubectl(server.kubeconfig, "apply", "--server-side", "-f", str(file))
    assert applied.returncode == 0, applied.stderr
    assert "deployment.apps/hortus serverside-applied" in applied.stdout


def test_a_kind_that_the_cluster_lacks_is_named_with_the_way_out(server: TestServer) -> None:
    words = ("install", "--no-wait", "--set", "prometheus.servicemonitor.enabled=true", "-n", "default")
    done = typed("--kubeconfig", str(server.kubeconfig), *words, "--set", "watchNamespace=default")
    assert done.returncode == 1
    assert "servicemonitor/hortus in default: the cluster has no kind ServiceMonitor" in done.stderr
    assert "or turn off the value that asks for it" in done.stderr


async def test_it_waits_until_the_deployment_is_rolled_out_and_says_what_was_not_ready() -> None:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        said: list[str] = []
        installation = Installation(
            client, objects("default", {"watchNamespace": "default"}), said.append, namespace="default"
        )
        await installation.apply()
        await until(lambda: _established(client))
        with pytest.raises(CommandError, match=r"deployment/hortus in default was not ready within 1 s") as caught:
            await installation.ready(1.0)
        assert caught.value.code == EXIT_TIMEOUT
        waiting = asyncio.create_task(installation.ready(30.0))
        status = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
        await client.patch(DEPLOYMENTS, "hortus", {"status": status}, "default", subresource="status")
        await waiting
        assert said[-1] == "waiting for deployment/hortus in default"


async def _established(client: Client) -> bool:
    """Reports whether every CRD is served, so that a short wait meets the Deployment alone."""
    definitions = (await client.list(CRDS)).items
    conditions = [
        {one["type"]: one["status"] for one in (found.get("status") or {}).get("conditions", ())}
        for found in definitions
    ]
    return all(found.get("Established") == "True" for found in conditions)


@pytest.fixture
async def fresh() -> AsyncIterator[Client]:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        await client.create(NAMESPACES, {"metadata": {"name": "kcp-system"}})
        yield client


def installation(client: Client, said: list[str], **values: Any) -> Installation:
    return Installation(client, objects("hortus-system", values), said.append, namespace="hortus-system")


async def names(client: Client, resource: Resource) -> list[str]:
    return [obj["metadata"]["name"] for obj in (await client.list(resource, "hortus-system")).items]


async def test_the_plan_shows_the_fields_that_differ_and_changes_nothing(fresh: Client) -> None:
    said: list[str] = []
    planned = await installation(fresh, said).plan()
    assert {change.verb for change in planned} == {"created"}
    assert "namespace/hortus-system" in {change.title for change in planned}
    with pytest.raises(NotFound):
        await fresh.get(NAMESPACES, "hortus-system")
    await installation(fresh, said).apply()
    assert {change.verb for change in await installation(fresh, said).plan()} == {"unchanged"}
    changed = [
        change for change in await installation(fresh, said, replicaCount=5).plan() if change.verb != "unchanged"
    ]
    assert [(change.title, change.verb) for change in changed] == [("deployment/hortus in hortus-system", "configured")]
    assert [str(field) for field in changed[0].fields] == [".spec.replicas: 2 instead of 5"]
    assert (await fresh.get(DEPLOYMENTS, "hortus", "hortus-system"))["spec"]["replicas"] == 2


async def test_objects_that_the_values_no_longer_ask_for_are_pruned(fresh: Client) -> None:
    said: list[str] = []
    await installation(fresh, said, networkPolicy={"enabled": True}).apply()
    assert await names(fresh, POLICIES) == ["hortus"]
    planned = await installation(fresh, said).plan()
    assert [change.title for change in planned if change.verb == "pruned"] == ["networkpolicy/hortus in hortus-system"]
    await installation(fresh, said).apply()
    assert said[-1] == "networkpolicy/hortus in hortus-system pruned"
    assert await names(fresh, POLICIES) == []
    removal = Removal(fresh, "hortus-system", crds=False, own_namespace=False)
    await removal.plan()
    await removal.apply(said.append, timeout=120.0)
    left = [name for name in await names(fresh, CONFIG_MAPS) if name != "kube-root-ca.crt"]
    assert left == [], "neither the configuration nor the memory of the set"
    assert (await fresh.list(CRDS)).items != []


async def test_nothing_is_written_when_one_object_would_be_refused(fresh: Client) -> None:
    said: list[str] = []
    wrong = installation(fresh, said, deploymentAnnotations={"not a name": "x"})
    with pytest.raises(CommandError, match=r"no object was changed:\n.*Deployment.apps") as caught:
        await wrong.apply()
    assert "not a name" in str(caught.value)
    assert said == ["namespace/hortus-system created"]
    assert (await fresh.list(CRDS)).items == []


async def test_a_change_of_mode_is_refused_while_pods_run(fresh: Client) -> None:
    said: list[str] = []
    await installation(fresh, said, **WITHOUT_CRDS).apply()
    await fresh.patch(DEPLOYMENTS, "hortus", {"status": {"replicas": 2}}, "hortus-system", subresource="status")
    with pytest.raises(CommandError, match=r"scale deployment/hortus --replicas=0"):
        await installation(fresh, said, config={"sharding": True}, **WITHOUT_CRDS).apply()
    await fresh.patch(DEPLOYMENTS, "hortus", {"status": {"replicas": 0}}, "hortus-system", subresource="status")
    await installation(fresh, said, config={"sharding": True}, **WITHOUT_CRDS).apply()


async def test_a_config_map_of_another_that_has_the_sets_name_is_refused_in_words(fresh: Client) -> None:
    await fresh.create(NAMESPACES, {"metadata": {"name": "hortus-system"}})
    await fresh.create(CONFIG_MAPS, {"metadata": {"name": "hortus-install", "namespace": "hortus-system"}})
    with pytest.raises(CommandError, match="ConfigMap hortus-system/hortus-install: it is not the parent of this set"):
        await installation(fresh, [], **WITHOUT_CRDS).apply()


async def test_a_release_of_helm_is_left_to_helm(fresh: Client) -> None:
    said: list[str] = []
    await installation(fresh, said, **WITHOUT_CRDS).apply()
    annotations = {"metadata": {"annotations": {"meta.helm.sh/release-name": "hortus"}}}
    await fresh.patch(DEPLOYMENTS, "hortus", annotations, "hortus-system")
    with pytest.raises(CommandError, match="belongs to the Helm release hortus: upgrade it with helm"):
        await installation(fresh, said, **WITHOUT_CRDS).apply()


async def test_the_reasons_of_its_pods_are_quoted_when_a_deployment_is_not_ready(fresh: Client) -> None:
    said: list[str] = []
    await installation(fresh, said, **WITHOUT_CRDS).apply()
    labels = (await fresh.get(DEPLOYMENTS, "hortus", "hortus-system"))["spec"]["selector"]["matchLabels"]
    pod = {"metadata": {"name": "hortus-1", "namespace": "hortus-system", "labels": labels}}
    await fresh.create(PODS, {**pod, "spec": {"containers": [{"name": "hortus", "image": "hortus:none"}]}})
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "hortus:none"'}
    container = {
        "name": "hortus",
        "image": "hortus:none",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"waiting": waiting},
    }
    status = {"status": {"containerStatuses": [container]}}
    await fresh.patch(PODS, "hortus-1", status, "hortus-system", subresource="status")
    event = {
        "metadata": {"name": "hortus-1.1", "namespace": "hortus-system"},
        "involvedObject": {"kind": "Pod", "name": "hortus-1", "namespace": "hortus-system"},
        "type": "Warning",
        "reason": "Failed",
        "message": "Error: ErrImagePull",
    }
    await fresh.create(EVENTS, event)
    with pytest.raises(CommandError) as caught:
        await installation(fresh, said, **WITHOUT_CRDS).ready(0.01)  # the Deployment is the first that is waited for
    assert str(caught.value).splitlines()[1:] == [
        '  pod hortus-1: ImagePullBackOff: Back-off pulling image "hortus:none"',
        "  pod hortus-1: Failed: Error: ErrImagePull",
    ]


def test_pods_restart_for_settings_that_are_read_once_and_for_no_others() -> None:
    def checksum(**values: Any) -> str:
        [found] = [obj for obj in objects("hortus-system", {**values, **WITHOUT_CRDS}) if obj["kind"] == "Deployment"]
        return str(found["spec"]["template"]["metadata"]["annotations"]["checksum/startup"])

    assert checksum(config={"zap-log-level": "debug"}) == checksum()
    assert checksum(config={"zap-encoder": "console"}) != checksum()
    assert checksum(garden={"projectName": "demo"}) != checksum()


def test_the_converter_configuration_is_mounted_where_the_flag_says() -> None:
    found = {obj["kind"]: obj for obj in objects("hortus-system", {"runtimes": {"converterConfigMap": "kim-config"}})}
    assert (
        "converter-config-filepath: /converter-config/converter_config.json"
        in found["ConfigMap"]["data"]["config.yaml"]
    )
    pod = found["Deployment"]["spec"]["template"]["spec"]
    assert {"name": "converter-config", "configMap": {"name": "kim-config"}} in pod["volumes"]
    mounted = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounted["converter-config"] == "/converter-config"


def test_a_flag_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(CommandError, match="additional properties 'rotation-strategy' not allowed"):
        objects("hortus-system", {"config": {"rotation-strategy": "x"}})


def test_the_difference_is_shown_and_is_the_exit_code(server: TestServer) -> None:
    # Tests before it have installed the same objects without a record of them.
    on(server, "install", "--no-wait", "--adopt", "-n", "diff", "--set", "watchNamespace=default")
    words = ("install", "-n", "diff", "--diff", "--set", "watchNamespace=default")
    assert on(server, *words) == ["nothing would change"]
    done = typed("--kubeconfig", str(server.kubeconfig), *words, "--set", "replicaCount=1")
    assert done.returncode == 1
    assert "deployment/hortus in diff would be configured\n  .spec.replicas: 2 instead of 1\n" in done.stdout


async def held_lease(
    client: Client, namespace: str, *, age: float, holder: str = "kim-7", name: str = ELECTION_NAME, seconds: int = 15
) -> None:
    """A Lease, of the election unless it has another name, renewed `age` seconds ago."""
    renewed = format_micro_time(time.time() - age)
    spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": renewed}
    lease = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
    await client.apply(LEASES, lease, field_manager="test")


async def removed(client: Client, *, crds: bool = False, own_namespace: bool = False) -> tuple[RemovalPlan, list[str]]:
    said: list[str] = []
    removal = Removal(client, "hortus-system", crds=crds, own_namespace=own_namespace)
    plan = await removal.plan()
    await removal.apply(said.append, timeout=120.0)
    return plan, said


async def test_an_operator_that_works_on_the_same_objects_is_named_and_nothing_is_installed(fresh: Client) -> None:
    await held_lease(fresh, "kcp-system", age=2, seconds=3600)
    with pytest.raises(CommandError, match=r"kim-7 works in namespace kcp-system.*scale its Deployment to 0") as caught:
        await installation(fresh, [], **WITHOUT_CRDS).apply()
    assert ELECTION_NAME in str(caught.value)
    assert (await fresh.list(DEPLOYMENTS, "hortus-system")).items == []
    await held_lease(fresh, "kcp-system", age=16)
    await installation(fresh, [], **WITHOUT_CRDS).apply()


@pytest.mark.parametrize(
    ("name", "apart"),
    [
        ("clusterstack.x-k8s.io", {"stacks": False}),
        ("openstack.provider.clusterstack.x-k8s.io", {"stacks": True, "openstack-node-images": False}),
        ("819a9291.instana.io", {"stacks": True}),
        ("893110f7.kyma-project.io", {"stacks": True}),
    ],
    ids=["stacks", "node images", "agents", "modules"],
)
async def test_an_operator_that_hortus_replaces_is_refused_in_any_namespace(
    fresh: Client, name: str, apart: dict[str, bool]
) -> None:
    # An hour, so that a slow machine does not see it run out.
    await held_lease(fresh, "kcp-system", age=2, holder="cso-1", name=name, seconds=3600)
    await fresh.create(NAMESPACES, {"metadata": {"name": "fleet"}})
    all_of_them = {"stacks": True, "agents": True, "modules": True}
    with pytest.raises(CommandError, match=f"cso-1 works in namespace kcp-system, where it holds the lease {name}"):
        await installation(fresh, [], config=all_of_them, **WITHOUT_CRDS).plan()
    assert await installation(fresh, [], config=apart, **WITHOUT_CRDS).plan()
    for age, holder in ((3601, "cso-1"), (2, "hortus/hortus-system")):
        await held_lease(fresh, "kcp-system", age=age, holder=holder, name=name, seconds=3600)
        assert await installation(fresh, [], config=all_of_them, **WITHOUT_CRDS).plan()


async def test_the_leases_of_replicas_are_deleted_with_them(fresh: Client) -> None:
    await installation(fresh, [], **WITHOUT_CRDS).apply()
    await held_lease(fresh, "hortus-system", age=14.5, holder="hortus-killed")
    other = {"metadata": {"name": "other", "namespace": "hortus-system"}, "spec": {"holderIdentity": "x"}}
    of_rival = {"metadata": {"name": "rival", "namespace": "hortus-system", "labels": MADE_LABELS}, "spec": {}}
    for lease in (other, of_rival):
        await fresh.create(LEASES, lease)
    _, said = await removed(fresh)
    assert f"lease/{ELECTION_NAME} in hortus-system deleted" in said
    assert await names(fresh, LEASES) == ["other"]


async def test_a_lease_that_another_operator_holds_stays(fresh: Client) -> None:
    await installation(fresh, [], **WITHOUT_CRDS).apply()
    await held_lease(fresh, "hortus-system", age=0)
    renewing = asyncio.create_task(renewed(fresh))
    try:
        _, said = await removed(fresh)
    finally:
        renewing.cancel()
    assert f"lease/{ELECTION_NAME} in hortus-system stays: kim-7 holds it" in said
    assert await names(fresh, LEASES) == [ELECTION_NAME]


async def renewed(client: Client) -> None:
    """Renew the lease once somebody has begun to watch over the pods' end, and again and again."""
    while True:
        await held_lease(client, "hortus-system", age=0)
        await asyncio.sleep(0.05)


async def test_crds_are_never_deleted_with_the_clusters_of_their_kinds(fresh: Client) -> None:
    await installation(fresh, []).apply()
    cluster = gardener_cluster("one")
    await fresh.create(GARDENER_CLUSTERS, cluster)
    with pytest.raises(CommandError, match=r"1 gardenerclusters\.\S+ exist: a CRD is not deleted with the objects"):
        await Removal(fresh, "hortus-system", crds=True, own_namespace=False).plan()
    plan, _ = await removed(fresh)
    assert f"customresourcedefinition/gardenerclusters.{GARDENER_CLUSTERS.group}, 1 object" in plan.kept
    await fresh.delete(GARDENER_CLUSTERS, "one", "kcp-system")
    _, said = await removed(fresh, crds=True)
    assert len(said) == len(contents.KINDS), "a later removal deletes the CRDs alone"
    assert (await fresh.list(CRDS)).items == []


async def test_a_namespace_with_clusters_or_of_the_cluster_itself_is_not_deleted(fresh: Client) -> None:
    values = {"watchNamespace": "hortus-system"}
    await installation(fresh, [], **values).apply()
    cluster = gardener_cluster("one")
    cluster["metadata"]["namespace"] = "hortus-system"
    await fresh.create(GARDENER_CLUSTERS, cluster)
    with pytest.raises(CommandError, match="namespace hortus-system holds 1 gardenerclusters"):
        await removed(fresh, own_namespace=True)
    with pytest.raises(CommandError, match="namespace default belongs to the cluster"):
        await Removal(fresh, "default", crds=False, own_namespace=True).plan()


async def test_where_nothing_was_installed_the_way_out_is_named(fresh: Client) -> None:
    with pytest.raises(CommandError, match="nothing in namespace hortus-system was made by hortus install"):
        await removed(fresh)
    await fresh.create(NAMESPACES, {"metadata": {"name": "hortus-system"}})
    [deployment] = [obj for obj in objects("hortus-system", {}) if obj["kind"] == "Deployment"]
    deployment["metadata"]["annotations"] = {"meta.helm.sh/release-name": "hortus"}
    await fresh.create(DEPLOYMENTS, deployment)
    with pytest.raises(CommandError, match="Helm release hortus: helm -n hortus-system uninstall hortus"):
        await removed(fresh)


def test_an_uninstall_lists_everything_and_asks(server: TestServer) -> None:
    on(
        server,
        "install",
        "--no-wait",
        "-n",
        "asked",
        "--set",
        "watchNamespace=asked",
        "--set",
        "fullnameOverride=asked",
    )
    words = ("--kubeconfig", str(server.kubeconfig), "uninstall", "-n", "asked")
    done = typed(*words)
    assert done.returncode == 2
    assert "  deployment/asked in asked\n" in done.stdout
    assert "This stays:\n  customresourcedefinition/" in done.stdout
    assert "give -y to agree" in done.stderr
    with terminal(*words, width=200, height=60) as shown:
        assert "Uninstall Hortus from namespace asked of 127.0.0.1:" in shown.shows("[y/N]")[-1]
        shown.type("n\n")
        assert shown.ended() == 1
    assert kubectl(server.kubeconfig, "-n", "asked", "get", "deployment", "-o", "name").stdout != ""
    with terminal(*words, "--delete-namespace", width=200, height=60) as shown:
        shown.shows("[y/N]")
        shown.type("y\n")
        assert shown.ended() == 0
        assert "namespace/asked deleted" in shown.lines
    assert kubectl(server.kubeconfig, "get", "namespace", "asked", "--ignore-not-found").stdout == ""


def test_pods_that_cannot_start_are_not_waited_for(server: TestServer) -> None:
    words = ("install", "-n", "blocked", "--set", "watchNamespace=blocked", "--set", "fullnameOverride=blocked")
    done = typed("--kubeconfig", str(server.kubeconfig), *words)
    assert done.returncode == 1
    assert "failed   Secret             blocked/gardener-credentials is missing" in done.stdout
    assert "cannot start before what failed is mended; then run: hortus check -n blocked" in done.stderr
