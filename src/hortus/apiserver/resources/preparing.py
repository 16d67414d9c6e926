"""The phases of a write before validation: the object is read, defaulted and prepared by its kind's strategy.

They change the sent object in place. What an endpoint may not write keeps its stored value.
"""

from __future__ import annotations

from hortus.apiserver.http import go_kind, with_whole_numbers
from hortus.apiserver.resources import metadata
from hortus.apiserver.resources.definition import WriteContext
from hortus.apiserver.resources.failures import cannot_decode, conflict
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.scope import RequestScope, WriteOptions
from hortus.kube.objects import Object

QUIET = WriteOptions()
"""Options of an object that is read for the second time: its warnings were given."""


def read_object(kind: Kind, obj: Object, options: WriteOptions, *, prune: bool = True) -> list[str]:
    """Checks types and drops unknown fields; returns the warnings. Raises BadRequest."""
    metadata.check_type(kind, obj)
    unknown = metadata.read_metadata(kind, obj)
    if kind.custom:
        for part, value in obj.items():
            if part != "metadata":
                obj[part] = with_whole_numbers(value)
    if prune and kind.definition.prune:
        unknown += kind.structural.prune(obj)
        if kind.definition.drop_unknown is not None:
            unknown += kind.definition.drop_unknown(obj)
    owners = metadata.without_repeated_owners(obj)
    if options.validation == "Ignore" or not (unknown or options.noticed):
        return owners
    texts = list(options.noticed)
    texts += [f'unknown field "{path}"' for path in unknown]
    if options.validation == "Strict":
        raise cannot_decode(kind.resource, f"strict decoding error: {', '.join(texts)}")
    return [*texts, *owners]


def prepare_create(kind: Kind, obj: Object, context: WriteContext) -> None:
    definition = kind.definition
    if definition.status and not definition.status_on_create:
        status, resource = obj.pop("status", None), kind.resource
        if not kind.custom and not isinstance(status, dict | None):
            place = f"{resource.kind}.status of type {resource.version}.{resource.kind}Status"
            raise cannot_decode(resource, f"json: cannot unmarshal {go_kind(status)} into Go struct field {place}")
    kind.structural.default(obj)
    definition.strategy.prepare_create(obj, context)
    if definition.generation and definition.strategy.generation_changed(obj, {}):
        obj["metadata"]["generation"] = 1


def complete(kind: Kind, obj: Object, context: WriteContext) -> None:
    if kind.definition.complete is not None:
        kind.definition.complete(obj, context)
    if kind.definition.allocate is not None:
        kind.definition.allocate(obj, None)


async def mutate(kind: Kind, obj: Object, old: Object | None, context: WriteContext) -> None:
    if kind.definition.mutate is not None:
        await kind.definition.mutate(obj, old, context)


def allocate(kind: Kind, obj: Object, old: Object, subresource: str) -> None:
    if kind.definition.allocate is not None and not subresource:
        kind.definition.allocate(obj, old)


def prepare_update(kind: Kind, obj: Object, old: Object, context: WriteContext) -> None:
    strategy = kind.definition.strategy
    kind.structural.default(obj)
    strategy.prepare_update(obj, old, context)
    if kind.definition.generation and strategy.generation_changed(obj, old):
        obj["metadata"]["generation"] = int(old["metadata"].get("generation", 0)) + 1


def isolated(kind: Kind, subresource: str, obj: Object, old: Object) -> Object:
    """The parts of the object that this endpoint may write: the main one all but the status, `status` the status alone.

    Built-in kinds accept metadata on `status` too, custom resources do not (KEP-95, CRD subresources).
    """
    if not kind.definition.status or (subresource == "binding" and kind.suffix == "core/pods"):
        return obj
    if subresource not in ("status", "approval"):
        status = old.get("status")
    else:
        status, sent = obj.get("status"), obj["metadata"]
        meta = dict(old["metadata"]) if kind.custom else dict(sent)
        for field in ("managedFields", "resourceVersion", "uid"):
            if field in sent:
                meta[field] = sent[field]
            elif field == "managedFields":
                meta.pop(field, None)
        obj = {**old, "metadata": meta}
    if status is None:
        obj.pop("status", None)
    else:
        obj["status"] = status
    return obj


def read_again(kind: Kind, subresource: str, obj: Object, old: Object) -> Object:
    """Reads the object after webhooks changed it; parts that this endpoint does not write keep their stored values."""
    read_object(kind, obj, QUIET)
    obj = isolated(kind, subresource, obj, old)
    metadata.carry_over(kind, obj, old)
    return obj


def check_uid(kind: Kind, scope: RequestScope, obj: Object, stored: str) -> None:
    """Raises Conflict when the writer means an object of another uid than `stored`."""
    uid = obj["metadata"].get("uid", "")
    if uid and uid != stored:
        resource = kind.resource
        place = "/".join(filter(None, (resource.group if kind.custom else "", resource.plural, scope.namespace)))
        raise conflict(
            kind,
            scope.name,
            f"StorageError: invalid object, Code: 4, Key: /registry/{place}/{scope.name}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}",
        )
