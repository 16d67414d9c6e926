"""Signatures of charts: a gardenlet is deployed by a chart that a key of the operator has signed, and by no other."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.x448 import X448PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.domains.garden.gardenlets.world import DEPLOYMENTS, NEW, GardenWorld, garden_world

from hortus.domains.garden.gardenlets.signing import SIGNATURE, STATEMENT, read_keys, signature_tag
from hortus.domains.garden.types import GARDENLETS
from hortus.kube.clock import SystemClock
from hortus.render.artifacts import TransferSettings
from hortus.render.oci import CHART_CONFIG, OciClient, OciSettings, manifest_bytes, parse_reference
from hortus.testing.apiserver import TestServer

KEYS: dict[str, Any] = {
    "ecdsa": ec.generate_private_key(ec.SECP256R1()),
    "rsa": rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "ed25519": ed25519.Ed25519PrivateKey.generate(),
}


@pytest.fixture
async def world(server: TestServer, tmp_path: Path) -> AsyncIterator[GardenWorld]:
    async with garden_world(server, tmp_path, "one") as made:
        yield made


def key_file(folder: Path, name: str, key: Any = None) -> Path:
    path = folder / f"{name}.pub"
    public = (key or KEYS[name]).public_key()
    path.write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return path


def signed(name: str, data: bytes) -> str:
    key = KEYS[name]
    if name == "ecdsa":
        made = key.sign(data, ec.ECDSA(SHA256()))
    elif name == "rsa":
        made = key.sign(data, padding.PKCS1v15(), SHA256())
    else:
        made = key.sign(data)
    return base64.b64encode(made).decode()


async def sign(
    world: GardenWorld,
    name: str,
    *,
    about: str = "",
    annotation: str = "",
    version: str = "",
    before: Sequence[tuple[bytes, str]] = (),
) -> None:
    """Push a signature as cosign does; with `about` one for another digest.

    `before` are statements, empty for the same one, and their signatures, which come first.
    """
    hosts = frozenset((world.registry,))
    settings = OciSettings(transfer=TransferSettings(plain_http=hosts, local_hosts=hosts))
    async with OciClient(settings=settings, clock=SystemClock()) as client:
        chart = parse_reference(world.chart(version) if version else world.chart())
        digest = await client.resolve(chart)
        image = {"docker-manifest-digest": about or digest}
        identity = {"docker-reference": chart.repository}
        kind = "cosign container image signature"
        statement = msgspec.json.encode(
            {"critical": {"identity": identity, "image": image, "type": kind}, "optional": None}
        )
        place = msgspec.structs.replace(chart, tag=signature_tag(digest))
        layers = []
        for text, signature in (*before, (statement, annotation or signed(name, statement))):
            layer = await client.push_blob(place, text or statement)
            marked = {SIGNATURE: signature} if signature else {}
            layers.append(msgspec.structs.replace(layer, media_type=STATEMENT, annotations=marked))
        config = msgspec.structs.replace(await client.push_blob(place, b"{}"), media_type=CHART_CONFIG)
        await client.push_manifest(place, manifest_bytes(config, tuple(layers)))


@pytest.mark.parametrize("name", KEYS)
async def test_a_chart_that_the_operators_key_has_signed_is_deployed(
    world: GardenWorld, tmp_path: Path, name: str
) -> None:
    await sign(world, name)
    await world.add_gardenlet("one")
    keys = tuple(key_file(tmp_path, one) for one in KEYS)
    async with world.operating(keys=keys):
        await world.condition("one", "SeedRegistered", "Progressing", reason="WaitingForRegistration")
    assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is not None
    assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is not None


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("none", "has no signature: there is no tag sha256-"),
        ("another key", "has 1 signatures, and none by a key of this operator"),
        ("another chart", "has 1 signatures, and none by a key of this operator"),
        ("altered", "has 1 signatures, and none by a key of this operator"),
        ("no base64", "has 1 signatures, and none by a key of this operator"),
        ("no ASCII", "has 1 signatures, and none by a key of this operator"),
    ],
)
async def test_another_chart_is_not_deployed(world: GardenWorld, tmp_path: Path, case: str, text: str) -> None:
    if case != "none":
        about = f"sha256:{'0' * 64}" if case == "another chart" else ""
        annotation = {"altered": base64.b64encode(b"0" * 70).decode(), "no base64": "?", "no ASCII": "\u00e9"}.get(
            case, ""
        )
        await sign(world, "ecdsa", about=about, annotation=annotation)
    await world.add_gardenlet("one")
    other = key_file(tmp_path, "other", ec.generate_private_key(ec.SECP256R1()))
    keys = (other,) if case == "another key" else (key_file(tmp_path, "ecdsa"), other)
    async with world.operating(keys=keys):
        await world.condition("one", "SeedRegistered", "False", text=text)
    assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is None


async def test_a_signature_that_cannot_be_read_does_not_hide_the_next(world: GardenWorld, tmp_path: Path) -> None:
    wrong = [
        *((b"", text) for text in ("\u00e9", "a", "?", "\u0661" * 4, "A" * 5000, "")),
        (b"{", "AAAA"),
        (b"\xff", "AAAA"),
        (b'{"critical": {"image": {"docker-manifest-digest": "\xff"}}}', "AAAA"),
        (b'{"optional":' * 5000, "AAAA"),
        (b"[" * 60_000, "AAAA"),
        (b'{"critical": [NaN]}', "AAAA"),
    ]
    await sign(world, "ecdsa", before=wrong)
    await world.add_gardenlet("one")
    async with world.operating(keys=(key_file(tmp_path, "ecdsa"),)):
        await world.condition("one", "SeedRegistered", "Progressing", reason="WaitingForRegistration")
    assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is not None


async def test_a_chart_may_be_signed_later(world: GardenWorld, tmp_path: Path) -> None:
    await world.add_gardenlet("one")
    async with world.operating(keys=(key_file(tmp_path, "ecdsa"),)):
        await world.condition("one", "SeedRegistered", "False", text="has no signature")
        assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is None
        await sign(world, "ecdsa")
        await world.management.patch(GARDENLETS, "one", {"metadata": {"annotations": {"again": "1"}}}, "garden")
        await world.condition("one", "SeedRegistered", "Progressing", reason="WaitingForRegistration")
    assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is not None


async def test_a_signature_of_one_chart_is_none_of_the_next(world: GardenWorld, tmp_path: Path) -> None:
    await sign(world, "ecdsa")
    await world.add_gardenlet("one", version=NEW)
    async with world.operating(keys=(key_file(tmp_path, "ecdsa"),)):
        await world.condition("one", "SeedRegistered", "False", text="has no signature")
        assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is None
        await sign(world, "ecdsa", version=NEW)
        await world.management.patch(GARDENLETS, "one", {"metadata": {"annotations": {"again": "1"}}}, "garden")
        await world.condition("one", "SeedRegistered", "Progressing", reason="WaitingForRegistration")
    assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is not None


async def test_a_key_that_cannot_be_read_stops_the_deployment(world: GardenWorld, tmp_path: Path) -> None:
    await sign(world, "ecdsa")
    await world.add_gardenlet("one")
    async with world.operating(keys=(tmp_path / "none.pub",)):
        await world.condition("one", "SeedRegistered", "False", text="--gardenlet-chart-keys")
    assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is None


def test_a_file_without_a_key_that_signs_is_named(tmp_path: Path) -> None:
    path = tmp_path / "key.pub"
    path.write_text("c4n4ry")
    with pytest.raises(ValueError, match=r"key\.pub: must hold a public key in PEM"):
        read_keys([path])
    with pytest.raises(ValueError, match="of no kind that signs charts"):
        read_keys([key_file(tmp_path, "x448", X448PrivateKey.generate())])
