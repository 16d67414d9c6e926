"""JSON Web Tokens signed with ES256, and nothing else (RFC 7515, 7518 section 3.4, 7519).

The caller gives the verifier the one key and the one algorithm; the token's header chooses neither, which rules out
`alg: none`, HMAC with the public key and forged key ids.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

SIZE_LIMIT = 8192
"""Bytes of a token; the server's own stay below 2 kB."""

_HALF = 32
_ALGORITHM = ec.ECDSA(hashes.SHA256())


class BadToken(Exception):
    """The text is no token of this key. The message never repeats the token."""


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    alg: str
    kid: str
    typ: str = ""


def key_id(key: ec.EllipticCurvePublicKey) -> str:
    """The JWK thumbprint of a key (RFC 7638)."""
    jwk = _public_members(key)
    text = f'{{"crv":"P-256","kty":"EC","x":"{jwk["x"]}","y":"{jwk["y"]}"}}'
    return _encode(hashlib.sha256(text.encode()).digest())


def public_jwk(key: ec.EllipticCurvePublicKey) -> dict[str, str]:
    """The key as a member of a JWK set (RFC 7517)."""
    return {"use": "sig", "kty": "EC", "kid": key_id(key), "crv": "P-256", "alg": "ES256", **_public_members(key)}


def sign(claims: bytes, key: ec.EllipticCurvePrivateKey) -> str:
    """The compact token of JSON-encoded `claims`."""
    header = msgspec.json.encode({"alg": "ES256", "kid": key_id(key.public_key())})
    body = f"{_encode(header)}.{_encode(claims)}"
    r, s = decode_dss_signature(key.sign(body.encode(), _ALGORITHM))
    return f"{body}.{_encode(r.to_bytes(_HALF, 'big') + s.to_bytes(_HALF, 'big'))}"


def verify(token: str, key: ec.EllipticCurvePublicKey) -> bytes:
    """The JSON-encoded claims of a token that `key` signed; raises BadToken for anything else."""
    if len(token) > SIZE_LIMIT:
        raise BadToken(f"longer than {SIZE_LIMIT} characters")
    parts = token.split(".")
    if len(parts) != 3:
        raise BadToken("not three parts")
    try:
        header = msgspec.json.decode(_decode(parts[0]), type=_Header)
        claims, signature = _decode(parts[1]), _decode(parts[2])
        signed = f"{parts[0]}.{parts[1]}".encode("ascii")
    except (msgspec.DecodeError, binascii.Error, UnicodeError, ValueError) as problem:
        raise BadToken("malformed") from problem
    if header.alg != "ES256" or header.kid != key_id(key) or len(signature) != 2 * _HALF:
        raise BadToken("signed by another key or in another way")
    r, s = int.from_bytes(signature[:_HALF], "big"), int.from_bytes(signature[_HALF:], "big")
    try:
        key.verify(encode_dss_signature(r, s), signed, _ALGORITHM)
    except InvalidSignature as problem:
        raise BadToken("the signature does not hold") from problem
    return claims


def _public_members(key: ec.EllipticCurvePublicKey) -> dict[str, str]:
    numbers = key.public_numbers()
    return {"x": _encode(numbers.x.to_bytes(_HALF, "big")), "y": _encode(numbers.y.to_bytes(_HALF, "big"))}


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if _encode(data) != text:
        raise binascii.Error("not canonical base64url")
    return data
