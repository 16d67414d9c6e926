"""Credentials of backends, and outputs of fluent-bit: Secrets and ConfigMaps that a configuration refers to.

The values that a buffer needs are copied into Secrets of the extension, one for each backend, so that a Secret of the
operator, which lies in another namespace, serves like one of the Shoot's project.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.domains.garden.audit.fluentbit import OutputError, read_output
from hortus.domains.garden.audit.names import CONFIG_MAPS, SECRETS
from hortus.domains.garden.audit.plan import CUSTOM, CustomBackend
from hortus.domains.garden.audit.settings import AuditChoices
from hortus.domains.garden.extension.context import ExtensionContext
from hortus.domains.garden.extension.references import referenced
from hortus.engine import NEVER, Actor, StepError
from hortus.kube.errors import NotFound
from hortus.kube.objects import ObjectKey

OUTPUT_KEY: Final = "fluent-bit-output.conf"
_PATH: Final = "spec.providerConfig.backends"


class SecretKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of a backend's Secret."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    copied: Mapping[str, str] = {}
    """Keys of the copy, for those that have another one there."""
    variables: Mapping[str, str] = {}
    """Variables of fluent-bit, with the keys of the copy that hold them."""
    files: tuple[str, ...] = ("ca.crt",)
    """Keys of the copy that fluent-bit reads as files."""


KEYS: Final[Mapping[str, SecretKeys]] = {
    "splunk": SecretKeys(
        required=("token",),
        optional=("ca",),
        copied={"token": "splunk_hec_token", "ca": "ca.crt"},
        variables={"SPLUNK_HEC_TOKEN": "splunk_hec_token"},
    ),
    "s3": SecretKeys(
        required=("access_key_id", "secret_access_key"),
        variables={"AWS_ACCESS_KEY_ID": "access_key_id", "AWS_SECRET_ACCESS_KEY": "secret_access_key"},
    ),
    CUSTOM: SecretKeys(optional=("ca.crt", "tls.key", "tls.crt"), files=("ca.crt", "tls.key", "tls.crt")),
    "http": SecretKeys(
        optional=("authorization", "ca"),
        copied={"ca": "ca.crt"},
        variables={"AUDIT_HTTP_AUTHORIZATION": "authorization"},
    ),
    "loki": SecretKeys(
        optional=("username", "password", "ca"),
        copied={"ca": "ca.crt"},
        variables={"AUDIT_LOKI_USERNAME": "username", "AUDIT_LOKI_PASSWORD": "password"},
    ),
    "elasticsearch": SecretKeys(
        optional=("username", "password", "api_key", "ca"),
        copied={"ca": "ca.crt"},
        variables={
            "AUDIT_ELASTICSEARCH_USERNAME": "username",
            "AUDIT_ELASTICSEARCH_PASSWORD": "password",
            "AUDIT_ELASTICSEARCH_API_KEY": "api_key",
        },
    ),
    "kafka": SecretKeys(
        optional=("username", "password", "ca"),
        copied={"ca": "ca.crt"},
        variables={"AUDIT_KAFKA_USERNAME": "username", "AUDIT_KAFKA_PASSWORD": "password"},
    ),
}
_TOGETHER: Final = ("username", "password")
_TEXTS: Final = ("ca", "ca.crt", "tls.key", "tls.crt")
"""Keys whose values are kept as they are; spaces around another one would break a header."""


class _Body(msgspec.Struct):
    data: dict[str, Any] = {}


class MissingDefault(Exception):
    """A Secret of the operator's default backend cannot be used; the message names it."""


