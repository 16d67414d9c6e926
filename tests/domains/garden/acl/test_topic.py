"""Access lists on a seed: gateways, egress addresses, hibernation, deletion; all through real sockets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.domains.garden.world import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    ENVOY_FILTERS,
    ISTIO_LABELS,
    SeedWorld,
    add_user,
    install,
    seed_document,
    shoot_document,
)
from tests.waiting import until

from hortus.domains.garden.acl import TOPIC
from hortus.domains.garden.acl.always import always_allowed
from hortus.domains.garden.acl.egress import stability
from hortus.domains.garden.acl.settings import AclSettings
from hortus.domains.garden.acl.topic import AclTopic
from hortus.domains.garden.extension.composition import SeedView
from hortus.domains.garden.kinds.seedcluster import GardenShoot, SeedCluster
from hortus.domains.garden.rbac import permissions
from hortus.domains.garden.types import EXTENSIONS, MANAGED_RESOURCES
from hortus.engine import StepError
from hortus.engine.rbac import policy_rules
from hortus.kube import Resource, yaml
from hortus.kube.objects import Object

SERVICES = Resource("", "v1", "services", "Service")
RULE = {"action": "ALLOW", "type": "remote_ip", "cidrs": ["203.0.113.0/24"]}
TID = "shoot--bar--foo"


def acl(**settings: Any) -> Callable[[SeedView], AclTopic]:
    return lambda view: AclTopic(AclSettings(**settings), view)


def networks(found: Object, policy: str) -> list[str]:
    """The networks of the principals of a filter's policy."""
    config = found["spec"]["configPatches"][0]["patch"]["value"]["typed_config"]
    principals = config["rules"]["policies"][policy]["principals"]
    return [f"{one['address_prefix']}/{one['prefix_len']}" for part in principals for one in part.values()]


async def filter_of(seed: SeedWorld, part: str, namespace: str = "istio-ingress", tid: str = TID) -> Object:
    return await seed.there(ENVOY_FILTERS, f"acl-{part}-{tid}", namespace)


async def prepared(seed: SeedWorld, *egress: str, **spec: Any) -> None:
    await seed.add_shoot(shoot_document(**spec))
    await seed.add_gateway(TID)
    await seed.add_hosts("garden", "nginx-ingress-controller", [["*.ingress.seed.example.org"]])
    await seed.add_infrastructure(TID, "foo", *egress)


async def test_a_shoot_gets_the_filters_of_its_gateways(seed: SeedWorld) -> None:
    await prepared(seed, "198.51.100.1/32")
    async with seed.running(acl(additional=("192.0.2.0/24",))):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        found = await seed.operated(TID, "acl")
        assert found["status"]["state"] == {"istioNamespace": "istio-ingress"}
        expected = [
            *("203.0.113.0/24", "10.240.0.0/16", "10.96.0.0/11"),
            *("192.0.2.0/24", "10.250.0.0/16", "198.51.100.1/32"),
        ]
        for part, policy in (
            ("api", "acl-api"),
            ("vpn", "bar--foo"),
            ("http-proxy", "bar--foo"),
            ("ingress", "bar--foo"),
        ):
            assert networks(await filter_of(seed, part), policy) == expected
        api = await filter_of(seed, "api")
        match = api["spec"]["configPatches"][0]["match"]
        assert match["listener"]["filterChain"]["sni"] == "api.foo.bar.example.org"
        conditions = {one["type"]: one for one in found["status"]["conditions"]}
        assert conditions["EgressStable"]["status"] == "True"


async def test_changed_addresses_of_nodes_reach_the_filters(seed: SeedWorld) -> None:
    await prepared(seed, "198.51.100.1/32")
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        await seed.operated(TID, "acl")
        await seed.add_infrastructure(TID, "foo", "198.51.100.2/32", "198.51.100.1/32")

        async def changed() -> bool:
            return networks(await filter_of(seed, "api"), "acl-api")[-2:] == ["198.51.100.2/32", "198.51.100.1/32"]

        await until(changed)
        found = await seed.operated(TID, "acl", kind="Reconcile")
        assert found["status"]["lastOperation"]["state"] == "Succeeded"
        assert await changed()


