"""The controllers as exactly the accounts that the chart and `hortus install` make: nothing denied, nothing unused."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.domains.granting import grant_verbs
from tests.production.rendering import objects
from tests.simulation.garden import NAMESPACE, simulated, started_garden
from tests.simulation.shoots import small_shoot

from hortus.apiserver import ApiServerSettings, AuditSettings
from hortus.cli.flags import FLAGS
from hortus.cli.install import contents
from hortus.cli.install.applying import Installation
from hortus.cli.install.garden import account
from hortus.cli.program import program
from hortus.domains.access.types import CLUSTER_ACCESSES
from hortus.domains.canary import book as books
from hortus.domains.canary.book import ConfigMap
from hortus.domains.clusters.local import local_setup
from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.domains.rollouts.starting import HISTORY
from hortus.engine import find_condition, read
from hortus.engine.deputies import deputy_of
from hortus.engine.flags import FlagSet
from hortus.engine.leftovers import Debt, leftovers_of, object_item
from hortus.engine.leftovers.types import LEFTOVERS, LeftoverReason, LeftoverSource
from hortus.engine.rbac import Permission, policy_rules
from hortus.engine.rollouts.types import CHANGE_KINDS, ENDED, PLACEMENT_DECISIONS, ROLLOUT_POLICIES, ROLLOUTS
from hortus.kube import Client, Propagation, Resource, yaml
from hortus.kube.objects import Object
from hortus.simulation.garden.kinds import SHOOTS
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
SECRETS = Resource("", "v1", "secrets", "Secret")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENTS = Resource("", "v1", "events", "Event")
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
SETTINGS = GardenSettings(
    time_factor=100.0,
    schedule_delay=0,
    create_duration=1,
    progress_period=1,
    care_period=30,
)


ROOT = Path(__file__).parents[2]
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


class Used(NamedTuple):
    """One thing that an account did."""

    group: str
    resource: str
    verb: str


def granted(permissions: Iterable[Permission]) -> set[Used]:
    return {Used(one.group, name, verb) for one in permissions for name in one.resources for verb in one.verbs}


IMPERSONATES = Used("", "serviceaccounts", "impersonate")
"""A header of a request, and none in itself."""
_JUDGED = {Used("fleet.hortus.dev", "rollouts", "approve")}
"""Verbs that an admission policy asks for."""
EXTRA = Permission("", ("serviceaccounts",), ("list", "watch"), "objects of a ChangeKind of somebody else")
MANAGEMENT = (
    *contents.MANAGEMENT,
    *contents.OPTIONAL["canary-template"],
    *contents.REPLICAS,
    *contents.OPTIONAL["inventory"],
    *contents.OPTIONAL["leftovers"],
    *contents.FLEET["inventory"],
    *contents.FLEET["leftovers"],
    *contents.FLEET["rollouts"],
    *contents.WIDE["rollouts"],
)
_LOGGED_AS_PATCH = {
    Used("", "configmaps", "create"),
    Used("fleet.hortus.dev", "changekinds", "create"),
    Used("fleet.hortus.dev", "leftovers", "create"),
    Used("multicluster.x-k8s.io", "clusterprofiles", "create"),
}
"""An apply that makes an object needs leave to create and is logged as the patch it is (Kubernetes, KEP-555)."""


class Record:
    """The audit log."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, user: str, server: TestServer) -> dict[Used, set[int]]:
        """The codes with which each thing that `user` did was answered, as soon as the log has all lines so far."""
        assert server.server.auditor is not None
        server.run(server.server.auditor.log.flush())
        found: dict[Used, set[int]] = {}
        for line in self._path.read_text().splitlines():
            event = json.loads(line)
            acting = event.get("impersonatedUser")
            if acting is not None and event["user"].get("username") == user:
                found.setdefault(IMPERSONATES, set()).add(200)
            if (acting or event["user"]).get("username") == user and event.get("objectRef"):
                about = event["objectRef"]
                name = "/".join(filter(None, (about["resource"], about.get("subresource"))))
                used = Used(about.get("apiGroup", ""), name, event["verb"])
                found.setdefault(used, set()).add(event.get("responseStatus", {}).get("code", 0))
        return found


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "audit.log")


