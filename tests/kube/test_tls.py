"""TLS: whom a client trusts, and how it shows who it is."""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from tests.waiting import until

from hortus.kube import errors, tls
from hortus.kube.access import Access, Credentials
from hortus.kube.client import Client
from hortus.kube.connection import Connection
from hortus.kube.dialing import Dialing
from hortus.kube.objects import Object, Resource
from hortus.kube.secret import Secret
from hortus.kube.tls import Contexts
from hortus.kube.transport import ConnectionSettings

from .certificates import Pair, issue, server_context
from .scripted import Script, json, serving

VERSION: Object = {"major": "1"}
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")


@pytest.fixture(scope="module")
def ca() -> Pair:
    return issue("ca", ca=True)


@pytest.fixture(scope="module")
def server(ca: Pair) -> Pair:
    return issue("server", ca, addresses=("127.0.0.1",))


def secret(pair: Pair) -> Secret:
    return Secret(pair.key_pem.decode())


async def test_a_client_trusts_the_clusters_own_ca_and_nothing_else(tmp_path: Path, ca: Pair, server: Pair) -> None:
    async with serving(Script(VERSION), ssl=server_context(tmp_path, server)) as access:
        async with Client(msgspec.structs.replace(access, ca=b"# a comment: \xc3\xbc\n" + ca.pem)) as client:
            assert await client.get_raw("/version") == VERSION
        for other in (b"", issue("other", ca=True).pem):
            async with Client(msgspec.structs.replace(access, ca=other)) as client:
                with pytest.raises(errors.TlsFailed, match=r"certificate is not accepted.*check the CA"):
                    await client.get_raw("/version")


async def test_a_certificate_for_another_host_is_refused(tmp_path: Path, ca: Pair) -> None:
    elsewhere = issue("server", ca, addresses=("10.0.0.1",))
    async with serving(Script(VERSION), ssl=server_context(tmp_path, elsewhere)) as access:
        async with Client(msgspec.structs.replace(access, ca=ca.pem)) as client:
            with pytest.raises(errors.TlsFailed, match="host name"):
                await client.get_raw("/version")
        async with Client(msgspec.structs.replace(access, ca=ca.pem, tls_server_name="10.0.0.1")) as client:
            assert await client.get_raw("/version") == VERSION
        async with Client(msgspec.structs.replace(access, insecure=True)) as client:
            assert await client.get_raw("/version") == VERSION


async def test_a_client_certificate_is_shown(tmp_path: Path, ca: Pair, server: Pair) -> None:
    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        certificate = request.transport.get_extra_info("peercert")
        return json({"subject": certificate["subject"][0][0][1]})

    me = issue("me", ca)
    async with serving(answer, ssl=server_context(tmp_path, server, client_ca=ca)) as access:
        credentials = Credentials(certificate=me.pem, key=secret(me))
        async with Client(msgspec.structs.replace(access, ca=ca.pem, credentials=credentials)) as client:
            assert await client.get_raw("/version") == {"subject": "me"}
        async with Client(msgspec.structs.replace(access, ca=ca.pem)) as client:
            with pytest.raises(errors.ConnectionFailed):
                await client.get_raw("/version")


async def test_a_client_certificate_in_files_is_taken_again_when_it_changes(
    tmp_path: Path, ca: Pair, server: Pair
) -> None:
    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        return json({"subject": request.transport.get_extra_info("peercert")["subject"][0][0][1]})

    files = tmp_path / "cert.pem", tmp_path / "key.pem"

    def write(pair: Pair) -> None:
        files[0].write_bytes(pair.pem)
        files[1].write_bytes(pair.key_pem)

    clock = FakeTime()
    write(issue("first", ca))
    async with serving(answer, ssl=server_context(tmp_path, server, client_ca=ca)) as access:
        credentials = Credentials(certificate_file=str(files[0]), key_file=str(files[1]))
        access = msgspec.structs.replace(access, ca=ca.pem, credentials=credentials)
        async with Client(access, clock=clock) as client:
            assert await client.get_raw("/version") == {"subject": "first"}
            write(issue("second", ca))
            assert await client.get_raw("/version") == {"subject": "first"}
            clock.time += 61
            assert await client.get_raw("/version") == {"subject": "second"}


