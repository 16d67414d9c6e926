"""The client against the registry of the distribution project, which is what most registries are made of."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from tests.oracles.programs import built_program, why_not
from tests.render.serving import loopback

from hortus.render.archive import Tree, pack_tgz
from hortus.render.artifacts import NotFound, digest_of
from hortus.render.oci import OciClient, OciSettings, Reference, parse_reference
from hortus.render.oci.manifests import Descriptor

pytestmark = pytest.mark.oracle
CHART = pack_tgz(Tree({"web/Chart.yaml": b"name: web\nversion: 1.0.0\n"}))


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    """Host and port of a running registry."""
    binary = built_program("registry")
    if binary is None:
        pytest.skip(why_not("registry"))
    process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    yield f"127.0.0.1:{int(process.stdout.readline())}"
    process.communicate()


def at(registry: str, rest: str) -> Reference:
    return parse_reference(f"{registry}/{rest}")


def client(registry: str, **fields: object) -> OciClient:
    return OciClient(settings=OciSettings(transfer=loopback(registry), **fields))  # type: ignore[arg-type]


async def test_a_chart_goes_there_and_back(registry: str) -> None:
    async with client(registry) as oci:
        reference = at(registry, "team/web:1.0.0")
        digest = await oci.push_chart(reference, CHART, metadata={"name": "web", "version": "1.0.0"})
        assert await oci.resolve(reference) == digest
        chart = await oci.chart(reference)
        assert (chart.digest, chart.content) == (digest, CHART)
        assert (await oci.chart(reference.at(digest))).content == CHART
        with pytest.raises(NotFound, match="MANIFEST_UNKNOWN"):
            await oci.manifest(at(registry, "team/web:absent"))


async def test_large_blobs_go_in_chunks_and_small_ones_in_one_piece(registry: str) -> None:
    async with client(registry, chunk=100_000) as oci:
        for data in (b"", b"small", bytes(range(256)) * 2_000):
            descriptor = await oci.push_blob(at(registry, "team/blobs"), data)
            assert descriptor.digest == digest_of(data)
            assert await oci.blob(at(registry, "team/blobs"), descriptor) == data


async def test_blobs_are_mounted_from_another_repository(registry: str) -> None:
    async with client(registry) as oci:
        one = await oci.push_blob(at(registry, "team/one"), b"x" * 5_000)
        two = await oci.push_blob(at(registry, "team/two"), b"x" * 5_000, source="team/one")
        assert one == two
        assert await oci.blob(at(registry, "team/two"), Descriptor("", two.digest, two.size)) == b"x" * 5_000


async def test_tags_come_in_pages_and_all_of_them(registry: str) -> None:
    async with client(registry, page=3) as oci:
        for number in range(8):
            await oci.push(at(registry, f"team/tags:v{number}"), (("text/plain", b"x"),), artifact_type="a/b")
        assert await oci.tags(at(registry, "team/tags")) == [f"v{number}" for number in range(8)]


async def test_what_refers_to_an_artifact_is_empty_where_the_registry_has_no_such_list(registry: str) -> None:
    async with client(registry) as oci:
        reference = at(registry, "team/signed:v1")
        await oci.push(reference, (("text/plain", b"x"),), artifact_type="a/b")
        assert await oci.referrers(reference) == ()
