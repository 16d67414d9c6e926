"""Credentials of registries: Secrets that a configuration of caches refers to, and the rules for them."""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec

from hortus.domains.garden.extension.context import ExtensionContext
from hortus.domains.garden.extension.references import referenced
from hortus.domains.garden.registrycache.config import RegistryCache
from hortus.domains.garden.registrycache.names import SECRETS
from hortus.domains.garden.registrycache.objects import CacheCredentials
from hortus.engine import NEVER, Actor, StepError
from hortus.kube.errors import NotFound
from hortus.kube.shapes import decode_json

PATH: Final = "spec.providerConfig"


class _Body(msgspec.Struct):
    data: dict[str, str] = {}
    immutable: bool = False


_ACCOUNT_FIELDS: Final = frozenset(
    {
        *("type", "project_id", "client_email", "universe_domain", "auth_uri", "auth_provider_x509_cert_url"),
        *("client_x509_cert_url", "client_id", "private_key_id", "private_key", "token_uri"),
    }
)
"""Fields of a service account of Google; others could name a program or a file."""
_ACCOUNT_USER: Final = "_json_key"


async def cache_credentials(context: ExtensionContext, index: int, cache: RegistryCache) -> CacheCredentials | None:
    """The user of a registry; None for none. Raises StepError, KubeError."""
    if not cache.secret:
        return None
    path = f"{PATH}.caches[{index}].secretReferenceName"
    copy = referenced(context.shoot, cache.secret, kind="Secret", path=path)
    assert isinstance(copy, str), "the configuration was judged before"
    try:
        found = msgspec.convert(await context.seed.get(SECRETS, copy, context.namespace), _Body)
    except NotFound:
        problem = f"{path}: Secret {context.namespace}/{copy} does not exist: gardenlet copies it from the garden"
        raise StepError(problem, reason="CredentialsMissing", actor=Actor.PROVIDER) from None
    problem = ""
    user = password = ""
    try:
        user, password = (base64.b64decode(found.data.get(key, ""), validate=True).decode() for key in _KEYS)
    except (binascii.Error, ValueError):
        problem = "cannot be read"
    problem = problem or _problem(found, user, password)
    if problem:
        text = f"{path}: Secret {cache.secret} {problem}"
        raise StepError(text, reason="CredentialsInvalid", actor=Actor.USER, after=NEVER)
    return CacheCredentials(user, password)


_KEYS: Final = ("username", "password")


def _problem(secret: _Body, user: str, password: str) -> str:
    """The reason for which a Secret cannot be used; empty where it can. It shows no value."""
    if not secret.immutable or secret.data.keys() != set(_KEYS):
        return "must be immutable and have username and password alone"
    if not user or any(map(str.isspace, user)) or not password.strip():
        return "has an empty username or password, or spaces in the username"
    if user != _ACCOUNT_USER:
        return ""
    try:
        fields = decode_json(password, dict[str, str])
    except msgspec.MsgspecError:
        return f"has no service account in JSON as the password of {_ACCOUNT_USER}"
    strange = sorted(fields.keys() - _ACCOUNT_FIELDS)
    return f"has a service account with the fields {', '.join(strange)}, which it may not have" if strange else ""
