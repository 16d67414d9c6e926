"""Certificates of the garden for simulated gardenlets: the request, its approval, and the kubeconfig made of it.

gardener-controller-manager approves requests of gardenlets; the simulation plays it. The embedded API server knows no
bootstrap tokens, so that the token is checked here, against its Secret in the garden.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hortus.kube import Client, Secret, yaml
from hortus.kube.clock import Clock
from hortus.kube.errors import NotFound
from hortus.kube.kubeconfig import KubeconfigError
from hortus.kube.kubeconfig.document import parse
from hortus.kube.kubeconfig.write import document
from hortus.kube.objects import Object, Resource, parse_time
from hortus.simulation.garden.seed.kinds import SECRETS

REQUESTS: Final = Resource(
    "certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", namespaced=False
)
SIGNER: Final = "kubernetes.io/kube-apiserver-client"
ORGANIZATION: Final = "gardener.cloud:system:seeds"
USER: Final = "gardener.cloud:system:seed:"
PREFIX: Final = "seed-csr-"
RETRY: Final = 15 * 60.0
"""Seconds after which a request that nobody answered is replaced."""


class GardenCertificate(NamedTuple):
    """A certificate with its key."""

    certificate: bytes
    key: bytes

    @property
    def not_after(self) -> float:
        """The end of its life, in seconds since the epoch."""
        return self._parsed.not_valid_after_utc.timestamp()

    def renewal(self, share: float) -> float:
        """The time at which so much of its life is over."""
        begin = self._parsed.not_valid_before_utc.timestamp()
        return begin + share * (self.not_after - begin)

    @property
    def _parsed(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.certificate)

    def secret(self, name: str, *, server: str, ca: bytes) -> Object:
        """The Secret with the kubeconfig."""
        address = server if "://" in server else f"https://{server}"
        made = document("garden", address, ca=ca, certificate=self.certificate, key=Secret(self.key.decode()))
        value = base64.b64encode(yaml.dump(made).encode()).decode()
        return {"metadata": {"name": name, "namespace": "garden"}, "data": {"kubeconfig": value}}


class _Pending(NamedTuple):
    name: str
    key: bytes
    since: float


class CertificateRequests:
    """Requests of one gardenlet. `garden` is administrator."""

    def __init__(self, garden: Client, clock: Clock) -> None:
        self._garden = garden
        self._clock = clock
        self._pending: _Pending | None = None

    async def accepts(self, bootstrap: Object) -> bool:
        """Reports whether the garden takes the token of a bootstrap kubeconfig."""
        token = _token(bootstrap)
        identifier, _, secret = token.partition(".")
        try:
            found = await self._garden.get(SECRETS, f"bootstrap-token-{identifier or 'none'}", "kube-system")
        except NotFound:
            return False
        data = {key: base64.b64decode(value).decode() for key, value in (found.get("data") or {}).items()}
        return (
            found.get("type") == "bootstrap.kubernetes.io/token"
            and data.get("token-secret") == secret
            and data.get("usage-bootstrap-authentication") == "true"
            and parse_time(data.get("expiration", "1970-01-01T00:00:00Z")) > self._clock.now()
        )

    async def ask(self, seed: str, *, seconds: float) -> GardenCertificate | None:
        """The certificate for a seed; None while it is not signed yet."""
        pending = self._pending
        if pending is None or self._clock.monotonic() - pending.since > RETRY:
            pending = self._pending = await self._request(seed, seconds)
        try:
            found = await self._garden.get(REQUESTS, pending.name)
        except NotFound:
            self._pending = None
            return None
        certificate = (found.get("status") or {}).get("certificate")
        if not certificate:
            return None
        self._pending = None
        return GardenCertificate(base64.b64decode(certificate), pending.key)

    async def _request(self, seed: str, seconds: float) -> _Pending:
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, f"{USER}{seed}"),
        ]
        csr = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(attributes)).sign(key, hashes.SHA256())
        spec: Object = {
            "request": base64.b64encode(csr.public_bytes(serialization.Encoding.PEM)).decode(),
            "signerName": SIGNER,
            "usages": ["digital signature", "client auth"],
            "expirationSeconds": int(seconds),
        }
        meta: Object = {"apiVersion": REQUESTS.api_version, "kind": REQUESTS.kind}
        made = await self._garden.create(REQUESTS, {**meta, "metadata": {"generateName": PREFIX}, "spec": spec})
        name = str(made["metadata"]["name"])
        approval = {"type": "Approved", "status": "True", "reason": "AutoApproved", "message": "simulated"}
        await self._garden.patch(REQUESTS, name, {"status": {"conditions": [approval]}}, subresource="approval")
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return _Pending(name, private, self._clock.monotonic())


def decoded(secret: Object) -> GardenCertificate | None:
    """The certificate and key in the kubeconfig of a Secret; None for one without."""
    text = _text(secret)
    try:
        user = next(iter(parse(yaml.load(text), origin="kubeconfig").users.values())).body
        return GardenCertificate(
            base64.b64decode(user["client-certificate-data"]), base64.b64decode(user["client-key-data"])
        )
    except (yaml.YamlError, KubeconfigError, KeyError, StopIteration, binascii.Error):
        return None


def _token(secret: Object) -> str:
    try:
        loaded = yaml.load(_text(secret))
        return str(loaded["users"][0]["user"]["token"])
    except (yaml.YamlError, KeyError, IndexError, TypeError):
        return ""


def _text(secret: Object) -> str:
    return base64.b64decode((secret.get("data") or {}).get("kubeconfig", "")).decode()
