"""One record that is not understood costs its owner that object, and nobody a server or a cluster.

Records are written past every check, as an older version or a mended fault may have left them.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.apiserver.admission.scripted import configuration, webhook
from tests.apiserver.wire import Wire, configmap, connected

from hortus.apiserver.clusters import BUCKET
from hortus.apiserver.store import StoreKey
from hortus.apiserver.store.encoding import encode
from hortus.testing.apiserver import TestServer, running_apiserver

CLUSTERS = "/apis/tenancy.hortus.dev/v1alpha1/logicalclusters"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[TestServer]:
    async with running_apiserver(store="sqlite", folder=folder, clusters=["broken", "sound"]) as server:
        yield server


def overwrite(server: TestServer, key: StoreKey, obj: Any) -> None:
    """Write past the API, as whatever wrote it did."""

    async def put() -> None:
        await server.server.context.storage.backend.put(key, encode(obj), expected=None)

    server.run(put())


def wire_to(server: TestServer, cluster: str) -> Any:
    return connected(server.cluster_url(cluster), server.token, server.tls())


async def works(server: TestServer, cluster: str) -> None:
    """Objects come, are judged, are found, and go; kinds are defined."""
    async with wire_to(server, cluster) as wire:
        assert (await wire.post(CONFIGMAPS, configmap("a"))).code == 201
        assert (await wire.get(CONFIGMAPS, headers={"Impersonate-User": "jane"})).code == 403
        crd = crd_of("beds", f"{cluster}.example")
        assert (await wire.post(CRDS, crd)).code == 201
        bed = {"apiVersion": f"{cluster}.example/v1", "kind": "Bed", "metadata": {"name": "a"}}
        assert (await wire.post(f"/apis/{cluster}.example/v1/beds", bed)).code == 201
        for path in (f"{CRDS}/beds.{cluster}.example", f"{CONFIGMAPS}/a"):
            assert (await wire.delete(path)).code == 200
            async with asyncio.timeout(60):
                while (await wire.get(path)).code != 404:
                    pass


def crd_of(plural: str, group: str, version: str = "v1") -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"},
        },
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": plural, "kind": plural[:-1].capitalize()},
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


# Definitions over what is built in.

BUILT_IN = [
    ("logicalclusters", "tenancy.hortus.dev"),
    ("clusterroles", "rbac.authorization.k8s.io"),
    ("validatingwebhookconfigurations", "admissionregistration.k8s.io"),
    ("leases", "coordination.k8s.io"),
]


@pytest.mark.parametrize(("plural", "group"), BUILT_IN)
@pytest.mark.parametrize("version", ["v1", "v9"])
async def test_a_definition_over_a_built_in_kind_serves_and_takes_nothing(
    tmp_path: Path, plural: str, group: str, version: str
) -> None:
    async with served(tmp_path) as server, wire_to(server, "root") as wire:
        before = await everything(server)
        made = await wire.post(CRDS, crd_of(plural, group, version))
        assert made.code == 201, made.body
        conditions = {each["type"]: (each["status"], each["reason"]) for each in made.body["status"]["conditions"]}
        assert conditions == {"NamesAccepted": ("False", "PluralConflict"), "Established": ("False", "NotAccepted")}
        if version == "v9":
            assert (await wire.get(f"/apis/{group}/v9/{plural}")).code == 404
        # A user who may write the status may set Established.
        established = [{"op": "replace", "path": "/status/conditions/1/status", "value": "True"}]
        assert (await wire.json_patch(f"{CRDS}/{plural}.{group}/status", established)).code == 200
        if version == "v9":
            assert (await wire.get(f"/apis/{group}/v9/{plural}")).code == 404
        assert (await wire.delete(f"{CRDS}/{plural}.{group}")).code == 200
        async with asyncio.timeout(60):
            while (await wire.get(f"{CRDS}/{plural}.{group}")).code != 404:
                pass
        server.run(server.server.collector.queue.settled())
        assert await everything(server) == before


async def everything(server: TestServer) -> set[StoreKey]:
    async def read() -> set[StoreKey]:
        storage = server.server.context.storage
        return {record.key for bucket in await storage.buckets("") for record in (await storage.list(bucket)).records}

    return server.run(read())


async def test_a_definition_of_before_a_kind_was_built_in_takes_nothing(tmp_path: Path) -> None:
    """It has been accepted and established, by an older version of the server."""
    async with served(tmp_path) as server, wire_to(server, "root") as wire:
        crd = crd_of("logicalclusters", "tenancy.hortus.dev", "v9")
        said = [{"type": type_, "status": "True", "reason": "Old"} for type_ in ("NamesAccepted", "Established")]
        names = crd["spec"]["names"]
        crd["status"] = {"conditions": said, "acceptedNames": names, "storedVersions": ["v9"]}
        crd["metadata"] |= {"uid": "42dbb8a3-7b94-4e5d-8f3a-0f5d7a1b6d10"}
        overwrite(
            server, StoreKey("root/apiextensions.k8s.io/customresourcedefinitions", f"/{crd['metadata']['name']}"), crd
        )
    async with served(tmp_path) as server, wire_to(server, "root") as wire:
        assert (await wire.get("/apis/tenancy.hortus.dev/v9/logicalclusters")).code == 404
        assert (await wire.delete(f"{CRDS}/logicalclusters.tenancy.hortus.dev")).code == 200
        async with asyncio.timeout(60):
            while (await wire.get(f"{CRDS}/logicalclusters.tenancy.hortus.dev")).code != 404:
                pass
        await works(server, "sound")


# LogicalClusters.


@pytest.mark.parametrize(("written", "quota"), [("2.0", 2), ("1e3", 1000), ("0", 0), ("null", None)])
async def test_a_quota_counts_however_its_number_is_written(tmp_path: Path, written: str, quota: int | None) -> None:
    async with served(tmp_path) as server, wire_to(server, "root") as wire:
        body = b'{"metadata":{"name":"limited"},"spec":{"quota":{"objects":%s}}}' % written.encode()
        assert (await wire.post(CLUSTERS, body)).code == 201
    async with served(tmp_path) as server:
        limited = server.server.clusters.get("limited")
        assert limited is not None and limited.quota is not None and limited.quota.objects == quota


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"quota": {"objects": "many"}}},
        {"spec": {"quota": 7}},
        {"spec": ["a"]},
        {"metadata": {"name": "broken", "uid": "no uid"}},
        {"metadata": {"name": "broken"}},
        {"metadata": {"name": "broken", "uid": "no uid", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
    ],
)
async def test_a_malformed_cluster_is_left_alone_and_the_others_are_served(
    tmp_path: Path, change: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tmp_path) as server:
        async with wire_to(server, "broken") as wire:
            kept = (await wire.post(CONFIGMAPS, configmap("kept"))).body
        record = server.run(server.server.context.storage.get(StoreKey(BUCKET, "/broken")))
        assert record is not None
        sound = msgspec.json.decode(record.value)
        del sound["metadata"]["resourceVersion"]
        overwrite(server, record.key, sound | change)
        await works(server, "sound")
    caplog.clear()
    async with served(tmp_path) as server:
        said = [vars(one).get("object") for one in caplog.records if "LogicalCluster" in one.message]
        assert said == ["broken"]
        await works(server, "sound")
        async with connected(server.cluster_url("broken"), server.token_everywhere, server.tls()) as wire:
            assert (await wire.get(CONFIGMAPS)).code == 404
            overwrite(server, record.key, sound)
            assert (await wire.get(f"{CONFIGMAPS}/kept")).body == kept
            await works(server, "broken")


async def test_a_malformed_cluster_can_be_deleted(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        record = server.run(server.server.context.storage.get(StoreKey(BUCKET, "/broken")))
        assert record is not None
        obj = msgspec.json.decode(record.value)
        del obj["metadata"]["resourceVersion"]
        overwrite(server, record.key, obj | {"spec": {"quota": "none"}})
    async with served(tmp_path) as server, wire_to(server, "root") as wire:
        assert (await wire.delete(f"{CLUSTERS}/broken")).code == 200
        async with asyncio.timeout(60):
            while (await wire.get(f"{CLUSTERS}/broken")).code != 404:
                pass


# Any record of what the server itself reads.


async def furnish(wire: Wire) -> None:
    """One object of each sort that the server makes something of."""
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}
    bound = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u"}
    named = {"metadata": {"name": "x"}}
    policy = {
        "matchConstraints": {"resourceRules": [{**rule_of_admission(), "resources": ["secrets"]}]},
        "validations": [{"expression": "true"}],
    }
    hook = webhook("x.example.org", {"url": "https://127.0.0.1:1/"}, "elsewhere")
    selector = {"matchLabels": {"x": "y"}}
    for path, body in [
        ("/api/v1/namespaces", named),
        ("/api/v1/namespaces/x/events", {**named, "involvedObject": {"namespace": "x"}}),
        ("/api/v1/namespaces/x/serviceaccounts", named),
        ("/api/v1/namespaces/x/configmaps", {"metadata": {"name": "x", "finalizers": ["a.example/b"]}}),
        ("/api/v1/namespaces/x/resourcequotas", {**named, "spec": {"hard": {"pods": "1"}}}),
        (f"{RBAC}/clusterroles", {**named, "rules": [rule]}),
        (
            f"{RBAC}/clusterroles",
            {"metadata": {"name": "sum"}, "aggregationRule": {"clusterRoleSelectors": [selector]}},
        ),
        (f"{RBAC}/clusterrolebindings", {**named, "roleRef": bound, "subjects": [subject]}),
        (f"{RBAC}/namespaces/x/roles", {**named, "rules": [rule]}),
        (f"{RBAC}/namespaces/x/rolebindings", {**named, "roleRef": bound, "subjects": [subject]}),
        (f"{ADMISSION}/validatingwebhookconfigurations", configuration("Validating", "x", hook)),
        (f"{ADMISSION}/mutatingwebhookconfigurations", configuration("Mutating", "x", hook)),
        (f"{ADMISSION}/validatingadmissionpolicies", {**named, "spec": policy}),
        (
            f"{ADMISSION}/validatingadmissionpolicybindings",
            {**named, "spec": {"policyName": "x", "validationActions": ["Deny"]}},
        ),
        (CRDS, crd_of("chairs", "x.example")),
        ("/apis/x.example/v1/chairs", {"apiVersion": "x.example/v1", "kind": "Chair", **named}),
        ("/apis/policy/v1/namespaces/x/poddisruptionbudgets", {**named, "spec": {"minAvailable": 1}}),
    ]:
        made = await wire.post(path, body)
        assert made.code == 201, (path, made.body)
    await wire.post(
        "/api/v1/namespaces/x/configmaps", configmap("owned", ownerReferences=[owner], finalizers=["a.b/c"])
    )


def rule_of_admission() -> dict[str, Any]:
    return {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}


VALUES = st.sampled_from([None, 0, -1, 2.5, True, "", "x", [], ["x"], [None], {}, {"x": "y"}, [{}], 10**18])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places in a document, without those that begin the layout of stored objects."""
    found = [path] if path and path not in (("apiVersion",), ("kind",), ("metadata",)) else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        found += places(each, (*path, key))
    return found


