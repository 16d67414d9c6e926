"""Namespace, prefix and suffix, labels, annotations, counts and images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from hortus.kube.objects import Object
from hortus.render.kustomize.configurations import TransformerConfig
from hortus.render.kustomize.documents import FieldSpec, Image, Kustomization, Label, Replica
from hortus.render.kustomize.errors import KustomizeError
from hortus.render.kustomize.fieldspecs import METADATA_LABELS, merged, set_field
from hortus.render.kustomize.resources import Resource, Resources, metadata, text
from hortus.render.kustomize.selecting import pattern

_NOT_RENAMED = (("", "CustomResourceDefinition"), ("apiregistration.k8s.io", "APIService"), ("", "Namespace"))
_NAME = "metadata/name"
_TAG = r"(?::[a-zA-Z0-9_.{}-]*)?(?:@sha256:[a-zA-Z0-9_.{}-]*)?"
"""A pattern of the text that may follow the name of an image."""


def set_namespace(resources: Resources, namespace: str, fields: Iterable[FieldSpec], place: str) -> None:
    """Put everything that may be namespaced into `namespace`. Raises KustomizeError when two come to be one."""
    # That field is set above all others, for the kinds that have it.
    fields = [spec for spec in fields if spec.path != "metadata/namespace"]
    for resource in resources:
        resource.remember()
        if resource.kind == "Namespace" and resource.obj.get("apiVersion") == "v1":
            _set_metadata(resource, "name", namespace)
        if not resource.is_cluster_scoped:
            _set_metadata(resource, "namespace", namespace)
        if resource.kind in ("RoleBinding", "ClusterRoleBinding"):
            _set_default_subjects(resource.obj, namespace)
        for spec in fields:
            set_field(resource, spec, lambda old: namespace, empty=str, place=place)
    known: set[object] = set()
    for resource in resources:
        if resource.current in known:
            raise KustomizeError(place, f"namespace: {resource.current} would be there twice")
        known.add(resource.current)


def add_affixes(
    resources: Resources, fields: Iterable[FieldSpec], place: str, *, prefix: str = "", suffix: str = ""
) -> None:
    """Put `prefix` before and `suffix` behind names, except those of namespaces, CRDs and APIServices."""
    fields = list(fields)
    for resource in resources:
        original = resource.original
        if any(original.is_kind(group, "", kind) for group, kind in _NOT_RENAMED):
            continue
        for spec in fields:
            if not original.is_kind(spec.group, spec.version, spec.kind):
                continue
            if spec.path == _NAME:
                if prefix:
                    resource.prefixes.append(prefix)
                if suffix:
                    resource.suffixes.append(suffix)
                resource.remember()
            set_field(resource, spec, lambda old: f"{prefix}{text(old)}{suffix}", empty=str, place=place)


def add_labels(
    resources: Resources, kustomization: Kustomization, configuration: TransformerConfig, place: str
) -> None:
    """`labels`, then `commonLabels`."""
    for label in kustomization.labels:
        set_pairs(resources, label.pairs, _fields_of(label, configuration, place), place)
    set_pairs(resources, kustomization.common_labels, configuration.common_labels, place)


def set_replicas(resources: Resources, replica: Replica, fields: Iterable[FieldSpec], place: str) -> None:
    """Raises KustomizeError when nothing of that name has a number of replicas."""
    found = False
    fields = list(fields)
    for spec in fields:
        for resource in resources:
            if any(
                one.name == replica.name and one.is_kind(spec.group, spec.version, spec.kind)
                for one in resource.identities()
            ):
                found = True
                set_field(resource, spec, lambda old: replica.count, empty=int, place=place)
    if not found:
        kinds = ", ".join(spec.kind or "object" for spec in fields)
        raise KustomizeError(place, f"replicas: there is no {kinds} called {replica.name[:100]!r}")


def set_image(resources: Resources, image: Image, fields: Iterable[FieldSpec], place: str) -> None:
    """Change the image of all containers, wherever they stand, and of `fields`, where it has that name."""
    matches = pattern(image.name + _TAG, place)

    def changed(current: Any) -> Any:
        return changed_image(current, image) if isinstance(current, str) and matches(current) else current

    # A field that is not there has no image to change.
    there = [msgspec.structs.replace(spec, create=False) for spec in fields]
    for resource in resources:
        if resource.kind != "CustomResourceDefinition":
            for container in _containers(resource.obj):
                if "image" in container:
                    container["image"] = changed(container["image"])
            for spec in there:
                set_field(resource, spec, changed, empty=str, place=place)


def changed_image(current: str, image: Image) -> str:
    """The reference with another name, tag or digest. A new tag takes a digest away, and the other way round."""
    name, tag, digest = split_image(current)
    name = image.new_name or name
    if image.new_tag or image.digest:
        tag, digest = image.new_tag, image.digest
    elif image.tag_suffix:
        tag, digest = tag + image.tag_suffix, ""
    return name + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")


def split_image(reference: str) -> tuple[str, str, str]:
    """Name, tag and digest; a colon before the first slash belongs to the host."""
    start = max(reference.find("/"), 0)
    at, colon = reference.find("@", start), reference.find(":", start)
    if at >= 0 and (colon < 0 or at < colon):
        return reference[:at], "", reference[at + 1 :]
    if colon < 0:
        return reference, "", ""
    if at >= 0:
        return reference[:colon], reference[colon + 1 : at], reference[at + 1 :]
    return reference[:colon], reference[colon + 1 :], ""


def _set_metadata(resource: Resource, field: str, value: str) -> None:
    resource.obj["metadata"] = {**metadata(resource.obj), field: value}


def _set_default_subjects(obj: Object, namespace: str) -> None:
    """Only accounts called `default` are known to be of the namespace; others follow their ServiceAccount."""
    subjects = obj.get("subjects")
    for subject in subjects if isinstance(subjects, list) else []:
        if isinstance(subject, dict) and text(subject.get("name")) == "default":
            subject["namespace"] = namespace


def _fields_of(label: Label, configuration: TransformerConfig, place: str) -> list[FieldSpec]:
    place = f"{place}: labels"
    fields: list[FieldSpec] = merged(label.fields, configuration.labels, place)
    if label.include_selectors:
        return merged(fields, configuration.common_labels, place)
    if label.include_templates:
        fields = merged(fields, configuration.template_labels, place)
    return merged(fields, [METADATA_LABELS], place)


def set_pairs(resources: Resources, pairs: Mapping[str, str], specs: Iterable[FieldSpec], place: str) -> None:
    """Add labels or annotations to the maps in these fields. Raises KustomizeError for a field that is no map."""
    if not pairs:
        return
    specs = list(specs)

    def put(old: Any) -> Any:
        if not isinstance(old, dict):
            raise KustomizeError(place, "labels or annotations go to a field that is no map")
        return {**old, **pairs}

    for resource in resources:
        for spec in specs:
            set_field(resource, spec, put, empty=dict, place=place)


def _containers(value: Any) -> Iterable[Object]:
    """All maps in lists called containers or initContainers, the innermost first."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _containers(part)
            if key in ("containers", "initContainers") and isinstance(part, list):
                yield from (item for item in part if isinstance(item, dict))
    elif isinstance(value, list):
        for part in value:
            yield from _containers(part)
