"""Logical clusters come, answer, and go with all they had accepted."""

from __future__ import annotations

import asyncio

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from tests.apiserver.authn.world import World, world

from hortus.apiserver.authn import open_keys
from hortus.apiserver.clusters import BUCKET, IssuedCertificate, LogicalClusters
from hortus.apiserver.store import StoreKey
from hortus.kube.errors import BadRequest, NotFound, Unauthorized


def leaf_of(issued: IssuedCertificate) -> bytes:
    return x509.load_pem_x509_certificate(issued.certificate).public_bytes(Encoding.DER)


async def retired(here: World, name: str) -> None:
    """Waits until the registry's own task has released the object."""
    async with asyncio.timeout(60):
        while await here.storage.get(StoreKey(BUCKET, f"/{name}")) is not None:
            await asyncio.sleep(0)


async def test_a_cluster_answers_from_the_write_that_creates_it_on() -> None:
    async with world() as here:
        assert here.clusters.get("a") is None
        await here.create_cluster("a")
        found = here.clusters.get("a")
        assert found is not None and (found.name, found.path, found.living) == ("a", "/clusters/a", True)
        assert here.clusters.get("root").path == ""


async def test_deleting_a_cluster_ends_its_credentials_at_once_and_then_its_objects() -> None:
    async with world() as here:
        await here.create_cluster("a")
        await here.create_cluster("ab")
        await here.write(
            StoreKey("a/core/configmaps", "default/x"), {"metadata": {"name": "x", "namespace": "default"}}
        )
        await here.write(
            StoreKey("ab/core/configmaps", "default/x"), {"metadata": {"name": "x", "namespace": "default"}}
        )
        der = leaf_of(here.clusters.issue("a", username="jane", seconds=600))
        assert (await here.whoami("a", certificate=der)).username == "jane"
        former = here.clusters.get("a")
        await here.delete_cluster("a")
        assert not former.living
        with pytest.raises(Unauthorized):
            await here.whoami("a", certificate=der)
        await retired(here, "a")
        assert await here.storage.backend.count("a/core/configmaps") == 0
        assert await here.storage.backend.count("ab/core/configmaps") == 1


async def test_a_name_is_not_free_while_a_request_of_the_former_cluster_is_in_progress() -> None:
    async with world() as here:
        await here.create_cluster("a")
        former = here.clusters.get("a")
        former.requests += 1
        await here.delete_cluster("a")
        for _ in range(20):
            await asyncio.sleep(0)
        assert await here.storage.get(StoreKey(BUCKET, "/a")) is not None
        await here.write(StoreKey("a/core/configmaps", "default/late"), {"metadata": {"name": "late"}})
        former.request_done()
        await retired(here, "a")
        assert await here.storage.backend.count("a/core/configmaps") == 0


async def test_a_request_that_never_ends_does_not_hold_up_the_deletion_for_ever() -> None:
    async with world() as here:
        await here.create_cluster("a")
        here.clusters.get("a").requests += 1
        await here.delete_cluster("a")
        await here.clock.advance(120)
        await retired(here, "a")
        assert await here.storage.backend.buckets("a/") == []


async def test_a_cluster_made_again_honours_nothing_of_the_former_one() -> None:
    async with world() as here:
        await here.create_cluster("a")
        der = leaf_of(here.clusters.issue("a", username="jane", groups=["system:masters"], seconds=600))
        await here.delete_cluster("a")
        await retired(here, "a")
        await here.create_cluster("a")
        with pytest.raises(Unauthorized):
            await here.whoami("a", certificate=der)


async def test_clusters_and_their_credentials_survive_a_restart() -> None:
    async with world() as here:
        await here.create_cluster("a")
        der = leaf_of(here.clusters.issue("a", username="jane", seconds=600))
        keys = await open_keys(here.storage.backend, now=here.clock.now())
        assert keys.ca_pem == here.keys.ca_pem
        again = LogicalClusters(here.storage, keys, here.clock)
        await again.start()
        assert [cluster.name for cluster in again] == ["root", "a"]
        issuer = again.get("a").keys.authority
        x509.load_der_x509_certificate(der).verify_directly_issued_by(issuer.certificate)
        await again.stop()


async def test_a_deletion_that_a_crash_interrupted_is_finished_at_the_next_start() -> None:
    async with world() as here:
        await here.create_cluster("a")
        await here.clusters.stop()
        await here.delete_cluster("a")
        again = LogicalClusters(here.storage, here.keys, here.clock)
        await again.start()
        assert again.get("a") is None
        await retired(here, "a")
        await again.stop()


async def test_a_cluster_with_another_finalizer_waits_for_it_empty() -> None:
    async with world() as here:
        await here.create_cluster("a")
        record = await here.storage.get(StoreKey(BUCKET, "/a"))
        assert record is not None
        uid = here.clusters.get("a").uid
        metadata = {"name": "a", "uid": uid, "finalizers": ["example.org/wait", "tenancy.hortus.dev/content"]}
        await here.write(record.key, {"metadata": {**metadata, "deletionTimestamp": "2023-01-01T12:00:00Z"}})
        await here.clusters.retire("a")
        record = await here.storage.get(StoreKey(BUCKET, "/a"))
        assert record is not None and b'"finalizers":["example.org/wait"]' in record.value
        assert b'"resourceVersion":"%d"' % record.revision in record.value


async def test_issuing_names_the_problem_of_the_request() -> None:
    async with world() as here:
        with pytest.raises(NotFound, match='"nope" not found'):
            here.clusters.issue("nope", username="jane", seconds=600)
        with pytest.raises(BadRequest, match="common name ''"):
            here.clusters.issue("root", username="", seconds=600)
        with pytest.raises(BadRequest, match="1 to 1024 bytes"):
            here.clusters.issue("root", username="x" * 1025, seconds=600)
        with pytest.raises(BadRequest, match="more than 0 seconds"):
            here.clusters.issue("root", username="jane", seconds=0)
        with pytest.raises(BadRequest, match="cannot issue"):
            here.clusters.issue("root", username="jane", seconds=60, csr=b"-----BEGIN NOTHING-----")


async def test_an_issued_certificate_shows_no_key_when_printed() -> None:
    async with world() as here:
        issued = here.clusters.issue("root", username="jane", seconds=600)
        assert "PRIVATE" not in repr(issued) and "PRIVATE" not in str([issued])
