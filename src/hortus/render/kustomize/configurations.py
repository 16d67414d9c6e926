"""The fields of labels, names, namespaces, images, counts, references and variables, and files that add to them.

The files that `configurations` names hold such lists; entries of a base also count for its overlays.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hortus.render.kustomize.documents import ConfiguredField, NameReference, read_yaml, typed
from hortus.render.kustomize.errors import KustomizeError
from hortus.render.kustomize.fieldspecs import (
    COMMON_ANNOTATIONS,
    COMMON_LABELS,
    NAME,
    NAMESPACE,
    REPLICAS,
    TEMPLATE_LABELS,
    VARIABLES,
    merged,
)
from hortus.render.kustomize.loading import Loader
from hortus.render.kustomize.referencefields import NAME_REFERENCES


class TransformerConfig(msgspec.Struct, frozen=True, rename="camel"):
    """kustomize's transformer configuration; keys that are not known are passed over, as there."""

    name_prefix: tuple[ConfiguredField, ...] = ()
    name_suffix: tuple[ConfiguredField, ...] = ()
    namespace: tuple[ConfiguredField, ...] = ()
    common_labels: tuple[ConfiguredField, ...] = ()
    labels: tuple[ConfiguredField, ...] = ()
    template_labels: tuple[ConfiguredField, ...] = ()
    common_annotations: tuple[ConfiguredField, ...] = ()
    name_reference: tuple[NameReference, ...] = ()
    var_reference: tuple[ConfiguredField, ...] = ()
    images: tuple[ConfiguredField, ...] = ()
    replicas: tuple[ConfiguredField, ...] = ()

    def with_(self, other: TransformerConfig, place: str) -> TransformerConfig:
        """Both. Raises KustomizeError when they disagree on creating a field."""
        if other is self or other is DEFAULTS:
            return self
        found = {
            field.name: tuple(
                merged(getattr(self, field.name), getattr(other, field.name), f"{place}: {field.encode_name}")
            )
            for field in msgspec.structs.fields(TransformerConfig)
            if field.name != "name_reference"
        }
        references = _merged_references(self.name_reference, other.name_reference, place)
        return TransformerConfig(name_reference=references, **found)


DEFAULTS = TransformerConfig(
    name_prefix=tuple(NAME),
    name_suffix=tuple(NAME),
    namespace=tuple(NAMESPACE),
    common_labels=tuple(COMMON_LABELS),
    template_labels=tuple(TEMPLATE_LABELS),
    common_annotations=tuple(COMMON_ANNOTATIONS),
    name_reference=NAME_REFERENCES,
    var_reference=tuple(VARIABLES),
    replicas=tuple(REPLICAS),
)


def configured(paths: Iterable[str], loader: Loader, place: str) -> TransformerConfig:
    """The defaults and what the files at `paths` add. Raises KustomizeError."""
    found = DEFAULTS
    for path in paths:
        where = f"{loader.place}: {path}"
        document = read_yaml(loader.read(path), where)
        if document is not None and not isinstance(document, dict):
            raise KustomizeError(where, "holds no mapping; lists such as nameReference are expected in one")
        found = found.with_(typed(document or {}, TransformerConfig, where), where)
    return found


def _merged_references(
    one: tuple[NameReference, ...], other: tuple[NameReference, ...], place: str
) -> tuple[NameReference, ...]:
    found = {(reference.group, reference.version, reference.kind): reference for reference in one}
    for reference in other:
        key = (reference.group, reference.version, reference.kind)
        if known := found.get(key):
            specs = merged(known.field_specs, reference.field_specs, f"{place}: nameReference")
            reference = msgspec.structs.replace(known, field_specs=tuple(specs))
        found[key] = reference
    return tuple(found.values())
