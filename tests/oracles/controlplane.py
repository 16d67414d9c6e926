"""A real Kubernetes control plane for the tests: kube-apiserver on etcd, with the controllers that clients count on.

The programs come from the folder that `KUBEBUILDER_ASSETS` names (envtest's convention: `kube-apiserver`, `etcd`), else
from what `make oracles` has built of tests/oracles/kubeapiserver. envtest has no kube-controller-manager: without one
nothing collects garbage or empties namespaces, and scenarios of these are not run.
"""

from __future__ import annotations

import secrets
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.apiserver.store.etcdserver import free_port, running_etcd
from tests.oracles.programs import CONTROL_PLANE, find_assets, why_not

from hortus.apiserver.authn.certificates import client_certificate, key_pem, new_key, root_authority
from hortus.apiserver.authn.subjects import name_of
from hortus.kube import yaml
from hortus.kube.objects import Object

__all__ = ["RealServer", "find_assets", "running_control_plane", "why_none"]

_CONTROLLERS = (
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",
)
_PATIENCE = 60.0
"""Seconds after which a server that is not ready fails the tests that wait for it."""


class RealServer(NamedTuple):
    """A running kube-apiserver; what scenarios need of `hortus.testing.apiserver.TestServer`."""

    url: str
    ca: bytes
    token: str
    folder: Path
    has_controllers: bool
    pids: tuple[int, ...] = ()
    """kube-apiserver's and etcd's process ids."""
    etcd: str = ""
    """The address of its store."""

    @property
    def kubeconfig(self) -> Path:
        """A file with the admin's kubeconfig."""
        return self.folder / "kubeconfig"

    def tls(self) -> ssl.SSLContext:
        """A client context that trusts this server alone."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.ca.decode())
        return context


def why_none() -> str:
    """The reason of a skipped test without a real API server."""
    return f"no real kube-apiserver: KUBEBUILDER_ASSETS is not set, and {why_not(CONTROL_PLANE)}"


@contextmanager
def running_control_plane(
    assets: Path,
    folder: Path,
    *,
    flags: Sequence[str] = (),
    durable: bool = False,
    with_controllers: bool = True,
    more_controllers: Sequence[str] = (),
) -> Iterator[RealServer]:
    """Start etcd, kube-apiserver and, where it is there and wanted, kube-controller-manager; stop them at the end.

    `flags` are further ones of kube-apiserver, `more_controllers` those of kube-controller-manager; `durable` has etcd
    sync its writes to the disk.
    """
    etcd, port, token = free_port(), free_port(), secrets.token_urlsafe(24)
    url = f"https://127.0.0.1:{port}"
    controllers = shutil.which("kube-controller-manager", path=str(assets)) if with_controllers else None
    with ExitStack() as stack:
        store = stack.enter_context(running_etcd(str(assets / "etcd"), folder / "etcd", etcd, sync=durable))
        command = [*_apiserver(assets, folder, port=port, etcd=etcd, token=token), *_front_proxy(folder), *flags]
        process = stack.enter_context(_running(command, folder / "apiserver.log"))
        ca = folder / "certs" / "apiserver.crt"
        _wait_until_ready(process, url, ca, folder / "apiserver.log")
        kubeconfig = folder / "kubeconfig"
        kubeconfig.touch(0o600)
        kubeconfig.write_text(yaml.dump(_kubeconfig(url, ca, token)))
        if controllers is not None:
            stack.enter_context(_running(_manager(controllers, folder, more_controllers), folder / "controllers.log"))
        yield RealServer(
            url,
            ca.read_bytes(),
            token,
            folder,
            controllers is not None,
            (process.pid, store.pid),
            f"http://127.0.0.1:{etcd}",
        )


def service_account_key() -> bytes:
    """A new key that signs tokens, as PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _apiserver(assets: Path, folder: Path, *, port: int, etcd: int, token: str) -> list[str]:
    signing, tokens = folder / "service-accounts.key", folder / "tokens.csv"
    admin = f'{token},kubernetes-admin,admin,"system:masters"\n'.encode()
    for path, content in ((signing, service_account_key()), (tokens, admin)):
        path.touch(0o600)
        path.write_bytes(content)
    store, certificates = f"http://127.0.0.1:{etcd}", folder / "certs"
    return apiserver_command(assets, etcd=store, port=port, certificates=certificates, signing=signing, tokens=tokens)


def apiserver_command(
    assets: Path, *, etcd: str, port: int, certificates: Path, signing: Path, tokens: Path
) -> list[str]:
    """A kube-apiserver's command. `etcd` are URLs with commas, `certificates` is the folder of those that it makes."""
    return [
        str(assets / "kube-apiserver"),
        f"--etcd-servers={etcd}",
        f"--cert-dir={certificates}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={signing}",
        f"--service-account-signing-key-file={signing}",
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC",
        # As envtest does: no pod here ever gets a token of the kubelet's.
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged=true",
    ]


def _front_proxy(folder: Path) -> Iterator[str]:
    """The flags by which a kube-apiserver aggregates others, as kubeadm sets them."""
    now = time.time()
    authority, own = root_authority(new_key(), "front-proxy-ca", start=now - 3600, days=30), new_key()
    leaf = client_certificate(
        authority, own.public_key(), name_of("front-proxy-client"), start=now - 3600, end=now + 86400
    )
    certificate, key, ca = (folder / f"front-proxy.{end}" for end in ("crt", "key", "ca"))
    certificate.write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
    ca.write_bytes(authority.pem)
    key.touch(0o600)
    key.write_bytes(key_pem(own))
    yield f"--proxy-client-cert-file={certificate}"
    yield f"--proxy-client-key-file={key}"
    yield f"--requestheader-client-ca-file={ca}"
    yield "--requestheader-allowed-names=front-proxy-client"
    yield "--requestheader-username-headers=X-Remote-User"
    yield "--requestheader-uid-headers=X-Remote-Uid"
    yield "--requestheader-group-headers=X-Remote-Group"
    yield "--requestheader-extra-headers-prefix=X-Remote-Extra-"


def _manager(binary: str, folder: Path, more: Sequence[str]) -> list[str]:
    return [
        binary,
        f"--kubeconfig={folder / 'kubeconfig'}",
        f"--controllers={','.join((*_CONTROLLERS, *more))}",
        "--leader-elect=false",
        "--secure-port=0",
    ]


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as written, subprocess.Popen(command, stdout=written, stderr=written) as process:
        try:
            yield process
        finally:
            process.kill()


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, ca: Path, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not _is_ready(url, ca):
        tail = "" if not log.exists() else log.read_text()[-2000:]
        assert process.poll() is None, f"kube-apiserver has ended:\n{tail}"
        assert time.monotonic() < deadline, f"kube-apiserver is not ready:\n{tail}"
        time.sleep(0.1)


def _is_ready(url: str, ca: Path) -> bool:
    if not ca.exists():
        return False
    try:
        context = ssl.create_default_context(cafile=str(ca))
        with urllib.request.urlopen(f"{url}/readyz", context=context, timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _kubeconfig(url: str, ca: Path, token: str) -> Object:
    name = "real"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority": str(ca)}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
