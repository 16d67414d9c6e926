"""Digests, passwords, ciphers and random texts."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import string
import struct
import uuid
import zlib
from typing import Any

import bcrypt as bcrypt_library
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hortus.render.gotemplate.calls import Functions, table
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.functions.conversions import bounded
from hortus.render.gotemplate.functions.encoded import IllegalData, decoded_64
from hortus.render.gotemplate.values import length, wire_bytes, wire_text

_SEED = b"com.lyndir.masterpassword"
_LONGEST_PASSWORD = 72
"""Bytes; bcrypt looks at no more, and Go refuses longer ones."""
_MOST_RANDOM = 1 << 20
_BLOCK = 16
# The Master Password algorithm, version 0 to 3: templates of passwords, and what each letter of one stands for.
_TEMPLATES = {
    "maximum": ["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
    "long": [
        *("CvcvnoCvcvCvcv", "CvcvCvcvnoCvcv", "CvcvCvcvCvcvno", "CvccnoCvcvCvcv", "CvccCvcvnoCvcv"),
        *("CvccCvcvCvcvno", "CvcvnoCvccCvcv", "CvcvCvccnoCvcv", "CvcvCvccCvcvno", "CvcvnoCvcvCvcc"),
        *("CvcvCvcvnoCvcc", "CvcvCvcvCvccno", "CvccnoCvccCvcv", "CvccCvccnoCvcv", "CvccCvccCvcvno"),
        *("CvcvnoCvccCvcc", "CvcvCvccnoCvcc", "CvcvCvccCvccno", "CvccnoCvcvCvcc", "CvccCvcvnoCvcc"),
        "CvccCvcvCvccno",
    ],
    "medium": ["CvcnoCvc", "CvcCvcno"],
    "short": ["Cvcn"],
    "basic": ["aaanaaan", "aannaaan", "aaannaaa"],
    "pin": ["nnnn"],
}
_VOWELS, _CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"
_ALL = _VOWELS.upper() + _VOWELS + _CONSONANTS.upper() + _CONSONANTS
_CLASSES = {
    "V": _VOWELS.upper(),
    "C": _CONSONANTS.upper(),
    "v": _VOWELS,
    "c": _CONSONANTS,
    "A": _VOWELS.upper() + _CONSONANTS.upper(),
    "a": _ALL,
    "n": string.digits,
    "o": "@&%?,=[]_:-+*$#!'^~;()/.",
    "x": _ALL + string.digits + "!@#$%^&*()",
}


def derive_password(counter: int, kind: str, password: str, user: str, site: str) -> str:
    templates = _TEMPLATES.get(kind)
    if templates is None:
        return f"cannot find password template {kind}"
    salt = _SEED + struct.pack(">I", length(user)) + wire_bytes(user)
    key = hashlib.scrypt(wire_bytes(password), salt=salt, n=32768, r=8, p=2, maxmem=1 << 27, dklen=64)
    message = _SEED + struct.pack(">I", length(site)) + wire_bytes(site) + struct.pack(">I", counter & 0xFFFFFFFF)
    seed = hmac.new(key, message, hashlib.sha256).digest()
    template = templates[seed[0] % len(templates)]
    return "".join(_CLASSES[kind][byte % len(_CLASSES[kind])] for kind, byte in zip(template, seed[1:], strict=False))


def bcrypt(password: str) -> str:
    data = wire_bytes(password)
    if len(data) > _LONGEST_PASSWORD:
        return "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes"
    return bcrypt_library.hashpw(data, bcrypt_library.gensalt(10, b"2a")).decode()


def htpasswd(user: str, password: str) -> str:
    return f"invalid username: {user}" if ":" in user else f"{user}:{bcrypt(password)}"


def _key(password: str) -> bytes:
    return wire_bytes(password)[:32].ljust(32, b"\0")


def encrypt_aes(password: str, text: str) -> str:
    """AES-256-CBC with the password itself as the key, padded by PKCS#7, the vector in front."""
    if not text:
        return ""
    data = wire_bytes(text)
    count = _BLOCK - len(data) % _BLOCK
    vector = secrets.token_bytes(_BLOCK)
    encryptor = Cipher(algorithms.AES(_key(password)), modes.CBC(vector)).encryptor()
    return base64.b64encode(vector + encryptor.update(data + bytes([count]) * count) + encryptor.finalize()).decode()


def decrypt_aes(password: str, text: str) -> str:
    if not text:
        return ""
    try:
        data = wire_bytes(decoded_64(text))
    except IllegalData as error:
        raise FunctionError(str(error)) from None
    if len(data) < _BLOCK:
        raise FunctionError(f"runtime error: slice bounds out of range [:{_BLOCK}] with capacity {len(data)}")
    if len(data) % _BLOCK or len(data) == _BLOCK:
        raise FunctionError("crypto/cipher: input not full blocks")
    decryptor = Cipher(algorithms.AES(_key(password)), modes.CBC(data[:_BLOCK])).decryptor()
    plain = decryptor.update(data[_BLOCK:]) + decryptor.finalize()
    if plain[-1] > len(plain):
        raise FunctionError(f"runtime error: slice bounds out of range [:{len(plain) - plain[-1]}]")
    return wire_text(plain[: len(plain) - plain[-1]])


def _random(letters: str, count: int) -> str:
    if count <= 0:
        return ""
    if count > _MOST_RANDOM:
        raise FunctionError(f"more than {_MOST_RANDOM} random characters are not made")
    return "".join(secrets.choice(letters) for _ in range(count))


def _random_bytes(count: int) -> str:
    if count < 0:
        raise FunctionError("runtime error: makeslice: len out of range")
    bounded(count, _MOST_RANDOM)
    return base64.b64encode(secrets.token_bytes(count)).decode()


def _shuffle(text: str) -> str:
    chars = list(text)
    secrets.SystemRandom().shuffle(chars)
    return "".join(chars)


def _digest(name: str) -> Any:
    return lambda text: hashlib.new(name, wire_bytes(text)).hexdigest()


_ASCII = "".join(map(chr, range(32, 127)))

SECRETS: Functions = table(
    ("sha1sum", "string", _digest("sha1")),
    ("sha256sum", "string", _digest("sha256")),
    ("sha512sum", "string", _digest("sha512")),
    ("adler32sum", "string", lambda text: str(zlib.adler32(wire_bytes(text)))),
    ("bcrypt", "string", bcrypt),
    ("htpasswd", "string, string", htpasswd),
    ("derivePassword", "uint32, string, string, string, string", derive_password),
    ("encryptAES", "string, string", encrypt_aes),
    ("decryptAES", "string, string", decrypt_aes),
    ("uuidv4", "", lambda: str(uuid.uuid4())),
    ("shuffle", "string", _shuffle),
    ("randBytes", "int", _random_bytes),
    ("randAlphaNum", "int", lambda count: _random(string.ascii_letters + string.digits, count)),
    ("randAlpha", "int", lambda count: _random(string.ascii_letters, count)),
    ("randNumeric", "int", lambda count: _random(string.digits, count)),
    ("randAscii", "int", lambda count: _random(_ASCII, count)),
)
