"""Air gaps on a seed, as gardenlet asks for them; all through real sockets."""

from __future__ import annotations

import base64
import tomllib
from typing import Any

import msgspec
import pytest
from tests.domains.garden.world import SeedWorld, shoot_document
from tests.waiting import until

from hortus.domains.garden.airgap.topic import AirGapTopic, node_parts
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.domains.garden.types import EXTENSIONS, MANAGED_RESOURCES
from hortus.engine.serving import self_signed
from hortus.kube import Resource, yaml
from hortus.kube.objects import Object

SECRETS = Resource("", "v1", "secrets", "Secret")
TID = "shoot--bar--foo"
GATEWAY = {
    "fqdns": ["api.foo.bar.example.org", "api.foo.bar.internal.example.org"],
    "cidrs": ["198.51.100.1/32"],
    "ports": [443, 8443, 8132],
    "reason": "the seed's gateway",
}
NAMES = {"cidrs": ["198.51.100.53/32"], "ports": [53, 123], "protocol": "UDP", "reason": "names and time"}
LARGE_ANSWERS = {"cidrs": ["198.51.100.53/32"], "ports": [53], "reason": "names"}
WITH_SECRET = [
    {"name": name, "resourceRef": {"kind": "Secret", "name": f"mirror-{name}", "apiVersion": "v1"}}
    for name in ("ca", "user")
]
MIRROR = {"mirror": "https://198.51.100.9", "caBundleSecretReferenceName": "ca"}
MIRROR_ENTRY = {"cidrs": ["198.51.100.9/32"], "ports": [443], "reason": "the mirror"}


async def objects(seed: SeedWorld) -> dict[str, Object]:
    """The objects for the Shoot by kind and namespace."""
    found = await seed.there(SECRETS, "managedresource-airgap-shoot", TID)
    texts = [base64.b64decode(value) for value in found["data"].values()]
    made = [one for text in texts for one in yaml.load_all(text)]
    return {f"{one['kind']} {one['metadata']['namespace']}": one for one in made}


def conditions(extension: Object) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["message"]) for one in extension["status"]["conditions"]}


def pem() -> str:
    return self_signed(["images.example.org"], now=1_700_000_000.0).certificate.decode()


async def test_an_audited_gap_leaves_rules_and_no_policies(seed: SeedWorld) -> None:
    await seed.add_shoot(shoot_document())
    async with seed.running(AirGapTopic):
        await seed.add_extension(TID, "airgap", {"allow": [GATEWAY], "namespaces": ["default"]})
        found = await seed.operated(TID, "airgap")
        assert conditions(found)["DestinationsAllowed"] == (
            "False",
            "No entry of the list has: * 53/UDP, * 53/TCP, * 123/UDP.",
        )
        made = await objects(seed)
        assert list(made) == ["ConfigMap kube-system"]
        data = made["ConfigMap kube-system"]["data"]
        assert data.keys() == {"airgap.nft", "mode"}
        assert "ip daddr { 10.250.0.0/16, 100.64.0.0/13, 100.96.0.0/11 } accept" in data["airgap.nft"]
        assert "counter accept" in data["airgap.nft"]


async def test_an_enforced_gap_has_policies_and_turns_back(seed: SeedWorld) -> None:
    await seed.add_shoot(shoot_document())
    config: dict[str, Any] = {"mode": "Enforce", "allow": [GATEWAY, NAMES, LARGE_ANSWERS], "namespaces": ["shop"]}
    async with seed.running(AirGapTopic):
        await seed.add_extension(TID, "airgap", config)
        found = await seed.operated(TID, "airgap")
        assert conditions(found)["DestinationsAllowed"][0] == "True"
        assert list(await objects(seed)) == ["ConfigMap kube-system", "NetworkPolicy shop"]
        await seed.configure(TID, "airgap", {**config, "mode": "Audit"})
        await seed.operated(TID, "airgap", kind="Reconcile")
        assert list(await objects(seed)) == ["ConfigMap kube-system"]
        await seed.client.delete(EXTENSIONS, "airgap", TID)
        await seed.gone(EXTENSIONS, "airgap", TID)
        await seed.gone(MANAGED_RESOURCES, "airgap-shoot", TID)


async def test_networks_that_the_infrastructure_reports_are_let_through(seed: SeedWorld) -> None:
    await seed.add_shoot(shoot_document())
    async with seed.running(AirGapTopic):
        await seed.add_extension(TID, "airgap", {"allow": [GATEWAY]})
        await seed.operated(TID, "airgap")
        document = shoot_document()
        document["status"]["networking"] = {"nodes": ["10.250.0.0/16", "10.9.0.0/16"]}
        await seed.add_shoot(document)

        async def let_through() -> bool:
            data = (await objects(seed)).get("ConfigMap kube-system", {}).get("data", {})
            return "{ 10.9.0.0/16, 10.250.0.0/16, " in data.get("airgap.nft", "")

        await until(let_through)


async def test_the_authorities_of_a_mirror_come_from_the_copied_secret(seed: SeedWorld) -> None:
    await seed.add_shoot(shoot_document(resources=WITH_SECRET))
    bundle = pem()
    await seed.create(SECRETS, "ref-mirror-ca", TID, stringData={"bundle.crt": bundle})
    async with seed.running(AirGapTopic):
        await seed.add_extension(TID, "airgap", {"allow": [MIRROR_ENTRY], "registry": MIRROR})
        await seed.operated(TID, "airgap")
        data = (await objects(seed))["ConfigMap kube-system"]["data"]
        assert data["bundle.crt"] == bundle
        assert 'server = "https://198.51.100.9"' in data["hosts.toml"]
        assert 'ca = "/etc/containerd/certs.d/_default/ca.crt"' in data["hosts.toml"]


