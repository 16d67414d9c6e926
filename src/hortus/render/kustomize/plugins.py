"""kustomize's builtin transformers and generators, asked for by an object each in `transformers` and `generators`.

Such an object has apiVersion `builtin`, the plugin's name as its kind, and the plugin's settings next to its metadata.
Programs and containers, which kustomize runs for any other apiVersion when allowed to, are refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import msgspec

from hortus.kube.objects import Object
from hortus.render.kustomize.documents import (
    ConfiguredField,
    Generator,
    GeneratorOptions,
    Image,
    Patch,
    Replacement,
    Replica,
    Selector,
    typed,
)
from hortus.render.kustomize.errors import KustomizeError, Unsupported
from hortus.render.kustomize.generating import generated
from hortus.render.kustomize.loading import Loader
from hortus.render.kustomize.patching import Patcher
from hortus.render.kustomize.replacing import replace
from hortus.render.kustomize.resources import Resource, Resources, metadata, strings, text
from hortus.render.kustomize.shapes import Schemas
from hortus.render.kustomize.transforming import add_affixes, set_image, set_namespace, set_pairs, set_replicas

_API_VERSION = "builtin"
_FUNCTION = "config.kubernetes.io/function"
_GENERATORS = {"ConfigMapGenerator": "ConfigMap", "SecretGenerator": "Secret"}
_TRANSFORMERS = (
    "AnnotationsTransformer",
    "ImageTagTransformer",
    "LabelTransformer",
    "NamespaceTransformer",
    "PatchJson6902Transformer",
    "PatchStrategicMergeTransformer",
    "PatchTransformer",
    "PrefixTransformer",
    "ReplacementTransformer",
    "ReplicaCountTransformer",
    "SuffixTransformer",
)


class _Settings(msgspec.Struct, frozen=True, rename="camel"):
    field_specs: tuple[ConfiguredField, ...] = ()


class _Affix(_Settings, frozen=True):
    prefix: str = ""
    suffix: str = ""


class _Pairs(_Settings, frozen=True):
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class _Namespace(_Settings, frozen=True):
    unset_only: bool = False
    set_role_binding_subjects: str = "defaultOnly"


class _Image(_Settings, frozen=True, kw_only=True):
    image_tag: Image


class _Replica(_Settings, frozen=True, kw_only=True):
    replica: Replica


class _Patch(msgspec.Struct, frozen=True, rename="camel"):
    path: str = ""
    patch: str = ""
    json_op: str = ""
    target: Selector | None = None
    options: Mapping[str, bool] = {}


class _Merges(msgspec.Struct, frozen=True):
    paths: tuple[str, ...] = ()
    patches: str = ""


class _Replacements(msgspec.Struct, frozen=True):
    replacements: tuple[Replacement, ...] = ()


class _Generator(msgspec.Struct, frozen=True):
    behavior: str = ""
    literals: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    envs: tuple[str, ...] = ()
    env: str = ""
    options: GeneratorOptions | None = None
    type: str = ""


T = TypeVar("T")


class PluginContext(NamedTuple):
    """The surroundings of a plugin: files are found from the kustomization that asks for it."""

    loader: Loader
    place: str
    schemas: Schemas | None


def made_by(config: Resource, around: PluginContext) -> Resource:
    """The resource that the generator `config` makes. Raises KustomizeError, Unsupported."""
    kind = _builtin(config, tuple(_GENERATORS), around)
    settings = _read(config, _Generator, around)
    generator = Generator(name=config.name, namespace=config.namespace, **msgspec.structs.asdict(settings))
    return generated(_GENERATORS[kind], generator, None, around.loader)


def transform(config: Resource, resources: Resources, around: PluginContext) -> None:
    """Let the transformer `config` work on `resources`. Raises KustomizeError, Unsupported."""
    kind = _builtin(config, _TRANSFORMERS, around)
    if kind.startswith("Patch"):
        _patch(kind, config, resources, around)
    elif kind in ("PrefixTransformer", "SuffixTransformer"):
        affix = _read(config, _Affix, around)
        prefix, suffix = (affix.prefix, "") if kind == "PrefixTransformer" else ("", affix.suffix)
        add_affixes(resources, affix.field_specs, around.place, prefix=prefix, suffix=suffix)
    elif kind in ("LabelTransformer", "AnnotationsTransformer"):
        pairs = _read(config, _Pairs, around)
        given = pairs.labels if kind == "LabelTransformer" else pairs.annotations
        set_pairs(resources, given, pairs.field_specs, around.place)
    elif kind == "NamespaceTransformer":
        _namespace(config, resources, around)
    elif kind == "ImageTagTransformer":
        image = _read(config, _Image, around)
        set_image(resources, image.image_tag, image.field_specs, around.place)
    elif kind == "ReplicaCountTransformer":
        replica = _read(config, _Replica, around)
        set_replicas(resources, replica.replica, replica.field_specs, around.place)
    else:
        for replacement in _read(config, _Replacements, around).replacements:
            replace(replacement, resources, around.loader, around.place)


def _patch(kind: str, config: Resource, resources: Resources, around: PluginContext) -> None:
    patcher = Patcher(around.loader, around.place, around.schemas)
    if kind == "PatchStrategicMergeTransformer":
        merges = _read(config, _Merges, around)
        for entry in (*merges.paths, *filter(None, [merges.patches])):
            patcher.strategic_merge(entry, resources)
        return
    found = _read(config, _Patch, around)
    if kind == "PatchJson6902Transformer":
        patcher.json6902(Patch(path=found.path, patch=found.json_op, target=found.target), resources)
    else:
        patcher.patch(Patch(path=found.path, patch=found.patch, target=found.target, options=found.options), resources)


def _namespace(config: Resource, resources: Resources, around: PluginContext) -> None:
    settings = _read(config, _Namespace, around)
    if settings.unset_only or settings.set_role_binding_subjects not in ("", "defaultOnly"):
        raise Unsupported(
            around.place,
            f"NamespaceTransformer {config.name[:100]!r}: unsetOnly and setRoleBindingSubjects are left out",
        )
    if config.namespace:
        set_namespace(resources, config.namespace, settings.field_specs, around.place)


def _builtin(config: Resource, known: tuple[str, ...], around: PluginContext) -> str:
    """The plugin's name. Raises Unsupported for any that would have to be run."""
    place = f"{around.place}: {config.kind[:100]} {config.name[:100]!r}"
    if config.obj.get("apiVersion") != _API_VERSION or _FUNCTION in strings(config.obj, "annotations"):
        raise Unsupported(place, f"plugins and functions are not run; builtin ones are {', '.join(known)}")
    if config.kind not in known:
        raise Unsupported(place, f"is not one of the builtin plugins {', '.join(known)}")
    return config.kind


def _read(config: Resource, kind: type[T], around: PluginContext) -> T:
    settings: Object = {
        key: value for key, value in config.obj.items() if key not in ("apiVersion", "kind", "metadata")
    }
    if not isinstance(metadata(config.obj).get("name"), str):
        raise KustomizeError(around.place, f"{config.kind[:100]}: metadata.name is no text")
    for field in ("labels", "annotations"):
        if isinstance(settings.get(field), dict):
            # These are texts, whatever the file has.
            settings[field] = {key: text(value) for key, value in settings[field].items()}
    return typed(settings, kind, f"{around.place}: {config.kind} {config.name[:100]!r}")
