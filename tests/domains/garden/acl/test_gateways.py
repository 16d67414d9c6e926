"""The Gateways of a Shoot on a seed: filters follow them, and the condition names what cannot have one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.garden.acl.gardener import RELEASES, Release, SeedShoot, gateways_of
from tests.domains.garden.acl.lists import PLACES, gateway_document
from tests.domains.garden.acl.test_topic import RULE, SERVICES, TID, acl, filter_of, networks
from tests.domains.garden.world import ENVOY_FILTERS, GATEWAYS, SeedWorld, shoot_document
from tests.waiting import until

from hortus.domains.garden.acl.entrypoints import api_host, filtered_hosts, read_gateway
from hortus.kube.objects import Object

DOMAIN = "ingress.seed.example.org"
ADDRESSES = [
    {"name": "external", "url": "https://api.foo.bar.example.org"},
    {"name": "wildcard-tls-seed-bound", "url": f"https://api-bar--foo.{DOMAIN}"},
    {"name": "internal", "url": "https://api.foo.bar.internal.example.org"},
    {"name": "service-account-issuer", "url": "https://discovery.example.org/issuer"},
]


async def prepared(seed: SeedWorld, release: Release, *, wildcard: str = "same") -> None:
    """A seed of a release with one Shoot."""
    document = shoot_document()
    document["status"]["advertisedAddresses"] = ADDRESSES
    await seed.add_shoot(document)
    await seed.add_infrastructure(TID, "foo", "198.51.100.1/32")
    if release.nginx:
        await seed.add_hosts("garden", "nginx-ingress-controller", [[f"*.{DOMAIN}"]])
    shoot = SeedShoot("bar--foo", wildcard=wildcard)
    for place, (namespace, labels) in PLACES.items():
        await seed.add_deployment(namespace, labels)
        for name, servers in gateways_of(shoot, release, place=place):
            await seed.client.apply(GATEWAYS, gateway_document(name, TID, servers, labels), field_manager="gardenlet")


async def operated(seed: SeedWorld, **conditions: str) -> dict[str, Any]:
    """The condition EntryPointsFiltered after an operation."""
    found = await seed.operated(TID, "acl")
    made: dict[str, Any] = {one["type"]: one for one in found["status"]["conditions"]}["EntryPointsFiltered"]
    return {name: made[name] for name in ("status", "reason", "message")}


async def filters_are(seed: SeedWorld, *parts: str) -> None:
    """Return once the filters are these, each with the namespace of its gateway."""
    wanted = {f"{namespace}/acl-{part}-{TID}" for namespace, _, part in (one.partition("/") for one in parts)}

    async def same() -> bool:
        found = (await seed.client.list(ENVOY_FILTERS)).items
        return {f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in found} == wanted

    await until(same)


def hosts(found: Object) -> list[str]:
    return [one["match"]["listener"]["filterChain"]["sni"] for one in found["spec"]["configPatches"]]


async def test_each_gateway_and_chain_with_a_host_of_the_shoot_gets_a_filter(seed: SeedWorld) -> None:
    await prepared(seed, RELEASES[-1])
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        assert await operated(seed) == {
            "status": "True",
            "reason": "AllFiltered",
            "message": "Filters judge 6 chains of hosts, and the ports 8132 and 8443 in istio-ingress.",
        }
        made = await filter_of(seed, "hosts")
        await filters_are(seed, *(f"istio-ingress/{part}" for part in ("api", "hosts", "http-proxy", "vpn")))
    assert hosts(await filter_of(seed, "api")) == ["api.foo.bar.example.org"]
    assert hosts(made) == [f"{prefix}-bar--foo.{DOMAIN}" for prefix in ("api", "au", "gu", "otc", "p")]
    assert networks(made, "acl-hosts") == networks(await filter_of(seed, "api"), "acl-api")


async def test_the_gateway_of_the_wildcard_host_gets_all_filters(seed: SeedWorld) -> None:
    await prepared(seed, RELEASES[-1], wildcard="other")
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        found = await operated(seed)
        assert found["message"] == (
            "Filters judge 6 chains of hosts, and the ports 8132 and 8443 in istio-ingress, istio-ingress--other."
        )
        made = await filter_of(seed, "hosts", "istio-ingress--other")
        await filters_are(
            seed,
            *(f"istio-ingress--other/{part}" for part in ("hosts", "http-proxy", "vpn")),
            *(f"istio-ingress/{part}" for part in ("api", "http-proxy", "vpn")),
        )
    assert made["spec"]["workloadSelector"]["labels"] == {"istio": "other"}


async def open_ports(seed: SeedWorld, namespace: str, labels: dict[str, str]) -> None:
    """Write the Gateway of the proxy port, as the chart of a gateway does."""
    await seed.namespace(namespace)
    server = {"hosts": ["blackhole.example.org"], "port": {"number": 8443, "name": "http-proxy", "protocol": "HTTP"}}
    document = {"metadata": {"name": "http-proxy", "namespace": namespace}}
    await seed.client.apply(
        GATEWAYS, {**document, "spec": {"selector": labels, "servers": [server]}}, field_manager="gardenlet"
    )


@pytest.mark.parametrize(
    ("exported", "places"),
    [
        ("*", ("istio-ingress", "istio-ingress--a", "istio-ingress--b")),
        ("istio-ingress,istio-ingress--b", ("istio-ingress", "istio-ingress--b")),
        ("istio-ingress", ("istio-ingress",)),
        (".", ("istio-ingress",)),
    ],
)
async def test_each_gateway_that_knows_the_shoot_judges_its_headers(
    seed: SeedWorld, exported: str, places: tuple[str, ...]
) -> None:
    await prepared(seed, RELEASES[-1], wildcard="none")
    annotations = {"networking.istio.io/exportTo": exported}
    ports = [{"port": 443}]
    await seed.create(SERVICES, "kube-apiserver", TID, metadata={"annotations": annotations}, spec={"ports": ports})
    await open_ports(seed, "istio-ingress", PLACES[""][1])
    for zone in ("a", "b"):
        await open_ports(seed, f"istio-ingress--{zone}", {"istio": zone})
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        await operated(seed)
        headers = [f"{place}/{part}" for place in places for part in ("http-proxy", "vpn")]
        await filters_are(seed, "istio-ingress/api", "istio-ingress/hosts", *headers)
        for place in places[1:]:
            made = await filter_of(seed, "http-proxy", place)
            assert made["spec"]["workloadSelector"]["labels"] == {"istio": place[-1]}


async def test_a_gateway_of_the_seed_that_comes_later_judges_headers(seed: SeedWorld) -> None:
    await prepared(seed, RELEASES[-1], wildcard="none")
    annotations = {"networking.istio.io/exportTo": "*"}
    ports = [{"port": 443}]
    await seed.create(SERVICES, "kube-apiserver", TID, metadata={"annotations": annotations}, spec={"ports": ports})
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        await operated(seed)
        await open_ports(seed, "istio-ingress--c", {"istio": "c"})
        made = await filter_of(seed, "vpn", "istio-ingress--c")
        assert made["spec"]["workloadSelector"]["labels"] == {"istio": "c"}


async def test_a_gateway_that_comes_later_is_filtered_without_an_operation_of_gardenlet(seed: SeedWorld) -> None:
    await prepared(seed, RELEASES[2])
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        await operated(seed)
        await filter_of(seed, "ingress")
        await seed.client.delete(GATEWAYS, "nginx-ingress-controller", "garden")
        await seed.add_hosts(TID, "plutono", [[f"gu-bar--foo.{DOMAIN}"]], protocol="HTTPS")
        await seed.gone(ENVOY_FILTERS, f"acl-ingress-{TID}", "istio-ingress")

        async def is_filtered() -> bool:
            return hosts(await filter_of(seed, "hosts")) == [f"{one}-bar--foo.{DOMAIN}" for one in ("api", "gu")]

        await until(is_filtered)
        assert (await operated(seed))["status"] == "True"


async def test_dashboards_behind_nginx_are_the_message_of_the_condition(seed: SeedWorld) -> None:
    await prepared(seed, RELEASES[2])
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        found = await operated(seed)
        assert (found["status"], found["reason"]) == ("False", "NotFiltered")
        assert f"Gateway garden/nginx-ingress-controller passes TLS for *.{DOMAIN} to nginx" in found["message"]
        assert "DisableNginxIngressInSeed" in found["message"]


@pytest.mark.parametrize(
    ("servers", "labels", "protocol", "message"),
    [
        (
            [["plain.example.org"]],
            None,
            "HTTP",
            f"Gateway {TID}/further: spec.servers[0].port.protocol is HTTP: a filter needs the name that TLS asks for; "
            "serve it by TLS or HTTPS",
        ),
        (
            [["one.example.org"], ["two.example.org", "*"]],
            None,
            "TLS",
            f"Gateway {TID}/further: spec.servers[1].hosts has *: other Shoots would share its chain; name the host of "
            "the Shoot",
        ),
        (
            [["one.example.org"]],
            {"istio": "nowhere"},
            "TLS",
            f"Gateway {TID}/further selects istio=nowhere, which no Deployment has: its pods cannot be found; set "
            "spec.selector to the labels of a gateway",
        ),
        (
            [["one.example.org"]],
            {"istio": "ingressgateway"},
            "TLS",
            f"Gateway {TID}/further selects istio=ingressgateway in istio-ingress, another Gateway of the Shoot "
            "selects app=istio-ingressgateway,istio=ingressgateway there: set spec.selector to the same labels",
        ),
    ],
)
async def test_an_entry_point_that_cannot_have_a_filter_is_the_message_of_the_condition(
    seed: SeedWorld, servers: list[list[str]], labels: Any, protocol: str, message: str
) -> None:
    await prepared(seed, RELEASES[-1])
    await seed.add_hosts(TID, "further", servers, protocol=protocol, labels=labels or PLACES[""][1])
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        assert await operated(seed) == {
            "status": "False",
            "reason": "NotFiltered",
            "message": f"The list does not judge every way to the Shoot. {message}.",
        }


async def test_an_advertised_host_that_no_gateway_serves_is_named(seed: SeedWorld) -> None:
    await prepared(seed, RELEASES[-1], wildcard="none")
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE})
        found = await operated(seed)
        assert found["status"] == "False"
        assert (
            f"status.advertisedAddresses of the Shoot has api-bar--foo.{DOMAIN}, which no Gateway" in found["message"]
        )


async def test_the_condition_says_that_a_list_only_logs(seed: SeedWorld) -> None:
    await prepared(seed, RELEASES[-1])
    async with seed.running(acl()):
        await seed.add_extension(TID, "acl", {"rule": RULE, "mode": "LogOnly"})
        assert (await operated(seed))["message"].endswith("In mode LogOnly they turn nobody away.")


def test_hosts_are_read_without_the_namespace_before_them() -> None:
    server = {"hosts": ["./API.example.org", "a/b.example.org"], "port": {"number": 443, "protocol": "https"}}
    found = read_gateway({"metadata": {"name": "g", "namespace": "n"}, "spec": {"servers": [server]}})
    assert found.hosts == ["api.example.org", "b.example.org"]
    assert filtered_hosts(found) == (("api.example.org",), ())
    assert api_host(found, ["b.example.org"]) == "b.example.org"
    assert api_host(found, ["c.example.org"]) == "api.example.org"


def test_a_gateway_of_another_shape_serves_nothing() -> None:
    found = read_gateway({"metadata": {"name": "g", "namespace": "n"}, "spec": {"servers": "x"}})
    assert (found.selector, found.servers) == ({}, ())