async def credentials(
    context: ExtensionContext, name: str, backend: Any, *, of_operator: bool, settings: AuditChoices
) -> dict[str, str]:
    """The data of the Secret of one backend; empty where it has none. Raises StepError, MissingDefault, KubeError."""
    if name not in KEYS or not backend.secret:
        return {}
    path = f"{_PATH}.{_field(name)}.secretResourceName"
    if of_operator:
        key = ObjectKey(settings.secrets_namespace, f"{settings.secrets_prefix}{backend.secret}")
    else:
        copy = referenced(context.shoot, backend.secret, kind="Secret", path=path)
        assert isinstance(copy, str), "the configuration was judged before"
        key = ObjectKey(context.namespace, copy)
    try:
        found = msgspec.convert(await context.seed.get(SECRETS, key.name, key.namespace), _Body).data
    except NotFound:
        problem = f"Secret {key.namespace}/{key.name} does not exist"
        if of_operator:
            raise MissingDefault(f"{name}: {problem}") from None
        problem = f"{path}: {problem}: gardenlet copies it from the garden"
        raise StepError(problem, reason="SecretMissing", actor=Actor.PROVIDER) from None
    try:
        return _copied(found, KEYS[name])
    except _KeyProblem as error:
        if of_operator:
            raise MissingDefault(f"{name}: Secret {key.namespace}/{key.name} {error}") from None
        problem = f"{path}: Secret {backend.secret} {error}"
        raise StepError(problem, reason="SecretInvalid", actor=Actor.USER, after=NEVER) from None


async def custom_output(context: ExtensionContext, backend: CustomBackend) -> dict[str, str]:
    """The output of fluent-bit that the owner of the Shoot wrote. Raises StepError, KubeError."""
    path = f"{_PATH}.customForwarding.configMapResourceName"
    copy = referenced(context.shoot, backend.config_map, kind="ConfigMap", path=path)
    assert isinstance(copy, str), "the configuration was judged before"
    try:
        found = msgspec.convert(await context.seed.get(CONFIG_MAPS, copy, context.namespace), _Body).data
    except NotFound:
        problem = f"{path}: ConfigMap {context.namespace}/{copy} does not exist: gardenlet copies it from the garden"
        raise StepError(problem, reason="OutputMissing", actor=Actor.PROVIDER) from None
    try:
        if OUTPUT_KEY not in found:
            raise OutputError(f"it has no key {OUTPUT_KEY}")
        return read_output(str(found[OUTPUT_KEY]))
    except OutputError as error:
        problem = f"{path}: ConfigMap {backend.config_map}: {error}"
        raise StepError(problem, reason="OutputInvalid", actor=Actor.USER, after=NEVER) from None


class _KeyProblem(ValueError):
    pass


def _copied(found: Mapping[str, Any], keys: SecretKeys) -> dict[str, str]:
    """Raises _KeyProblem."""
    values = {key: _decoded(found[key], key) for key in (*keys.required, *keys.optional) if key in found}
    missing = [key for key in keys.required if not values.get(key)]
    if missing:
        raise _KeyProblem(f"has no {' and no '.join(missing)}")
    if any(key in values for key in _TOGETHER) and not all(values.get(key) for key in _TOGETHER):
        raise _KeyProblem("must have username and password, or neither")
    if "username" in values and "api_key" in values:
        raise _KeyProblem("must have username and password, or api_key, not both")
    if not values:
        raise _KeyProblem(f"has none of {', '.join(keys.optional)}")
    made = {keys.copied.get(key, key): value for key, value in values.items()}
    return {key: base64.b64encode(value).decode() for key, value in made.items()}


def _decoded(value: Any, key: str) -> bytes:
    try:
        found = base64.b64decode(str(value), validate=True)
    except ValueError:
        raise _KeyProblem(f"has a {key} that cannot be read") from None
    return found if key in _TEXTS else found.strip()


def with_header(name: str, data: dict[str, str]) -> dict[str, str]:
    """The data with the header that our receiver sends, where a backend has a user and a password."""
    if name != "loki" or "username" not in data:
        return data
    user, password = (base64.b64decode(data[key]) for key in _TOGETHER)
    header = b"Basic " + base64.b64encode(user + b":" + password)
    return {**data, "authorization": base64.b64encode(header).decode()}


def _field(name: str) -> str:
    """The name of a backend in a configuration."""
    head, *tail = name.split("-")
    return head + "".join(map(str.capitalize, tail))