def spoilt(document: Any, path: tuple[Any, ...], value: Any, *, remove: bool) -> Any:
    found = copy.deepcopy(document)
    at = found
    for step in path[:-1]:
        at = at[step]
    if remove:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return found


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory with something of everything in the cluster `broken`."""
    folder = tmp_path_factory.mktemp("furnished")

    async def make() -> None:
        async with served(folder) as server, wire_to(server, "broken") as wire:
            await furnish(wire)

    asyncio.run(make())
    return folder


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_record_of_one_cluster_keeps_another_from_working(
    furnished: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("spoilt")
    for file in furnished.glob("state.db*"):
        if not file.name.endswith(".lock"):
            (folder / file.name).write_bytes(file.read_bytes())
    asyncio.run(_expect_others_served(folder, data))


async def _expect_others_served(folder: Path, data: st.DataObject) -> None:
    async with served(folder) as server:
        storage = server.server.context.storage
        buckets = [each for each in server.run(storage.backend.buckets("")) if each.startswith("broken/")]
        records = [
            record
            for bucket in buckets
            for record in server.run(storage.list(bucket)).records
            if record.revision > 1 and not record.name.startswith("default/")
        ]
        for record in data.draw(st.lists(st.sampled_from(records), min_size=1, max_size=6, unique_by=id)):
            obj = msgspec.json.decode(record.value)
            del obj["metadata"]["resourceVersion"]
            path = data.draw(st.sampled_from(places(obj)))
            overwrite(server, record.key, spoilt(obj, path, data.draw(VALUES), remove=data.draw(st.booleans())))
        await works(server, "sound")
    async with served(folder) as server:
        await works(server, "sound")
        async with wire_to(server, "broken") as wire:
            # An administrator finds what is wrong and takes it away.
            for path in (f"{ADMISSION}/validatingwebhookconfigurations", f"{ADMISSION}/validatingadmissionpolicies"):
                assert (await wire.delete(path)).code in (200, 500)
            assert (await wire.get(CONFIGMAPS)).code == 200
