"""A GardenerCluster that is none is refused at admission with the path of what is wrong; one at the limits is taken."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.domains.credentials.world import CRDS, World, content, world
from tests.scenarios.running import kubectl

from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster, Label
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import Client, yaml
from hortus.kube.errors import ApiError, BadRequest, Invalid
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.testing.apiserver import TestServer, started_apiserver


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    async def prepare(server: TestServer) -> None:
        async with Client.from_kubeconfig(server.kubeconfig) as client:
            await client.apply(CRDS, crd(GardenerCluster), field_manager="tests")

    with started_apiserver() as running:
        asyncio.run(prepare(running))
        yield running


@pytest.fixture
async def client(server: TestServer) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(server.kubeconfig) as made:
        yield made


GOOD: Object = {
    "apiVersion": GARDENER_CLUSTERS.api_version,
    "kind": GARDENER_CLUSTERS.kind,
    "metadata": {"name": "c-1", "namespace": "default"},
    "spec": {
        "shoot": {"name": "c-1"},
        "kubeconfig": {"secret": {"name": "kubeconfig-c-1", "namespace": "default", "key": "config"}},
    },
}


def changed(path: str, value: Any = None) -> Object:
    """The good one with the field at `path` replaced, or taken away."""
    obj = copy.deepcopy(GOOD)
    *parents, last = path.split(".")
    place = obj
    for name in parents:
        place = place[name]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return obj


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("spec", None, "spec: Required value"),
        ("spec", "text", 'spec: Invalid value: "string": spec in body must be of type object: "string"'),
        ("spec", [], 'spec: Invalid value: "array": spec in body must be of type object: "array"'),
        ("spec.shoot", None, "spec.shoot: Required value"),
        ("spec.shoot.name", None, "spec.shoot.name: Required value"),
        (
            "spec.shoot.name",
            7,
            'spec.shoot.name: Invalid value: "integer": spec.shoot.name in body must be of type string',
        ),
        ("spec.shoot.name", ["c"], 'spec.shoot.name: Invalid value: "array"'),
        ("spec.shoot.name", {}, 'spec.shoot.name: Invalid value: "object"'),
        ("spec.kubeconfig", None, "spec.kubeconfig: Required value"),
        ("spec.kubeconfig.secret", None, "spec.kubeconfig.secret: Required value"),
        ("spec.kubeconfig.secret", {}, "spec.kubeconfig.secret.key: Required value"),
        ("spec.kubeconfig.secret.name", None, "spec.kubeconfig.secret.name: Required value"),
        ("spec.kubeconfig.secret.namespace", None, "spec.kubeconfig.secret.namespace: Required value"),
        ("spec.kubeconfig.secret.key", None, "spec.kubeconfig.secret.key: Required value"),
        ("spec.kubeconfig.secret.key", True, 'spec.kubeconfig.secret.key: Invalid value: "boolean"'),
        ("kind", "Other", 'kind: Invalid value: "Other": must be GardenerCluster'),
        ("metadata.name", "UPPER", "metadata.name: Invalid value"),
        ("metadata.name", "x" * 254, "metadata.name: Invalid value"),
        ("metadata.name", "a/b", "metadata.name: Invalid value"),
        ("metadata.labels", {"kyma-project.io/runtime-id": "x" * 64}, "metadata.labels: Invalid value"),
        ("metadata.labels", {"-bad": "x"}, "metadata.labels: Invalid value"),
        ("metadata.annotations", {"bad key": "x"}, "metadata.annotations: Invalid value"),
        ("metadata.annotations", {"a": "x" * (256 * 1024 + 1)}, "metadata.annotations: Too long"),
        ("metadata.finalizers", ["Not A Name"], "metadata.finalizers"),
    ],
)
async def test_what_is_refused_is_named_with_its_path(client: Client, path: str, value: Any, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        await client.create(GARDENER_CLUSTERS, changed(path, value), namespace="default")
    assert '.infrastructuremanager.kyma-project.io "' in str(refused.value)
    assert says in str(refused.value)
    assert len(str(refused.value)) < 20_000
    causes = [cause["field"] for cause in refused.value.details["causes"]]
    assert any(says.startswith(field) for field in causes), causes


@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        (b"{", BadRequest, ""),
        (b"[]", BadRequest, ""),
        (b"null", BadRequest, ""),
        (b'{"kind":"GardenerCluster","apiVersion":"v2"}', BadRequest, "v2"),
        (b'{"metadata":[]}', BadRequest, ""),
        (b'{"metadata":{"name":7}}', BadRequest, ""),
        (b"\xff\xfe", BadRequest, ""),
        (b'{"spec":' * 2000, BadRequest, ""),
    ],
)
async def test_a_body_that_is_no_object_is_refused_politely(
    client: Client, body: bytes, error: type[ApiError], says: str
) -> None:
    with pytest.raises(error) as refused:
        await client.request("POST", GARDENER_CLUSTERS.path("default"), body)
    assert says in str(refused.value)
    assert refused.value.http_code == 400


async def test_unknown_fields_are_dropped_warned_of_or_refused_as_asked(client: Client) -> None:
    obj = changed("spec.shoot", {"name": "c-1", "nmae": "typo"})
    obj["metadata"]["name"] = "unknown"
    with pytest.raises(BadRequest, match=r'strict decoding error: unknown field "spec\.shoot\.nmae"'):
        await client.create(GARDENER_CLUSTERS, obj, validation="Strict")
    answer = await client.request(
        "POST", GARDENER_CLUSTERS.path("default"), orjson.dumps(obj), query={"fieldValidation": "Warn"}
    )
    assert answer.headers["Warning"] == '299 - "unknown field \\"spec.shoot.nmae\\""'
    stored = await client.get(GARDENER_CLUSTERS, "unknown", "default")
    assert stored["spec"]["shoot"] == {"name": "c-1"}


async def test_an_update_is_judged_like_a_creation(client: Client) -> None:
    obj = copy.deepcopy(GOOD)
    obj["metadata"]["name"] = "update"
    await client.create(GARDENER_CLUSTERS, obj)
    for patch in ({"spec": {"shoot": {"name": 7}}}, {"spec": {"kubeconfig": {"secret": {"key": None}}}}):
        with pytest.raises(Invalid, match=r"spec\."):
            await client.patch(GARDENER_CLUSTERS, "update", patch, "default")
    bad = {"status": {"conditions": [{"type": "x"}]}}
    with pytest.raises(Invalid, match=r"status\.conditions\[0\]\.\w+: Required value"):
        await client.patch(GARDENER_CLUSTERS, "update", bad, "default", subresource="status")


def test_kubectl_says_the_same(server: TestServer) -> None:
    refused = kubectl(server.kubeconfig, "apply", "-f", "-", stdin=yaml.dump(changed("spec.shoot")))
    assert refused.returncode == 1
    assert 'The GardenerCluster "c-1" is invalid: spec.shoot: Required value' in refused.stderr
    typo = changed("spec.shoot", {"name": "c", "nmae": "x"})
    refused = kubectl(server.kubeconfig, "apply", "-f", "-", stdin=yaml.dump(typo))
    assert refused.returncode == 1
    assert 'unknown field "spec.shoot.nmae"' in refused.stderr


@pytest.fixture
async def here(server: TestServer) -> AsyncIterator[World]:
    async with world(server) as made:
        yield made


@pytest.mark.parametrize("owned", [True, False])
async def test_names_and_annotations_at_the_limits_work(here: World, owned: bool) -> None:
    name, shoot = "n" * 253, "s" * 63
    here.garden.shoots.add(shoot)
    made = here.cluster(name, shoot=shoot, metadata={"annotations": {"a": "x" * (256 * 1024 - 1)}})
    made["metadata"]["labels"] = {}
    made["spec"]["kubeconfig"]["secret"] |= {"name": "k" * 253, "key": "y" * 253}
    async with here.controlled():
        await here.create(made)
        await here.until_condition("KubeconfigSecretCreated", name)
        secret = await here.secret("k" * 253)
        assert content(secret, "y" * 253)
        assert len(secret["metadata"]["labels"][Label.CLUSTER_NAME]) == 63
        if not owned:
            await here.change(SECRETS, "k" * 253, {"metadata": {"ownerReferences": None}})
        await here.rest(name)
        assert here.garden.calls == [shoot]
        await here.client.delete(GARDENER_CLUSTERS, name, here.namespace)
        await here.until_gone("Secret", "k" * 253)


@pytest.mark.parametrize(
    ("change", "reason", "says"),
    [
        ({"secret": {"name": "UPPER"}}, "ConditionReasonFailedToCreateSecret", "metadata.name: Invalid value"),
        ({"secret": {"name": "a/b"}}, "ConditionReasonFailedToCreateSecret", ""),
        ({"secret": {"name": ""}}, "ConditionReasonFailedToCreateSecret", ""),
        ({"secret": {"key": "a b"}}, "ConditionReasonFailedToCreateSecret", "a valid config key must consist of"),
        ({"secret": {"key": ""}}, "ConditionReasonFailedToCreateSecret", ""),
        ({"secret": {"namespace": "nowhere"}}, "ConditionReasonFailedToCreateSecret", 'namespaces "nowhere" not found'),
    ],
)
async def test_what_the_schema_cannot_know_becomes_an_error_that_says_what_to_do(
    here: World, change: Any, reason: str, says: str
) -> None:
    async with here.controlled():
        await here.create(here.cluster(**change))
        shown = await here.until_condition(reason)
        assert says in shown["message"]
        await here.client.delete(GARDENER_CLUSTERS, "rt-1", here.namespace)
        await here.until_gone("GardenerCluster", "rt-1")


async def test_annotations_beyond_the_limit_leave_a_cluster_as_it_is(client: Client, tmp_path: Path) -> None:
    obj = copy.deepcopy(GOOD)
    obj["metadata"]["name"] = "heavy"
    obj["metadata"]["annotations"] = {f"a{number}": "x" * 1000 for number in range(250)}
    made = await client.create(GARDENER_CLUSTERS, obj)
    more = {"metadata": {"annotations": {f"b{number}": "x" * 1000 for number in range(20)}}}
    with pytest.raises(Invalid, match=r"metadata\.annotations: Too long: may not be more than 262144 bytes"):
        await client.patch(GARDENER_CLUSTERS, "heavy", more, "default")
    assert await client.get(GARDENER_CLUSTERS, "heavy", "default") == made
