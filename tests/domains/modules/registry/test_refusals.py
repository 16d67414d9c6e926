"""Layers, descriptors and accesses that are refused, each with module and version in its message."""

from __future__ import annotations

import base64
import gzip
import io
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.domains.modules.registry.shelves import MANIFEST, NAME, VERSION, Shelf, shelf

from hortus.domains.modules.registry import (
    BadRegistryAccess,
    ModuleRegistry,
    ModuleSourceError,
    ReadingLimits,
    RegistryAccess,
    access_from_docker_config,
    access_from_host,
    fixed,
)
from hortus.domains.modules.registry.descriptors import BadDescriptor, parse_descriptor
from hortus.domains.modules.registry.layers import manifest_of
from hortus.domains.modules.registry.reading import FAILURE_AGE
from hortus.domains.modules.types import InstallSource
from hortus.engine import StepError
from hortus.render.archive import ArchiveError
from hortus.render.artifacts import ArtifactCache
from hortus.testing import FakeClock

LARGEST = 1 << 20
BOMB = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))]).encode()


def tar(*entries: tuple[str, bytes | str], kind: bytes = tarfile.REGTYPE) -> bytes:
    """A tar of files, or of entries of another kind."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            info.type = kind
            data = content.encode() if isinstance(content, str) else content
            info.size = len(data) if kind == tarfile.REGTYPE else 0
            info.linkname = "/etc/passwd" if kind != tarfile.REGTYPE else ""
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


@pytest.fixture
async def running() -> AsyncIterator[Shelf]:
    async with shelf() as found:
        yield found


@pytest.fixture
async def reader(running: Shelf, tmp_path: Path) -> AsyncIterator[ModuleRegistry]:
    limits = ReadingLimits(largest_manifest=LARGEST)
    cache = ArtifactCache(tmp_path / "cache")
    found = ModuleRegistry(limits, fixed(running.access), cache=cache, clock=FakeClock())
    yield found
    await found.close()


async def read(running: Shelf, reader: ModuleRegistry, layer: bytes, kind: str = "oci-dir") -> bytes:
    ref = running.registry.add_blob(f"{running.access.path}/component-descriptors/{NAME}", layer)
    return await reader.manifest(InstallSource(repo=running.access.repository, name=NAME, ref=ref, type=kind))


async def test_files_of_macos_are_passed_over(running: Shelf, reader: ModuleRegistry) -> None:
    """Contract 2.2.2: the first regular file not starting with `._`, in the archive's own order."""
    layer = tar(("./._z.yaml", b"attributes"), ("./z.yaml", MANIFEST), ("./a.yaml", b"other"))
    assert await read(running, reader, layer) == MANIFEST


async def test_a_layer_that_is_no_tar_is_the_manifest(running: Shelf, reader: ModuleRegistry) -> None:
    """Contract 2.2.2: type oci-ref; compressed layers are unpacked."""
    assert await read(running, reader, MANIFEST, "oci-ref") == MANIFEST
    assert await read(running, reader, gzip.compress(MANIFEST), "oci-ref") == MANIFEST
    assert await read(running, reader, gzip.compress(tar(("m.yaml", MANIFEST)))) == MANIFEST


@pytest.mark.parametrize(
    ("layer", "problem"),
    [
        (tar(("../../etc/cron.d/x", MANIFEST)), "ParentPath"),
        (tar(("/etc/cron.d/x", MANIFEST)), "AbsolutePath"),
        (tar(("link", b""), kind=tarfile.SYMTYPE), "Link"),
        (tar(("link", b""), kind=tarfile.LNKTYPE), "Link"),
        (tar(("device", b""), kind=tarfile.CHRTYPE), "Device"),
        (tar(("pipe", b""), kind=tarfile.FIFOTYPE), "Fifo"),
        (tar(("m.yaml", bytes(LARGEST + 1))), "allowed"),
        (gzip.compress(tar(("m.yaml", bytes(40 << 20)))), "TooLarge"),
        (tar(("m.yaml", MANIFEST))[:600], "Truncated"),
        (tar(), "holds no file"),
        (b"not a tar", "UnsupportedFormat"),
    ],
)
async def test_a_layer_that_could_do_harm_is_refused(
    running: Shelf, reader: ModuleRegistry, layer: bytes, problem: str
) -> None:
    """Bad input: traversal, links, devices, too much, too little."""
    with pytest.raises(ModuleSourceError, match=problem) as caught:
        await read(running, reader, layer)
    assert NAME in caught.value.message and caught.value.reason == "ModuleSourceInvalid"


async def test_a_manifest_of_100_mib_is_refused_without_being_read(running: Shelf, reader: ModuleRegistry) -> None:
    with pytest.raises(ModuleSourceError, match="allowed 1048576 bytes"):
        await read(running, reader, bytes(100 << 20), "oci-ref")


