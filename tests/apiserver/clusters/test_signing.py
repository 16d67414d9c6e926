"""Certificates for keys that stayed with the asker, and kubeconfigs."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from tests.apiserver.authn.world import World, world

from hortus.apiserver.authn import UserInfo
from hortus.apiserver.authn.certificates import name_of, new_key
from hortus.apiserver.authz.signers import CLIENT_SIGNER
from hortus.apiserver.clusters import certificate_kubeconfig, definition, token_kubeconfig
from hortus.apiserver.clusters.issuing import LONGEST_SECONDS, certificate_for
from hortus.apiserver.resources.definition import WriteContext
from hortus.kube.errors import BadRequest, NotFound
from hortus.kube.objects import parse_time


def csr(key: Any = None, *, user: str = "jane", groups: tuple[str, ...] = ("devs",)) -> bytes:
    builder = x509.CertificateSigningRequestBuilder().subject_name(name_of(user, groups))
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(key or new_key(), algorithm).public_bytes(Encoding.PEM)


def request(pem: bytes, *conditions: str, **spec: Any) -> dict[str, Any]:
    encoded = base64.b64encode(pem).decode()
    return {
        "spec": {"request": encoded, "signerName": CLIENT_SIGNER, "usages": ["client auth"], **spec},
        "status": {"conditions": [{"type": one, "status": "True"} for one in conditions]},
    }


def leaf_of(pem: bytes | str) -> bytes:
    data = pem if isinstance(pem, bytes) else pem.encode()
    return x509.load_pem_x509_certificate(data).public_bytes(Encoding.DER)


async def test_an_approved_request_is_signed_for_its_subject_and_a_year_at_most() -> None:
    async with world() as here:
        keys, now = here.clusters.get("root").keys, here.clock.now()
        signed = base64.b64decode(certificate_for(request(csr(), "Approved"), keys, now=now))
        user = await here.whoami("root", certificate=leaf_of(signed))
        assert (user.username, user.groups) == ("jane", ("devs", "system:authenticated"))
        end = x509.load_pem_x509_certificate(signed).not_valid_after_utc.timestamp()
        assert end == now + LONGEST_SECONDS
        short = base64.b64decode(certificate_for(request(csr(), "Approved", expirationSeconds=600), keys, now=now))
        assert x509.load_pem_x509_certificate(short).not_valid_after_utc.timestamp() == now + 600


@pytest.mark.parametrize(
    "made",
    [
        request(csr()),
        request(csr(), "Approved", "Denied"),
        request(csr(), "Approved", "Failed"),
        request(csr(), "Approved", signerName="kubernetes.io/kubelet-serving"),
        {**request(csr(), "Approved"), "status": {"conditions": [{"type": "Approved"}], "certificate": "done"}},
    ],
)
async def test_requests_that_are_not_approved_or_have_another_signer_are_not_signed(made: dict[str, Any]) -> None:
    async with world() as here:
        assert certificate_for(made, here.clusters.get("root").keys, now=here.clock.now()) == ""


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (request(csr(), "Approved", usages=["server auth"]), "signs for client auth only"),
        (request(csr(), "Approved", usages=["client auth", "server auth"]), "signs for client auth only"),
        (request(csr(groups=("system:masters",)), "Approved"), "does not sign for"),
        (request(b"nothing", "Approved"), "no certificate signing request"),
        (request(csr(rsa.generate_private_key(65537, 1024)), "Approved"), "1024 bits; use at least 2048"),
    ],
)
async def test_a_refused_signing_request_has_the_cause_in_its_status(made: dict[str, Any], message: str) -> None:
    async with world() as here:
        with pytest.raises(BadRequest, match=message):
            certificate_for(made, here.clusters.get("root").keys, now=here.clock.now())


async def ask(here: World, name: str, spec: Any) -> dict[str, Any]:
    kind = definition(here.clusters, server_url="https://localhost:6443")
    context = WriteContext(cluster="root", namespace="", user=UserInfo("admin"), now=here.clock.now())
    return await kind.subresources["clientcertificate"]({"metadata": {"name": name}}, {"spec": spec}, context)


async def test_the_subresource_answers_a_certificate_with_its_key() -> None:
    async with world() as here:
        await here.create_cluster("a")
        answer = await ask(here, "a", {"username": "jane", "groups": ["devs"], "expirationSeconds": 600})
        status = answer["status"]
        assert (await here.whoami("a", certificate=leaf_of(status["certificate"]))).username == "jane"
        assert status["certificate"].count("BEGIN CERTIFICATE") == 2 and "PRIVATE KEY" in status["privateKey"]
        assert parse_time(status["expirationTimestamp"]) == here.clock.now() + 600
        assert status["ca"].encode() == here.keys.ca_pem


@pytest.mark.parametrize("key", [new_key(), ed25519.Ed25519PrivateKey.generate()], ids=["p256", "ed25519"])
async def test_the_subresource_certifies_a_key_that_stays_with_the_asker(key: Any) -> None:
    async with world() as here:
        await here.create_cluster("a")
        pem = csr(key, user="mallory", groups=("system:masters",)).decode()
        status = (await ask(here, "a", {"username": "jane", "csr": pem}))["status"]
        user = await here.whoami("a", certificate=leaf_of(status["certificate"]))
        assert (user.username, user.groups) == ("jane", ("system:authenticated",))
        assert "privateKey" not in status


async def test_the_subresource_refuses_unreadable_bodies_and_removed_clusters() -> None:
    async with world() as here:
        await here.create_cluster("a")
        for spec in ({}, {"username": 7}, {"username": "x", "expirationSeconds": "1h"}, {"username": "x", "csr": "x"}):
            with pytest.raises(BadRequest):
                await ask(here, "a", spec)
        with pytest.raises(NotFound):
            await ask(here, "gone", {"username": "x"})


def strategy_context(here: World) -> WriteContext:
    return WriteContext(cluster="root", namespace="", user=UserInfo("admin"), now=here.clock.now())


async def test_a_logical_cluster_is_complete_from_its_first_write_and_protects_the_servers_fields() -> None:
    async with world() as here:
        strategy, context = definition(here.clusters, server_url="https://h:1/").strategy, strategy_context(here)
        obj: dict[str, Any] = {"metadata": {"name": "a", "uid": "u"}, "spec": {"displayName": "A"}}
        strategy.prepare_create(obj, context)
        assert obj["metadata"]["finalizers"] == ["tenancy.hortus.dev/content"]
        assert obj["status"].pop("caData")
        assert obj["status"] == {"phase": "Ready", "path": "/clusters/a", "url": "https://h:1/clusters/a", "uid": "u"}
        changed: dict[str, Any] = {"metadata": {"name": "a", "uid": "u"}, "status": {"uid": "other"}}
        strategy.prepare_update(changed, obj, context)
        assert changed["status"] == obj["status"]
        assert changed["metadata"]["finalizers"] == ["tenancy.hortus.dev/content"]
        assert strategy.validate({"metadata": {"name": "root"}}, context)[0].path == "metadata.name"


async def test_kubeconfigs_carry_everything_inline() -> None:
    async with world() as here:
        issued = here.clusters.issue("root", username="admin", seconds=600)
        made = certificate_kubeconfig(issued, server="https://localhost:6443", name="hortus")
        (user,) = made["users"]
        assert base64.b64decode(user["user"]["client-certificate-data"]) == issued.certificate
        assert base64.b64decode(user["user"]["client-key-data"]) == issued.key
        (cluster,) = made["clusters"]
        assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]) == here.keys.ca_pem
        assert made["current-context"] == made["contexts"][0]["name"] == "hortus"
        by_token = token_kubeconfig("t", ca=here.keys.ca_pem, server="https://localhost:6443", name="hortus")
        assert by_token["users"][0]["user"] == {"token": "t"}
