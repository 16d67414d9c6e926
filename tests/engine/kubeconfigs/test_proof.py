"""Kubeconfigs that do not work: the message, the owner of the next step, and no secret in either."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from hortus.engine.kubeconfigs import Advice, ClusterProof, DocumentProof, ProofFailed, TrialClients
from hortus.kube import LOCAL_NETWORKS, yaml
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer, started_apiserver

ADVICE = Advice(unusable="issuer: look", refused="issuer: check", unreachable="owner: wait")
CANARY = "c4n4ry"
"""Stands in everything that is secret, and must stand nowhere else."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[TestServer]:
    with started_apiserver(clusters=["other"]) as running:
        yield running


@pytest.fixture
async def proof() -> AsyncIterator[ClusterProof]:
    yield ClusterProof(TrialClients(timeout=60.0), advice=ADVICE)


def spoilt(config: Object, part: str, **fields: Any) -> bytes:
    """The kubeconfig with some fields of its one cluster or user replaced; None takes one away."""
    plural, singular = f"{part}s", part
    body = config[plural][0][singular]
    for name, value in fields.items():
        body.pop(name.replace("_", "-"), None)
        if value is not None:
            body[name.replace("_", "-")] = value
    return yaml.dump(config).encode()


async def test_a_kubeconfig_that_works_is_proven(cluster: TestServer, proof: ClusterProof) -> None:
    for prover in (proof, DocumentProof(advice=ADVICE)):
        await prover.prove(yaml.dump(cluster.kubeconfig_dict()).encode(), origin="kubeconfig of shoot c-1")
        with pytest.raises(ProofFailed):
            await prover.prove(b"", origin="kubeconfig of shoot c-1")


async def test_a_kubeconfig_that_leads_to_this_machine_is_not_tried(cluster: TestServer) -> None:
    """A garden that lies would have us call, with a credential of its choice, what listens here or on the link."""
    proof = ClusterProof(TrialClients(timeout=5.0, deny=LOCAL_NETWORKS), advice=ADVICE)
    with pytest.raises(ProofFailed, match=r"127\.0\.0\.1 is not allowed"):
        await proof.prove(yaml.dump(cluster.kubeconfig_dict()).encode(), origin="kubeconfig of shoot c-1")


async def test_a_certificate_of_another_cluster_is_refused(cluster: TestServer, proof: ClusterProof) -> None:
    config = cluster.kubeconfig_dict("other")
    config["clusters"][0]["cluster"]["server"] = cluster.url
    with pytest.raises(ProofFailed, match=r"is refused by 127\.0\.0\.1.*Unauthorized.*issuer: check") as failed:
        await proof.prove(yaml.dump(config).encode(), origin="kubeconfig of shoot c-1")
    assert not failed.value.unreachable


async def test_a_token_that_nobody_knows_is_refused(cluster: TestServer, proof: ClusterProof) -> None:
    config = cluster.token_kubeconfig_dict()
    config["users"][0]["user"] = {"token": CANARY}
    with pytest.raises(ProofFailed, match="is refused by") as failed:
        await proof.prove(yaml.dump(config).encode(), origin="kubeconfig of shoot c-1")
    assert CANARY not in str(failed.value)


@pytest.mark.parametrize("server", ["https://127.0.0.1:9", "https://no-such-host.invalid"])
async def test_a_cluster_that_does_not_answer_is_unreachable(cluster: TestServer, server: str) -> None:
    proof = ClusterProof(TrialClients(timeout=5.0), advice=ADVICE)
    with pytest.raises(ProofFailed, match="could not be tried against its cluster") as failed:
        await proof.prove(spoilt(cluster.kubeconfig_dict(), "cluster", server=server), origin="kubeconfig of shoot c-1")
    assert failed.value.unreachable


@pytest.mark.parametrize(
    ("part", "fields", "says"),
    [
        (
            "user",
            {"exec": {"command": CANARY, "apiVersion": "v1"}},
            "exec is not allowed in a kubeconfig from an object",
        ),
        ("user", {"auth-provider": {"name": CANARY}}, "auth-provider is not allowed"),
        ("user", {"tokenFile": f"/{CANARY}"}, "tokenFile is not allowed"),
        ("user", {"client-certificate": f"/{CANARY}"}, "client-certificate is not allowed"),
        ("user", {"client-key-data": f"{CANARY}!"}, "client-key-data"),
        ("user", {"client-key-data": base64.b64encode(CANARY.encode()).decode()}, ""),
        ("user", {"client-certificate-data": base64.b64encode(CANARY.encode()).decode()}, ""),
        ("user", {"token": {"a": CANARY}, "client-key-data": None, "client-certificate-data": None}, "token"),
        ("cluster", {"certificate-authority": f"/{CANARY}"}, "certificate-authority is not allowed"),
        ("cluster", {"certificate-authority-data": base64.b64encode(CANARY.encode()).decode()}, ""),
        (
            "cluster",
            {"server": f"https://jane:{CANARY}@127.0.0.1"},
            "server must be a URL of host, port and path alone",
        ),
        ("cluster", {"server": f"http://127.0.0.1/{CANARY}"}, "server must be an https URL"),
        ("cluster", {"server": f"file:///{CANARY}"}, "server must be an https URL"),
        ("cluster", {"insecure-skip-tls-verify": True}, "insecure-skip-tls-verify is not allowed"),
        ("cluster", {"proxy-url": f"http://jane:{CANARY}@proxy"}, "proxy-url is not allowed"),
    ],
)
async def test_a_kubeconfig_is_data_and_what_is_more_is_refused_without_being_shown(
    cluster: TestServer, proof: ClusterProof, part: str, fields: dict[str, Any], says: str
) -> None:
    document = spoilt(cluster.kubeconfig_dict(), part, **fields)
    with pytest.raises(ProofFailed, match="the kubeconfig is not usable: ") as failed:
        await proof.prove(document, origin="kubeconfig of shoot c-1")
    assert says in str(failed.value)
    assert CANARY not in str(failed.value)
    assert not failed.value.unreachable


@pytest.mark.parametrize(
    "document",
    [
        f"<html>{CANARY}</html>",
        f"{CANARY}",
        f"- {CANARY}",
        f"{CANARY}: {CANARY}",
        f"users: [{{token: {CANARY}",
        f"a: *{CANARY}",
        f"a: &{CANARY} b\nc: *{CANARY}",
        f"{CANARY}: 1\n{CANARY}: 2",
        f"a: !!python/object:{CANARY} {{}}",
        f"a: \x00{CANARY}",
        f'a: "\\q{CANARY}"',
        f"apiVersion: v1\nkind: Config\nusers: {CANARY}",
        f"apiVersion: v1\nkind: Config\nusers: [{{name: [{CANARY}]}}]",
        "",
        "a: " + "[" * 10_000,
        "x" * (2 << 20),
        f"token: 1e99999{'9' * 40}",
    ],
)
async def test_garbage_is_refused_without_being_shown(document: str, proof: ClusterProof) -> None:
    for one in (proof, DocumentProof(advice=ADVICE)):
        with pytest.raises(ProofFailed, match="the kubeconfig is not usable: ") as failed:
            await one.prove(document.encode(), origin="kubeconfig of shoot c-1")
        assert CANARY not in str(failed.value)
        assert len(str(failed.value)) < 1000
        assert not failed.value.unreachable
