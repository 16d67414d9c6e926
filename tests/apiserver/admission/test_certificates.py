"""Webhooks whose certificates are made the ways that people make them, and URLs as people write them."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from tests.apiserver.admission.scripted import Webhook, scripted_webhook

from hortus.apiserver.admission.calling import CallFailed, WebhookClient

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
Made = tuple[bytes, bytes]
"""PEM of the server's key and chain; of the bundle."""


def _certificate(
    key: Key, name: str, *, signer: tuple[x509.Certificate, Key] | None = None, ca: bool = False, usage: bool = True
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer[0].subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(_usage(signs=ca), critical=True)
    )
    if not ca:
        names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if usage and not ca:
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    return builder.sign(signer[1] if signer else key, hashes.SHA256())


def _usage(*, signs: bool) -> x509.KeyUsage:
    unused = dict.fromkeys(
        ("content_commitment", "data_encipherment", "key_agreement", "crl_sign", "encipher_only", "decipher_only"),
        False,
    )
    return x509.KeyUsage(digital_signature=True, key_encipherment=not signs, key_cert_sign=signs, **unused)


def _served(key: Key, *chain: x509.Certificate) -> bytes:
    plain = serialization.NoEncryption()
    encoded = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return encoded + _pem(*chain)


def _pem(*certificates: x509.Certificate) -> bytes:
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def _elliptic() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def _by_controller_runtime(folder: Path) -> Made:
    """envtest signs a serving certificate by an authority that it throws away: the bundle is the certificate itself."""
    authority, key = _elliptic(), _elliptic()
    ca = _certificate(authority, "envtest-environment", ca=True)
    serving = _certificate(key, "127.0.0.1", signer=(ca, authority))
    return _served(key, serving), _pem(serving)


def _by_a_self_signed_issuer(folder: Path) -> Made:
    """cert-manager's SelfSigned issuer: a serving certificate that is no authority and signs itself."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    serving = _certificate(key, "webhook", usage=False)
    return _served(key, serving), _pem(serving)


def _by_an_intermediate_issuer(folder: Path) -> Made:
    """cert-manager's CA issuer below a root that nobody hands out: the bundle is the intermediate."""
    root_key, middle_key, key = _elliptic(), _elliptic(), _elliptic()
    root = _certificate(root_key, "root", ca=True)
    middle = _certificate(middle_key, "issuer", signer=(root, root_key), ca=True)
    serving = _certificate(key, "webhook", signer=(middle, middle_key))
    return _served(key, serving, middle), _pem(middle)


def _below_a_root_with_a_comment(folder: Path) -> Made:
    """A bundle of several authorities with words between them, as trust-manager and people join them."""
    root_key, middle_key, key = _elliptic(), _elliptic(), _elliptic()
    root = _certificate(root_key, "root", ca=True)
    middle = _certificate(middle_key, "issuer", signer=(root, root_key), ca=True)
    serving = _certificate(key, "webhook", signer=(middle, middle_key))
    other = _certificate(_elliptic(), "old root", ca=True)
    bundle = "# ältere Wurzel\n".encode() + _pem(other) + b"\n# root\n" + _pem(root)
    return _served(key, serving, middle), bundle


def _by_openssl(folder: Path) -> Made:
    """`openssl req -x509`: an authority that serves."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=webhook"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([*command, "-addext", "subjectAltName=IP:127.0.0.1", *files], check=True, capture_output=True)
    certificate = (folder / "cert.pem").read_bytes()
    return (folder / "key.pem").read_bytes() + certificate, certificate


def _another_bundle(folder: Path) -> Made:
    key = _elliptic()
    serving = _certificate(key, "webhook")
    return _served(key, serving), _pem(_certificate(_elliptic(), "webhook"))


async def _asked(hook: Webhook, url: str) -> bytes:
    client = WebhookClient(own_names=frozenset(), own_port=0)
    try:
        return await client.ask("root", {"url": url, "caBundle": hook.ca}, {"request": {"uid": "x"}}, seconds=10)
    finally:
        await client.stop()


def _serving(folder: Path, made: Made) -> tuple[ssl.SSLContext, bytes]:
    path = folder / "serving.pem"
    path.write_bytes(made[0])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context, made[1]


@pytest.mark.parametrize(
    "make",
    [
        _by_controller_runtime,
        _by_a_self_signed_issuer,
        _by_an_intermediate_issuer,
        _below_a_root_with_a_comment,
        _by_openssl,
    ],
)
async def test_every_certificate_of_the_bundle_is_trusted_for_itself(
    tmp_path: Path, make: Callable[[Path], Made]
) -> None:
    async with scripted_webhook(tmp_path, serving=_serving(tmp_path, make(tmp_path))) as hook:
        client = hook.client("/ask", lambda request: {"allowed": True})
        assert b'"allowed"' in await _asked(hook, client["url"])


async def test_a_certificate_that_the_bundle_does_not_lead_to_is_refused(tmp_path: Path) -> None:
    async with scripted_webhook(tmp_path, serving=_serving(tmp_path, _another_bundle(tmp_path))) as hook:
        client = hook.client("/ask", lambda request: {"allowed": True})
        with pytest.raises(CallFailed, match="failed to verify certificate"):
            await _asked(hook, client["url"])
    assert hook.asked == []


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("//ask", "/ask"),
        ("/a//b/", "/a/b"),
        ("/a/./b/../ask", "/a/ask"),
        ("/../ask", "/ask"),
        ("", "/"),
        ("/", "/"),
        ("/a%2Fb", "/a/b"),
        ("/a%20b", "/a b"),
    ],
)
async def test_a_path_is_sent_as_gos_client_sends_it(tmp_path: Path, written: str, sent: str) -> None:
    async with scripted_webhook(tmp_path) as hook:
        hook.answers[sent] = lambda request: {"allowed": True}
        await _asked(hook, f"https://127.0.0.1:{hook.port}{written}")
    assert [path for path, _ in hook.asked] == [sent]
