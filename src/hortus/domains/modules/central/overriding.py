"""The decisions of central configuration: which configurations count for a cluster, and what they change. Pure."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from hortus.domains.modules.kinds.moduleconfiguration import ConfiguredModule, ModuleConfiguration
from hortus.domains.modules.kyma.resolution import Catalog
from hortus.domains.modules.types import Kyma, Module
from hortus.kube.objects import Object, ObjectKey, shaped
from hortus.kube.selectors import LabelSelector, SelectorError

_STEP: Final = re.compile(r"[.\[]")
Path = tuple[str, ...]
"""Names of fields, from the object's root."""


class Override(NamedTuple):
    """One module of one configuration."""

    source: str
    """Namespace and name of the ModuleConfiguration."""
    module: ConfiguredModule


class ConfiguredListing(NamedTuple):
    """The modules of a Kyma under central configuration."""

    kyma: Kyma
    refused: Mapping[str, str]
    """The parts that cannot be used, by module, for people."""


def overrides_of(configurations: Iterable[ModuleConfiguration], labels: Mapping[str, str]) -> list[Override]:
    """The overrides for a Kyma with these labels; where two name the same field, the later one counts."""
    chosen = [one for one in configurations if _selects(one, labels)]
    chosen.sort(key=lambda one: (one.spec.priority, one.metadata.name))
    found = [(ObjectKey(one.metadata.namespace, one.metadata.name), one) for one in chosen]
    return [Override(str(key), module) for key, one in found for module in one.spec.modules]


def _selects(configuration: ModuleConfiguration, labels: Mapping[str, str]) -> bool:
    if configuration.spec.kyma_selector is None:
        return True
    try:
        selector = LabelSelector.from_object(configuration.spec.kyma_selector)
    except SelectorError:
        return False
    return selector is not None and selector.matches(labels)


def listing(kyma: Kyma, overrides: Sequence[Override], catalog: Catalog) -> ConfiguredListing:
    """The Kyma with required modules listed, and channels as configured; what the catalog lacks is refused."""
    modules = {module.name: module for module in kyma.spec.modules}
    refused: dict[str, str] = {}
    for source, wanted in overrides:
        release = catalog.release(wanted.name)
        offered = sorted(one.channel for one in release.spec.channels) if release is not None else []
        place = f"ModuleConfiguration {source}: spec.modules[name={wanted.name}]"
        if wanted.required and wanted.name not in modules:
            if release is None:
                refused[wanted.name] = f"{place}.required is refused: the catalog has no module {wanted.name}"
                continue
            modules[wanted.name] = Module(name=wanted.name)
        if wanted.channel is None or wanted.name not in modules:
            continue
        if wanted.channel not in offered:
            names = ", ".join(offered) or "none"
            refused[wanted.name] = f"{place}.channel {wanted.channel!r} is refused: the module's channels are {names}"
            continue
        modules[wanted.name] = msgspec.structs.replace(modules[wanted.name], channel=wanted.channel)
    spec = msgspec.structs.replace(kyma.spec, modules=tuple(modules.values()))
    return ConfiguredListing(msgspec.structs.replace(kyma, spec=spec), refused)


class Enforced(NamedTuple):
    """The fields of a module's default resource that are enforced."""

    fields: Object
    """An object with `spec` alone; empty where nothing is enforced."""
    sources: Mapping[Path, str]
    """The configuration of each field."""

    def source(self, path: Path) -> str:
        """The configurations of a field, or of all fields below it."""
        found = {one for field, one in self.sources.items() if field[: len(path)] == path[: len(field)]}
        return ", ".join(sorted(found))


def enforced(overrides: Iterable[Override], module: str) -> Enforced:
    """The fields of a module's default resource that are enforced together."""
    spec: Object = {}
    sources: dict[Path, str] = {}
    for source, wanted in overrides:
        if wanted.name == module and wanted.resource is not None:
            merge(spec, wanted.resource.spec)
            sources |= dict.fromkeys((("spec", *path) for path in leaves(wanted.resource.spec)), source)
    return Enforced({"spec": spec} if spec else {}, sources)


def merge(target: Object, more: Mapping[str, Any]) -> None:
    """Put `more` into `target`: objects are joined, all else is replaced."""
    for name, value in more.items():
        known = target.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            merge(known, value)
        else:
            target[name] = copy.deepcopy(value)


def leaves(fields: Mapping[str, Any]) -> Iterator[Path]:
    """The paths of values that are no objects."""
    for name, value in fields.items():
        if isinstance(value, dict) and value:
            yield from ((name, *path) for path in leaves(value))
        else:
            yield (name,)


def path_in(fields: Object, text: str) -> Path:
    """The part of a field's path, as servers write it (`spec.items[0].name`), that leads through `fields`."""
    found: list[str] = []
    value: Any = fields
    for name in _STEP.split(text):
        if not isinstance(value, dict) or name not in value:
            break
        found.append(name)
        value = value[name]
    return tuple(found)


def value_at(fields: Object, path: Path) -> Any:
    """The value at a path. Raises KeyError."""
    value: Any = fields
    for name in path:
        if not isinstance(value, dict):
            raise KeyError(name)
        value = value[name]
    return value


def without(fields: Object, path: Path, *, keep: Any = None) -> Object:
    """A copy without the value at a path, or with `keep` in its place; objects that become empty go as well."""
    name, *rest = path
    found = dict(fields)
    if rest:
        inner = without(found[name], tuple(rest), keep=keep)
        if inner:
            found[name] = inner
        else:
            del found[name]
    elif keep is None:
        del found[name]
    else:
        found[name] = keep
    return found


class _Entry(msgspec.Struct, rename="camel"):
    manager: str = ""
    fields: Object = msgspec.field(default_factory=dict, name="fieldsV1")


class _Metadata(msgspec.Struct, rename="camel"):
    managed_fields: tuple[_Entry, ...] = ()


class _Managed(msgspec.Struct):
    metadata: _Metadata


def owned_value(live: Object, path: Path, manager: str) -> Any:
    """The value that a field manager has applied at a path; None where it has not."""
    found = shaped(live, _Managed)
    entries = found.metadata.managed_fields if found is not None else ()
    if not any(entry.manager == manager and _names(entry.fields, path) for entry in entries):
        return None
    try:
        return value_at(live, path)
    except KeyError:
        return None


def _names(fields: Mapping[str, Any], path: Path) -> bool:
    for name in path:
        if f"f:{name}" not in fields:
            return False
        fields = fields[f"f:{name}"]
    return True