@pytest.fixture
def server(tmp_path: Path, record: Record) -> Iterator[TestServer]:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    audited = ApiServerSettings(audit=AuditSettings(policy, tmp_path / "audit.log"))
    with started_garden(SETTINGS, served=audited) as running, simulated(running, SETTINGS):
        yield running


@pytest.fixture
async def management(server: TestServer) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        yield client


async def kubeconfig_of(client: Client, namespace: str, name: str, path: Path) -> Path:
    """A kubeconfig with a token of that account, as a pod has one."""
    request: Object = {"spec": {"expirationSeconds": 3600}}
    issued = await client.create_subresource(ACCOUNTS, name, "token", request, namespace)
    access = client.access
    cluster = {"server": access.server, "certificate-authority-data": base64.b64encode(access.ca).decode()}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": issued["status"]["token"]}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.dump(document))
    return path


async def seen(
    client: Client, resource: Resource, name: str, says: Callable[[Object], Any], *, namespace: str = "kcp-system"
) -> Object:
    """The object once `says` holds; any object with an empty name."""
    async with (
        asyncio.timeout(60),
        client.watch(resource, namespace, name=name, initial_events=True) as events,
    ):
        async for event in events:
            if event.type in ("ADDED", "MODIFIED") and says(event.object):
                return event.object
    raise AssertionError("the watch ended")


def reason(cluster: Object) -> str:
    conditions = (cluster.get("status") or {}).get("conditions") or [{}]
    return str(conditions[0].get("reason"))


def gardener_cluster(name: str) -> Object:
    labels = {"kyma-project.io/shoot-name": name, "kyma-project.io/runtime-id": name}
    secret = {"name": f"kubeconfig-{name}", "namespace": "kcp-system", "key": "config"}
    return {
        "apiVersion": GARDENER_CLUSTERS.api_version,
        "kind": GARDENER_CLUSTERS.kind,
        "metadata": {"name": name, "namespace": "kcp-system", "labels": labels},
        "spec": {"shoot": {"name": name}, "kubeconfig": {"secret": secret}},
    }


def runtime() -> Object:
    """One that needs a seed of its region, has an ACL and structured authentication, and a SecretBinding yet."""
    found: Object = yaml.load((ROOT / "examples" / "runtimes" / "aws.yaml").read_bytes())
    found["spec"]["shoot"] |= {
        "enforceSeedLocation": True,
        "kubernetes": {"version": "1.33.5", "kubeAPIServer": {"acl": {"allowedCIDRs": ["203.0.113.0/24"]}}},
    }
    return found


async def a_runtimes_life(client: Client) -> None:
    """It is made, raised beyond SecretBindings, and deleted while its GardenerCluster is still there."""
    place = "kcp-system"
    await client.create(CONFIG_MAPS, {"metadata": {"name": "acl", "namespace": place}, "data": {"acl-list.json": "[]"}})
    await client.create(RUNTIMES, runtime())
    await seen(client, RUNTIMES, "aws", lambda obj: (obj.get("status") or {}).get("state") == "Ready")
    force: Object = {"metadata": {"annotations": {"operator.kyma-project.io/force-patch-reconciliation": "true"}}}
    force["spec"] = {"shoot": {"kubernetes": {"version": "1.34.1"}}}
    await client.patch(RUNTIMES, "aws", force, place)
    await seen(client, RUNTIMES, "aws", lambda obj: not force["metadata"]["annotations"].keys() & marks(obj))
    await seen(client, RUNTIMES, "aws", lambda obj: (obj.get("status") or {}).get("state") == "Ready")
    since = (await client.list(RUNTIMES, place)).resource_version
    await client.delete(RUNTIMES, "aws", place)
    async with asyncio.timeout(60), client.watch(RUNTIMES, place, resource_version=since) as events:
        async for event in events:
            if event.type == "DELETED":
                return


