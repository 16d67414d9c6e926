"""Registry mirrors: the Go extension's example, wrong fields, and the parts on nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.domains.garden.world import SeedWorld, shoot_document

from hortus.domains.garden.extension.nodes import NodeFile, NodeParts, NodeRegistry, RegistryHost
from hortus.domains.garden.extension.topic import ConfigReview
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.domains.garden.registrymirror.config import read_mirrors
from hortus.domains.garden.registrymirror.topic import MirrorReviewer, MirrorTopic, node_parts
from hortus.kube import Resource, yaml

SECRETS = Resource("", "v1", "secrets", "Secret")
TID = "shoot--bar--foo"
KNOWN = {"apiVersion": "mirror.extensions.gardener.cloud/v1alpha1", "kind": "MirrorConfig"}
HOST = {"host": "https://images.example.org"}
RESOURCES = [{"name": "ca", "resourceRef": {"kind": "Secret", "name": "mirror-ca", "apiVersion": "v1"}}]


def mirrors(*entries: Any) -> dict[str, Any]:
    return {**KNOWN, "mirrors": list(entries)}


def test_the_example_of_the_go_extension_is_read(upstream: Path) -> None:
    example = upstream / "gardener/registry-cache/shoot-registry-mirror.yaml"
    shoot = msgspec.convert(yaml.load(example.read_bytes()), GardenShoot)
    entry = shoot.extension("registry-mirror")
    assert entry is not None
    assert MirrorReviewer().review(ConfigReview(config=entry[1].provider_config, shoot=shoot, path="p")).errors == ()
    [mirror] = entry[1].provider_config["mirrors"]
    host = RegistryHost(url=mirror["hosts"][0]["host"], capabilities=("pull",))
    registry = NodeRegistry(upstream="docker.io", server="https://registry-1.docker.io", hosts=(host,))
    assert node_parts(shoot, entry[1].provider_config) == NodeParts(registries=(registry,))


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, "p: Required value: give a MirrorConfig"),
        ("x", 'p: Invalid value: "x": must be an object'),
        ({"kind": "MirrorConfig", "mirrors": []}, "p.apiVersion: Unsupported value: null"),
        ({**KNOWN, "kind": "RegistryConfig"}, 'p.kind: Unsupported value: "RegistryConfig"'),
        (KNOWN, "p.mirrors: Required value"),
        (mirrors("x"), 'p.mirrors[0]: Invalid value: "x": must be an object'),
        (mirrors({"hosts": [HOST]}), "p.mirrors[0].upstream: Required value"),
        (mirrors({"upstream": "docker.io:0", "hosts": [HOST]}), "p.mirrors[0].upstream: Invalid value"),
        (mirrors({"upstream": "https://docker.io", "hosts": [HOST]}), "p.mirrors[0].upstream: Invalid value"),
        (mirrors({"upstream": "a.b"}), "p.mirrors[0].hosts: Required value"),
        (mirrors({"upstream": "a.b", "hosts": [{}]}), "p.mirrors[0].hosts[0].host: Required value"),
        (mirrors({"upstream": "a.b", "hosts": [{"host": "m.a"}]}), "p.mirrors[0].hosts[0].host: Invalid value"),
        (mirrors({"upstream": "a.b", "hosts": [HOST, HOST]}), "p.mirrors[0].hosts[1].host: Duplicate value"),
        (
            mirrors({"upstream": "a.b", "hosts": [{**HOST, "capabilities": ["push"]}]}),
            'p.mirrors[0].hosts[0].capabilities[0]: Unsupported value: "push": supported values: "pull", "resolve"',
        ),
        (
            mirrors({"upstream": "a.b", "hosts": [{**HOST, "capabilities": ["pull", "pull"]}]}),
            "p.mirrors[0].hosts[0].capabilities[1]: Duplicate value",
        ),
        (
            mirrors({"upstream": "a.b", "hosts": [{**HOST, "overridePath": 1}]}),
            "p.mirrors[0].hosts[0].overridePath: Invalid value: 1",
        ),
        (mirrors(*[{"upstream": "a.b", "hosts": [HOST]}] * 2), "p.mirrors[1].upstream: Duplicate value"),
    ],
)
def test_a_wrong_field_is_named(config: Any, expected: str) -> None:
    found = [str(one) for one in read_mirrors(config, "p").errors]
    assert len(found) == 1, found
    assert found[0].startswith(expected)


def test_a_mirror_with_authorities_has_their_file_on_nodes() -> None:
    shoot = msgspec.convert(shoot_document(resources=RESOURCES), GardenShoot)
    host = {"host": "https://m.example.org:5000/v2/all", "capabilities": ["pull", "resolve"], "overridePath": True}
    config = mirrors({"upstream": "quay.io", "hosts": [{**host, "caBundleSecretReferenceName": "ca"}]})
    path = "/etc/containerd/certs.d/m.example.org-5000-ref-mirror-ca.crt"
    made = RegistryHost(url=host["host"], capabilities=("pull", "resolve"), authorities=(path,), override_path=True)
    assert node_parts(shoot, config) == NodeParts(
        files=(NodeFile(path=path, secret="ref-mirror-ca", key="bundle.crt"),),
        registries=(NodeRegistry(upstream="quay.io", server="https://quay.io", hosts=(made,)),),
    )


async def test_a_secret_must_be_immutable_and_have_the_bundle_alone(seed: SeedWorld) -> None:
    await seed.add_shoot(shoot_document(resources=RESOURCES))
    config = mirrors({"upstream": "quay.io", "hosts": [{**HOST, "caBundleSecretReferenceName": "ca"}]})
    await seed.create(SECRETS, "ref-mirror-ca", TID, stringData={"bundle.crt": "x"})
    async with seed.running(MirrorTopic):
        await seed.add_extension(TID, "registry-mirror", config)
        found = await seed.operated(TID, "registry-mirror", "Error")
        assert found["status"]["lastError"]["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
        assert "Secret ca must be immutable and have bundle.crt alone" in found["status"]["lastError"]["description"]
        await seed.client.patch(SECRETS, "ref-mirror-ca", {"immutable": True}, TID)
        await seed.ask(TID, "registry-mirror", "reconcile")
        await seed.operated(TID, "registry-mirror")


def test_a_reference_must_be_one_of_the_shoots_secrets() -> None:
    config = mirrors({"upstream": "quay.io", "hosts": [{**HOST, "caBundleSecretReferenceName": "ca"}]})
    shoot = msgspec.convert(shoot_document(), GardenShoot)
    [error] = MirrorReviewer().review(ConfigReview(config=config, shoot=shoot, path="p")).errors
    assert error.path == "p.mirrors[0].hosts[0].caBundleSecretReferenceName"
