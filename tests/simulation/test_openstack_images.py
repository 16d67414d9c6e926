"""Images of OpenStack in the simulated garden: nodes by architecture, regions without an image, the admission."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import orjson
import pytest
from tests.simulation.garden import NAMESPACE, simulated, started_garden

from hortus.kube import Client
from hortus.kube.access import Access, Credentials, Secret
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object, Resource
from hortus.simulation.garden.kinds import CLOUD_PROFILES, SHOOTS
from hortus.simulation.garden.nodes import IMAGE_RECORD
from hortus.simulation.garden.profiles import profile_spec
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer
from hortus.testing.waiting import wait_for

SETTINGS = GardenSettings(
    time_factor=300.0,
    schedule_delay=3,
    create_duration=15,
    reconcile_duration=15,
    progress_period=5,
    care_period=1e6,
    sync_period=1e6,
)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PROFILE = "converged-cloud-kyma"
IMAGE = "1592.1.0"


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_garden(SETTINGS) as running, simulated(running, SETTINGS):
        yield running


@pytest.fixture
async def garden(server: TestServer) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(server.kubeconfig_for("garden")) as client:
        yield client


def pool(name: str, machine: str, *, minimum: int = 1, version: str = IMAGE) -> Object:
    image = {"name": "gardenlinux", "version": version}
    return {"name": name, "machine": {"type": machine, "image": image}, "minimum": minimum, "maximum": 5}


def shoot(name: str, *pools: Object, region: str = "eu-de-1") -> Object:
    workers = [{**one, "zones": [f"{region}a"]} for one in pools]
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "cloudProfile": {"kind": "CloudProfile", "name": PROFILE},
            "credentialsBindingName": "demo-binding",
            "region": region,
            "kubernetes": {"version": "1.33.5"},
            "networking": {"type": "calico", "nodes": "10.250.0.0/16"},
            "provider": {"type": "openstack", "workers": workers},
        },
    }


def operation(shoot: Object) -> tuple[str, str]:
    found = (shoot.get("status") or {}).get("lastOperation") or {}
    return found.get("type", ""), found.get("state", "")


async def until(garden: Client, name: str, says: Callable[[Object], Any]) -> Object:
    return await wait_for(garden, SHOOTS, name, NAMESPACE, until=lambda obj: bool(says(obj)))


async def nodes(server: TestServer, name: str) -> list[Object]:
    access = Access(
        server=f"{server.url}/clusters/shoot--demo--{name}",
        ca=server.ca,
        credentials=Credentials(token=Secret(server.token_everywhere)),
    )
    async with Client(access) as client:
        return (await client.list(NODES)).items


def booted(node: Object) -> str:
    return str(orjson.loads(node["metadata"]["annotations"][IMAGE_RECORD])["id"])


def kept(found: list[Object]) -> dict[str, list[str]]:
    """The images of the nodes, by architecture."""
    images: dict[str, list[str]] = {}
    for node in found:
        images.setdefault(node["metadata"]["labels"]["kubernetes.io/arch"], []).append(booted(node))
    return images


async def test_an_arm_pool_gets_arm_nodes_of_the_arm_image_next_to_an_amd64_pool(
    server: TestServer, garden: Client
) -> None:
    await garden.create(SHOOTS, shoot("mixed", pool("amd", "g_c2_m8"), pool("arm", "a_c2_m8", minimum=2)))
    await until(garden, "mixed", lambda obj: operation(obj) == ("Create", "Succeeded"))
    found = await nodes(server, "mixed")
    stem = f"gardenlinux-{IMAGE}-eu-de-1"
    assert kept(found) == {"amd64": [f"{stem}-amd64"], "arm64": [f"{stem}-arm64"] * 2}
    assert {node["status"]["nodeInfo"]["architecture"] for node in found} == {"amd64", "arm64"}


async def test_an_arm_pool_in_a_region_without_its_image_fails_and_names_the_fix(garden: Client) -> None:
    await garden.create(SHOOTS, shoot("north", pool("arm", "a_c2_m8"), region="eu-nl-1"))
    found = await until(garden, "north", lambda obj: operation(obj)[1] == "Failed")
    (error,) = found["status"]["lastErrors"]
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert error["description"].startswith(
        f"machine image gardenlinux {IMAGE} has no image for architecture arm64 in region eu-nl-1: add the region"
    )


async def test_a_pool_whose_version_left_the_profile_grows_with_the_image_that_it_has(
    server: TestServer, garden: Client
) -> None:
    version = "1443.9.0"
    await garden.create(SHOOTS, shoot("old", pool("arm", "a_c2_m8", version=version)))
    await until(garden, "old", lambda obj: operation(obj) == ("Create", "Succeeded"))
    spec = profile_spec("openstack")
    for images in (spec["machineImages"], spec["providerConfig"]["machineImages"]):
        images[0]["versions"] = [one for one in images[0]["versions"] if one["version"] != version]
    try:
        await garden.patch(CLOUD_PROFILES, PROFILE, {"spec": spec})
        workers = (await garden.get(SHOOTS, "old", NAMESPACE))["spec"]["provider"]["workers"]
        workers[0]["minimum"] = 2
        changed = await garden.patch(SHOOTS, "old", {"spec": {"provider": {"workers": workers}}}, NAMESPACE)
        generation = changed["metadata"]["generation"]
        await until(
            garden,
            "old",
            lambda obj: (
                operation(obj) == ("Reconcile", "Succeeded") and obj["status"]["observedGeneration"] == generation
            ),
        )
        assert kept(await nodes(server, "old")) == {"arm64": [f"gardenlinux-{version}-eu-de-1-arm64"] * 2}
    finally:
        await garden.patch(CLOUD_PROFILES, PROFILE, {"spec": profile_spec("openstack")})


def profile(name: str, **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {**profile_spec("openstack"), **spec}}


async def test_a_broken_cloud_profile_is_refused_with_the_path_of_each_field(garden: Client) -> None:
    config = {**profile_spec("openstack")["providerConfig"], "keystoneURL": "", "dnsServers": ["x"]}
    with pytest.raises(Forbidden) as refused:
        await garden.create(CLOUD_PROFILES, profile("broken", providerConfig=config))
    assert "[spec.providerConfig.keystoneURL: Required value: must provide the URL to KeyStone, " in str(refused.value)
    assert 'spec.providerConfig.dnsServers[0]: Invalid value: "x": must be a valid IP address]' in str(refused.value)


async def test_flavors_are_defaulted_from_the_configuration_of_the_provider(garden: Client) -> None:
    capabilities = [{"name": "architecture", "values": ["amd64", "arm64"]}]
    made = await garden.create(CLOUD_PROFILES, profile("flavored", machineCapabilities=capabilities))
    (image,) = made["spec"]["machineImages"]
    flavors = [version["capabilityFlavors"] for version in image["versions"]]
    assert flavors == [[{"architecture": ["amd64"]}, {"architecture": ["arm64"]}]] * len(flavors)
    await garden.delete(CLOUD_PROFILES, "flavored")