def marks(obj: Object) -> set[str]:
    return set(obj["metadata"].get("annotations") or {})


async def a_canarys_life(client: Client) -> None:
    """Wait until the first run succeeds."""

    def over(config_map: Object) -> bool:
        book = books.read_book(read(ConfigMap, config_map))
        return book is not None and bool(book.history)

    found = books.read_book(read(ConfigMap, await seen(client, CONFIG_MAPS, books.NAME, over)))
    assert found is not None
    assert found.history[0].message == ""


def converter(folder: Path) -> Path:
    """A converter configuration that needs all that Runtimes may need."""
    files = local_setup(folder, "demo").files
    for file, content in files.items():
        file.write_bytes(content)
    document = json.loads(files[folder / "converter.json"])
    document["converter"]["kubernetes"]["kubeApiServer"] = {"acl": {"configMapName": "acl"}}
    path = folder / "all.json"
    path.write_text(json.dumps(document))
    return path


async def rollouts_life(client: Client) -> None:
    """Rollouts of a ChangeKind over ServiceAccounts: one that a person starts, and one made of demand.

    So many have ended before that the oldest is deleted.
    """
    kind: Object = {
        "metadata": {"name": "account"},
        "spec": {
            "resource": {"version": "v1", "resource": "serviceaccounts"},
            "cluster": "self.metadata.?labels[?'cluster'].orValue('')",
            "subject": "'account'",
            "version": "self.metadata.labels.version",
            "succeeded": "true",
        },
    }
    policy: Object = {
        "metadata": {"name": "waves", "namespace": "fleet"},
        "spec": {"changes": [{"kind": "account"}], "stages": [{"name": "all"}]},
    }
    await client.apply(CHANGE_KINDS, kind, field_manager="test")
    await client.apply(ROLLOUT_POLICIES, policy, field_manager="test")
    going = {f"a-{number:02}" for number in range(HISTORY + 1)}
    since = (await client.list(ROLLOUTS, "fleet")).resource_version
    for name in sorted(going):
        await client.create(ROLLOUTS, rollout(name, "1", state="Abort", policyName="waves"))
    async with asyncio.timeout(60), client.watch(ROLLOUTS, "fleet", resource_version=since) as events:
        async for event in events:
            if phase(event.object) in ENDED:
                going.discard(event.object["metadata"]["name"])
            if not going:
                break
    clusters = {"a", "b", "c"}
    for cluster in clusters:
        await client.create(ACCOUNTS, account_of(cluster))
    owner = asyncio.create_task(moved(client))
    admitted: set[str] = set()

    def all_admitted(decided: Object) -> bool:
        """One after the other: the first two make a slice each, the third is appended to one."""
        admitted.update(one["clusterProfileRef"]["name"] for one in decided["decisions"])
        return admitted == clusters

    decided = await seen(client, PLACEMENT_DECISIONS, "", all_admitted, namespace="fleet")
    name = decided["metadata"]["ownerReferences"][0]["name"]
    await seen(client, ROLLOUTS, name, lambda obj: phase(obj) == "Succeeded", namespace="fleet")
    owner.cancel()
    await seen(client, CHANGE_KINDS, "kubeconfig-rotation", lambda obj: obj.get("status"), namespace="")
    await seen(client, CHANGE_KINDS, "account", lambda obj: ready_reason(obj) == "Compiled", namespace="")


