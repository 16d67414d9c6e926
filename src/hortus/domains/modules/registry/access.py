"""The registry that holds the modules: address, path and credentials, from flags or from a Secret.

The flags are `oci-registry-host` or `oci-registry-cred-secret`, and `modules-repository-subpath`. The Secret is of type
kubernetes.io/dockerconfigjson with one registry, which is the address too.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import msgspec

from hortus.kube.shapes import decode_json
from hortus.render.oci import BadCredentials, BadReference, CredentialStore, parse_reference


class _DockerConfig(msgspec.Struct, frozen=True):
    auths: dict[str, msgspec.Raw] = {}


_SCHEME = re.compile(r"(https?)://")


class BadRegistryAccess(ValueError):
    """An address or Secret by which no registry can be reached; the message holds no credential."""


class RegistryAccess(msgspec.Struct, frozen=True, kw_only=True):
    """One registry, with the path below which its modules lie."""

    host: str
    """Host, and perhaps a port."""
    path: str = ""
    """Without slashes at its ends; empty for the registry's root."""
    insecure: bool = False
    """Plain http, because the address said so."""
    docker_config: bytes = b""
    """A docker config.json with the credentials, empty for none."""

    @property
    def repository(self) -> str:
        """The `repo` of install sources: host and path, without a scheme."""
        return f"{self.host}/{self.path}" if self.path else self.host

    def credentials(self) -> CredentialStore:
        """Raises BadCredentials."""
        return CredentialStore.from_docker_config(self.docker_config) if self.docker_config else CredentialStore()

    def __repr__(self) -> str:
        return f"RegistryAccess({self.repository!r})"


ReadAccess = Callable[[], Awaitable[RegistryAccess]]
"""Returns the access as it is now. Raises StepError."""


def fixed(access: RegistryAccess) -> ReadAccess:
    """The same access at each call."""

    async def read() -> RegistryAccess:
        return access

    return read


def access_from_host(address: str, *, subpath: str = "", docker_config: bytes = b"") -> RegistryAccess:
    """The registry at `[http://]host[:port][/path]`. Raises BadRegistryAccess."""
    found = _SCHEME.match(address)
    rest = (address[found.end() :] if found else address).strip("/")
    host, _, path = rest.partition("/")
    path = "/".join(part for part in (path, subpath.strip("/")) if part)
    access = RegistryAccess(
        host=host, path=path, insecure=bool(found and found[1] == "http"), docker_config=docker_config
    )
    try:
        parse_reference(f"{access.repository}/component-descriptors")
    except BadReference as error:
        raise BadRegistryAccess(f"the registry {address[:200]!r} cannot be used: {error}") from None
    return access


def access_from_docker_config(document: bytes, *, subpath: str = "") -> RegistryAccess:
    """The one registry of a docker config.json, with its credentials. Raises BadRegistryAccess."""
    try:
        CredentialStore.from_docker_config(document)
    except BadCredentials as error:
        raise BadRegistryAccess(str(error)) from None
    auths = decode_json(document, _DockerConfig).auths
    if len(auths) != 1:
        raise BadRegistryAccess(f"auths: has {len(auths)} registries; exactly one is needed, that of the modules")
    return access_from_host(next(iter(auths)), subpath=subpath, docker_config=document)