async def test_a_secret_that_is_missing_or_wrong_is_named_and_mended(seed: SeedWorld) -> None:
    await seed.add_shoot(shoot_document(resources=WITH_SECRET))
    async with seed.running(AirGapTopic):
        await seed.add_extension(TID, "airgap", {"registry": MIRROR})
        found = await seed.operated(TID, "airgap", "Error")
        assert "Secret shoot--bar--foo/ref-mirror-ca does not exist" in found["status"]["lastError"]["description"]
        assert "codes" not in found["status"]["lastError"]
        await seed.create(SECRETS, "ref-mirror-ca", TID, stringData={"bundle.crt": "c4n4ry", "more": "x"})
        await seed.ask(TID, "airgap", "reconcile")

        async def refused() -> Object | None:
            live = await seed.extension(TID, "airgap")
            error = live["status"].get("lastError") or {}
            return error if error.get("codes") == ["ERR_CONFIGURATION_PROBLEM"] else None

        error = await until(refused)
        assert "Secret ca must have bundle.crt alone" in error["description"]
        assert "c4n4ry" not in str(msgspec.to_builtins(error))


async def test_a_bundle_with_other_bytes_next_to_its_certificates_is_refused(seed: SeedWorld) -> None:
    await seed.add_shoot(shoot_document(resources=WITH_SECRET))
    odd = base64.b64encode(b"# \xff\n" + pem().encode()).decode()
    await seed.create(SECRETS, "ref-mirror-ca", TID, data={"bundle.crt": odd})
    async with seed.running(AirGapTopic):
        await seed.add_extension(TID, "airgap", {"registry": MIRROR})
        found = await seed.operated(TID, "airgap", "Error")
        assert found["status"]["lastError"]["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
        assert "Secret ca must have bundle.crt alone" in found["status"]["lastError"]["description"]


async def test_a_configuration_that_admission_would_refuse_is_not_rendered(seed: SeedWorld) -> None:
    await seed.add_shoot(shoot_document())
    async with seed.running(AirGapTopic):
        await seed.add_extension(TID, "airgap", {"mode": "Enforce", "allow": [{"fqdns": ["a.b"], "reason": "x"}]})
        found = await seed.operated(TID, "airgap", "Error")
        assert found["status"]["lastError"]["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
        assert "spec.providerConfig.allow[0].cidrs: Required value" in found["status"]["lastError"]["description"]
        assert await seed.get(MANAGED_RESOURCES, "airgap-shoot", TID) is None


@pytest.mark.parametrize("strict", [True, False])
async def test_the_user_of_a_mirror_is_in_a_secret_that_nodes_read(seed: SeedWorld, strict: bool) -> None:
    await seed.add_shoot(shoot_document(resources=WITH_SECRET))
    await seed.create(SECRETS, "ref-mirror-user", TID, stringData={"username": "anna", "password": "c4n4ry"})
    registry = {"mirror": "https://198.51.100.9/all", "secretReferenceName": "user", "strict": strict}
    config = {"allow": [MIRROR_ENTRY], "registry": registry}
    async with seed.running(AirGapTopic):
        await seed.add_extension(TID, "airgap", config)
        found = await seed.operated(TID, "airgap")
        made = await seed.there(SECRETS, "hortus-airgap-hosts", TID)
        hosts = tomllib.loads(base64.b64decode(made["data"]["hosts.toml"]).decode())
        place = hosts if strict else hosts["host"]["https://198.51.100.9/v2/all"]
        assert place["header"] == {"authorization": f"Basic {base64.b64encode(b'anna:c4n4ry').decode()}"}
        shown = str(found) + str(await objects(seed))
        assert "c4n4ry" not in shown
        assert "Basic" not in shown
        shoot = msgspec.convert(shoot_document(resources=WITH_SECRET), GardenShoot)
        file = node_parts(shoot, config).files[-1]
        assert (file.secret, file.key, file.mode) == ("hortus-airgap-hosts", "hosts.toml", 0o600)
        await seed.configure(TID, "airgap", {"allow": [MIRROR_ENTRY], "registry": {"mirror": "https://198.51.100.9"}})
        await seed.operated(TID, "airgap", kind="Reconcile")
        await seed.gone(SECRETS, "hortus-airgap-hosts", TID)


@pytest.mark.parametrize(
    "values",
    [{"username": "a"}, {"username": "a:b", "password": "c4n4ry"}, {"username": "a", "password": "c4n4ry", "more": ""}],
)
async def test_a_user_that_no_mirror_can_have_is_refused(seed: SeedWorld, values: dict[str, str]) -> None:
    await seed.add_shoot(shoot_document(resources=WITH_SECRET))
    await seed.create(SECRETS, "ref-mirror-user", TID, stringData=values)
    registry = {"mirror": "https://198.51.100.9", "secretReferenceName": "user"}
    async with seed.running(AirGapTopic):
        await seed.add_extension(TID, "airgap", {"allow": [MIRROR_ENTRY], "registry": registry})
        error = (await seed.operated(TID, "airgap", "Error"))["status"]["lastError"]
        assert "Secret user must have username and password alone" in error["description"]
        assert "c4n4ry" not in error["description"]
