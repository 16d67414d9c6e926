"""Access to etcd: user names whose tokens expire, TLS with client certificates, and several endpoints."""

from __future__ import annotations

import asyncio
import base64
import datetime
import ipaddress
import logging
import signal
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from tests.apiserver.store.contract import PODS, batch, pod, put
from tests.apiserver.store.etcdserver import find_etcd, free_port, pause, running_etcd

from hortus.apiserver.store import EtcdBackend, EtcdLogin, StoreFailed
from hortus.etcd.wire import EtcdWire

_found = find_etcd()
if _found is None:
    pytest.skip(
        "no etcd here: put it on the PATH (Debian: etcd-server) or name it in HORTUS_ETCD", allow_module_level=True
    )
_ETCD: str = _found

PASSWORD = "canary-password"


def text(plain: str) -> str:
    return base64.b64encode(plain.encode()).decode()


async def ask(wire: EtcdWire, path: str, **body: Any) -> None:
    await wire.call(f"/v3/auth/{path}", body)


async def set_up_users(address: str) -> None:
    """`root` for etcd itself, and `hortus`, who may read and write below /mine/."""
    wire = EtcdWire([address])
    await wire.start()
    span = {"key": text("/mine/"), "range_end": text("/mine0")}
    await ask(wire, "user/add", name="root", password="root-password")
    await ask(wire, "role/add", name="root")
    await ask(wire, "user/grant", user="root", role="root")
    await ask(wire, "user/add", name="hortus", password=PASSWORD)
    await ask(wire, "role/add", name="gardener")
    await ask(wire, "role/grant", name="gardener", perm={"permType": "READWRITE", **span})
    await ask(wire, "user/grant", user="hortus", role="gardener")
    await ask(wire, "enable")
    await wire.close()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An etcd that wants a login; its tokens live for longer than the tests."""
    port = free_port()
    with running_etcd(_ETCD, tmp_path_factory.mktemp("etcd"), port, more=["--auth-token-ttl", "300"]):
        address = f"http://127.0.0.1:{port}"
        asyncio.run(set_up_users(address))
        yield address


def login(password: str = PASSWORD) -> EtcdLogin:
    return EtcdLogin("hortus", lambda: password)


async def test_a_store_logs_in_and_again_when_its_token_is_no_longer_taken(
    guarded: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store = EtcdBackend([guarded], root="/mine/a/", login=login())
    await store.start()
    kept = await put(store, "default/a")
    watch = store.watch(PODS, after=kept.revision)
    for token in ("forged.1", ""):
        store._wire._token = token
        later = await put(store, "default/b")
        assert [change.record for change in await batch(watch)] == [later]
        assert await store.get(pod("default/b")) == later
    root = EtcdWire([guarded], login=EtcdLogin("root", lambda: "root-password"))
    await root.start()
    await ask(root, "role/add", name="another")  # tokens given out before are of an older revision now
    await ask(root, "role/delete", role="another")
    await root.close()
    store._wire.cut()
    last = await put(store, "default/c")
    assert [change.record for change in await batch(watch)] == [last]
    await watch.aclose()
    await store.close()
    assert PASSWORD not in caplog.text


async def test_many_requests_with_an_expired_token_log_in_once(guarded: str) -> None:
    asked = []

    def password() -> str:
        asked.append(1)
        return PASSWORD

    store = EtcdBackend([guarded], root="/mine/b/", login=EtcdLogin("hortus", password))
    await store.start()
    assert len(asked) == 1
    store._wire._token = "forged.2"
    await asyncio.gather(*(put(store, f"default/{number}") for number in range(20)))
    assert len(asked) == 2
    await store.close()


async def test_a_changed_password_is_read_again(guarded: str, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("old")
    store = EtcdBackend([guarded], root="/mine/c/", login=EtcdLogin("hortus", file.read_text))
    with pytest.raises(StoreFailed, match="invalid user ID or password"):
        await store.start()
    file.write_text(PASSWORD)
    await store.start()
    assert (await put(store, "default/a")).revision
    store._wire._token = "forged.3"
    file.unlink()
    with pytest.raises(StoreFailed, match="password for etcd cannot be read"):
        await put(store, "default/b")
    file.write_text(PASSWORD)
    assert (await put(store, "default/b")).revision
    await store.close()


async def test_without_login_and_outside_of_its_keys_a_store_is_refused_without_telling_the_password(
    guarded: str,
) -> None:
    with pytest.raises(StoreFailed, match="user name is empty"):
        await EtcdBackend([guarded], root="/mine/d/").start()
    for store in (
        EtcdBackend([guarded], root="/theirs/", login=login()),
        EtcdBackend([guarded], root="/mine/d/", login=login("wrong-canary")),
    ):
        with pytest.raises(StoreFailed) as refused:
            await store.start()
        assert "refused" in str(refused.value)
        assert "canary" not in str(refused.value)


class Authority:
    """Makes certificates for this module's etcd and its clients."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "etcd-ca")])
        self.certificate = self._signed(self.name, self.key.public_key(), ca=True)
        self.path = folder / "ca.pem"
        self.path.write_bytes(self.certificate.public_bytes(Encoding.PEM))

    def issue(self, name: str) -> tuple[Path, Path]:
        """Files with a certificate for 127.0.0.1, good for servers and clients, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, name)])
        paths = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        paths[0].write_bytes(self._signed(subject, key.public_key(), ca=False).public_bytes(Encoding.PEM))
        paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return paths

    def _signed(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, ca: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        builder = (
            x509.CertificateBuilder(self.name, subject, key, x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if not ca:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        return builder.sign(self.key, hashes.SHA256())


async def test_etcd_is_used_over_tls_with_a_client_certificate_and_not_without(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server")
    more = ["--cert-file", str(certificate), "--key-file", str(key)]
    more += ["--client-cert-auth", "--trusted-ca-file", str(authority.path)]
    port = free_port()
    with running_etcd(_ETCD, tmp_path / "data", port, scheme="https", more=more):
        address = f"https://127.0.0.1:{port}"
        anonymous = ssl.create_default_context(cafile=str(authority.path))
        with pytest.raises(StoreFailed, match="does not answer"):
            await EtcdBackend([address], tls=anonymous).start()
        with pytest.raises(StoreFailed, match="certificate verify failed"):
            await EtcdBackend([address]).start()
        known = ssl.create_default_context(cafile=str(authority.path))
        known.load_cert_chain(*authority.issue("client"))
        store = EtcdBackend([address], tls=known)
        await store.start()
        kept = await put(store, "default/a")
        watch = store.watch(PODS, after=kept.revision)
        later = await put(store, "default/b")
        assert [change.record for change in await batch(watch)] == [later]
        await watch.aclose()
        await store.close()


async def test_of_several_endpoints_the_dead_ones_are_passed_over_and_a_dying_one_is_left(tmp_path: Path) -> None:
    """Both addresses lead to the same etcd, one through a relay that can be cut."""
    port = free_port()
    with running_etcd(_ETCD, tmp_path / "data", port):
        connections: list[asyncio.StreamWriter] = []

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there, back = await asyncio.open_connection("127.0.0.1", port)
            connections.extend((writer, back))
            await asyncio.gather(pump(reader, back), pump(there, writer))

        server = await asyncio.start_server(relay, "127.0.0.1", 0)
        through = server.sockets[0].getsockname()[1]
        dead = f"http://127.0.0.1:{free_port()}"
        store = EtcdBackend([dead, f"http://127.0.0.1:{through}", dead, f"http://127.0.0.1:{port}"])
        await store.start()
        kept = await put(store, "default/a")
        watch = store.watch(PODS, after=kept.revision)
        assert connections, "the relay comes first"
        server.close()
        for writer in connections:
            writer.transport.abort()
        later = await acknowledged(store, "default/b")
        assert [change.record.revision for change in await batch(watch)] == [later]
        assert (await store.list(PODS)).revision >= later
        await watch.aclose()
        await store.close()
        await server.wait_closed()


async def acknowledged(store: EtcdBackend, name: str) -> int:
    """Write until somebody answers: a write that was on its way when the line was cut is not repeated by the store."""
    while True:
        try:
            return (await put(store, name, expected=0)).revision
        except StoreFailed:
            continue


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        return
    finally:
        writer.transport.abort()


async def test_a_paused_etcd_fails_writes_in_time_and_is_used_again(tmp_path: Path) -> None:
    port = free_port()
    with running_etcd(_ETCD, tmp_path / "data", port) as process:
        store = EtcdBackend([f"http://127.0.0.1:{port}"])
        await store.start()
        kept = await put(store, "default/a")
        pause(process)
        with pytest.raises(StoreFailed, match="has not answered within 2 s"):
            await store.check()
        assert await store.get(pod("default/a"), fresh=False) == kept
        process.send_signal(signal.SIGCONT)
        assert await store.get(pod("default/a")) == kept
        assert (await put(store, "default/b")).revision > kept.revision
        await store.close()