@pytest.mark.parametrize(
    ("namespace", "labels"),
    [
        ("istio-ingress", {"app": "istio-ingressgateway", "istio": "ingressgateway"}),
        ("istio-ingress--eu01-1", {"app": "istio-ingressgateway", "istio": "ingressgateway--zone--eu01-1"}),
        ("istio-ingress--0a1b2", {"app": "istio-ingressgateway", "istio": "ingressgateway--zone--EU 1"}),
        (
            "istio-ingress-handler-internet",
            {"handler.exposureclass.gardener.cloud/name": "internet", "gardener.cloud/role": "exposureclass-handler"},
        ),
        (
            "istio-ingress-handler-internet--eu01-1",
            {
                "handler.exposureclass.gardener.cloud/name": "internet",
                "gardener.cloud/role": "exposureclass-handler",
                "istio": "internet--zone--eu01-1",
            },
        ),
    ],
)
async def test_the_gateway_is_found_by_labels_wherever_it_is(
    seed: SeedWorld, namespace: str, labels: dict[str, str]
) -> None:
    if " " in str(labels):
        labels = {name: value.replace(" ", "-") for name, value in labels.items()}
    await prepared(seed)
    await seed.add_deployment("istio-ingress-other", {"app": "other"})
    await seed.add_gateway(TID, namespace=namespace, labels=labels)
    if namespace != "istio-ingress":
        await seed.client.delete(DEPLOYMENTS, "istio-ingressgateway", "istio-ingress")
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        found = await seed.operated(TID, "acl")
        assert found["status"]["state"] == {"istioNamespace": namespace}
        for part in ("api", "vpn", "http-proxy"):
            made = await filter_of(seed, part, namespace)
            assert made["spec"]["workloadSelector"]["labels"] == labels
        dashboards = await filter_of(seed, "ingress", "istio-ingress")
        assert dashboards["spec"]["workloadSelector"]["labels"] == ISTIO_LABELS


async def test_a_moved_gateway_takes_the_filters_along(seed: SeedWorld) -> None:
    await prepared(seed)
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        await seed.operated(TID, "acl")
        await filter_of(seed, "api")
        zonal = {**ISTIO_LABELS, "istio": "ingressgateway--zone--a"}
        await seed.add_gateway(TID, namespace="istio-ingress--a", labels=zonal)
        await seed.ask(TID, "acl", "reconcile")
        moved = await filter_of(seed, "api", "istio-ingress--a")
        await seed.gone(ENVOY_FILTERS, f"acl-api-{TID}", "istio-ingress")
        assert moved["spec"]["workloadSelector"]["labels"] == zonal


_MISSING = f"Gateway {TID}/kube-apiserver does not exist: gardenlet creates it with the kube-apiserver"
_NONE = (
    f"Gateway {TID}/kube-apiserver selects app=istio-ingressgateway,istio=ingressgateway: exactly one Deployment must "
    "have these labels; there are: none"
)
_TWO = _NONE.replace("none", "istio-a/istio-ingressgateway, istio-b/istio-ingressgateway")


@pytest.mark.parametrize(("case", "message"), [("missing", _MISSING), ("none", _NONE), ("two", _TWO)])
async def test_a_gateway_that_is_missing_or_doubled_is_an_error_until_it_is_there(
    seed: SeedWorld, case: str, message: str
) -> None:
    await seed.add_shoot()
    if case != "missing":
        await seed.add_gateway(TID, namespace="istio-a")
        if case == "two":
            await seed.add_deployment("istio-b")
        else:
            await seed.client.delete(DEPLOYMENTS, "istio-ingressgateway", "istio-a")
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        found = await seed.operated(TID, "acl", state="Error")
        assert found["status"]["lastError"]["description"] == message
        await seed.add_gateway(TID, namespace="istio-a")
        if case == "two":
            await seed.client.delete(DEPLOYMENTS, "istio-ingressgateway", "istio-b")
        found = await seed.operated(TID, "acl", kind="Create")
        assert found["status"]["state"] == {"istioNamespace": "istio-a"}


async def test_a_hibernated_shoot_without_a_gateway_succeeds_and_gets_its_filters_on_waking(seed: SeedWorld) -> None:
    await seed.add_shoot(shoot_document(hibernation={"enabled": True}))
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        await seed.operated(TID, "acl", kind="Create")
        assert await seed.get(MANAGED_RESOURCES, "acl-seed", TID) is None
        await seed.add_gateway(TID)
        await seed.add_shoot(shoot_document())
        await filter_of(seed, "api")


@pytest.mark.parametrize("config", [None, {}])
async def test_a_list_without_a_rule_is_the_owners_error(seed: SeedWorld, config: Any) -> None:
    await prepared(seed)
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", config)
        found = await seed.operated(TID, "acl", state="Error")
        error = found["status"]["lastError"]
        assert error["description"] == "spec.providerConfig.rule: Required value: rule must be present"
        assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]


