"""The folder for KUBEBUILDER_ASSETS: its programs take envtest's flags and trust the authorities that envtest made."""

from __future__ import annotations

import asyncio
import datetime
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from tests.apiserver.store.etcdserver import free_port

from hortus.cli.envtest import write_assets
from hortus.kube import Access, Client, Credentials, Secret
from hortus.kube.errors import ConnectionFailed, Forbidden, KubeError
from hortus.kube.objects import Resource

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


class Pair(NamedTuple):
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class Maker:
    """An authority that signs as envtest's does: RSA, with the key usages of Go's template."""

    def __init__(self, name: str) -> None:
        self._key = rsa.generate_private_key(65537, 2048)
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.certificate = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _builder(
        self, subject: x509.Name, key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(hours=1))
        )

    def sign(self, name: str, groups: Sequence[str] = (), *, server: bool = False) -> Pair:
        key = rsa.generate_private_key(65537, 2048)
        organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name), *organizations])
        usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = self._builder(subject, key.public_key()).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if server:
            names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
            builder = builder.add_extension(names, critical=False)
        made = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        pem = serialization.PrivateFormat.PKCS8
        private = key.private_bytes(serialization.Encoding.PEM, pem, serialization.NoEncryption())
        return Pair(made, private)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_assets(tmp_path_factory.mktemp("assets"))


def test_the_command_writes_the_folder_and_prints_it_for_a_shell(tmp_path: Path) -> None:
    where = tmp_path / "of mine"
    said = asked(Path(sys.executable), "-m", "hortus", "envtest", "--dir", str(where))
    assert (said.returncode, said.stdout) == (0, f"{where}\n")
    assert {"etcd", "kube-apiserver"} <= {path.name for path in where.iterdir()}
    said = asked(Path(sys.executable), "-m", "hortus", "envtest", "--dir", str(where), "-p", "env")
    assert said.stdout == f"export KUBEBUILDER_ASSETS='{where}'\n"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = asked(Path(sys.executable), "-m", "hortus", "envtest", "--dir", str(tmp_path / "file"))
    assert said.returncode == 2
    assert "Traceback" not in said.stderr
    assert "Invalid value for --dir" in said.stderr
    assert "cannot be written: File exists" in " ".join(said.stderr.split())


def asked(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("name", ["kube-apiserver", "etcd"])
def test_help_lists_the_flags_that_envtest_looks_for(folder: Path, name: str) -> None:
    said = asked(folder / name, "--help")
    assert said.returncode == 0
    wanted = {"kube-apiserver": "service-cluster-ip-range", "etcd": "listen-peer-urls"}[name]
    assert f"--{wanted} " in said.stdout


def test_help_of_the_server_loads_no_server(folder: Path) -> None:
    code = "import sys; from hortus.cli.envtest.apiserver import main; main(['--help']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"hortus.apiserver", "cryptography", "msgspec", "aiohttp"} & {*loaded}


def test_a_flag_that_does_nothing_here_is_refused(folder: Path) -> None:
    said = asked(folder / "kube-apiserver", "--encryption-provider-config=x")
    assert said.returncode == 2
    assert said.stderr.startswith("kube-apiserver: unknown flag: --encryption-provider-config")


def test_a_certificate_that_is_not_there_is_named(folder: Path, tmp_path: Path) -> None:
    said = asked(folder / "kube-apiserver", "--secure-port=0", f"--client-ca-file={tmp_path}/ca.crt")
    assert said.returncode == 1
    assert "ca.crt" in said.stderr
    assert "Traceback" not in said.stderr


def test_writing_the_folder_again_changes_nothing(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "kubectl"}
    write_assets(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "kubectl"} == before
    assert all(os.access(path, os.X_OK) for path in folder.iterdir())


@contextmanager
def serving(folder: Path, certificates: Path, clients: Maker) -> Iterator[int]:
    serving = Maker("envtest-environment").sign("localhost", server=True)
    (certificates / "apiserver.crt").write_bytes(serving.certificate)
    (certificates / "apiserver.key").write_bytes(serving.key)
    (certificates / "clients.crt").write_bytes(clients.certificate)
    port = free_port()
    words = [f"--cert-dir={certificates}", f"--client-ca-file={certificates}/clients.crt", f"--secure-port={port}"]
    words += ["--bind-address=127.0.0.1", "--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged=true"]
    with subprocess.Popen([folder / "kube-apiserver", *words], stderr=subprocess.PIPE) as process:
        try:
            yield port
        finally:
            process.terminate()
            assert process.wait(60) == 0


async def connected(port: int, pair: Pair, trusted: bytes) -> Client:
    credentials = Credentials(certificate=pair.certificate, key=Secret(pair.key.decode()))
    return Client(Access(server=f"https://localhost:{port}", ca=trusted, credentials=credentials))


async def ready(client: Client) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                await client.list(NAMESPACES)
                return
            except ConnectionFailed:
                await asyncio.sleep(0.02)


async def test_users_are_those_of_the_client_authority(folder: Path, tmp_path: Path) -> None:
    clients = Maker("envtest-clients")
    with serving(folder, tmp_path, clients) as port:
        trusted = (tmp_path / "apiserver.crt").read_bytes()
        async with await connected(port, clients.sign("admin", ["system:masters"]), trusted) as admin:
            await ready(admin)
            review = await admin.create(REVIEWS, {})
            assert review["status"]["userInfo"]["username"] == "admin"
            assert "system:masters" in review["status"]["userInfo"]["groups"]
            await admin.create(NAMESPACES, {"metadata": {"name": "made"}})
        async with await connected(port, clients.sign("guest"), trusted) as guest:
            with pytest.raises(Forbidden, match='User "guest"'):
                await guest.list(NAMESPACES)
        untrusted = Maker("envtest-clients").sign("admin", ["system:masters"])
        async with await connected(port, untrusted, trusted) as other:
            with pytest.raises((KubeError, ssl.SSLError)):
                await other.list(NAMESPACES)