async def a_leftovers_life(client: Client) -> None:
    """One that is recorded with the release of `reader`, and one that is settled and deleted after its time."""
    recorded = await seen(client, LEFTOVERS, "", lambda obj: True, namespace="fleet")
    assert recorded["spec"]["source"]["name"] == "reader"
    items = [
        object_item(RUNTIMES, "kcp-system", "gone", where="Management"),
        object_item(SECRETS, "kcp-system", "gone", where="Management"),
        object_item(SHOOTS, NAMESPACE, "gone", where="Garden"),
        object_item(CONFIG_MAPS, NAMESPACE, "gone", where="Garden"),
    ]
    source = LeftoverSource(kind="Runtime", name="gone", namespace="kcp-system", uid="gone")
    [leftover] = leftovers_of(Debt(source, LeftoverReason.DELETION_FORCED, "", items), "fleet")
    await client.apply(LEFTOVERS, msgspec.to_builtins(leftover), field_manager="test")
    await gone(client, LEFTOVERS, leftover.metadata.name, namespace="fleet")


async def moved(client: Client) -> None:
    """Do what the owner of the ServiceAccounts does: set admitted ones to the version."""
    async with client.watch(PLACEMENT_DECISIONS, "fleet", initial_events=True) as events:
        async for event in events:
            for one in event.object.get("decisions") or ():
                patch = {"metadata": {"labels": {"version": "2"}}}
                await client.patch(ACCOUNTS, one["clusterProfileRef"]["name"], patch, "kcp-system")


def account_of(cluster: str) -> Object:
    metadata = {
        "name": cluster,
        "namespace": "kcp-system",
        "labels": {"cluster": cluster, "version": "1"},
        "annotations": {"wants.fleet.hortus.dev/account": "2"},
    }
    return {"metadata": metadata}


def rollout(name: str, to: str, **spec: Any) -> Object:
    change = {"kind": "account", "subject": "account", "to": to}
    return {
        "apiVersion": ROLLOUTS.api_version,
        "kind": ROLLOUTS.kind,
        "metadata": {"name": name, "namespace": "fleet"},
        "spec": {"change": change, **spec},
    }


def phase(obj: Object) -> str:
    return str((obj.get("status") or {}).get("phase"))


async def everything_once(client: Client) -> None:
    """Bring the controllers to do all that they ever do."""
    await a_runtimes_life(client)
    place = "kcp-system"
    taken: Object = {"metadata": {"name": "kubeconfig-one", "namespace": place}}
    await client.create(SECRETS, taken)
    await client.create(GARDENER_CLUSTERS, gardener_cluster("one"))
    await seen(client, GARDENER_CLUSTERS, "one", lambda obj: "FailedToCreate" in reason(obj))
    await client.delete(SECRETS, "kubeconfig-one", place)
    ready = ("KubeconfigSecretCreated", "KubeconfigSecretRotated")
    for name in ("one", "two"):
        await seen(client, GARDENER_CLUSTERS, name, lambda obj: reason(obj) in ready)
    force = {"metadata": {"annotations": {"operator.kyma-project.io/force-kubeconfig-rotation": "true"}}}
    for _ in range(2):
        await client.patch(GARDENER_CLUSTERS, "one", force, place)
        await seen(client, GARDENER_CLUSTERS, "one", lambda obj: not obj["metadata"].get("annotations"))
        # Once an event is written, the next one like it is a patch.
        await seen(client, EVENTS, "", lambda obj: obj["reason"] == "KubeconfigSecretRotated")
    # The garbage collector is made to leave the Secret: then it is the controller that deletes it.
    await access_once(client)
    since = (await client.list(SECRETS, place)).resource_version
    await client.delete(GARDENER_CLUSTERS, "two", place, propagation=Propagation.ORPHAN)
    async with asyncio.timeout(60), client.watch(SECRETS, place, resource_version=since) as events:
        async for event in events:
            if event.type == "DELETED" and event.object["metadata"]["name"] == "kubeconfig-two":
                break
    # Its cluster is gone: whether it really is, the server is asked.
    await client.delete(CLUSTER_ACCESSES, "reader", place)
    await gone(client, CLUSTER_ACCESSES, "reader")


async def access_once(client: Client) -> None:
    """A request that is served, and one for a Runtime that is not there."""
    for name, kind, cluster in (("reader", "GardenerCluster", "two"), ("lost", "Runtime", "lost")):
        await client.create(CLUSTER_ACCESSES, cluster_access(name, kind, cluster))
    await seen(client, CLUSTER_ACCESSES, "lost", lambda obj: "ClusterMissing" in ready_reason(obj))
    await seen(client, CLUSTER_ACCESSES, "reader", lambda obj: ready_reason(obj) == "Issued")