async def test_a_shoot_without_an_address_waits_for_it(seed: SeedWorld) -> None:
    document = shoot_document()
    del document["status"]["advertisedAddresses"]
    await seed.add_shoot(document)
    await seed.add_gateway(TID)
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        found = await seed.operated(TID, "acl", state="Error")
        assert "advertisedAddresses of Shoot foo is empty" in found["status"]["lastError"]["description"]
        await seed.add_shoot()
        await seed.operated(TID, "acl", kind="Create")


async def test_deletion_removes_all_filters(seed: SeedWorld) -> None:
    await prepared(seed)
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        await seed.operated(TID, "acl")
        for part in ("api", "vpn", "http-proxy", "ingress"):
            await filter_of(seed, part)
        await seed.client.delete(EXTENSIONS, "acl", TID)
        await seed.gone(EXTENSIONS, "acl", TID)
        assert (await seed.client.list(ENVOY_FILTERS)).items == []


async def test_a_shoot_whose_hosts_end_alike_changes_the_filter_of_dashboards(seed: SeedWorld) -> None:
    await prepared(seed)
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        await seed.operated(TID, "acl")
        await seed.add_shoot(shoot_document("foo", "x-bar"))

        async def is_distinguished() -> bool:
            made = await filter_of(seed, "ingress")
            config = made["spec"]["configPatches"][0]["patch"]["value"]["typed_config"]
            return "and_rules" in config["rules"]["policies"]["bar--foo"]["permissions"][0]

        await until(is_distinguished)
        assert networks(await filter_of(seed, "ingress"), "bar--foo")


@pytest.mark.parametrize(
    ("info", "outcome"),
    [
        ({"egressCIDRs": "192.0.2.1/32,192.0.2.2/32"}, ["192.0.2.1/32", "192.0.2.2/32"]),
        (None, []),
        ({}, "ConfigMap kube-system/shoot-info of the seed has no key egressCIDRs"),
        (
            {"egressCIDRs": "192.0.2.1/32,nonsense"},
            "key egressCIDRs of ConfigMap kube-system/shoot-info has 'nonsense'",
        ),
    ],
)
async def test_the_seeds_own_addresses_count_behind_a_proxy(
    seed: SeedWorld, info: dict[str, str] | None, outcome: Any
) -> None:
    await prepared(seed)
    await seed.create(
        SERVICES,
        "istio-ingressgateway",
        "istio-ingress",
        spec={"type": "LoadBalancer", "ports": [{"port": 443}]},
        status={"loadBalancer": {"ingress": [{"ip": "192.0.2.9", "ipMode": "Proxy"}]}},
    )
    if info is not None:
        await seed.create(CONFIG_MAPS, "shoot-info", "kube-system", data=info)
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        if isinstance(outcome, str):
            found = await seed.operated(TID, "acl", state="Error")
            assert outcome in found["status"]["lastError"]["description"]
        else:
            await seed.operated(TID, "acl")
            found = networks(await filter_of(seed, "api"), "acl-api")
            assert [one for one in found if one.startswith("192.0.2.")] == outcome


def cluster(
    *, workers: bool = True, nodes: str | None = "10.250.0.0/16", seed_nodes: str = "10.240.0.0/16"
) -> SeedCluster:
    document = shoot_document(provider={"type": "aws", "workers": [{"name": "w"}] if workers else []})
    document["spec"]["networking"]["nodes"] = nodes
    seed = seed_document()
    seed["spec"]["networks"]["nodes"] = seed_nodes or None
    return msgspec.convert({"metadata": {"name": TID}, "spec": {"shoot": document, "seed": seed}}, SeedCluster)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            cluster(),
            ["10.240.0.0/16", "10.96.0.0/11", "192.0.2.1/32", "172.16.0.0/12", "10.250.0.0/16", "198.51.100.1/32"],
        ),
        (cluster(seed_nodes=""), ["10.96.0.0/11", "192.0.2.1/32", "172.16.0.0/12", "10.250.0.0/16", "198.51.100.1/32"]),
        (cluster(nodes=None), ["10.240.0.0/16", "10.96.0.0/11", "192.0.2.1/32", "172.16.0.0/12", "198.51.100.1/32"]),
        (cluster(workers=False), ["10.240.0.0/16", "10.96.0.0/11", "192.0.2.1/32", "172.16.0.0/12"]),
    ],
)
def test_networks_that_always_get_in_have_the_order_of_the_go_extension(made: SeedCluster, expected: list[str]) -> None:
    found = always_allowed(made, seed_egress=["192.0.2.1/32"], additional=["172.16.0.0/12"], egress=["198.51.100.1/32"])
    assert [str(one) for one in found] == expected


