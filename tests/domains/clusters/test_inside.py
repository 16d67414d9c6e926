"""Objects inside a cluster, on an API server: wanted ones are made once, and none of others is touched."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from tests.domains.clusters.shoot import samples
from tests.domains.clusters.shoot.documents import shoot_for
from tests.domains.clusters.world import CONFIG_MAPS, World

from hortus.domains.clusters.inside import (
    InsideError,
    NoWayIn,
    PoolWorkloads,
    bind_administrators,
    configure_oidc,
    publish_provisioning_info,
    registry_caches,
)
from hortus.domains.clusters.inside.administrators import BINDINGS, LABEL, binding_for, changes
from hortus.domains.clusters.inside.caches import CUSTOM_CONFIGS
from hortus.domains.clusters.inside.oidc import PROVIDERS, wanted
from hortus.domains.clusters.inside.provisioninginfo import KEY, NAME, NAMESPACE, details
from hortus.domains.clusters.reading import runtime_of
from hortus.domains.clusters.shoots import shoot_of
from hortus.domains.clusters.types import OidcConfig, Runtime
from hortus.engine import Cache
from hortus.engine.deputies import Deputies
from hortus.engine.remote import SECRETS, RemotePool, RemoteSettings, SecretCredentials
from hortus.kube import Client, yaml
from hortus.kube.objects import Object
from hortus.simulation.garden.workload import CRDS

DEFAULT = msgspec.convert(samples.DOCUMENT["cluster"]["defaultSharedIASTenant"], OidcConfig)


def binding(name: str, *users: str, role: str = "cluster-admin", kind: str = "User") -> Object:
    made = binding_for("")
    made["metadata"] = {"name": name, "labels": made["metadata"]["labels"]}
    made["subjects"] = [{"kind": kind, "name": user, "apiGroup": "rbac.authorization.k8s.io"} for user in users]
    made["roleRef"]["name"] = role
    return made


@pytest.mark.parametrize(
    ("present", "administrators", "removed", "added"),
    [
        ([], ["a"], [], ["a"]),
        ([], ["a", "b", "a"], [], ["a", "b"]),
        ([binding("x", "a")], ["a"], [], []),
        ([binding("x", "a")], [], ["x"], []),
        ([binding("x", "a", "b")], ["b"], [], []),
        ([binding("x", "a"), binding("y", "b")], ["b", "c"], ["x"], ["c"]),
        ([binding("x", "a", kind="Group")], [], [], []),
        ([binding("x", "a", role="view")], [], [], []),
        ([binding("x", "a", role="view")], ["a"], [], ["a"]),
    ],
)
def test_which_bindings_come_and_go(
    present: list[Object], administrators: list[str], removed: list[str], added: list[str]
) -> None:
    found = changes(present, administrators)
    assert [one["metadata"]["name"] for one in found.remove] == removed
    assert [one["subjects"][0]["name"] for one in found.add] == added


async def test_administrators_are_bound_once_and_other_bindings_stay(here: World) -> None:
    cluster = here.inside.client
    await cluster.create(BINDINGS, {**binding("theirs", "x@example.org"), "metadata": {"name": "theirs"}})
    await bind_administrators(cluster, ["a@example.org", "b@example.org"])
    first = await bindings(cluster)
    assert sorted(one["subjects"][0]["name"] for one in first) == ["a@example.org", "b@example.org"]
    assert all(one["metadata"]["name"].startswith("admin-") for one in first)
    await bind_administrators(cluster, ["a@example.org", "b@example.org"])
    assert await bindings(cluster) == first
    await bind_administrators(cluster, ["b@example.org"])
    assert [one["subjects"][0]["name"] for one in await bindings(cluster)] == ["b@example.org"]
    assert await cluster.get(BINDINGS, "theirs")


async def bindings(cluster: Client) -> list[Object]:
    return (await cluster.list(BINDINGS, labels=LABEL)).items


def plain(**shoot: Any) -> Runtime:
    return runtime_of(samples.runtime(**shoot))


def providers_of(*configs: Object) -> Runtime:
    return plain(kubernetes={"kubeAPIServer": {"additionalOidcConfig": list(configs)}})


A: Object = {"clientID": "a", "issuerURL": "https://a.example.org", "requiredClaims": {"k": "v"}, "jwks": "e30="}
B: Object = {"clientID": "b", "issuerURL": "https://b.example.org", "signingAlgs": ["RS256"], "groupsPrefix": "g:"}


@pytest.mark.parametrize("runtime", [plain(), providers_of(), providers_of({"clientID": "only"})])
def test_without_a_complete_provider_the_operators_counts(runtime: Runtime) -> None:
    [only] = wanted(runtime, DEFAULT)
    assert only["metadata"] == {
        "name": "kyma-oidc-0",
        "labels": {"operator.kyma-project.io/managed-by": "infrastructure-manager"},
    }
    assert only["spec"] == {
        "clientID": "shared-client",
        "groupsClaim": "groups",
        "issuerURL": "https://default.example.org",
        "supportedSigningAlgs": ["RS256"],
        "usernameClaim": "sub",
        "usernamePrefix": "-",
    }


async def test_providers_come_change_and_go_without_a_moment_without_any(here: World) -> None:
    cluster = here.inside.client
    await cluster.create(PROVIDERS, {**wanted(plain(), DEFAULT)[0], "metadata": {"name": "theirs"}})
    await configure_oidc(cluster, providers_of(A, B), DEFAULT)
    first = await providers(cluster)
    assert {name: spec["clientID"] for name, spec in first.items() if name != "theirs"} == {
        "kyma-oidc-0": "a",
        "kyma-oidc-1": "b",
    }
    assert first["kyma-oidc-0"]["jwks"] == {"keys": "e30="}
    assert first["kyma-oidc-1"]["supportedSigningAlgs"] == ["RS256"]
    revision = await version(cluster)
    await configure_oidc(cluster, providers_of(A, B), DEFAULT)
    assert await version(cluster) == revision
    await configure_oidc(cluster, providers_of({name: B[name] for name in ("clientID", "issuerURL")}), DEFAULT)
    assert await providers(cluster) == {
        "theirs": first["theirs"],
        "kyma-oidc-0": {"clientID": "b", "issuerURL": "https://b.example.org"},
    }


async def test_a_provider_that_another_system_wrote_is_made_right(here: World) -> None:
    cluster = here.inside.client
    theirs = wanted(providers_of({**A, "usernameClaim": "email"}), DEFAULT)[0]
    await cluster.create(PROVIDERS, theirs)
    await configure_oidc(cluster, providers_of(A), DEFAULT)
    assert (await providers(cluster))["kyma-oidc-0"] == wanted(providers_of(A), DEFAULT)[0]["spec"]


async def providers(cluster: Client) -> dict[str, Any]:
    return {found["metadata"]["name"]: found["spec"] for found in (await cluster.list(PROVIDERS)).items}


async def version(cluster: Client) -> str:
    return (await cluster.list(PROVIDERS)).resource_version


async def test_a_cluster_can_read_how_it_was_made(here: World) -> None:
    cluster, document = here.inside.client, samples.runtime(further=[samples.pool("gpu", zones=["eu-central-1a"])])
    shoot = shoot_of(shoot_for(document, samples.CONFIG, samples.CONTEXT))
    runtime = runtime_of(document)
    await publish_provisioning_info(cluster, runtime, shoot, here.clock.now())
    found = await cluster.get(CONFIG_MAPS, NAME, NAMESPACE)
    assert found["metadata"]["labels"] == {"reconciler.kyma-project.io/managed-by": "infrastructure-manager"}
    text = found["data"][KEY]
    assert yaml.load(text) == {**details(runtime, shoot), "lastReconcileTime": "2023-01-01T12:00:00Z"}
    assert [line.split(":")[0] for line in text.splitlines() if line[0] not in " -"] == sorted(
        line.split(":")[0] for line in text.splitlines() if line[0] not in " -"
    )
    assert details(runtime, shoot)["workerPools"] == {
        "kyma": {
            "name": "cpu-worker-0",
            "machineType": "m6i.large",
            "haZones": True,
            "autoScalerMin": 3,
            "autoScalerMax": 20,
        },
        "custom": [
            {"name": "gpu", "machineType": "m6i.large", "haZones": False, "autoScalerMin": 3, "autoScalerMax": 20}
        ],
    }
    await publish_provisioning_info(cluster, runtime, shoot, here.clock.now() + 60)
    assert await cluster.get(CONFIG_MAPS, NAME, NAMESPACE) == found


async def test_caches_are_those_of_all_custom_configs_and_none_where_the_kind_is_unknown(here: World) -> None:
    cluster = here.inside.client
    assert await registry_caches(cluster) == ()
    await cluster.create(CRDS, custom_config_kind())
    for name, caches in (("b", [{"upstream": "quay.io"}, {"upstream": "ghcr.io"}]), ("a", [{"upstream": "docker.io"}])):
        body = {"apiVersion": "core.kyma-project.io/v1beta1", "kind": "CustomConfig", "spec": {"caches": caches}}
        await cluster.create(CUSTOM_CONFIGS, {**body, "metadata": {"name": name, "namespace": "default"}})
    assert [cache["upstream"] for cache in await registry_caches(cluster)] == ["docker.io", "quay.io", "ghcr.io"]


def custom_config_kind(plural: str = "customconfigs", kind: str = "CustomConfig") -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{plural}.core.kyma-project.io"},
        "spec": {"group": "core.kyma-project.io", "names": names, "scope": "Namespaced", "versions": [version]},
    }


async def test_a_kubeconfig_that_is_missing_or_broken_is_no_way_in(here: World) -> None:
    async with pooled(here) as workloads:
        with pytest.raises(
            NoWayIn, match=f"Secret {here.namespace}/kubeconfig-rt-1, key config: there is no such Secret"
        ):
            await look_inside(workloads, here.runtime())
        await keep(here, "rt-2", b"not a kubeconfig")
        with pytest.raises(NoWayIn, match="kubeconfig-rt-2"):
            await look_inside(workloads, here.runtime("rt-2"))


async def test_the_kubeconfig_in_the_secret_leads_into_the_cluster(here: World) -> None:
    document = here.server.kubeconfig_dict(f"inside-{here.number}")
    async with pooled(here) as workloads:
        await keep(here, "rt-1", yaml.dump(document).encode())
        await look_inside(workloads, here.runtime())
        document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
        await keep(here, "rt-2", yaml.dump(document).encode())
        with pytest.raises(InsideError, match="refused"):
            await look_inside(workloads, here.runtime("rt-2"))


@pytest.mark.parametrize("shoot", ["", "c-2"])
async def test_a_kubeconfig_that_was_not_written_for_the_shoot_is_never_used(here: World, shoot: str) -> None:
    """Otherwise a user who may write Runtimes and GardenerClusters, but no Secrets, gets there by a runtime-id."""
    document = yaml.dump(here.server.kubeconfig_dict(f"inside-{here.number}")).encode()
    await keep(here, "prod", document, shoot=shoot)
    async with pooled(here) as workloads:
        with pytest.raises(NoWayIn, match="kubeconfig-prod, key config: it was not written for shoot c-1"):
            await look_inside(workloads, here.runtime("prod"))


@asynccontextmanager
async def pooled(here: World) -> AsyncIterator[PoolWorkloads]:
    credentials = SecretCredentials(here.client, Cache("secrets"))
    async with RemotePool(credentials, settings=RemoteSettings(deny=(), timeout=60.0)) as pool:
        deputies = Deputies(here.client, here.trusted, clock=here.clock)
        yield PoolWorkloads(pool, here.client, Cache("kubeconfigs"), deputies)


async def look_inside(workloads: PoolWorkloads, runtime: Object) -> None:
    async with workloads.open(runtime_of(runtime)) as cluster:
        assert (await cluster.list(BINDINGS)).items


async def keep(here: World, name: str, content: bytes, *, shoot: str = "c-1") -> None:
    """The kubeconfig Secret of a Runtime."""
    labels = {"kyma-project.io/shoot-name": shoot} if shoot else {}
    body: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"kubeconfig-{name}", "labels": labels}}
    data = {"config": base64.b64encode(content).decode()}
    await here.client.create(SECRETS, {**body, "data": data}, namespace=here.namespace)