async def gone(client: Client, resource: Resource, name: str, *, namespace: str = "kcp-system") -> None:
    """Return when there is no object of that name any more."""
    since = await client.list(resource, namespace)
    if all(obj["metadata"]["name"] != name for obj in since.items):
        return
    async with (
        asyncio.timeout(60),
        client.watch(resource, namespace, name=name, resource_version=since.resource_version) as events,
    ):
        async for event in events:
            if event.type == "DELETED":
                return


def ready_reason(obj: Object) -> str:
    return str((find_condition(obj, "Ready") or {}).get("reason"))


def cluster_access(name: str, kind: str, cluster: str) -> Object:
    return {
        "apiVersion": CLUSTER_ACCESSES.api_version,
        "kind": CLUSTER_ACCESSES.kind,
        "metadata": {"name": name, "namespace": "kcp-system"},
        "spec": {
            "clusterRef": {"name": cluster, "kind": kind},
            "client": "test",
            "secret": {"name": f"access-{name}"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
        },
    }


async def test_the_controllers_use_all_that_they_may_and_are_denied_nothing(
    server: TestServer, management: Client, record: Record, tmp_path: Path
) -> None:
    values = {
        "createWatchNamespace": True,
        "garden": {"projectName": "demo"},
        "config": {"canary-template": "/canary/canary.yaml", "inventory": True, "leftovers": True, "rollouts": True},
        "rollouts": {"extraRules": policy_rules([EXTRA])},
    }
    await Installation(management, objects("hortus-system", values), str, namespace="hortus-system").apply()
    async with Client.from_kubeconfig(server.kubeconfig_for("garden")) as garden:
        await Installation(garden, account("demo"), str).apply()
        for name in ("one", "two"):
            await garden.create(SHOOTS, {**small_shoot("demo", 2), "metadata": {"name": name, "namespace": NAMESPACE}})
        theirs = await kubeconfig_of(garden, "garden-demo", "hortus", tmp_path / "garden")
    ours = await kubeconfig_of(management, "hortus-system", "hortus", tmp_path / "management")
    flags = [
        f"--kubeconfig={ours}",
        f"--gardener-kubeconfig-path={theirs}",
        "--gardener-project-name=demo",
        "--gardener-ratelimiter-qps=1000",
        "--gardener-ratelimiter-burst=1000",
        "--leader-elect",
        "--leader-election-namespace=hortus-system",
        "--access-allow=system-namespaces",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        f"--converter-config-filepath={converter(tmp_path)}",
        "--audit-log-mandatory=false",
        "--structured-auth-enabled",
        "--api-server-acl-enabled",
        "--allow-local-clusters",
        "--cluster-access",
        "--inventory",
        "--leftovers",
        "--leftovers-keep=1s",
        "--rollouts",
    ]
    canary = f"--canary-template={ROOT / 'examples' / 'canary.yaml'}"
    # A cluster that does not answer in time: the garden is asked whether its shoot sleeps.
    await management.create(GARDENER_CLUSTERS, gardener_cluster("two"))
    hasty = [*flags, "--cluster-request-timeout=1us"]
    async with program(FlagSet(FLAGS).parse(hasty)) as manager, manager.running():
        await seen(management, GARDENER_CLUSTERS, "two", lambda obj: reason(obj) == "FailedToGetKubeconfig")
    async with program(FlagSet(FLAGS).parse([*flags, canary])) as manager, manager.running():
        await everything_once(management)
        # Each mostly waits for a pause of its controller.
        async with asyncio.TaskGroup() as lives:
            for life in (a_canarys_life, rollouts_life, a_leftovers_life):
                lives.create_task(life(management))
    for user, permissions in (
        ("system:serviceaccount:hortus-system:hortus", MANAGEMENT),
        (deputy_of("fleet"), (EXTRA,)),
        ("system:serviceaccount:garden-demo:hortus", (*contents.GARDEN, *contents.GARDEN_WIDE)),
    ):
        done = record.of(user, server)
        denied = sorted(used for used, codes in done.items() if 403 in codes)
        assert denied == [], f"{user} was denied this"
        used = set(done) | ((_LOGGED_AS_PATCH | _JUDGED) & granted(permissions))
        assert used == granted(permissions), f"{user} used something else than it was granted"


async def test_replicas_that_share_the_objects_need_more_of_leases_and_no_more_than_that(
    server: TestServer, management: Client, record: Record, tmp_path: Path
) -> None:
    values = {"createWatchNamespace": True, "garden": {"projectName": "demo"}, "config": {"sharding": True}}
    await Installation(management, objects("hortus-system", values), str, namespace="hortus-system").apply()
    ours = await kubeconfig_of(management, "hortus-system", "hortus", tmp_path / "management")
    flags = [
        f"--kubeconfig={ours}",
        f"--gardener-kubeconfig-path={server.kubeconfig_for('garden')}",
        "--sharding",
        "--leader-election-namespace=hortus-system",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
    ]
    async with program(FlagSet(FLAGS).parse(flags)) as manager, manager.running():
        assert manager.shards is not None
        assert manager.shards.joined
    done = record.of("system:serviceaccount:hortus-system:hortus", server)
    assert sorted(used for used, codes in done.items() if 403 in codes) == []
    # A lease is read by itself only when one whose time is over turns out to have been renewed.
    unused = {Used("coordination.k8s.io", "leases", "get")}
    assert {used for used in done if used.resource == "leases"} == granted(contents.SHARDING) - unused


async def test_with_all_namespaces_watched_objects_act_as_the_deputy_of_their_namespace(
    server: TestServer, management: Client, record: Record, tmp_path: Path
) -> None:
    values = {"watchNamespace": "", "garden": {"projectName": "demo"}}
    await Installation(management, objects("hortus-system", values), str, namespace="hortus-system").apply()
    for name in ("team", "vault"):
        await management.create(NAMESPACES, {"metadata": {"name": name}})
    async with Client.from_kubeconfig(server.kubeconfig_for("garden")) as garden:
        await garden.create(SHOOTS, {**small_shoot("demo", 2), "metadata": {"name": "one", "namespace": NAMESPACE}})
    await grant_verbs(management, "team", "core.gardener.cloud", "shoots/adminkubeconfig", "create", names=["one"])
    await grant_verbs(management, "team", "", "secrets", "create", "delete", where="vault")
    ours = await kubeconfig_of(management, "hortus-system", "hortus", tmp_path / "management")
    flags = [
        f"--kubeconfig={ours}",
        f"--gardener-kubeconfig-path={server.kubeconfig_for('garden')}",
        "--gardener-project-name=demo",
        "--watch-namespace=",
        "--allow-local-clusters",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
    ]
    made = gardener_cluster("one")
    made["metadata"]["namespace"], made["spec"]["kubeconfig"]["secret"]["namespace"] = "team", "vault"
    await management.create(GARDENER_CLUSTERS, made)
    async with program(FlagSet(FLAGS).parse(flags)) as manager, manager.running():
        await seen(
            management, GARDENER_CLUSTERS, "one", lambda obj: reason(obj) == "KubeconfigSecretCreated", namespace="team"
        )
        await management.delete(GARDENER_CLUSTERS, "one", "team")
        await gone(management, SECRETS, "kubeconfig-one", namespace="vault")
    done = record.of("system:serviceaccount:hortus-system:hortus", server)
    assert sorted(used for used, codes in done.items() if 403 in codes) == []
    assert granted(contents.EVERYWHERE) <= set(done)
    acted = record.of(deputy_of("team"), server)
    assert {used.verb for used in acted if used.resource == "secrets"} == {"create", "delete"}