def test_a_compressed_manifest_cannot_grow_without_end() -> None:
    with pytest.raises(ArchiveError, match="unpacks to more"):
        manifest_of(gzip.compress(bytes(LARGEST * 50)), "oci-ref", largest=LARGEST)
    with pytest.raises(ArchiveError, match="ends in the middle"):
        manifest_of(gzip.compress(MANIFEST)[:-4], "oci-ref", largest=LARGEST)


async def test_a_reference_without_a_digest_is_refused(reader: ModuleRegistry) -> None:
    with pytest.raises(ModuleSourceError, match="is not a digest"):
        await reader.manifest(InstallSource(repo="example.com", name=NAME, ref="latest", type="oci-ref"))


def descriptor(text: str) -> bytes:
    return f"meta: {{schemaVersion: v2}}\ncomponent:\n  name: {NAME}\n  version: {VERSION}\n{text}".encode()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"x" * 102_401, "has 102401 bytes; 102400 are allowed"),
        (b"meta: {schemaVersion: v3}\ncomponent: {name: a, version: b}", "meta.schemaVersion is 'v3'"),
        (b"meta: {schemaVersion: v2}", "component"),
        (descriptor("  resources: [{name: a}]"), "access"),
        (descriptor("  resources: none"), "resources"),
        (b"{", "line"),
        (BOMB, "component-descriptor.yaml"),
    ],
)
def test_a_descriptor_that_cannot_be_read_is_refused(data: bytes, problem: str) -> None:
    """Contract 2.2.2: 100 KiB at most; and bad input."""
    with pytest.raises(BadDescriptor, match=problem.replace("(", r"\(")):
        parse_descriptor(data)


def test_lists_that_go_left_empty_are_none() -> None:
    found = parse_descriptor(descriptor("  resources: null\n  repositoryContexts: null\n  labels: null\n"))
    assert found.resources == () and found.repository_contexts == ()


def docker(*hosts: str, **entry: Any) -> bytes:
    auth = base64.b64encode(b"robot:hidden").decode()
    return orjson.dumps({"auths": {host: {"auth": auth} | entry for host in hosts}})


@pytest.mark.parametrize(
    ("address", "subpath", "expected"),
    [
        ("example.com", "", RegistryAccess(host="example.com")),
        ("http://localhost:5000", "", RegistryAccess(host="localhost:5000", insecure=True)),
        ("https://example.com/a/", "/b/c/", RegistryAccess(host="example.com", path="a/b/c")),
    ],
)
def test_an_address_gives_host_path_and_security(address: str, subpath: str, expected: RegistryAccess) -> None:
    """Contract 2.2.2: host plus optional sub-path, scheme cut; http:// means insecure."""
    assert access_from_host(address, subpath=subpath) == expected


def test_a_secret_names_one_registry() -> None:
    """Contract 2.2.2: the auths map must have exactly one entry, which also gives the registry."""
    found = access_from_docker_config(docker("http://example.com:5000"), subpath="prod")
    assert (found.repository, found.insecure) == ("example.com:5000/prod", True)
    for hosts in ((), ("a.example.com", "b.example.com")):
        with pytest.raises(BadRegistryAccess, match=f"has {len(hosts)} registries; exactly one is needed"):
            access_from_docker_config(docker(*hosts))


@pytest.mark.parametrize("address", ["", "modules", "example.com/UPPER", "example.com:port", "http://", "exa mple.com"])
def test_an_address_that_names_no_registry_is_refused(address: str) -> None:
    with pytest.raises(BadRegistryAccess):
        access_from_host(address)


def test_an_access_prints_no_credential() -> None:
    assert "hidden" not in repr(access_from_docker_config(docker("example.com")))


async def test_rotated_credentials_are_used_without_a_restart(running: Shelf) -> None:
    """Bad input: expired credentials."""
    await running.publish()
    running.registry.users, running.registry.basic = {"robot": "new"}, True
    current = b"robot:old"

    async def access() -> RegistryAccess:
        entry = {"auth": base64.b64encode(current).decode()}
        document = orjson.dumps({"auths": {running.site.url: entry}})
        return access_from_docker_config(document, subpath="prod/modules")

    clock = FakeClock()
    reader = ModuleRegistry(ReadingLimits(), access, clock=clock)
    with pytest.raises(ModuleSourceError) as caught:
        await reader.component(NAME, VERSION)
    assert caught.value.reason == "ModuleRegistryAccessDenied" and "old" not in caught.value.message
    current = b"robot:new"
    await clock.advance(FAILURE_AGE)
    assert (await reader.component(NAME, VERSION)).version == VERSION
    await reader.close()


async def test_an_access_that_cannot_be_read_is_an_error_of_the_step() -> None:
    async def missing() -> RegistryAccess:
        raise StepError("Secret a/b does not exist")

    reader = ModuleRegistry(ReadingLimits(), missing, clock=FakeClock())
    with pytest.raises(StepError, match="does not exist"):
        await reader.component(NAME, VERSION)
    await reader.close()
