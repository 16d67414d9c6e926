"""The simulated garden seen by its clients: what a Shoot goes through, and what the kubeconfigs open."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509
from tests.simulation.garden import NAMESPACE, NAMESPACES, simulated, started_garden
from tests.simulation.shoots import small_shoot

from hortus.apiserver.authn.subjects import subject_of
from hortus.apiserver.clusters import certificate_kubeconfig
from hortus.kube import Client, ConnectionSettings, Resource, Retries, kubeconfig, yaml
from hortus.kube.errors import (
    AlreadyExists,
    ApiError,
    Forbidden,
    InternalError,
    Invalid,
    NotFound,
    TooManyRequests,
    Unauthorized,
)
from hortus.kube.objects import Object, parse_time
from hortus.simulation.garden.kinds import CLOUD_PROFILES, LOGICAL_CLUSTERS, SEEDS, SHOOTS
from hortus.simulation.garden.profiles import profile_spec
from hortus.simulation.settings import Fault, GardenSettings
from hortus.testing.apiserver import TestServer

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
OPERATION = "gardener.cloud/operation"
CONFIRMATION = "confirmation.gardener.cloud/deletion"
FORCE = "confirmation.gardener.cloud/force-deletion"
HOUR = 3600
FACTOR = 300.0
"""Seconds of the garden's time that pass in one of ours: 10 min in 2 s."""
SETTINGS = GardenSettings(
    time_factor=FACTOR,
    schedule_delay=3,
    create_duration=45,
    reconcile_duration=15,
    delete_duration=24,
    progress_period=5,
    care_period=15,
    sync_period=1e6,
    retry_period=15,
    faults=(
        # Its progress is reported by the clock: of what takes long, a busy machine reports some steps, too.
        Fault(shoots="walk", operation="Create", effect="slow", seconds=900),
        Fault(shoots="err-*", operation="Create", code="ERR_INFRA_RATE_LIMITS_EXCEEDED", message="slow down", times=2),
        Fault(shoots="bad-*", operation="Create", code="ERR_INFRA_QUOTA_EXCEEDED", message="no quota", times=1),
        Fault(shoots="stuck-*", operation="Delete", code="ERR_CLEANUP_CLUSTER_RESOURCES", message="stuck", times=1),
        Fault(shoots="busy-*", kubeconfig="429", times=1),
        Fault(shoots="busy-*", kubeconfig="500", times=1),
        Fault(shoots="busy-*", kubeconfig="garbage", times=1),
        Fault(shoots="busy-*", kubeconfig="unusable", times=1),
    ),
)


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_garden(SETTINGS) as running, simulated(running, SETTINGS):
        yield running