@pytest.mark.parametrize("secure", [True, False])
async def test_a_watch_of_a_former_credential_ends_so_that_its_reader_takes_the_new_one(
    tmp_path: Path, ca: Pair, server: Pair, secure: bool
) -> None:
    """A watch that neither ends nor brings anything would keep a cache as it was for ever."""

    async def silent(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        asked.append(request.headers["Authorization"])
        await asyncio.Event().wait()
        return stream

    def of(token: str) -> Access:
        return msgspec.structs.replace(access, ca=ca.pem, credentials=Credentials(token=Secret(token)))

    asked: list[str] = []
    quick = ConnectionSettings(timeout=0.2)
    async with serving(silent, ssl=server_context(tmp_path, server) if secure else None) as access:
        client = Client(of("former"), settings=quick)
        reading = asyncio.ensure_future(anext(client.watch(CONFIGMAPS, resource_version="1")))
        await until(lambda: asked == ["Bearer former"])
        client.become(of("newer"))
        again = asyncio.ensure_future(anext(client.watch(CONFIGMAPS, resource_version="1")))
        with pytest.raises(errors.ConnectionFailed):
            await reading
        assert asked == ["Bearer former", "Bearer newer"]
        assert not again.done()
        again.cancel()
        await asyncio.gather(again, return_exceptions=True)
        await client.close()


async def test_closing_drops_sessions_of_former_certificates_too(tmp_path: Path, ca: Pair, server: Pair) -> None:
    """A session that stays open warns when it is collected, and warnings are errors."""

    class Patient(FakeTime):
        async def sleep(self, seconds: float) -> None:
            await asyncio.Event().wait()

    cert, key, clock = tmp_path / "cert.pem", tmp_path / "key.pem", Patient()
    async with serving(Script(VERSION), ssl=server_context(tmp_path, server, client_ca=ca)) as access:
        credentials = Credentials(certificate_file=str(cert), key_file=str(key))
        access = msgspec.structs.replace(access, ca=ca.pem, credentials=credentials)
        async with Client(access, clock=clock) as client:
            for name in ("first", "second", "third"):
                me = issue(name, ca)
                cert.write_bytes(me.pem)
                key.write_bytes(me.key_pem)
                clock.time += 61
                assert await client.get_raw("/version")


class FakeTime:
    """A clock whose sleeps are over at once."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


async def test_a_port_without_tls_is_named_in_the_error() -> None:
    async with serving(Script(VERSION)) as access:
        plain = Access(server=access.server.replace("http:", "https:"), insecure=True)
        async with Client(plain) as client:
            with pytest.raises(errors.TlsFailed, match="speaks TLS"):
                await client.get_raw("/version")


@pytest.mark.parametrize("memory", [True, False], ids=["memory", "folder"])
def test_no_key_stays_on_the_disk(memory: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ca: Pair) -> None:
    if not memory:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    me = issue("me", ca)
    tls.client_context(ca=ca.pem, certificate=me.pem, key=secret(me))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("ca_pem", "certificate", "key", "problem"),
    [
        (b"nonsense", b"", b"", "CA holds no PEM"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", b"", b"", "CA holds a PEM certificate that"),
        (b"", b"nonsense", b"canary", "not a readable pair"),
    ],
)
async def test_unreadable_pem_names_the_part_and_never_shows_it(
    ca_pem: bytes, certificate: bytes, key: bytes, problem: str
) -> None:
    credentials = Credentials(certificate=certificate, key=Secret(key.decode()) if key else None)
    async with Client(Access(server="https://127.0.0.1:1", ca=ca_pem, credentials=credentials)) as client:
        with pytest.raises(errors.TlsFailed, match=problem) as caught:
            await client.get_raw("/version")
    assert "canary" not in str(caught.value)


def test_a_key_of_another_certificate_is_refused(ca: Pair) -> None:
    with pytest.raises(ValueError, match="pair"):
        tls.client_context(ca=ca.pem, certificate=issue("a", ca).pem, key=secret(issue("b", ca)))


def test_an_encrypted_key_is_refused_without_asking_anybody(ca: Pair) -> None:
    from cryptography.hazmat.primitives import serialization

    me = issue("me", ca)
    encrypted = me.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    with pytest.raises(ValueError, match="pair"):
        tls.client_context(ca=ca.pem, certificate=me.pem, key=Secret(encrypted.decode()))


def _resident() -> int:
    """Bytes of this process's memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def test_a_thousand_clients_without_a_ca_of_their_own_share_one_context() -> None:
    """The system's CAs cost some 800 KiB and 24 ms a context: a thousand of them would be a gigabyte."""
    contexts = Contexts()
    access = Access(server="https://cluster.example.com", credentials=Credentials(token=Secret("token")))
    before = _resident()
    connections = [Connection(access, dialing=Dialing(contexts=contexts)) for _ in range(1000)]
    made = {id(connection._pool.session().connector._ssl) for connection in connections}  # type: ignore[union-attr]
    shared, grown = len(contexts), _resident() - before
    for connection in connections:
        await connection.close()
    assert len(made) == shared == 1
    assert grown < 100 << 20
