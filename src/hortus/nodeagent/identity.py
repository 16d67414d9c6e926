"""The agent's own credentials: a client certificate from a CertificateSigningRequest.

`bootstrap` uses the token of the machine once; `renewed` uses the certificate before it expires. The library for
certificates is loaded by these alone: an agent at rest does without it, and reads a certificate's validity in a process
of its own (`python -m hortus.nodeagent.identity CERTIFICATE`).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
import sys
from random import Random

import msgspec
import structlog

from hortus.kube import Access, Client, Clock, Object, Resource, Secret, yaml
from hortus.kube.errors import NotFound
from hortus.kube.kubeconfig import document
from hortus.nodeagent.node import AgentRestart
from hortus.nodeagent.osc import without_nulls
from hortus.nodeagent.seams import Files, NodeFault
from hortus.nodeagent.state import FOLDER

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

REQUESTS = Resource(
    "certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", namespaced=False
)
PREFIX = "node-agent-csr-"
SIGNER = "kubernetes.io/kube-apiserver-client"
USER = "gardener.cloud:node-agent:machine:"
GROUP = "gardener.cloud:node-agents"
VALIDITY = 720 * 3600
MACHINE_NAME = f"{FOLDER}/machine-name"
TOKEN = f"{FOLDER}/credentials/bootstrap-token"
KUBECONFIG_MODE = 0o600
KUBELET_BOOTSTRAP = "/var/lib/kubelet/kubeconfig-bootstrap"
KUBELET_OWN = ("/var/lib/kubelet/kubeconfig-real", "/var/lib/kubelet/pki/kubelet-client-current.pem")
_PATIENCE = 900.0
_EVERY = 2.0
_SHARE, _JITTER = 0.8, 0.1


class _CsrCondition(msgspec.Struct, frozen=True):
    type: str = ""
    message: str = ""


class _CsrStatus(msgspec.Struct, frozen=True):
    certificate: str = ""
    conditions: tuple[_CsrCondition, ...] = ()


class _Csr(msgspec.Struct, frozen=True):
    status: _CsrStatus = _CsrStatus()


def request_of(machine: str, pem: bytes, name: str) -> Object:
    """The CertificateSigningRequest of a machine."""
    return {
        "apiVersion": REQUESTS.api_version,
        "kind": REQUESTS.kind,
        "metadata": {"name": name},
        "spec": {
            "request": base64.b64encode(pem).decode(),
            "signerName": SIGNER,
            "usages": ["digital signature", "client auth"],
            "expirationSeconds": VALIDITY,
        },
    }


def new_request(machine: str) -> tuple[bytes, bytes]:
    """A new private key and the request for its certificate, both in PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, GROUP),
            x509.NameAttribute(NameOID.COMMON_NAME, USER + machine),
        ]
    )
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return pem, request.public_bytes(serialization.Encoding.PEM)


async def certificate_for(client: Client, machine: str, clock: Clock) -> tuple[bytes, bytes]:
    """A certificate for the machine and its key, once somebody approved the request. Raises NodeFault, KubeError."""
    key, pem = new_request(machine)
    name = PREFIX + secrets.token_hex(8)
    await client.create(REQUESTS, request_of(machine, pem, name))
    end = clock.monotonic() + _PATIENCE
    while clock.monotonic() < end:
        try:
            status = msgspec.convert(without_nulls(await client.get(REQUESTS, name)), _Csr).status
        except NotFound:
            raise NodeFault(f"CertificateSigningRequest {name} was deleted before it was signed") from None
        if status.certificate:
            return base64.b64decode(status.certificate), key
        for condition in status.conditions:
            if condition.type in ("Denied", "Failed"):
                raise NodeFault(f"CertificateSigningRequest {name} is {condition.type.lower()}: {condition.message}")
        await clock.sleep(_EVERY)
    raise NodeFault(f"CertificateSigningRequest {name} was not signed within {_PATIENCE:g} s: approve it")


def write_kubeconfig(files: Files, path: str, access: Access, certificate: bytes, key: bytes) -> None:
    config = document(
        "node-agent", access.server, ca=access.ca, certificate=certificate, key=Secret(key.decode()), user="node-agent"
    )
    files.write(path, yaml.dump(config).encode(), mode=KUBECONFIG_MODE)


def write_kubelet_bootstrap(files: Files, access: Access) -> bool:
    """Gives the kubelet a kubeconfig with the token of the machine, unless it has credentials of its own."""
    if any(files.read(path) is not None for path in KUBELET_OWN) or access.credentials.token is None:
        return False
    config = document("kubelet-bootstrap", access.server, ca=access.ca, token=access.credentials.token)
    return files.write(KUBELET_BOOTSTRAP, yaml.dump(config).encode(), mode=KUBECONFIG_MODE)


def renewal_at(not_before: float, not_after: float, random: Random) -> float:
    """The time of the renewal: after 80 to 88 percent of the validity."""
    return not_before + (not_after - not_before) * _SHARE * (1.0 + _JITTER * random.random())


async def validity_of(certificate: bytes) -> tuple[float, float] | None:
    """The first and last second of a certificate, which another process reads."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        output, _ = await process.communicate(certificate)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    with contextlib.suppress(ValueError):
        first, last = map(float, output.split())
        return first, last
    return None


async def until_renewed(client: Client, files: Files, path: str, clock: Clock, *, machine: str) -> None:
    """Renews the client certificate in time, and raises AgentRestart then. Returns where there is none."""
    access = client.access
    if not access.credentials.certificate:
        return
    validity = await validity_of(access.credentials.certificate)
    if validity is None:
        _log.warning("the validity of the own certificate is not readable", path=path)
        return
    due = renewal_at(*validity, Random())  # noqa: S311 - jitter, not secrecy
    while (left := due - clock.now()) > 0:
        await clock.sleep(min(left, 3600.0))
    certificate, key = await certificate_for(client, machine, clock)
    write_kubeconfig(files, path, access, certificate, key)
    raise AgentRestart("the own certificate was renewed")


def _print_validity() -> None:
    from cryptography import x509

    found = x509.load_pem_x509_certificates(sys.stdin.buffer.read())[0]
    sys.stdout.write(f"{found.not_valid_before_utc.timestamp()} {found.not_valid_after_utc.timestamp()}\n")


if __name__ == "__main__":
    _print_validity()
