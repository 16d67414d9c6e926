"""ObjectMeta: decoding with its types, the server's own fields, validation and immutability.

Sources: API conventions "Metadata"; KEP-2885 for unknown fields. Every function works on the decoded object in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import orjson

from hortus.apiserver.http import go_kind
from hortus.apiserver.resources import names
from hortus.apiserver.resources.definition import FieldProblem
from hortus.apiserver.resources.failures import (
    CannotDecode,
    bad_value,
    cannot_decode,
    forbidden_field,
    invalid,
    invalid_object,
    required,
)
from hortus.apiserver.resources.kind import Kind
from hortus.kube.errors import ApiError, BadRequest
from hortus.kube.objects import Object, format_time, parse_time
from hortus.schema.merge import identity

_MAPS = frozenset({"labels", "annotations"})
_TYPES: dict[str, type] = {
    "name": str,
    "generateName": str,
    "namespace": str,
    "selfLink": str,
    "uid": str,
    "resourceVersion": str,
    "generation": int,
    "creationTimestamp": str,
    "deletionTimestamp": str,
    "deletionGracePeriodSeconds": int,
    "labels": dict,
    "annotations": dict,
    "ownerReferences": list,
    "finalizers": list,
    "managedFields": list,
}
_TIMES = frozenset({"creationTimestamp", "deletionTimestamp"})
_OWNER_TYPES: dict[str, type] = {
    "apiVersion": str,
    "kind": str,
    "name": str,
    "uid": str,
    "controller": bool,
    "blockOwnerDeletion": bool,
}
_META = "v1.ObjectMeta"
_REPEATED_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests"
)
_GO_TYPES: dict[Any, str] = {
    str: "string",
    int: "int64",
    bool: "bool",
    dict: "map[string]string",
    list: "[]string",
    "uid": "types.UID",
    "ownerReferences": "[]v1.OwnerReference",
    "managedFields": "[]v1.ManagedFieldsEntry",
}
"""The names of Go's types in errors, by type, or by field where they differ."""
_GO_ITEMS = {"finalizers": "string", "ownerReferences": "v1.OwnerReference", "managedFields": "v1.ManagedFieldsEntry"}
_LARGEST_ANNOTATIONS = 256 * 1024
"""Bytes of all keys and values together (apimachinery TotalAnnotationSizeLimitB)."""
_KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


