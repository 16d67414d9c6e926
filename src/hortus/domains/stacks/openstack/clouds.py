"""clouds.yaml in a Secret: one cloud, with everything that authentication needs. Pure.

Format: https://docs.openstack.org/os-client-config/latest/user/configuration.html. The Secret has the keys of
SovereignCloudStack/cluster-stack-provider-openstack: clouds.yaml, cloudName (a YAML text, `openstack` without it) and
cacert (PEM). `cacert` within clouds.yaml names a file of its author's machine and is not used.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar

import msgspec
from yarl import URL

from hortus.domains.stacks.openstack.errors import BadCloud
from hortus.kube import Secret
from hortus.kube.objects import Object, shaped
from hortus.kube.shapes import problem_of
from hortus.kube.yaml import TextLimits, YamlError, load

_T = TypeVar("_T")
CLOUDS: Final = "clouds.yaml"
CLOUD_NAME: Final = "cloudName"
CA: Final = "cacert"
_DEFAULT_CLOUD: Final = "openstack"
_LIMITS: Final = TextLimits(bytes=1 << 20, depth=20, nodes=10_000)


class AuthMethod(StrEnum):
    """The ways of authentication."""

    PASSWORD = "password"  # noqa: S105 - a word of the API
    APPLICATION = "application_credential"
    TOKEN = "token"  # noqa: S105


_TYPES: Final[Mapping[str, AuthMethod]] = {
    "": AuthMethod.PASSWORD,
    "password": AuthMethod.PASSWORD,
    "v3password": AuthMethod.PASSWORD,
    "v3applicationcredential": AuthMethod.APPLICATION,
    "token": AuthMethod.TOKEN,
    "v3token": AuthMethod.TOKEN,
}


class _Auth(msgspec.Struct):
    auth_url: str = ""
    username: str = ""
    user_id: str = ""
    password: str | int = ""
    token: str = ""
    application_credential_id: str = ""
    application_credential_name: str = ""
    application_credential_secret: str = ""
    project_name: str = ""
    project_id: str = ""
    tenant_name: str = ""
    tenant_id: str = ""
    domain_name: str = ""
    domain_id: str = ""
    user_domain_name: str = ""
    user_domain_id: str = ""
    project_domain_name: str = ""
    project_domain_id: str = ""
    default_domain: str = ""
    system_scope: str = ""


class _CloudEntry(msgspec.Struct):
    auth: _Auth = msgspec.field(default_factory=_Auth)
    auth_type: str = ""
    region_name: str = ""
    interface: str = ""
    endpoint_type: str = ""
    verify: bool = True
    image_endpoint_override: str = ""


class _Clouds(msgspec.Struct):
    clouds: dict[str, Any] = {}


class _SecretObject(msgspec.Struct):
    data: dict[str, str] = {}


class KeystoneDomain(msgspec.Struct, frozen=True):
    """A domain, by ID or by name."""

    id: str = ""
    name: str = ""


class CloudAccess(msgspec.Struct, frozen=True, kw_only=True):
    """One cloud: addresses and credentials."""

    name: str
    auth_url: URL
    method: AuthMethod
    user_id: str = ""
    username: str = ""
    user_domain: KeystoneDomain = KeystoneDomain()
    application_id: str = ""
    application_name: str = ""
    secret: Secret
    """The password, the secret of the application credential, or the token."""
    project_id: str = ""
    project_name: str = ""
    project_domain: KeystoneDomain = KeystoneDomain()
    region: str = ""
    interface: str = "public"
    image_endpoint: str = ""
    """The address of Glance where it is not taken from the catalog."""
    verify: bool = True
    ca: bytes = b""

    def __repr__(self) -> str:
        return f"CloudAccess({self.name!r}, {str(self.auth_url)!r})"


def read_cloud(secret: Object, place: str) -> CloudAccess:
    """The cloud that a Secret names; `place` names the Secret in messages. Raises BadCloud."""
    found = shaped(secret, _SecretObject)
    data = found.data if found is not None else {}
    document = _document(_value(data, CLOUDS, place), f"{place}, {CLOUDS}")
    clouds = _converted(document, _Clouds, f"{place}, {CLOUDS}").clouds
    name = _DEFAULT_CLOUD
    if CLOUD_NAME in data:
        name = str(_document(_value(data, CLOUD_NAME, place), f"{place}, {CLOUD_NAME}") or "")
    where = f"{place}, {CLOUDS}: clouds.{name[:80]}"
    if name not in clouds:
        known = ", ".join(sorted(clouds)[:10]) or "none"
        raise BadCloud(f"{where}: there is no such cloud; there are: {known[:300]}; correct {CLOUD_NAME}")
    entry = _converted(clouds[name], _CloudEntry, where)
    ca = _value(data, CA, place) if data.get(CA) else b""
    return _access(name, entry, where, ca)


def _access(name: str, entry: _CloudEntry, where: str, ca: bytes) -> CloudAccess:
    auth = entry.auth
    method = _method(entry, where)
    default = KeystoneDomain(name=auth.domain_name or auth.default_domain, id=auth.domain_id)
    access = CloudAccess(
        name=name,
        auth_url=_url(auth.auth_url, where),
        method=method,
        user_id=auth.user_id,
        username=auth.username,
        user_domain=_domain(auth.user_domain_id, auth.user_domain_name, default),
        application_id=auth.application_credential_id,
        application_name=auth.application_credential_name,
        secret=Secret(_credential(auth, method)),
        project_id=auth.project_id or auth.tenant_id,
        project_name=auth.project_name or auth.tenant_name,
        project_domain=_domain(auth.project_domain_id, auth.project_domain_name, default),
        region=entry.region_name,
        interface=(entry.interface or entry.endpoint_type or "public").removesuffix("URL"),
        image_endpoint=entry.image_endpoint_override,
        verify=entry.verify,
        ca=ca,
    )
    if problem := _problem(access):
        raise BadCloud(f"{where}.auth: {problem}")
    return access


def _problem(access: CloudAccess) -> str:
    named = bool(access.username) and access.user_domain != KeystoneDomain()
    if access.method is AuthMethod.APPLICATION:
        if not access.application_id and not (access.application_name and (access.user_id or named)):
            return "application_credential_id is missing; give it, or the credential's name with its user and domain"
        return "" if access.secret else "application_credential_secret is missing; give it"
    if not access.secret:
        return f"{access.method.value} is missing; give it"
    if access.method is AuthMethod.PASSWORD and not access.user_id and not named:
        return "the user is missing; give username with user_domain_name, or user_id"
    if access.project_name and access.project_domain == KeystoneDomain():
        return f"project_domain_name is missing; the project {access.project_name[:80]!r} is known by a name"
    return ""


def _method(entry: _CloudEntry, where: str) -> AuthMethod:
    if not entry.auth_type and (entry.auth.application_credential_id or entry.auth.application_credential_name):
        return AuthMethod.APPLICATION
    if not entry.auth_type and entry.auth.token and not entry.auth.password:
        return AuthMethod.TOKEN
    if entry.auth_type not in _TYPES:
        known = ", ".join(sorted(filter(None, _TYPES)))
        raise BadCloud(f"{where}.auth_type: is {entry.auth_type[:80]!r}; use one of {known}")
    return _TYPES[entry.auth_type]


def _credential(auth: _Auth, method: AuthMethod) -> str:
    if method is AuthMethod.APPLICATION:
        return auth.application_credential_secret
    return auth.token if method is AuthMethod.TOKEN else str(auth.password)


def _domain(id: str, name: str, default: KeystoneDomain) -> KeystoneDomain:
    return KeystoneDomain(id=id, name="" if id else name) if id or name else default


def _url(text: str, where: str) -> URL:
    try:
        found = URL(text)
    except ValueError:
        found = URL()
    if found.scheme not in ("http", "https") or not found.host:
        raise BadCloud(f"{where}.auth.auth_url: is no http or https address; write https://keystone.example.com/v3")
    if found.user or found.password:
        raise BadCloud(f"{where}.auth.auth_url: holds a user or password; write them as username and password")
    return found.with_query(None).with_fragment(None)


def _value(data: Mapping[str, str], key: str, place: str) -> bytes:
    if key not in data:
        raise BadCloud(f"{place}: has no key {key}; add it")
    try:
        return base64.b64decode(data[key], validate=True)
    except ValueError:
        raise BadCloud(f"{place}: the value of {key} is not base64; write the Secret again") from None


def _document(data: bytes, place: str) -> Any:
    try:
        return load(data, limits=_LIMITS)
    except YamlError as error:
        # Only the line: a parser's message may quote what is written there.
        at = f"line {error.line}" if error.line else "the document"
        raise BadCloud(f"{place}: {at} is no YAML; correct it") from None


def _converted(document: Any, kind: type[_T], place: str) -> _T:
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise BadCloud(problem_of(error, place=place)) from None
