"""The configuration of Flux in one Shoot: read, filled in and judged. Pure.

It is that of the Go extension, with two fields more. `syncMode: Once` has Flux installed once and left to itself, as
the Go extension does; `Always` (default) keeps it as configured. `suspend` pauses the source and the Kustomization.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from hortus.domains.garden.extension.references import referenced
from hortus.domains.garden.flux.defaulting import defaulted
from hortus.domains.garden.flux.names import (
    CONFIG_KIND,
    CONFIG_VERSION,
    DEFAULT_COMPONENTS,
    KNOWN_COMPONENTS,
    REQUIRED_COMPONENTS,
)
from hortus.domains.garden.flux.templates import TemplateReader
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.kube.naming import dns_label, dns_subdomain
from hortus.kube.objects import Object
from hortus.schema import FieldError
from hortus.schema.problems import duplicate, invalid, not_supported, required, type_invalid

_Part = TypeVar("_Part", bound=msgspec.Struct)

ALWAYS: Final = "Always"
ONCE: Final = "Once"
_VERSION: Final = re.compile(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_REGISTRY: Final = re.compile(r"[a-zA-Z0-9.-]+(:\d+)?(/[a-z0-9._/-]*[a-z0-9])?")


class SecretCopy(msgspec.Struct, frozen=True):
    """A Secret that is copied into the Shoot."""

    origin: str
    """Name of the Secret in the seed."""
    target: str
    """Name of the copy in the Shoot."""
    namespace: str
    """Namespace of the copy."""


class FluxPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Flux as one Shoot is to have it."""

    version: str = ""
    registry: str = ""
    namespace: str = ""
    components: tuple[str, ...] = DEFAULT_COMPONENTS
    source: Object | None = None
    """GitRepository or OCIRepository."""
    kustomization: Object | None = None
    secrets: tuple[SecretCopy, ...] = ()
    keeps: bool = True
    """False where Flux is left to itself once it was installed."""
    suspended: bool = False


class ReadFlux(msgspec.Struct, frozen=True):
    """A configuration as far as it can be read, and the problems with it."""

    plan: FluxPlan
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


class _Flux(msgspec.Struct, rename="camel"):
    """Flux itself, of any shape."""

    version: Any = None
    registry: Any = None
    namespace: Any = None
    components: Any = None
    components_extra: Any = None


class _Source(msgspec.Struct, rename="camel"):
    template: Any = None
    secret_resource_name: Any = None


class _Kustomization(msgspec.Struct):
    template: Any = None


class _Additional(msgspec.Struct, rename="camel"):
    name: Any = None
    target_name: Any = None


class _Config(msgspec.Struct, rename="camel"):
    """A configuration of any shape."""

    api_version: Any = None
    kind: Any = None
    flux: Any = None
    source: Any = None
    kustomization: Any = None
    additional_secret_resources: Any = None
    sync_mode: Any = None
    suspend: Any = None


def read_flux(config: Any, path: str, shoot: GardenShoot) -> ReadFlux:
    """Read, fill in and judge the configuration at `path` of a Shoot; none at all installs Flux alone."""
    if config is None:
        config = {"apiVersion": CONFIG_VERSION, "kind": CONFIG_KIND}
    if not isinstance(config, Mapping):
        return ReadFlux(FluxPlan(), (type_invalid(path, config, "must be an object"),))
    reader = _Reader(path, shoot)
    plan = reader.plan(msgspec.convert(defaulted(dict(config)), _Config))
    reader.unknown(config, path, _Config)
    return ReadFlux(plan, tuple(reader.errors), tuple(reader.warnings))


