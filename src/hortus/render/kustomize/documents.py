"""The kustomization file as structs: what is known is typed, what is not is refused by name.

Fields: kustomize.config.k8s.io/v1beta1 Kustomization and v1alpha1 Component.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from typing import Any, TypeVar, cast

import msgspec

from hortus.kube.yaml import YamlError, load
from hortus.render.kustomize.errors import KustomizeError, Unsupported

FILE_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
COMPONENT = "Component"
_KINDS = {"Kustomization": "kustomize.config.k8s.io/v1beta1", COMPONENT: "kustomize.config.k8s.io/v1alpha1"}

_REFUSED = {
    "helmCharts": "charts are rendered by hortus.render.helm, not from inside of a kustomization",
    "helmChartInflationGenerator": "charts are rendered by hortus.render.helm, not from inside of a kustomization",
    "helmGlobals": "charts are rendered by hortus.render.helm, not from inside of a kustomization",
    "validators": "functions are not run",
    "crds": "name the fields that references go to in a file under configurations",
    "openapi": "schemas are handed in by the caller",
    "buildMetadata": "origins are not written into objects",
    "inventory": "it is not part of kustomize any more",
}
_REFUSED_SPELLED = {name.lower(): reason for name, reason in _REFUSED.items()}


class _Struct(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    pass


class Selector(_Struct, frozen=True):
    """A choice of resources; in `patches` the first five are regular expressions, in `replacements` plain text."""

    group: str = ""
    version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    label_selector: str = ""
    annotation_selector: str = ""


class Patch(_Struct, frozen=True):
    path: str = ""
    patch: str = ""
    target: Selector | None = None
    options: Mapping[str, bool] = {}


class Image(_Struct, frozen=True):
    name: str
    new_name: str = ""
    new_tag: str = ""
    tag_suffix: str = ""
    digest: str = ""


class Replica(_Struct, frozen=True):
    name: str
    count: int = 0


class FieldSpec(_Struct, frozen=True):
    """Fields of some kinds, by a path with `/` that leads through lists by itself."""

    path: str
    group: str = ""
    version: str = ""
    kind: str = ""
    create: bool = False


class ConfiguredField(FieldSpec, frozen=True, forbid_unknown_fields=False):
    """A field as a configuration or a transformer names it; keys that are not known are passed over there."""


class NameReference(_Struct, frozen=True, forbid_unknown_fields=False):
    """Objects of one kind, and the fields of others that hold their names."""

    kind: str = ""
    group: str = ""
    version: str = ""
    field_specs: tuple[ConfiguredField, ...] = ()


class Label(_Struct, frozen=True):
    pairs: Mapping[str, str] = {}
    include_selectors: bool = False
    include_templates: bool = False
    fields: tuple[FieldSpec, ...] = ()


class GeneratorOptions(_Struct, frozen=True):
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    disable_name_suffix_hash: bool = False
    immutable: bool = False


class Generator(_Struct, frozen=True):
    """A ConfigMap or Secret to make."""

    name: str = ""
    namespace: str = ""
    behavior: str = ""
    """`merge` or `replace`; any other word means to create, in kustomize too."""
    literals: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    envs: tuple[str, ...] = ()
    env: str = ""
    options: GeneratorOptions | None = None
    type: str = ""


class FieldOptions(_Struct, frozen=True):
    delimiter: str = ""
    index: int = 0
    create: bool = False


class ReplacementSource(_Struct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    field_path: str = ""
    options: FieldOptions = FieldOptions()


class ReplacementTarget(_Struct, frozen=True):
    select: Selector | None = None
    reject: tuple[Selector, ...] = ()
    field_paths: tuple[str, ...] = ()
    options: FieldOptions = FieldOptions()


class Replacement(_Struct, frozen=True):
    path: str = ""
    source: ReplacementSource | None = None
    targets: tuple[ReplacementTarget, ...] | None = None


class VariableSource(_Struct, frozen=True):
    """The one object that a variable reads."""

    api_version: str = ""
    group: str = ""
    version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""


class Variable(_Struct, frozen=True):
    """A value that stands wherever `$(NAME)` does; `field` is a path with dots."""

    name: str
    source: VariableSource = msgspec.field(name="objref")
    field: Mapping[str, str] = msgspec.field(default={}, name="fieldref")


class LegacySortOptions(_Struct, frozen=True):
    order_first: tuple[str, ...] = ()
    order_last: tuple[str, ...] = ()


class SortOptions(_Struct, frozen=True):
    order: str = ""
    legacy_sort_options: LegacySortOptions | None = None


class Kustomization(_Struct, frozen=True):
    api_version: str = ""
    kind: str = "Kustomization"
    metadata: Mapping[str, Any] = {}
    resources: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    namespace: str = ""
    name_prefix: str = ""
    name_suffix: str = ""
    common_labels: Mapping[str, str] = {}
    labels: tuple[Label, ...] = ()
    common_annotations: Mapping[str, str] = {}
    patches: tuple[Patch, ...] = ()
    patches_strategic_merge: tuple[str, ...] = ()
    patches_json6902: tuple[Patch, ...] = msgspec.field(default=(), name="patchesJson6902")
    images: tuple[Image, ...] = ()
    image_tags: tuple[Image, ...] = ()
    replicas: tuple[Replica, ...] = ()
    replacements: tuple[Replacement, ...] = ()
    configurations: tuple[str, ...] = ()
    generators: tuple[str, ...] = ()
    transformers: tuple[str, ...] = ()
    vars: tuple[Variable, ...] = ()
    config_map_generator: tuple[Generator, ...] = ()
    secret_generator: tuple[Generator, ...] = ()
    generator_options: GeneratorOptions | None = None
    sort_options: SortOptions | None = None


def parse_kustomization(data: bytes, place: str) -> Kustomization:
    """The kustomization in a file. Raises KustomizeError, Unsupported."""
    document = read_yaml(data, place)
    if not isinstance(document, dict):
        raise KustomizeError(place, "is empty or no mapping; a kustomization is expected")
    for name in document:
        if reason := _REFUSED_SPELLED.get(name.lower()):
            raise Unsupported(place, f"{name}: {reason}")
    found = typed(document, Kustomization, place)
    _check_head(found, place)
    if not set(document) - {"apiVersion", "kind"}:
        raise KustomizeError(place, "is empty: it names no resources")
    return found


def read_yaml(data: bytes | str, place: str) -> Any:
    """The one document in `data`. Raises KustomizeError."""
    try:
        return load(data, own_keys_win=True)
    except YamlError as error:
        raise KustomizeError(place, str(error)) from None


T = TypeVar("T")


def typed(document: Any, kind: type[T], place: str) -> T:
    """`document` as `kind`; a null is the same as nothing, and `nameprefix` is `namePrefix`, as to Go's JSON.

    Raises KustomizeError, naming the field.
    """
    try:
        return msgspec.convert(_spelled(_without_nulls(document), _shape(cast(Hashable, kind))), kind)
    except msgspec.ValidationError as error:
        raise KustomizeError(place, str(error)) from None


def _check_head(found: Kustomization, place: str) -> None:
    if found.kind not in _KINDS:
        raise KustomizeError(place, f"kind: {found.kind[:80]!r} is not Kustomization or Component")
    wanted = _KINDS[found.kind]
    if found.api_version not in ("", wanted):
        raise KustomizeError(place, f"apiVersion: {found.api_version[:80]!r} is not {wanted!r}, as {found.kind} has it")


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value


@functools.cache
def _shape(kind: Hashable) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(kind)


def _spelled(value: Any, shape: msgspec.inspect.Type) -> Any:
    """`value` with the keys of structs in their own spelling; labels and other free keys stay as they are."""
    if isinstance(shape, msgspec.inspect.UnionType):
        inner = [one for one in shape.types if not isinstance(one, msgspec.inspect.NoneType)]
        return _spelled(value, inner[0]) if len(inner) == 1 else value
    if isinstance(shape, msgspec.inspect.VarTupleType) and isinstance(value, list):
        return [_spelled(part, shape.item_type) for part in value]
    if isinstance(shape, msgspec.inspect.StructType) and isinstance(value, dict):
        known = {field.encode_name.lower(): field for field in shape.fields}
        return {
            (field.encode_name if (field := known.get(key.lower())) else key): (
                _spelled(part, field.type) if field else part
            )
            for key, part in value.items()
        }
    return value