def test_an_address_of_the_infrastructure_that_is_none_is_named() -> None:
    with pytest.raises(StepError, match=r"status\.egressCIDRs of Infrastructure foo has 'x'"):
        always_allowed(cluster(), seed_egress=(), additional=(), egress=["x"])


@pytest.mark.parametrize(
    ("provider", "config", "egress", "stable", "words"),
    [
        ("aws", {}, ("1.2.3.4/32",), True, "1.2.3.4/32"),
        ("openstack", {}, ("1.2.3.4/32",), True, "1.2.3.4/32"),
        ("gcp", {"networks": {"cloudNAT": {"natIPNames": [{"name": "a"}]}}}, ("1.2.3.4/32",), True, "1.2.3.4/32"),
        ("gcp", {"networks": {}}, (), False, "networks.cloudNAT.natIPNames"),
        ("gcp", {"networks": {}}, ("2001:db8::/64",), False, "The nodes call from 2001:db8::/64. Cloud NAT allocates"),
        ("gcp", None, ("2001:db8::/64",), False, "networks.cloudNAT.natIPNames"),
        ("azure", {"networks": {"natGateway": {"enabled": False}}}, (), False, "networks.natGateway"),
        ("azure", {"networks": {"natGateway": {"enabled": True}}}, (), False, "reports no egress addresses"),
        ("metal", None, (), False, "provider metal reports no egress addresses"),
    ],
)
def test_the_stability_of_egress_addresses_by_provider(
    provider: str, config: Any, egress: tuple[str, ...], stable: bool, words: str
) -> None:
    spec = {"type": provider, "workers": [{"name": "w"}], "infrastructureConfig": config}
    found = stability(msgspec.convert(shoot_document(provider=spec), GardenShoot), egress)
    assert found.stable is stable
    assert words in found.message


def test_a_shoot_without_workers_has_no_egress_addresses_to_watch() -> None:
    shoot = msgspec.convert(shoot_document(provider={"type": "gcp"}), GardenShoot)
    assert stability(shoot, ()).stable


async def test_the_permissions_of_the_chart_are_enough(seed: SeedWorld) -> None:
    """A denied request would be reported as an error of the operation."""
    await add_user(seed, policy_rules(permissions([TOPIC])))
    await prepared(seed, "198.51.100.1/32")
    load_balancer = {"loadBalancer": {"ingress": [{"ip": "192.0.2.9", "ipMode": "Proxy"}]}}
    ports = {"type": "LoadBalancer", "ports": [{"port": 443}]}
    await seed.create(SERVICES, "istio-ingressgateway", "istio-ingress", spec=ports, status=load_balancer)
    await seed.create(CONFIG_MAPS, "shoot-info", "kube-system", data={"egressCIDRs": "192.0.2.1/32"})
    async with seed.running(acl(), user="extension"):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        await seed.operated(TID, "acl", kind="Create")
        await seed.configure(TID, "acl", {"rule": {**RULE, "action": "DENY"}})
        changed = await seed.operated(TID, "acl", kind="Reconcile")
        assert "lastError" not in changed["status"]
        await seed.client.delete(EXTENSIONS, "acl", TID)
        await seed.gone(EXTENSIONS, "acl", TID)
    assert await seed.get(MANAGED_RESOURCES, "acl-seed", TID) is None


async def test_the_crds_of_gardener_and_istio_keep_all_that_is_written(seed: SeedWorld, upstream: Path) -> None:
    names = ("extensions", "clusters", "infrastructures")
    files = [f"extensions.gardener.cloud_{name}.yaml" for name in names]
    files += ["resources.gardener.cloud_managedresources.yaml", "networking.istio.io_envoyfilters.yaml"]
    files += ["networking.istio.io_gateway.yaml"]
    await install(seed.client, [yaml.load((upstream / "gardener/crds" / name).read_text()) for name in files])
    await prepared(seed, "198.51.100.1/32")
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        found = await seed.operated(TID, "acl")
        assert found["status"].keys() >= {"lastOperation", "observedGeneration", "state", "providerStatus"}
        assert found["status"]["providerStatus"]["managedResources"] == ["acl-seed"]
        for part in ("api", "vpn", "http-proxy", "ingress"):
            await filter_of(seed, part)
        resource = await seed.there(MANAGED_RESOURCES, "acl-seed", TID)
        assert resource["spec"] == {
            "class": "seed",
            "keepObjects": False,
            "secretRefs": [{"name": "managedresource-acl-seed"}],
        }