class Garden:
    """One user's view of it."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def create(self, name: str, **changes: Any) -> Object:
        return await self.client.create(SHOOTS, shoot(name, **changes))

    async def get(self, name: str) -> Object:
        return await self.client.get(SHOOTS, name, NAMESPACE)

    async def patch(self, name: str, patch: Object) -> Object:
        return await self.client.patch(SHOOTS, name, patch, NAMESPACE)

    async def annotate(self, name: str, **annotations: str | None) -> Object:
        return await self.patch(name, {"metadata": {"annotations": annotations}})

    async def until(self, name: str, says: Callable[[Object], Any], *, version: str = "") -> list[Object]:
        """Every state of a shoot from `version` (now) on, to the first of which `says` holds; gone is an empty dict."""
        seen: list[Object] = []
        async with asyncio.timeout(60):
            if not version:
                found = await self.client.list(SHOOTS, NAMESPACE, fields=f"metadata.name={name}")
                seen, version = list(found.items), found.resource_version
                if says(seen[0] if seen else {}):
                    return seen
            async with self.client.watch(SHOOTS, NAMESPACE, name=name, resource_version=version) as events:
                async for event in events:
                    if event.type == "BOOKMARK":
                        continue
                    seen.append({} if event.type == "DELETED" else event.object)
                    if says(seen[-1]):
                        return seen
        raise AssertionError("the watch ended")

    async def ready(self, name: str, **changes: Any) -> Object:
        """A shoot that is built."""
        await self.create(name, **changes)
        return (await self.until(name, succeeded("Create")))[-1]

    async def kubeconfig(self, name: str, seconds: int | None = 24 * HOUR, kind: str = "admin") -> Object:
        body = {"spec": {} if seconds is None else {"expirationSeconds": seconds}}
        return await self.client.create_subresource(SHOOTS, name, f"{kind}kubeconfig", body, NAMESPACE)


@pytest.fixture
async def garden(server: TestServer) -> AsyncIterator[Garden]:
    async with Client.from_kubeconfig(server.kubeconfig_for("garden")) as client:
        yield Garden(client)


def shoot(name: str, **changes: Any) -> Object:
    made = small_shoot("demo", 2)
    made["metadata"] = {"name": name, "namespace": NAMESPACE, **changes.pop("metadata", {})}
    made["spec"] |= changes
    return made


async def profile_of(garden: Garden, provider: str) -> dict[str, Any]:
    """Returns spec fields of a workerless shoot whose provider is not simulated: it has a CloudProfile, but no seed."""
    profile = {"metadata": {"name": provider}, "spec": {**profile_spec("gcp"), "type": provider}}
    with suppress(AlreadyExists):
        await garden.client.create(CLOUD_PROFILES, profile)
    profile = {"kind": "CloudProfile", "name": provider}
    without: Object = {"networking": None, "credentialsBindingName": None}
    return {"cloudProfile": profile, "provider": {"type": provider, "workers": []}, **without}


def last(obj: Object) -> Any:
    return (obj.get("status") or {}).get("lastOperation") or {}


def succeeded(kind: str) -> Callable[[Object], bool]:
    return lambda obj: (last(obj).get("type"), last(obj).get("state")) == (kind, "Succeeded")


def healthy(obj: Object) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return bool(conditions) and all(condition["status"] == "True" for condition in conditions)


def answered(grant: Object) -> bytes:
    return base64.b64decode(grant["status"]["kubeconfig"])


def opened(content: bytes) -> Client:
    return Client(kubeconfig.from_untrusted(content).access())


async def test_a_shoot_walks_from_create_to_healthy(garden: Garden) -> None:
    created = await garden.create("walk")
    assert created["metadata"]["generation"] == 1
    assert created["status"] == {
        "gardener": {"id": "", "name": "", "version": ""},
        "hibernated": False,
        "technicalID": "",
        "uid": "",
    }
    version = created["metadata"]["resourceVersion"]
    seen = await garden.until("walk", healthy, version=version)
    steps = [last(obj) for obj in seen if last(obj)]
    assert {step["type"] for step in steps} == {"Create"}
    states = [step["state"] for step in steps]
    assert states == ["Processing"] * states.count("Processing") + ["Succeeded"] * states.count("Succeeded")
    progress = [step["progress"] for step in steps]
    assert progress == sorted(progress)
    assert (progress[0], progress[-1]) == (0, 100)
    assert len(set(progress)) >= 4
    assert steps[0]["description"] == "Starting Shoot cluster reconciliation"
    assert steps[-1]["description"] == "Shoot cluster reconciliation finished"
    first = next(obj for obj in seen if last(obj))
    status = first["status"]
    assert status["observedGeneration"] == first["metadata"]["generation"]
    assert first["metadata"]["finalizers"] == ["gardener"]
    assert status["technicalID"] == "shoot--demo--walk"
    assert status["clusterIdentity"] == f"shoot--demo--walk-{status['uid']}-simulated"
    assert [address["name"] for address in status["advertisedAddresses"]] == [
        "external",
        "internal",
        "service-account-issuer",
    ]
    assert status["seedName"] == first["spec"]["seedName"] == "gcp-1"
    assert status["retryCycleStartTime"]
    assert "retryCycleStartTime" not in seen[-1]["status"]
    assert seen[-1]["status"]["hibernated"] is False


async def test_conditions_are_progressing_between_success_and_the_next_look(garden: Garden) -> None:
    await garden.create("gap")
    seen = await garden.until("gap", healthy)
    [*_, at_success] = await_first(seen, succeeded("Create"))
    types = [condition["type"] for condition in at_success["status"]["conditions"]]
    assert types == [
        "APIServerAvailable",
        "ControlPlaneHealthy",
        "ObservabilityComponentsHealthy",
        "EveryNodeReady",
        "SystemComponentsHealthy",
    ]
    assert {condition["status"] for condition in at_success["status"]["conditions"]} == {"Progressing"}
    assert {c["type"] for c in at_success["status"]["constraints"]} == {
        "HibernationPossible",
        "MaintenancePreconditionsSatisfied",
    }
    label = "shoot.gardener.cloud/status"
    final = await garden.until("gap", lambda obj: obj["metadata"].get("labels", {}).get(label) == "healthy")
    assert healthy(final[-1])


def await_first(seen: list[Object], says: Callable[[Object], Any]) -> list[Object]:
    """Returns the objects up to the first for which `says` holds."""
    index = next(index for index, obj in enumerate(seen) if says(obj))
    return seen[: index + 1]


async def test_the_generation_rises_for_the_spec_and_for_operations_alone(garden: Garden) -> None:
    base = (await garden.ready("gen"))["metadata"]["generation"]
    labelled = await garden.patch("gen", {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == base
    changed = await garden.patch("gen", {"spec": {"purpose": "production"}})
    assert changed["metadata"]["generation"] == base + 1
    seen = await garden.until("gen", succeeded("Reconcile"), version=changed["metadata"]["resourceVersion"])
    assert {last(obj)["type"] for obj in seen if last(obj)["state"] == "Processing"} == {"Reconcile"}
    assert seen[-1]["status"]["observedGeneration"] == base + 1
    asked = await garden.annotate("gen", **{OPERATION: "reconcile"})
    assert asked["metadata"]["generation"] == base + 2
    assert OPERATION not in asked["metadata"].get("annotations", {})
    ignored = await garden.annotate("gen", **{OPERATION: "retry"})
    assert ignored["metadata"]["generation"] == base + 2
    assert ignored["metadata"]["annotations"][OPERATION] == "retry"
    both = await garden.annotate("gen", **{OPERATION: "reconcile;rotate-ca-start"})
    assert both["metadata"]["generation"] == base + 3
    assert both["metadata"]["annotations"][OPERATION] == "rotate-ca-start"
    await garden.until("gen", lambda obj: OPERATION not in obj["metadata"].get("annotations", {}))


async def test_a_confined_rollout_takes_only_hibernation_for_a_change(garden: Garden) -> None:
    made = await garden.ready("confined", maintenance={"confineSpecUpdateRollout": True})
    generation = made["metadata"]["generation"]
    assert (await garden.patch("confined", {"spec": {"purpose": "testing"}}))["metadata"]["generation"] == generation
    asleep = await garden.patch("confined", {"spec": {"hibernation": {"enabled": True}}})
    assert asleep["metadata"]["generation"] == generation + 1
    await garden.until("confined", lambda obj: obj["status"].get("hibernated") is True)


@pytest.mark.parametrize("value", [None, "no", "yes"])
async def test_deletion_needs_a_confirmation(garden: Garden, value: str | None) -> None:
    name = f"keep-{value or 'none'}"
    await garden.create(name, metadata={"annotations": {CONFIRMATION: value}} if value else {})
    with pytest.raises(
        Forbidden, match=f'shoots.core.gardener.cloud "{name}" is forbidden: must have a "{CONFIRMATION}"'
    ):
        await garden.client.delete(SHOOTS, name, NAMESPACE)
    with pytest.raises(Forbidden):
        await garden.client.delete_collection(SHOOTS, NAMESPACE, fields=f"metadata.name={name}")
    assert "deletionTimestamp" not in (await garden.get(name))["metadata"]


async def test_a_confirmed_shoot_is_taken_down_with_its_cluster(garden: Garden, server: TestServer) -> None:
    await garden.ready("gone")
    content = answered(await garden.kubeconfig("gone"))
    async with Client.from_kubeconfig(server.kubeconfig) as root, opened(content) as cluster:
        assert await root.get(LOGICAL_CLUSTERS, "shoot--demo--gone")
        assert (await cluster.list(NAMESPACES)).items
        confirmed = await garden.annotate("gone", **{CONFIRMATION: "True"})
        assert confirmed["metadata"]["annotations"]["deletion.gardener.cloud/confirmed-by"] == "kubernetes-admin"
        generation = confirmed["metadata"]["generation"]
        await garden.client.delete(SHOOTS, "gone", NAMESPACE)
        seen = await garden.until("gone", lambda obj: not obj, version=confirmed["metadata"]["resourceVersion"])
        deleting = [obj for obj in seen if obj and obj["metadata"].get("deletionTimestamp")]
        assert deleting[0]["metadata"]["generation"] == generation + 1
        steps = [last(obj) for obj in deleting if last(obj).get("type") == "Delete"]
        assert [step["progress"] for step in steps] == sorted(step["progress"] for step in steps)
        assert steps[0]["description"] == "Starting Shoot cluster deletion"
        assert (steps[-1]["state"], steps[-1]["progress"]) == ("Succeeded", 100)
        async with asyncio.timeout(60):
            while True:
                try:
                    await root.get(LOGICAL_CLUSTERS, "shoot--demo--gone")
                except NotFound:
                    break
        with pytest.raises(ApiError) as refused:
            await cluster.list(NAMESPACES)
        assert refused.value.http_code in (401, 404)


async def test_a_shoot_that_nobody_scheduled_goes_at_once(garden: Garden) -> None:
    made = await garden.create("nowhere", **await profile_of(garden, "nobody"))
    seen = await garden.until("nowhere", last, version=made["metadata"]["resourceVersion"])
    found = last(seen[-1])
    assert (found["type"], found["state"], found["progress"]) == ("Create", "Pending", 0)
    assert found["description"].startswith("Failed to schedule Shoot: none out of the ")
    assert found["description"].endswith('seeds has a matching provider for "nobody"')
    await garden.annotate("nowhere", **{CONFIRMATION: "true"})
    await garden.client.delete(SHOOTS, "nowhere", NAMESPACE)
    await garden.until("nowhere", lambda obj: not obj)


async def test_a_seed_that_comes_later_is_taken(garden: Garden) -> None:
    await garden.create("late", **await profile_of(garden, "later"))
    await garden.until("late", last)
    seed = (await garden.client.list(SEEDS)).items[0]
    seed["metadata"] = {"name": "later-1"}
    seed["spec"]["provider"]["type"] = "later"
    await garden.client.create(SEEDS, seed)
    seen = await garden.until("late", succeeded("Create"))
    assert seen[-1]["spec"]["seedName"] == "later-1"
    types = {condition["type"] for condition in (await garden.until("late", healthy))[-1]["status"]["conditions"]}
    assert "EveryNodeReady" not in types


async def test_an_error_is_shown_and_tried_again(garden: Garden) -> None:
    made = await garden.create("err-1")
    seen = await garden.until("err-1", succeeded("Create"), version=made["metadata"]["resourceVersion"])
    failed = [obj for obj in seen if last(obj).get("state") == "Error"]
    assert {last(obj)["progress"] for obj in failed} == {40}
    assert all(last(obj)["description"] == "slow down Operation will be retried." for obj in failed)
    [error] = failed[0]["status"]["lastErrors"]
    assert (error["description"], error["codes"]) == ("slow down", ["ERR_INFRA_RATE_LIMITS_EXCEEDED"])
    starts = [obj for obj in seen if last(obj).get("progress") == 0 and last(obj)["state"] == "Processing"]
    assert len({last(obj)["lastUpdateTime"] + obj["metadata"]["resourceVersion"] for obj in starts}) >= 3
    assert len({obj["status"].get("retryCycleStartTime") for obj in starts}) == 1
    assert "lastErrors" not in seen[-1]["status"]


async def test_a_failed_shoot_is_left_alone_until_somebody_asks(garden: Garden) -> None:
    made = await garden.create("bad-1")
    seen = await garden.until(
        "bad-1", lambda obj: last(obj).get("state") == "Failed", version=made["metadata"]["resourceVersion"]
    )
    assert last(seen[-1])["description"] == "no quota"
    label = "shoot.gardener.cloud/status"
    shown = await garden.until("bad-1", lambda obj: obj["metadata"].get("labels", {}).get(label) == "unhealthy")
    generation = shown[-1]["metadata"]["generation"]
    asked = await garden.annotate("bad-1", **{OPERATION: "retry"})
    assert OPERATION not in asked["metadata"].get("annotations", {})
    assert asked["metadata"]["generation"] == generation + 1
    after = await garden.until("bad-1", succeeded("Create"), version=asked["metadata"]["resourceVersion"])
    assert not [
        obj for obj in after if last(obj)["state"] == "Failed" and obj["status"]["observedGeneration"] > generation
    ]


async def test_force_deletion_is_for_shoots_that_cannot_be_deleted(garden: Garden) -> None:
    with pytest.raises(Invalid, match="annotation cannot be set when Shoot deletionTimestamp is nil"):
        await garden.create("forced", metadata={"annotations": {FORCE: "true"}})
    await garden.ready("stuck-1")
    with pytest.raises(Invalid, match="cannot be set when Shoot deletionTimestamp is nil"):
        await garden.annotate("stuck-1", **{FORCE: "true"})
    await garden.annotate("stuck-1", **{CONFIRMATION: "1"})
    await garden.client.delete(SHOOTS, "stuck-1", NAMESPACE)
    with pytest.raises(Invalid, match="cannot be set when Shoot status does not contain one of these error codes"):
        await garden.annotate("stuck-1", **{FORCE: "true"})
    failed = (await garden.until("stuck-1", lambda obj: last(obj).get("state") == "Error"))[-1]
    forced = await garden.annotate("stuck-1", **{FORCE: "true"})
    assert forced["metadata"]["generation"] == failed["metadata"]["generation"] + 1
    await garden.until("stuck-1", lambda obj: not obj)


async def test_what_a_shoot_may_not_be(garden: Garden) -> None:
    with pytest.raises(Invalid, match="the length of the shoot name and the project name must not exceed 21"):
        await garden.create("x" * 18)
    await garden.create("y" * 17)
    with pytest.raises(Invalid, match=r"spec\.purpose: Unsupported value"):
        await garden.create("purposeless", purpose="fun")
    with pytest.raises(Invalid, match=r"spec\.region: Invalid value.*field is immutable"):
        await garden.patch("y" * 17, {"spec": {"region": "elsewhere"}})
    with pytest.raises(Invalid, match=r"spec\.provider\.workers\[0\]\.maximum: Forbidden: maximum value must"):
        await garden.create(
            "boundless", provider={"type": "gcp", "workers": [{"name": "w", "machine": {"type": "m"}, "minimum": 1}]}
        )


async def test_an_admin_kubeconfig_opens_its_cluster_and_no_other(garden: Garden, server: TestServer) -> None:
    await garden.ready("open")
    await garden.ready("closed")
    grant = await garden.kubeconfig("open")
    assert grant["kind"] == "AdminKubeconfigRequest"
    assert grant["apiVersion"] == "authentication.gardener.cloud/v1alpha1"
    content = answered(grant)
    parsed = kubeconfig.from_untrusted(content)
    assert list(parsed.clusters) == [f"{NAMESPACE}--open-external", f"{NAMESPACE}--open-internal"]
    assert parsed.current_context == f"{NAMESPACE}--open-external"
    assert list(parsed.users) == [f"{NAMESPACE}--open-external"]
    certificate = leaf(content)
    assert common_name(certificate) == "gardener.cloud:admin:kubernetes-admin"
    assert organizations(certificate) == ["gardener.cloud:system:admins"]
    assert certificate.not_valid_after_utc.timestamp() == parse_time(grant["status"]["expirationTimestamp"])
    async with opened(content) as cluster:
        names = {obj["metadata"]["name"] for obj in (await cluster.list(NAMESPACES)).items}
        assert {"default", "kube-system"} <= names
        made = {"metadata": {"name": "mine", "namespace": "default"}, "data": {}}
        await cluster.create(CONFIGMAPS, made)
        info = await cluster.get(CONFIGMAPS, "shoot-info", "kube-system")
        assert info["data"]["shootName"] == "open"
    elsewhere = content.replace(b"shoot--demo--open", b"shoot--demo--closed")
    async with opened(elsewhere) as cluster:
        with pytest.raises(Unauthorized):
            await cluster.list(NAMESPACES)
    for path in (b"/clusters/garden", b""):
        async with opened(content.replace(b"/clusters/shoot--demo--open", path)) as cluster:
            with pytest.raises(Unauthorized):
                await cluster.list(NAMESPACES)


async def test_a_viewer_may_look_and_not_touch(garden: Garden) -> None:
    await garden.ready("view")
    content = answered(await garden.kubeconfig("view", kind="viewer"))
    assert common_name(leaf(content)) == "gardener.cloud:viewer:kubernetes-admin"
    assert organizations(leaf(content)) == ["gardener.cloud:system:viewers"]
    async with opened(content) as cluster:
        assert (await cluster.list(CONFIGMAPS, "kube-system")).items
        with pytest.raises(Forbidden):
            await cluster.create(CONFIGMAPS, {"metadata": {"name": "x", "namespace": "default"}})
        with pytest.raises(Forbidden):
            await cluster.list(Resource("", "v1", "secrets", "Secret"), "kube-system")


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        (599, "may not specify a duration shorter than 600 seconds"),
        (-1, "may not specify a duration shorter than 600 seconds"),
        (2**32, "may not specify a duration larger than"),
    ],
)
async def test_a_kubeconfig_has_a_least_and_a_largest_life(garden: Garden, seconds: int, message: str) -> None:
    await garden.create(f"life-{abs(seconds) % 1000}")
    with pytest.raises(Invalid, match=f"spec.expirationSeconds: Invalid value: {seconds}: {message}"):
        await garden.kubeconfig(f"life-{abs(seconds) % 1000}", seconds)


async def test_more_than_a_day_is_cut_without_a_word(garden: Garden) -> None:
    await garden.ready("day")
    lives = {}
    for seconds in (None, HOUR, 24 * HOUR, 48 * HOUR):
        grant = await garden.kubeconfig("day", seconds)
        certificate = leaf(answered(grant))
        lives[seconds] = (certificate.not_valid_after_utc - certificate.not_valid_before_utc).total_seconds()
    assert grant["spec"]["expirationSeconds"] == 48 * HOUR
    assert abs(lives[None] - lives[HOUR]) <= 1
    assert abs(lives[48 * HOUR] - lives[24 * HOUR]) <= 1
    assert abs(lives[24 * HOUR] - lives[HOUR] - 23 * HOUR / FACTOR) <= 1


async def test_after_its_end_a_kubeconfig_opens_nothing(garden: Garden) -> None:
    await garden.ready("brief")
    content = answered(await garden.kubeconfig("brief", 600))
    async with opened(content) as cluster, asyncio.timeout(60):
        with pytest.raises(Unauthorized):
            while True:
                assert (await cluster.list(NAMESPACES)).items
    assert leaf(content).not_valid_after_utc.timestamp() < time.time()


async def test_before_there_is_a_cluster_there_is_no_kubeconfig(garden: Garden) -> None:
    await garden.create("unborn", **await profile_of(garden, "nobody"))
    with pytest.raises(Invalid, match="no kube-apiserver advertised addresses"):
        await garden.kubeconfig("unborn")
    with pytest.raises(NotFound):
        await garden.kubeconfig("no-such-shoot")


async def test_a_members_group_says_less_than_an_operators(garden: Garden, server: TestServer) -> None:
    await garden.ready("member")
    rbac = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
    verbs = {"apiGroups": ["core.gardener.cloud"], "resources": ["shoots/adminkubeconfig"], "verbs": ["create"]}
    await garden.client.create(rbac, {"metadata": {"name": "kim", "namespace": NAMESPACE}, "rules": [verbs]})
    bindings = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
    subject = {"kind": "ServiceAccount", "name": "infrastructure-manager", "namespace": "kcp-system"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "kim"}
    binding = {"metadata": {"name": "kim", "namespace": NAMESPACE}, "roleRef": role, "subjects": [subject]}
    await garden.client.create(bindings, binding)
    name = "system:serviceaccount:kcp-system:infrastructure-manager"
    issued = server.server.clusters.issue("garden", username=name, groups=(), seconds=600)
    document = certificate_kubeconfig(issued, server=server.cluster_url("garden"), name="garden")
    async with opened(yaml.dump(document).encode()) as client:
        content = answered(await Garden(client).kubeconfig("member"))
        with pytest.raises(Forbidden):
            await Garden(client).kubeconfig("member", kind="viewer")
    certificate = leaf(content)
    assert organizations(certificate) == ["gardener.cloud:project:admins"]
    async with opened(content) as cluster:
        review = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)
        answer = await cluster.create(review, {"apiVersion": review.api_version, "kind": review.kind, "metadata": {}})
        assert answer["status"]["userInfo"]["username"] == f"gardener.cloud:admin:{name}"
        assert (await cluster.list(NAMESPACES)).items


async def test_faults_of_kubeconfig_requests_come_as_configured(garden: Garden) -> None:
    await garden.ready("busy-1")
    async with Client(garden.client.access, settings=ConnectionSettings(retries=Retries(attempts=1))) as client:
        impatient = Garden(client)
        with pytest.raises(TooManyRequests) as busy:
            await impatient.kubeconfig("busy-1")
        assert busy.value.retry_after == 1
        with pytest.raises(InternalError):
            await impatient.kubeconfig("busy-1")
        with pytest.raises(kubeconfig.KubeconfigError):
            opened(answered(await impatient.kubeconfig("busy-1")))
        async with opened(answered(await impatient.kubeconfig("busy-1"))) as cluster:
            with pytest.raises(Unauthorized):
                await cluster.list(NAMESPACES)
        async with opened(answered(await impatient.kubeconfig("busy-1"))) as cluster:
            assert (await cluster.list(NAMESPACES)).items


async def test_kubectl_shows_what_gardeners_columns_show(garden: Garden, server: TestServer, tmp_path: Path) -> None:
    await garden.ready("cols")
    await garden.until("cols", lambda obj: obj["metadata"].get("labels", {}).get("shoot.gardener.cloud/status"))
    path = server.kubeconfig_for("garden")

    def kubectl(*words: str) -> list[str]:
        command = ["kubectl", "--kubeconfig", str(path), "--cache-dir", str(tmp_path), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    head, row = await asyncio.to_thread(kubectl, "get", "shoot", "-n", NAMESPACE, "cols", "-o", "wide")
    assert " ".join(head.split()) == (
        "NAME CLOUDPROFILE PROVIDER REGION SEED K8S VERSION HIBERNATION LAST OPERATION STATUS PURPOSE GARDENER VERSION "
        "APISERVER CONTROL OBSERVABILITY NODES SYSTEM AGE"
    )
    cells = row.split()
    assert cells[:7] == ["cols", "gcp", "gcp", "europe-west3", "gcp-1", "1.34.1", "Awake"]
    assert cells[7:12] == ["Create", "Succeeded", "(100%)", "healthy", "evaluation"]
    assert cells[13:-1] == ["True"] * 5
    content = tmp_path / "cols.yaml"
    content.write_bytes(answered(await garden.kubeconfig("cols")))
    path = content
    [node] = await asyncio.to_thread(kubectl, "get", "nodes", "--no-headers")
    name, state = node.split()[:2]
    assert (name.startswith("shoot--demo--cols-cpu-worker-0-z1-"), state) == (True, "Ready")


def test_an_interrupted_run_starts_again_and_a_moved_server_is_advertised(tmp_path: Path) -> None:
    quick = GardenSettings(schedule_delay=0, create_duration=0.6, progress_period=0.05, care_period=0.1)
    slow = msgspec.structs.replace(quick, create_duration=15.0)

    async def watched(server: TestServer, says: Callable[[Object], Any], version: str = "") -> list[Object]:
        async with Client.from_kubeconfig(server.kubeconfig_for("garden")) as client:
            return await Garden(client).until("again", says, version=version)

    async def create(server: TestServer) -> None:
        async with Client.from_kubeconfig(server.kubeconfig_for("garden")) as client:
            await Garden(client).create("again")

    with started_garden(slow) as server:
        with simulated(server, slow):
            asyncio.run(create(server))
            seen = asyncio.run(watched(server, lambda obj: last(obj).get("progress", 0) >= 5))
        with simulated(server, quick):
            version = seen[-1]["metadata"]["resourceVersion"]
            seen = asyncio.run(watched(server, succeeded("Create"), version))
            assert 0 in [last(obj)["progress"] for obj in seen]
        with simulated(server, quick, url="https://elsewhere:6443"):

            def moved(obj: Object) -> bool:
                return all("elsewhere" in address["url"] for address in obj["status"]["advertisedAddresses"])

            assert asyncio.run(watched(server, moved))


def leaf(content: bytes) -> x509.Certificate:
    access = kubeconfig.from_untrusted(content).access()
    return x509.load_pem_x509_certificate(access.credentials.certificate)


def common_name(certificate: x509.Certificate) -> str:
    [name] = subject_of(certificate).common_names
    return name


def organizations(certificate: x509.Certificate) -> list[str]:
    return list(subject_of(certificate).organizations)


@pytest.mark.parametrize("victim", ["shoot--demo--owned", "garden", "root"])
async def test_who_writes_the_status_of_one_shoot_gets_no_other_cluster(
    garden: Garden, server: TestServer, victim: str
) -> None:
    with suppress(AlreadyExists):
        await garden.create("owned")
    await garden.until("owned", succeeded("Create"))
    name = f"thief-{len(victim)}"
    await garden.create(name, **await profile_of(garden, f"thief{len(victim)}"))
    await garden.until(name, last)
    forged = {
        "technicalID": victim,
        "uid": "11111111-2222-3333-4444-555555555555",
        "hibernated": True,
        "advertisedAddresses": [{"name": "external", "url": server.cluster_url(victim)}],
    }
    await garden.client.patch(SHOOTS, name, {"status": forged}, NAMESPACE, subresource="status")
    with pytest.raises(InternalError, match="could not find client CA"):
        await garden.kubeconfig(name)
    async with Client.from_kubeconfig(server.kubeconfig_for(victim)) as owner:
        assert (await owner.list(NAMESPACES)).items  # it is not hibernated by another's Shoot
    await garden.annotate(name, **{CONFIRMATION: "true"})
    await garden.client.delete(SHOOTS, name, NAMESPACE)
    await garden.until(name, lambda obj: not obj)
    assert server.server.clusters.get(victim) is not None
    with pytest.raises(Invalid, match=r"status\.technicalID: .*field is immutable"):
        await garden.client.patch(SHOOTS, "owned", {"status": {"technicalID": "x"}}, NAMESPACE, subresource="status")


async def test_a_name_that_reads_like_another_projects_cluster_is_refused(garden: Garden) -> None:
    with pytest.raises(Invalid, match="two consecutive hyphens"):
        await garden.create("b--c")
    near = {"metadata": {"name": "demo"}}
    with suppress(AlreadyExists):
        await garden.client.create(NAMESPACES, near)
    with pytest.raises(Forbidden, match='no project found for namespace "demo"'):
        await garden.client.create(SHOOTS, shoot("near", metadata={"namespace": "demo"}))


@pytest.mark.parametrize("minimum", [10_001, 2_000_000, 2**31 - 1])
async def test_a_shoot_with_more_nodes_than_can_be_named_is_refused(garden: Garden, minimum: int) -> None:
    """The simulation of all shoots would stand still while it looks for names."""
    pool = {**small_shoot("demo", 2)["spec"]["provider"]["workers"][0], "minimum": minimum, "maximum": minimum}
    provider = {**small_shoot("demo", 2)["spec"]["provider"], "workers": [pool]}
    with pytest.raises(Invalid, match=f"spec.provider.workers: Invalid value: {minimum}: the simulation has"):
        await garden.create("crowd", provider=provider)
