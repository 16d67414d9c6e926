"""The configuration of registry mirrors, as gardener-extension-registry-cache has it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.domains.garden.extension.fields import FieldReader
from hortus.domains.garden.extension.topic import ExtensionFacts
from hortus.engine.rbac import Permission
from hortus.schema import FieldError
from hortus.schema.problems import duplicate, not_supported, required

FACTS: Final = ExtensionFacts(type="registry-mirror", webhooks=True)
PERMISSIONS: Final = (Permission("", ("secrets",), ("get",), "reads the authorities of mirrors"),)
API_VERSION: Final = "mirror.extensions.gardener.cloud/v1alpha1"
KIND: Final = "MirrorConfig"
CAPABILITIES: Final = ("pull", "resolve")


class MirrorHost(msgspec.Struct, frozen=True, kw_only=True):
    """One mirror of a registry."""

    url: str
    capabilities: tuple[str, ...] = CAPABILITIES[:1]
    bundle: str = ""
    """Name in spec.resources of the Secret with its authorities."""
    override_path: bool = False


class MirroredRegistry(msgspec.Struct, frozen=True, kw_only=True):
    """One registry with its mirrors, in their order."""

    upstream: str
    hosts: tuple[MirrorHost, ...] = ()

    @property
    def server(self) -> str:
        """The address of the registry itself."""
        return f"https://{'registry-1.docker.io' if self.upstream == 'docker.io' else self.upstream}"


class ReadMirrors(msgspec.Struct, frozen=True):
    """A configuration as far as it can be read, and the problems with it."""

    registries: tuple[MirroredRegistry, ...] = ()
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


class _WrittenConfig(msgspec.Struct, rename="camel"):
    api_version: Any = None
    kind: Any = None
    mirrors: Any = None


class _WrittenMirror(msgspec.Struct):
    upstream: Any = None
    hosts: Any = None


class _WrittenHost(msgspec.Struct, rename="camel"):
    host: Any = None
    capabilities: Any = None
    ca_bundle_secret_reference_name: Any = None
    override_path: Any = None


def read_mirrors(config: Any, path: str) -> ReadMirrors:
    """Read and clean a configuration at `path`."""
    reader = _Reader()
    written = reader.registry_config(config, _WrittenConfig, path, api_version=API_VERSION, name=KIND)
    items = reader.items(written.mirrors, f"{path}.mirrors")
    if not items and not reader.errors:
        reader.errors.append(required(f"{path}.mirrors", "give at least one mirror"))
    found: list[MirroredRegistry] = []
    for index, one in enumerate(items):
        made, place = reader.mirror(one, f"{path}.mirrors[{index}]"), f"{path}.mirrors[{index}].upstream"
        if made.upstream and made.upstream in (other.upstream for other in found):
            reader.errors.append(duplicate(place, made.upstream))
        found.append(made)
    return ReadMirrors(tuple(found), tuple(reader.errors), tuple(reader.warnings))


class _Reader(FieldReader):
    def mirror(self, value: Any, path: str) -> MirroredRegistry:
        written = self.struct(value, _WrittenMirror, path)
        if not isinstance(value, Mapping):
            return MirroredRegistry(upstream="")
        hosts: list[MirrorHost] = []
        items = self.items(written.hosts, f"{path}.hosts")
        if not items:
            self.errors.append(required(f"{path}.hosts", "give at least one host"))
        for index, one in enumerate(items):
            made = self._host(one, f"{path}.hosts[{index}]")
            if made.url and made.url in (other.url for other in hosts):
                self.errors.append(duplicate(f"{path}.hosts[{index}].host", made.url))
            hosts.append(made)
        return MirroredRegistry(upstream=self.upstream(written.upstream, f"{path}.upstream"), hosts=tuple(hosts))

    def _host(self, value: Any, path: str) -> MirrorHost:
        written = self.struct(value, _WrittenHost, path)
        if isinstance(value, Mapping) and written.host is None:
            self.errors.append(required(f"{path}.host", "give the address of the mirror"))
        return MirrorHost(
            url=self.registry_address(written.host, f"{path}.host"),
            capabilities=self._capabilities(written.capabilities, f"{path}.capabilities"),
            bundle=self.text(written.ca_bundle_secret_reference_name, f"{path}.caBundleSecretReferenceName"),
            override_path=self.flag(written.override_path, f"{path}.overridePath", default=False),
        )

    def _capabilities(self, value: Any, path: str) -> tuple[str, ...]:
        found: list[str] = []
        for index, one in enumerate(self.items(value, path)):
            if one not in CAPABILITIES:
                self.errors.append(not_supported(f"{path}[{index}]", one, CAPABILITIES))
            elif one in found:
                self.errors.append(duplicate(f"{path}[{index}]", one))
            else:
                found.append(one)
        return tuple(found) or CAPABILITIES[:1]