class _Reader:
    def __init__(self, path: str, shoot: GardenShoot) -> None:
        self._path = path
        self._shoot = shoot
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []

    def plan(self, written: _Config) -> FluxPlan:
        self._type(written)
        flux = self._part(written.flux, "flux", _Flux)
        source = self._part(written.source, "source", _Source)
        kustomization = self._part(written.kustomization, "kustomization", _Kustomization)
        self._together(written)
        templates = TemplateReader(self._path, self.errors, self.warnings)
        made = templates.source(source) if source is not None else None
        sync = templates.kustomization(kustomization, made) if kustomization is not None else None
        suspended = self._flag(written.suspend, "suspend")
        return FluxPlan(
            version=self._matching(flux, "version", _VERSION, "must be the version of a release, such as v2.9.2"),
            registry=self._matching(flux, "registry", _REGISTRY, "must be a host with a path, without a scheme"),
            namespace=self._namespace(flux),
            components=self._components(flux),
            source=_suspended(made, suspended=suspended),
            kustomization=_suspended(sync, suspended=suspended),
            secrets=self._secrets(flux, source, made, written.additional_secret_resources),
            keeps=self._sync_mode(written.sync_mode) == ALWAYS,
            suspended=suspended,
        )

    def unknown(self, value: Mapping[str, Any], path: str, struct: type[msgspec.Struct]) -> None:
        """Warn of fields that do not count: a typing error in one must not pass unseen."""
        known = {field.encode_name for field in msgspec.structs.fields(struct)}
        self.warnings += [f"{path}.{name}: unknown field" for name in value if name not in known]

    def _type(self, written: _Config) -> None:
        for name, value, wanted in (
            ("apiVersion", written.api_version, CONFIG_VERSION),
            ("kind", written.kind, CONFIG_KIND),
        ):
            path = f"{self._path}.{name}"
            if not value:
                self.errors.append(required(path, f"must be {wanted}"))
            elif value != wanted:
                self.errors.append(not_supported(path, value, [wanted]))

    def _part(self, value: Any, name: str, struct: type[_Part]) -> _Part | None:
        path = f"{self._path}.{name}"
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.errors.append(type_invalid(path, value, "must be an object"))
            return None
        self.unknown(value, path, struct)
        return msgspec.convert(value, struct)

    def _together(self, written: _Config) -> None:
        parts = {"source": written.source, "kustomization": written.kustomization}
        there = [name for name, value in parts.items() if value is not None]
        for name in parts.keys() - there:
            if there:
                self.errors.append(required(f"{self._path}.{name}", f"{there[0]} is given: both are, or neither is"))

    def _matching(self, flux: _Flux | None, name: str, pattern: re.Pattern[str], rule: str) -> str:
        value, path = getattr(flux, name, None), f"{self._path}.flux.{name}"
        if flux is None:
            return ""
        if not isinstance(value, str):
            self.errors.append(type_invalid(path, value, "must be text"))
            return ""
        if not pattern.fullmatch(value):
            self.errors.append(invalid(path, value, rule))
        return value

    def _namespace(self, flux: _Flux | None) -> str:
        if flux is None:
            return ""
        path = f"{self._path}.flux.namespace"
        if not isinstance(flux.namespace, str):
            self.errors.append(type_invalid(path, flux.namespace, "must be text"))
            return ""
        self.errors += [invalid(path, flux.namespace, problem) for problem in dns_label(flux.namespace)]
        return flux.namespace

    def _components(self, flux: _Flux | None) -> tuple[str, ...]:
        if flux is None:
            return DEFAULT_COMPONENTS
        given = self._names(flux.components, "components")
        extra = self._names(flux.components_extra, "componentsExtra")
        chosen = tuple(dict.fromkeys((*(given or DEFAULT_COMPONENTS), *extra)))
        if given:
            missing = [name for name in REQUIRED_COMPONENTS if name not in chosen]
            path = f"{self._path}.flux.components"
            self.errors += [required(path, f"must contain {name}") for name in missing]
        return chosen

    def _names(self, value: Any, field: str) -> list[str]:
        path = f"{self._path}.flux.{field}"
        if value is None:
            return []
        if not isinstance(value, list):
            self.errors.append(type_invalid(path, value, "must be a list"))
            return []
        found: list[str] = []
        for index, one in enumerate(value):
            if one not in KNOWN_COMPONENTS:
                self.errors.append(not_supported(f"{path}[{index}]", one, KNOWN_COMPONENTS))
            elif one in found:
                self.errors.append(duplicate(f"{path}[{index}]", one))
            else:
                found.append(one)
        return found

    def _secrets(
        self, flux: _Flux | None, source: _Source | None, made: Object | None, additional: Any
    ) -> tuple[SecretCopy, ...]:
        namespace = flux.namespace if flux is not None and isinstance(flux.namespace, str) else ""
        found: dict[tuple[str, str], SecretCopy] = {}
        if source is not None:
            wanted = TemplateReader(self._path, self.errors, self.warnings).secret(source, made)
            if wanted is not None:
                place, target = wanted
                path = f"{self._path}.source.secretResourceName"
                self._copy(found, source.secret_resource_name, target, place, path=path, target_path=path)
        path = f"{self._path}.additionalSecretResources"
        if additional is not None and not isinstance(additional, list):
            self.errors.append(type_invalid(path, additional, "must be a list"))
            return tuple(found.values())
        for index, one in enumerate(additional or ()):
            here = f"{path}[{index}]"
            entry = self._part(one, here.removeprefix(f"{self._path}."), _Additional)
            if entry is not None:
                target = entry.target_name if entry.target_name not in (None, "") else entry.name
                target_path = f"{here}.targetName"
                self._copy(found, entry.name, target, namespace, path=f"{here}.name", target_path=target_path)
        return tuple(found.values())

    def _copy(
        self,
        found: dict[tuple[str, str], SecretCopy],
        name: Any,
        target: Any,
        namespace: str,
        *,
        path: str,
        target_path: str,
    ) -> None:
        if name is not None and not isinstance(name, str):
            self.errors.append(type_invalid(path, name, "must be text"))
            return
        origin = referenced(self._shoot, name or "", kind="Secret", path=path)
        if isinstance(origin, FieldError):
            self.errors.append(origin)
            return
        if not isinstance(target, str):
            self.errors.append(type_invalid(target_path, target, "must be text"))
            return
        self.errors += [invalid(target_path, target, problem) for problem in dns_subdomain(target)]
        if (namespace, target) in found:
            self.errors.append(duplicate(target_path, target))
        found.setdefault((namespace, target), SecretCopy(origin, target, namespace))

    def _sync_mode(self, value: Any) -> str:
        if value not in (None, "", ALWAYS, ONCE):
            self.errors.append(not_supported(f"{self._path}.syncMode", value, (ALWAYS, ONCE)))
        return value if value == ONCE else ALWAYS

    def _flag(self, value: Any, name: str) -> bool:
        if value not in (None, True, False):
            self.errors.append(type_invalid(f"{self._path}.{name}", value, "must be a boolean"))
        return value is True


def _suspended(template: Object | None, *, suspended: bool) -> Object | None:
    """The template with its pause; the spec of a template that was read is an object."""
    if template is None or not suspended:
        return template
    return {name: {**part, "suspend": True} if name == "spec" else part for name, part in template.items()}


__all__ = ["ALWAYS", "ONCE", "FluxPlan", "ReadFlux", "SecretCopy", "read_flux"]