def check_type(kind: Kind, obj: Object) -> None:
    """Checks that apiVersion and kind are this kind's; fills them in when they are missing. Raises BadRequest."""
    resource = kind.resource
    api_version, name = _type_text(kind, obj, "apiVersion"), _type_text(kind, obj, "kind")
    if not kind.custom and (api_version not in ("", resource.api_version) or name not in ("", resource.kind)):
        raise _another_kind(kind, api_version or resource.api_version, name or resource.kind)
    if kind.custom and not name:
        # Bodies are checked where they are read; only a patch or an apply can remove the kind here.
        why = f"Object 'Kind' is missing in '{orjson.dumps(obj).decode()}'"
        raise CannotDecode(f"the object provided is unrecognized (must be of type {resource.kind}): {why}", why)
    if api_version != resource.api_version and (api_version or kind.custom):
        raise BadRequest(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if name not in ("", resource.kind):
        problem = bad_value("kind", name, f"must be {resource.kind}")
        raise invalid_object(f"{name}.{resource.group}", resource.group, str(name), _name_of(obj), [problem])
    obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind


def _type_text(kind: Kind, obj: Object, field: str) -> str:
    value = obj.get(field)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    text = orjson.dumps(obj).decode()
    start = f"{text[:30]} ..." if len(text) > 30 else text
    why = f"json: cannot unmarshal {go_kind(value)} into Go struct field .{field} of type string"
    raise BadRequest(
        f"the object provided is unrecognized (must be of type {kind.resource.kind}): couldn't get version/kind; "
        f"json parse error: {why} ({start})"
    )


def _name_of(obj: Object) -> str:
    metadata = obj.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _another_kind(kind: Kind, api_version: str, name: str) -> CannotDecode:
    """The error of Go's decoder for a version that it lacks, or for a kind that does not convert to this one."""
    resource = kind.resource
    version = api_version.rpartition("/")[2]
    if api_version != resource.api_version:
        why = f'no kind "{name}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:110"'
    else:
        internal = resource.group.partition(".")[0] or "core"
        why = f"converting ({version}.{name}) to ({internal}.{resource.kind}): unknown conversion"
    return cannot_decode(resource, why, sent=(name, version))


def read_metadata(kind: Kind, obj: Object) -> list[str]:
    """Makes `metadata` a well-typed ObjectMeta; returns the paths of unknown fields, which are dropped.

    Raises BadRequest where a type is wrong, as decoding into Go's struct does. Nulls and empty lists and maps vanish.
    """
    metadata = obj.get("metadata")
    if metadata is None:
        metadata = obj["metadata"] = {}
    if not isinstance(metadata, dict):
        place = "Go value" if kind.custom else f"Go struct field {kind.resource.kind}.metadata"
        raise cannot_decode(kind.resource, f"json: cannot unmarshal {go_kind(metadata)} into {place} of type {_META}")
    unknown: list[str] = []
    for field in list(metadata):
        value = metadata[field]
        expected = _TYPES.get(field)
        if expected is None:
            unknown.append(f"metadata.{field}")
            del metadata[field]
        elif value is None:
            del metadata[field]
        elif not isinstance(value, expected) or isinstance(value, bool) or not _fits(value):
            raise _wrong_type(kind, f"ObjectMeta.{field}", value, _GO_TYPES.get(field) or _GO_TYPES[expected])
        elif not value:
            del metadata[field]
        elif expected is dict and field in _MAPS:
            _read_map(kind, metadata, field)
        elif isinstance(value, list):
            _read_list(kind, field, value)
        elif field in _TIMES:
            _read_time(kind, str(value))
    return unknown


def _fits(value: object) -> bool:
    return not isinstance(value, int) or -(1 << 63) <= value < 1 << 63


def _read_map(kind: Kind, metadata: dict[str, Any], field: str) -> None:
    values = metadata[field]
    if all(isinstance(value, str) for value in values.values()):
        return
    for value in values.values():
        if not isinstance(value, str | None):
            raise _wrong_type(kind, f"ObjectMeta.{field}", value, "string")
    metadata[field] = {key: value or "" for key, value in values.items()}


def _read_list(kind: Kind, field: str, values: list[Any]) -> None:
    wanted: type = str if field == "finalizers" else dict
    for place, value in enumerate(values):
        if not isinstance(value, wanted):
            raise _wrong_type(kind, f"ObjectMeta.{field}", value, _GO_ITEMS[field])
        if field == "ownerReferences":
            _read_owner(kind, values[place])
        elif field == "managedFields" and isinstance(values[place].get("time"), str):
            _read_time(kind, values[place]["time"])


def _read_owner(kind: Kind, owner: dict[str, Any]) -> None:
    for field, wanted in _OWNER_TYPES.items():
        value = owner.get(field)
        if value is not None and type(value) is not wanted:
            go_type = _GO_TYPES.get(field) or _GO_TYPES[wanted]
            raise _wrong_type(kind, f"OwnerReference.ownerReferences.{field}", value, go_type)


def _read_time(kind: Kind, text: str) -> None:
    try:
        parse_time(text)
    except ValueError:
        why = f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"'
        raise cannot_decode(kind.resource, why) from None


def _wrong_type(kind: Kind, field: str, value: Any, wanted: str) -> ApiError:
    """`field` is the struct and the path in the metadata, which built-in kinds are read together with."""
    struct, _, path = field.partition(".")
    shown = f"number {value}" if wanted == "int64" and isinstance(value, float) else go_kind(value)
    where = f"{struct}.{path}" if kind.custom else f"{struct}.metadata.{path}"
    return cannot_decode(kind.resource, f"json: cannot unmarshal {shown} into Go struct field {where} of type {wanted}")


def without_repeated_owners(obj: Object) -> list[str]:
    """Drops owners that are named twice; returns the warnings for the writer."""
    owners = obj["metadata"].get("ownerReferences", ())
    if len(owners) < 2:
        return []
    kept: dict[Hashable, dict[str, Any]] = {}
    for owner in owners:
        kept.setdefault(identity(owner), owner)
    obj["metadata"]["ownerReferences"] = list(kept.values())
    counts = Counter(str(owner.get("uid", "")) for owner in owners)
    repeated = [uid for uid, count in counts.items() if count > 1]
    if not repeated:
        return []
    return [f"{_REPEATED_OWNERS}; duplicate UID(s) observed: {', '.join(repeated)}"]


def begin(kind: Kind, obj: Object, namespace: str, now: float) -> None:
    """Sets the server's own fields of a new object. The namespace in the body is the request's or absent."""
    metadata = obj["metadata"]
    check_namespace(metadata, namespace)
    for field in ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(field, None)
    if kind.definition.generation:
        metadata.pop("generation", None)
    if kind.resource.namespaced:
        metadata["namespace"] = namespace
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = names.generated_name(metadata["generateName"])
    metadata["uid"] = names.random_uid()
    metadata["creationTimestamp"] = format_time(now)


def check_namespace(metadata: dict[str, Any], namespace: str) -> None:
    given = metadata.get("namespace", "")
    if given and given != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def carry_over(kind: Kind, obj: Object, old: Object) -> None:
    """Takes the fields that an update cannot change from the stored object."""
    metadata, stored = obj["metadata"], old["metadata"]
    metadata.pop("selfLink", None)
    for field in _KEPT:
        if field in stored:
            metadata[field] = stored[field]
        else:
            metadata.pop(field, None)
    metadata["name"] = stored["name"]
    if kind.resource.namespaced:
        metadata["namespace"] = stored["namespace"]
    if "generateName" in stored:
        metadata.setdefault("generateName", stored["generateName"])


def problems(kind: Kind, obj: Object) -> list[FieldProblem]:
    """The problems of the metadata of an object that is about to be stored."""
    metadata = obj["metadata"]
    found: list[FieldProblem] = []
    name = metadata.get("name", "")
    if not name:
        found.append(required("metadata.name", "name or generateName is required"))
    else:
        found += [
            bad_value("metadata.name", name, each) for each in names.name_problems(name, kind.definition.name_rule)
        ]
    for key, value in metadata.get("labels", {}).items():
        found += [bad_value("metadata.labels", key, each) for each in names.key_problems(key)]
        found += [bad_value("metadata.labels", value, each) for each in names.label_value_problems(value)]
    if "annotations" in metadata:
        found += _annotation_problems(metadata["annotations"])
    for index, finalizer in enumerate(metadata.get("finalizers", ())):
        found += _finalizer_problems(kind, index, finalizer)
    if "ownerReferences" in metadata:
        found += _owner_problems(metadata["ownerReferences"])
    return found


_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def _finalizer_problems(kind: Kind, index: int, finalizer: str) -> list[FieldProblem]:
    found = [bad_value("metadata.finalizers", finalizer, each) for each in names.key_problems(finalizer)]
    if is_kubernetes(kind) and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        sentence = "name is neither a standard finalizer name nor is it fully qualified"
        found.append(bad_value(f"metadata.finalizers[{index}]", finalizer, sentence))
    return found


def _annotation_problems(annotations: dict[str, str]) -> list[FieldProblem]:
    found = [
        bad_value("metadata.annotations", key, problem)
        for key in annotations
        for problem in names.key_problems(key.lower())
    ]
    size = sum(len(key) + len(value.encode()) for key, value in annotations.items())
    if size > _LARGEST_ANNOTATIONS:
        found.append(
            FieldProblem(
                "metadata.annotations",
                f"Too long: may not be more than {_LARGEST_ANNOTATIONS} bytes",
                "FieldValueTooLong",
            )
        )
    return found


def _owner_problems(owners: list[dict[str, Any]]) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    controllers: list[str] = []
    path = "metadata.ownerReferences"  # kube-apiserver does not name the index
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            value = owner.get(field)
            if field == "apiVersion" and not _has_version(value):
                found.append(bad_value(f"{path}.{field}", value or "", "version must not be empty"))
            elif not isinstance(value, str) or not value:
                found.append(bad_value(f"{path}.{field}", "", "must not be empty"))
        if owner.get("apiVersion") == "v1" and owner.get("kind") == "Event":
            found.append(bad_value(path, "/v1, Kind=Event", "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller") is True:
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        shown = orjson.dumps([{key: owner[key] for key in _OWNER_TYPES if key in owner} for owner in owners]).decode()
        why = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        found.append(FieldProblem(path, f"Invalid value: {shown}: {why}"))
    return found


def _has_version(api_version: object) -> bool:
    """Reports whether Go's ParseGroupVersion finds a version in it."""
    return isinstance(api_version, str) and api_version.count("/") < 2 and bool(api_version.rpartition("/")[2])


def update_problems(kind: Kind, obj: Object, old: Object) -> list[FieldProblem]:
    """The problems that only a comparison with the stored object finds."""
    metadata, stored = obj["metadata"], old["metadata"]
    if "deletionTimestamp" not in stored:
        return []
    known = frozenset(stored.get("finalizers", ()))
    fresh = [name for name in metadata.get("finalizers", ()) if name not in known]
    if not fresh:
        return []
    shown = ", ".join(f'"{name}"' for name in fresh)
    problem = forbidden_field(
        "metadata.finalizers",
        f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}",
    )
    return [problem, problem] if is_kubernetes(kind) else [problem]


def is_kubernetes(kind: Kind) -> bool:
    """Reports whether the kind is Kubernetes' own, whose metadata is validated twice: generically, and by the kind's
    rules."""
    group = kind.resource.group
    return not kind.custom and ("." not in group or group.endswith(".k8s.io")) and group != "apiextensions.k8s.io"


def names_revision(text: str) -> bool:
    """Reports whether a resourceVersion names a revision; "0" and other texts do not."""
    return text.isascii() and text.isdigit() and int(text) != 0


def nameless(name: str) -> BadRequest:
    """The error for an object without a name that is sent to the path of `name`."""
    return BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")


def check_resource_version(kind: Kind, name: str, metadata: dict[str, Any]) -> int:
    """The revision that a writer expects, 0 when it names none. Raises Invalid for a text that is no revision."""
    text = metadata.get("resourceVersion", "")
    if not text or text == "0":
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 20 or int(text) >> 64:
        raise invalid(
            kind, name, [bad_value("metadata.resourceVersion", text, "must be a resource version of this server")]
        )
    return int(text)
