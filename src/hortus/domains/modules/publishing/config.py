"""The module-config: the file that a module's author writes, with modulectl's keys.

All problems of a file are reported at once, each with its key, value and fix. Keys that modulectl ignores are ignored
here too, with a warning, and so are values that it lets pass although the API server refuses what comes of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from hortus.domains.modules.kinds.shared import AssociatedKind
from hortus.domains.modules.kyma.dependencies import DependencyError, ModuleDependency, read_dependencies
from hortus.domains.modules.types import (
    COMPONENT_PATTERN,
    MODULE_NAME_PATTERN,
    SEMVER_PATTERN,
    VERSION_PATTERN,
    ModuleManager,
)
from hortus.kube.shapes import problem_of
from hortus.kube.yaml import TextLimits, YamlError, load

_LIMITS = TextLimits(bytes=1 << 20, depth=30, nodes=20_000)
_LONGEST_NAME = 255
_LONGEST_VERSION = 32
_IGNORED = {
    "channel": "a ModuleReleaseMeta assigns channels",
    "mandatory": "a ModuleReleaseMeta makes modules mandatory",
    "namespace": "the ModuleTemplate is applied to any namespace",
    "security": "images are read from the manifest",
}


class ConfigError(ValueError):
    """A module-config that cannot be used; the message lists each problem on a line of its own."""

    def __init__(self, file: str, problems: Sequence[str]) -> None:
        super().__init__("\n".join(f"{file}: {problem}" for problem in problems))
        self.problems = tuple(problems)


class NamedLink(msgspec.Struct, frozen=True):
    """A name with an address."""

    name: str = ""
    link: str = ""


class ModuleConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A module-config.yaml."""

    name: str = ""
    """Name of the component, such as kyma-project.io/module/hello."""
    version: str = ""
    manifest: str = ""
    """Address or relative path of the file with the module's objects."""
    repository: str = ""
    documentation: str = ""
    team: str = ""
    icons: tuple[NamedLink, ...] = ()
    default_cr: str = msgspec.field(default="", name="defaultCR")
    security: str = ""
    security_scan_enabled: bool = True
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    manager: ModuleManager | None = None
    associated_resources: tuple[AssociatedKind, ...] = ()
    resources: tuple[NamedLink, ...] = ()
    requires_downtime: bool = False
    internal: bool = False
    beta: bool = False
    dependencies: tuple[ModuleDependency, ...] = ()
    """Modules that this one needs; an addition of Hortus."""

    @property
    def module(self) -> str:
        """The module's own name, the last segment of the component's."""
        return self.name.rpartition("/")[2]


class CheckedConfig(msgspec.Struct, frozen=True):
    """A config without problems, and what its author should know nevertheless."""

    config: ModuleConfig
    warnings: tuple[str, ...]


