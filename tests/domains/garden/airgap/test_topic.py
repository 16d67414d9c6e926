"""Air gaps on a seed, as gardenlet asks for them; all through real sockets."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
from tests.domains.garden.world import SeedWorld, shoot_document
from tests.waiting import until

from hortus.domains.garden.airgap.topic import AirGapTopic
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
WITH_SECRET = [{"name": "ca", "resourceRef": {"kind": "Secret", "name": "mirror-ca", "apiVersion": "v1"}}]
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
        assert "ip daddr { 10.250.0.0/16, 100.96.0.0/11, 100.64.0.0/13 } accept" in data["airgap.nft"]
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
            return "100.64.0.0/13, 10.9.0.0/16 } accept" in data.get("airgap.nft", "")

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


async def test_a_configuration_that_admission_would_refuse_is_not_rendered(seed: SeedWorld) -> None:
    await seed.add_shoot(shoot_document())
    async with seed.running(AirGapTopic):
        await seed.add_extension(TID, "airgap", {"mode": "Enforce", "allow": [{"fqdns": ["a.b"], "reason": "x"}]})
        found = await seed.operated(TID, "airgap", "Error")
        assert found["status"]["lastError"]["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
        assert "spec.providerConfig.allow[0].cidrs: Required value" in found["status"]["lastError"]["description"]
        assert await seed.get(MANAGED_RESOURCES, "airgap-shoot", TID) is None
