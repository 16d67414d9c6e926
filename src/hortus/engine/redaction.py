"""Removal of secrets from texts: tokens, passwords, private keys, kubeconfigs.

By name: a value under a key such as `token` or `data` is replaced whole. By shape: inside any text a bearer token, a
JWT, a private key, a password in a URL, a `token: ...` pair is cut out. The shapes catch what arrives in foreign error
messages; they are the second line, after not putting secrets there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hortus.kube import Secret

HIDDEN = "[redacted]"

HIDDEN_KEYS = frozenset(
    {
        "authorization",
        "client-certificate-data",
        "client-secret",
        "clientsecret",
        "credentials",
        "data",
        "kubeconfig",
        "private_key",
        "privatekey",
        "stringdata",
    }
)
"""Compared in lower case. `secret` is not among them: that is how one names the Secret a line is about."""

_HIDDEN_ENDINGS = ("token", "password", "passwd", "client_secret", "secret_key", "_kubeconfig", "key-data")

_DEPTH = 6
"""Levels of a structure that are looked into; what is deeper is replaced."""

_LONGEST = 16_384
"""Characters of one text that are shown; foreign errors may hold a whole answer."""

_HINT = re.compile(r"eyJ|LS0tLS1CRUdJTi|bearer|basic|PRIVATE|://|token|passw|secret|key-data|authoriz", re.IGNORECASE)
"""A pattern that every shape below contains: most log lines cost one search and no more."""

_SHAPES = re.compile(
    r"""
      (?P<pem>-----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z))
    | (?P<base64pem>LS0tLS1CRUdJTi[A-Za-z0-9+/=]+)
    | (?P<jwt>(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*)?)
    | (?P<scheme>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{6,}
    | (?P<url>://)[^/\s:@]*:[^/\s@]+@
    | (?P<pair>["']?[\w-]{0,40}
        (?:token|password|passwd|client[_-]?secret|secret[_-]?key|client-key-data|authorization)["']?\s{0,3}[:=]\s{0,3})
      (?:"[^"]*"|'[^']*'|(?:(?:bearer|basic)\s+)?[^\s,;&"'{}\[\]]{4,})
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


def redact_text(text: str) -> str:
    """`text` with everything that looks like a credential cut out; a very long one is cut short first."""
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}... ({len(text) - _LONGEST} more characters)"
    return _SHAPES.sub(_replacement, text) if _HINT.search(text) else text


def redact(value: object, *, depth: int = _DEPTH) -> object:
    """A copy of a log value without credentials, by key and by shape; what is neither text nor structure stays."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, bytes | bytearray | Secret):
        return HIDDEN
    if isinstance(value, Mapping):
        if depth == 0:
            return HIDDEN
        return {
            key: HIDDEN if is_hidden_key(key) and inner is not None else redact(inner, depth=depth - 1)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(inner, depth=depth - 1) for inner in value] if depth else HIDDEN
    if isinstance(value, BaseException):
        return redact_text(str(value))
    return value


def is_hidden_key(key: object) -> bool:
    """True when the value under `key` is not shown."""
    lowered = str(key).lower()
    return lowered in HIDDEN_KEYS or lowered.endswith(_HIDDEN_ENDINGS)


def _replacement(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind == "url":
        return f"://{HIDDEN}@"
    return f"{match.group(kind)}{HIDDEN}" if kind in ("scheme", "pair") else HIDDEN