def read_config(data: bytes, file: str, *, strict: bool = False) -> CheckedConfig:
    """Read and check a module-config; `file` is its name for messages. Raises ConfigError.

    With `strict`, a name or version that the ModuleTemplate's CRD refuses is a problem and no warning.
    """
    try:
        document = load(data, limits=_LIMITS)
    except YamlError as error:
        raise ConfigError(file, [str(error)]) from None
    if not isinstance(document, dict):
        raise ConfigError(file, ["is not a mapping of keys: write name, version, manifest and the other keys"])
    values = {key: value for key, value in document.items() if value is not None}
    dependencies = values.pop("dependencies", [])
    problems = list(_lists(values))
    try:
        config = msgspec.convert(values, ModuleConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(file, [*problems, problem_of(error, place="").lstrip(".: ")]) from None
    try:
        config = msgspec.structs.replace(config, dependencies=read_dependencies(dependencies, "dependencies"))
    except DependencyError as error:
        problems.append(str(error))
    problems += _problems(config)
    refused = list(_refused(config)) if not problems else []
    if strict:
        problems += refused
    if problems:
        raise ConfigError(file, problems)
    return CheckedConfig(config, tuple(f"{file}: {one}" for one in (*_ignored(values), *refused)))


def _lists(values: dict[str, Any]) -> Iterator[str]:
    """Yields the problems of lists of links; a map of names to links becomes a list in its place."""
    for key in ("icons", "resources"):
        found = values.get(key)
        if isinstance(found, dict):
            values[key] = [{"name": name, "link": link} for name, link in found.items()]
        elif found is not None and not isinstance(found, list):
            values[key] = []
            yield f"{key}: must be a list of name and link"


def _problems(config: ModuleConfig) -> Iterator[str]:
    yield from _identity(config)
    for key, text in (("repository", config.repository), ("documentation", config.documentation)):
        yield from _address(key, text)
    yield from _file("manifest", config.manifest, required=True)
    yield from _file("defaultCR", config.default_cr, required=False)
    if config.security_scan_enabled and not config.team:
        yield "team: is missing; name the team that answers for the module, or set securityScanEnabled: false"
    if not config.icons:
        yield "icons: is missing; give at least one icon with name and link"
    yield from _links("icons", config.icons)
    yield from _links("resources", config.resources)
    if config.module in {one.module for one in config.dependencies}:
        yield f"dependencies: {config.module} needs itself; remove it from the list"
    manager = config.manager
    if manager is not None:
        parts = {"name": manager.name, "group": manager.group, "version": manager.version, "kind": manager.kind}
        yield from (f"manager.{key}: is empty; name the workload of the module" for key in parts if not parts[key])


def _identity(config: ModuleConfig) -> Iterator[str]:
    example = "write a domain and a path in lower case, such as kyma-project.io/module/hello"
    if not config.name:
        yield f"name: is missing; {example}"
    elif len(config.name) > _LONGEST_NAME:
        yield f"name: has {len(config.name)} characters; {_LONGEST_NAME} are allowed"
    elif not re.fullmatch(COMPONENT_PATTERN, config.name):
        yield f"name: {config.name!r} is no name of a component; {example}"
    if not config.version:
        yield "version: is missing; write a semantic version such as 1.2.3"
    elif not re.fullmatch(SEMVER_PATTERN, config.version):
        yield f"version: {config.version!r} is no semantic version; write it as 1.2.3 or 1.2.3-beta, without v"


def _address(key: str, text: str) -> Iterator[str]:
    if not text:
        yield f"{key}: is missing; write its https address"
    elif not _is_https(text):
        yield f"{key}: {text[:200]!r} is no https address; write https://..."


def _file(key: str, text: str, *, required: bool) -> Iterator[str]:
    if not text:
        if required:
            yield f"{key}: is missing; write an https address, or a path relative to this file"
    elif text.startswith("/") or re.match(r"[A-Za-z]:[\\/]", text):
        yield f"{key}: {text[:200]!r} is an absolute path; write it relative to this file"
    elif "://" in text and not _is_https(text):
        yield f"{key}: {text[:200]!r} is no https address; write https://... or a relative path"


def _links(key: str, links: Sequence[NamedLink]) -> Iterator[str]:
    seen: set[str] = set()
    for at, one in enumerate(links):
        if not one.name:
            yield f"{key}[{at}].name: is missing; every entry has a name and a link"
        elif one.name in seen:
            yield f"{key}[{at}].name: {one.name!r} is there twice; names differ"
        if not one.link:
            yield f"{key}[{at}].link: is missing; every entry has a name and a link"
        elif not _is_https(one.link):
            yield f"{key}[{at}].link: {one.link[:200]!r} is no https address; write https://..."
        seen.add(one.name)


def _is_https(text: str) -> bool:
    return re.fullmatch(r"https://[^\s/?#]+\S*", text) is not None


def _ignored(values: Mapping[str, Any]) -> Iterator[str]:
    known = {field.encode_name for field in msgspec.structs.fields(ModuleConfig)}
    for key in values:
        if key in _IGNORED:
            yield f"{key}: is ignored; {_IGNORED[key]}"
        elif key not in known:
            yield f"{str(key)[:100]}: is no key of a module-config, and is ignored"


def _refused(config: ModuleConfig) -> Iterator[str]:
    if not re.fullmatch(VERSION_PATTERN, config.version) or len(config.version) > _LONGEST_VERSION:
        yield f"version: {config.version!r} is refused by the ModuleTemplate's CRD; write it as 1.2.3 or 1.2.3-beta"
    if not re.fullmatch(MODULE_NAME_PATTERN, config.module):
        advice = "use words of three letters or more with dashes between"
        yield f"name: {config.module!r} is refused by the ModuleTemplate's CRD; {advice}"
