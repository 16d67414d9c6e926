"""Bootstrap tokens: the credential by which a new gardenlet asks the garden for its own. Pure, but for the draw.

Kubernetes documentation, "Authenticating with Bootstrap Tokens"; the identifier follows from the Gardenlet's name.
"""

from __future__ import annotations

import base64
import re
import secrets
import string
from collections.abc import Mapping
from hashlib import sha256
from typing import Final, NamedTuple

from hortus.domains.garden.kinds.gardenlet import GARDENLETS
from hortus.kube import Secret
from hortus.kube.objects import Object, Resource, format_time, parse_time

SECRETS: Final = Resource("", "v1", "secrets", "Secret")
TOKEN_NAMESPACE: Final = "kube-system"  # noqa: S105 - a namespace
TOKEN_TYPE: Final = "bootstrap.kubernetes.io/token"  # noqa: S105 - a type of Secrets
VALIDITY: Final = 24 * 3600.0
"""Seconds that a token lives."""
_ALPHABET: Final = string.digits + string.ascii_lowercase
_SECRET: Final = re.compile("[0-9a-z]{16}")


class BootstrapToken(NamedTuple):
    """A token and its end."""

    identifier: str
    secret: Secret
    expires: float
    """Seconds since the epoch."""

    @property
    def bearer(self) -> Secret:
        """The token as it is sent."""
        return Secret(f"{self.identifier}.{self.secret.reveal()}")


def token_id(namespace: str, name: str) -> str:
    """The identifier of the token of a Gardenlet: six digits."""
    return sha256(f"{namespace}--{name}".encode()).hexdigest()[:6]


def token_name(identifier: str) -> str:
    """The name of the Secret of a token."""
    return f"bootstrap-token-{identifier}"


def next_token(namespace: str, name: str, found: Mapping[str, str] | None, now: float) -> BootstrapToken:
    """The token of a Gardenlet: that of `found`, the data of its Secret in base64, while it lives; else one that lives
    from now on, with the same secret where that is well formed."""
    identifier, values = token_id(namespace, name), {key: _plain(value) for key, value in (found or {}).items()}
    kept = values.get("token-secret", "")
    secret = Secret(kept if _SECRET.fullmatch(kept) else "".join(secrets.choice(_ALPHABET) for _ in range(16)))
    end = _time(values.get("expiration", ""))
    return BootstrapToken(identifier, secret, end if secret.reveal() == kept and end > now else now + VALIDITY)


def is_token_of(namespace: str, name: str, found: Mapping[str, str] | None) -> bool:
    """Reports whether a token, by the data of its Secret in base64, was made for a Gardenlet, as its description says.

    An identifier has six digits, so that the author of a Gardenlet may choose a name whose identifier is another's.
    """
    values = {key: _plain(value) for key, value in (found or {}).items()}
    words = values.get("description", "").split()
    return any(word.strip("\"'.,") == f"{namespace}/{name}" for word in words)


def token_secret(token: BootstrapToken, namespace: str, name: str) -> Object:
    """The Secret of a token, as the garden's API server reads it."""
    data = {
        "token-id": token.identifier,
        "token-secret": token.secret.reveal(),
        "expiration": format_time(token.expires),
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "description": f"Bootstrap token of {GARDENLETS.kind} {namespace}/{name}",
    }
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {"name": token_name(token.identifier), "namespace": TOKEN_NAMESPACE},
        "type": TOKEN_TYPE,
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


def _plain(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except ValueError:
        return ""


def _time(text: str) -> float:
    try:
        return parse_time(text)
    except ValueError:
        return 0.0
