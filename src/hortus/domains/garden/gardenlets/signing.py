"""Signatures of charts: those that `cosign sign --key` puts next to a chart, checked with public keys.

A signature is an artifact in the chart's repository, under a tag that follows from the chart's digest. Each of its
layers is a statement with the digest that it is about, and has the signature of its bytes as an annotation. Source:
sigstore/cosign, specs/SIGNATURE_SPEC.md.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from hortus.kube.shapes import decode_json
from hortus.render.artifacts import Digest
from hortus.render.artifacts import NotFound as ArtifactNotFound
from hortus.render.oci import ImageManifest, OciClient, Reference

STATEMENT: Final = "application/vnd.dev.cosign.simplesigning.v1+json"
SIGNATURE: Final = "dev.cosignproject.cosign/signature"
_MOST: Final = 32
"""Signatures of one chart that are looked at."""
_LARGEST: Final = 64 * 1024
"""Bytes of a statement."""

ChartKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey


class NotSigned(Exception):
    """A chart without a signature of one of the keys; the message says what there is."""


class _Image(msgspec.Struct, rename="kebab"):
    docker_manifest_digest: str = ""


class _Critical(msgspec.Struct):
    image: _Image = msgspec.field(default_factory=_Image)


class _Statement(msgspec.Struct):
    critical: _Critical = msgspec.field(default_factory=_Critical)


def read_keys(files: Sequence[Path]) -> tuple[ChartKey, ...]:
    """The public keys in files. Raises OSError, and ValueError naming the file."""
    found = []
    for file in files:
        try:
            key = load_pem_public_key(file.read_bytes())
        except (ValueError, UnsupportedAlgorithm):
            raise ValueError(f"{file}: must hold a public key in PEM") from None
        if not isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey):
            raise ValueError(f"{file}: its key is of no kind that signs charts: give one of ECDSA, RSA or Ed25519")
        found.append(key)
    return tuple(found)


def signature_tag(digest: Digest) -> str:
    """The tag of the signatures of a chart."""
    return f"{digest.replace(':', '-')}.sig"


async def check_signature(client: OciClient, chart: Reference, digest: Digest, keys: Sequence[ChartKey]) -> None:
    """Return if one of the keys has signed the chart with a digest. Raises NotSigned, ArtifactError."""
    place = msgspec.structs.replace(chart, tag=signature_tag(digest), digest=None)
    try:
        manifest = await client.manifest(place)
    except ArtifactNotFound:
        raise NotSigned(f"{chart} has no signature: there is no tag {place.tag}") from None
    if not isinstance(manifest, ImageManifest):
        raise NotSigned(f"{place} holds no signatures")
    layers = [one for one in manifest.layers if one.media_type == STATEMENT and one.size <= _LARGEST][:_MOST]
    for layer in layers:
        statement = await client.blob(place, layer)
        if _is_about(statement, digest) and _is_signed(statement, layer.annotations.get(SIGNATURE, ""), keys):
            return
    raise NotSigned(f"{chart} has {len(layers)} signatures, and none by a key of this operator for {digest}")


def _is_about(statement: bytes, digest: Digest) -> bool:
    try:
        return decode_json(statement, _Statement).critical.image.docker_manifest_digest == digest
    except msgspec.MsgspecError:
        return False


def _is_signed(statement: bytes, signature: str, keys: Sequence[ChartKey]) -> bool:
    try:
        given = base64.b64decode(signature, validate=True)
    except ValueError:
        return False
    return any(_verifies(key, given, statement) for key in keys)


def _verifies(key: ChartKey, signature: bytes, statement: bytes) -> bool:
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, statement, ec.ECDSA(SHA256()))
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, statement, padding.PKCS1v15(), SHA256())
        else:
            key.verify(signature, statement)
    except InvalidSignature:
        return False
    return True
