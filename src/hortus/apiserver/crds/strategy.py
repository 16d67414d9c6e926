"""The rules of CustomResourceDefinition objects: defaults, names that must be free, immutable fields.

The status is set while the object is prepared, so a CRD is established with the write that makes it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

from hortus.apiserver.crds.conditions import FINALIZER, has_condition, set_condition
from hortus.apiserver.resources.definition import FieldProblem, Strategy, WriteContext
from hortus.apiserver.resources.failures import bad_value, required
from hortus.apiserver.resources.registry import Registry
from hortus.kube.objects import Object, format_time
from hortus.schema import validate_crd, with_crd_defaults

_STILL_STORED = (
    "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a "
    "storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
)


_REMEMBERED: Final = 1024
"""Definitions, 16 bytes each, that are known to have no problem."""
_CONDITION = ("lastTransitionTime", "message", "reason", "status", "type")


class DefinitionStrategy:
    """The rules of CustomResourceDefinition objects, around those that `inner` (the built-in kind's strategy) has."""

    def __init__(self, inner: Strategy, registry: Registry) -> None:
        self._inner = inner
        self._registry = registry
        self._sound = SoundDefinitions()

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        self._inner.prepare_create(obj, context)
        with_crd_defaults(obj)
        if not _shape_problems(obj):
            self._accept(obj, context)

    def prepare_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        self._inner.prepare_update(obj, old, context)
        if context.subresource == "status":
            return
        with_crd_defaults(obj)
        if not _shape_problems(obj) and (obj["spec"] != old["spec"] or not has_condition(old, "NamesAccepted")):
            self._accept(obj, context)

    def _accept(self, obj: Object, context: WriteContext) -> None:
        """Set status.acceptedNames, storedVersions and the conditions NamesAccepted and Established."""
        spec = obj["spec"]
        status = obj["status"] = dict(obj.get("status") or {})
        conflict = self._conflict(obj, context.cluster)
        now = format_time(context.now)
        established = any(
            each["type"] == "Established" and each["status"] == "True" for each in status.get("conditions") or ()
        )
        if not conflict:
            status["acceptedNames"] = spec["names"]
        status.setdefault("acceptedNames", {"kind": "", "plural": ""})
        if conflict and not conflict[0].startswith("Plural"):
            status["acceptedNames"] = {**status["acceptedNames"], "plural": spec["names"]["plural"]}
        storage = next(each["name"] for each in spec["versions"] if each["storage"])
        stored = [name for name in status.get("storedVersions") or () if name != storage]
        status["storedVersions"] = [*stored, storage]
        accepted = ("False", conflict[0], conflict[1]) if conflict else ("True", "NoConflicts", "no conflicts found")
        ready = ("True", "InitialNamesAccepted", "the initial names have been accepted")
        if conflict and not established:
            ready = ("False", "NotAccepted", "not all names are accepted")
        set_condition(status, "NamesAccepted", accepted, now)
        set_condition(status, "Established", ready, now)

    def _conflict(self, obj: Object, cluster: str) -> tuple[str, str] | None:
        """Reason and message for the names that other resources of the group hold; of several, the last one's."""
        spec, wanted = obj["spec"], obj["spec"]["names"]
        if self._registry.is_built_in(cluster, spec["group"], wanted["plural"]):
            return "PluralConflict", f'"{wanted["plural"]}" is already in use'
        singulars, kinds = set[str](), set[str]()
        for kind in self._registry.kinds(cluster):
            resource, definition = kind.resource, kind.definition
            if resource.group == spec["group"] and resource.plural != wanted["plural"]:
                singulars.update((resource.plural, definition.singular, *definition.short_names))
                kinds.update((resource.kind, definition.list_kind))
        asked = [("Plural", wanted["plural"], singulars), ("Singular", wanted.get("singular"), singulars)]
        asked += [("ShortNames", name, singulars) for name in wanted.get("shortNames") or ()]
        asked += [("Kind", wanted["kind"], kinds), ("ListKind", wanted.get("listKind"), kinds)]
        found = [(f"{what}Conflict", f'"{name}" is already in use') for what, name, taken in asked if name in taken]
        return found[-1] if found else None

    def validate(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        found = self._sound.problems(obj) or _shape_problems(obj)
        if not any(each.get("storage") for each in obj["spec"].get("versions") or ()):
            found.append(
                FieldProblem("status.storedVersions", "Invalid value: null: must have at least one stored version")
            )
        return found

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        if context.subresource == "status":
            return []
        return _problems(obj, old) or _shape_problems(obj) or _stored_problems(obj, old)

    def check_delete(self, obj: Object, context: WriteContext) -> None:
        self._inner.check_delete(obj, context)

    def generation_changed(self, obj: Object, old: Object) -> bool:
        return bool(obj.get("spec") != old.get("spec"))

    def cells(self, obj: Object, now: float) -> Mapping[str, Any]:
        return self._inner.cells(obj, now)


def complete_definition(obj: Object, context: WriteContext) -> None:
    """Sets the status of a new CRD, which the server owns."""
    status, metadata = obj.get("status") or {}, obj["metadata"]
    condition: Object = {".": {}, **{f"f:{each}": {} for each in _CONDITION}}
    fields = {
        "f:acceptedNames": {
            f"f:{name}": {} for name, value in sorted(status.get("acceptedNames", {}).items()) if value
        },
        "f:conditions": {_keyed(each["type"]): condition for each in status.get("conditions") or ()},
    }
    entry = {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": obj["apiVersion"],
        "time": format_time(context.now),
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": fields},
        "subresource": "status",
    }
    if status:
        metadata["managedFields"] = [*metadata.get("managedFields", ()), entry]


def _keyed(type_: str) -> str:
    return f'k:{{"type":"{type_}"}}'


def end_definition(obj: Object, context: WriteContext) -> None:
    """The first step of the deletion of a CRD: it waits for its objects."""
    metadata = obj["metadata"]
    metadata["finalizers"] = list(dict.fromkeys([*metadata.get("finalizers", ()), FINALIZER]))
    obj["status"] = dict(obj.get("status") or {})
    said = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    set_condition(obj["status"], "Terminating", ("True", "InstanceDeletionPending", said), format_time(context.now))


def _shape_problems(obj: Object) -> list[FieldProblem]:
    """The problems of the types, without which nothing else can be checked."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return [required("spec")]
    found = [required(f"spec.{field}") for field in ("group", "scope") if not isinstance(spec.get(field), str)]
    accepted = spec.get("names")
    if not isinstance(accepted, dict):
        found.append(required("spec.names"))
    else:
        found += [required(f"spec.names.{field}") for field in ("plural", "kind") if not accepted.get(field)]
    versions = spec.get("versions")
    if not isinstance(versions, list) or not versions:
        return [*found, bad_value("spec.versions", "", "must have exactly one version marked as storage version")]
    for index, version in enumerate(versions):
        if not isinstance(version, dict) or not version.get("name"):
            found.append(required(f"spec.versions[{index}].name"))
        else:
            found += [
                required(f"spec.versions[{index}].{field}")
                for field in ("served", "storage")
                if not isinstance(version.get(field), bool)
            ]
    if not found and sum(version["storage"] for version in versions) != 1:
        found.append(bad_value("spec.versions", "", "must have exactly one version marked as storage version"))
    return found


def _problems(obj: Object, old: Object | None = None) -> list[FieldProblem]:
    """The problems by the rules of apiextensions.k8s.io/v1: names, versions, schemas, CEL rules and their cost."""
    return [FieldProblem(*problem) for problem in validate_crd(obj, old)]


class SoundDefinitions:
    """Remembers definitions in which no problem was found, by checksum.

    Thousands of clusters get the same ones, and to judge a large schema takes milliseconds.
    """

    def __init__(self, most: int = _REMEMBERED) -> None:
        self._most = most
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def problems(self, obj: Object) -> list[FieldProblem]:
        """The problems of a new definition."""
        checksum = _checksum(obj)
        if checksum in self._known:
            self._known.move_to_end(checksum)
            return []
        found = _problems(obj)
        if not found:
            self._known[checksum] = None
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        return found


def _checksum(obj: Object) -> bytes:
    """Covers all that `validate_crd` reads of a new definition."""
    metadata = obj.get("metadata") or {}
    read = repr([metadata.get("name"), metadata.get("annotations"), obj.get("spec")])
    return blake2b(read.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _stored_problems(obj: Object, old: Object) -> list[FieldProblem]:
    """A version in which objects may be stored cannot be removed."""
    listed = {version["name"] for version in obj["spec"]["versions"]}
    stored = old.get("status", {}).get("storedVersions") or ()
    return [
        bad_value(f"status.storedVersions[{index}]", name, _STILL_STORED.format(name=name))
        for index, name in enumerate(stored)
        if name not in listed
    ]
