"""Custom resources: CustomResourceDefinition objects turned into served kinds, each logical cluster its own.

A CRD is served from the commit of its write on: its status - names accepted, established, stored versions - is set
while it is prepared, so there is nothing to wait for. Clusters whose CRDs are alike share compiled kinds by the digest
of the spec. A CRD in deletion takes its objects first (finalizer `customresourcecleanup.apiextensions.k8s.io`).
Source: API docs, CustomResourceDefinition v1. Versions convert by the strategy `None`: apiVersion changes, fields stay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import orjson

from hortus.apiserver.keyqueue import KeyQueue
from hortus.apiserver.namespaces import SERVER
from hortus.apiserver.resources.context import Context
from hortus.apiserver.resources.definition import (
    Column,
    FieldProblem,
    ResourceDefinition,
    Strategy,
    WriteContext,
)
from hortus.apiserver.resources.deletion import delete
from hortus.apiserver.resources.failures import bad_value, required
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.patching import modify
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.resources.scope import DeleteOptions, Scope, WriteOptions
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.resources.strategy import PlainStrategy
from hortus.apiserver.store.backend import Change, Key
from hortus.kube import naming
from hortus.kube.errors import MethodNotAllowed, NotFound
from hortus.kube.objects import Object, Resource, format_time
from hortus.schema import SchemaError, Structural

GROUP, PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"
SUFFIX = f"{GROUP}/{PLURAL}"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_STILL_STORED = (
    "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a "
    "storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
)
_AGE = Column("Age", ".metadata.creationTimestamp", type="date")


class CustomStrategy(PlainStrategy):
    """What is special about objects of custom kinds: none may be made while their definition is being deleted."""

    def __init__(self, *, terminating: bool) -> None:
        self._terminating = terminating

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        if self._terminating:
            raise MethodNotAllowed("create not allowed while custom resource definition is terminating")


class CustomKinds:
    """Makes kinds of CRDs and keeps each cluster's registry in step with them."""

    def __init__(self, storage: Storage, registry: Registry) -> None:
        self._storage = storage
        self._registry = registry
        self._kinds: WeakValueDictionary[tuple[str, str, bool], Kind] = WeakValueDictionary()
        registry.load_with(self.load)
        storage.listen(self._changed, SUFFIX)

    async def load(self, cluster: str) -> None:
        page = await self._storage.list(f"{cluster}/{SUFFIX}")
        for record in page.records:
            self._serve(cluster, orjson.loads(record.value))

    def _changed(self, change: Change) -> None:
        cluster = change.key.bucket.partition("/")[0]
        if not self._registry.is_loaded(cluster):
            return
        if change.value is not None:
            self._serve(cluster, orjson.loads(change.value))
        elif change.previous is not None:
            spec = orjson.loads(change.previous)["spec"]
            self._registry.define(cluster, spec["group"], spec["names"]["plural"], [])

    def _serve(self, cluster: str, crd: Object) -> None:
        spec = crd["spec"]
        self._registry.define(cluster, spec["group"], spec["names"]["plural"], self.kinds_of(crd))

    def kinds_of(self, crd: Object) -> list[Kind]:
        """The served versions of a CRD; none while its names are not accepted."""
        if not has_condition(crd, "Established"):
            return []
        spec, metadata = crd["spec"], crd["metadata"]
        terminating = "deletionTimestamp" in metadata
        stored = crd.get("status", {}).get("storedVersions") or []
        upgrade = metadata.get("generation", 1) > 1 or len(stored) > 1
        digest = hashlib.sha256(orjson.dumps([spec, upgrade], option=orjson.OPT_SORT_KEYS)).hexdigest()
        kinds = []
        for version in spec["versions"]:
            if not version["served"]:
                continue
            key = (digest, version["name"], terminating)
            kind = self._kinds.get(key)
            if kind is None:
                kind = self._kinds[key] = _kind(spec, version, digest, upgrade=upgrade, terminating=terminating)
            kinds.append(kind)
        return kinds


def _kind(spec: Object, version: Object, digest: str, *, upgrade: bool, terminating: bool) -> Kind:
    storage = next(each["name"] for each in spec["versions"] if each["storage"])
    return Kind(
        _definition(spec, version, terminating=terminating),
        custom=True,
        digest=digest,
        storage_version=storage,
        upgrade=upgrade or storage != version["name"],
    )


def _definition(spec: Object, version: Object, *, terminating: bool) -> ResourceDefinition:
    accepted = spec["names"]
    subresources = version.get("subresources") or {}
    return ResourceDefinition(
        resource=Resource(
            spec["group"],
            version["name"],
            accepted["plural"],
            accepted["kind"],
            namespaced=spec["scope"] == "Namespaced",
        ),
        singular=accepted.get("singular") or accepted["kind"].lower(),
        list_kind=accepted.get("listKind") or f"{accepted['kind']}List",
        schema=_schema(version),
        strategy=CustomStrategy(terminating=terminating),
        short_names=tuple(accepted.get("shortNames", ())),
        categories=tuple(accepted.get("categories", ())),
        columns=tuple(_columns(version)),
        status="status" in subresources,
        scale=subresources.get("scale"),
        field_selectors=tuple(each["jsonPath"].removeprefix(".") for each in version.get("selectableFields", ())),
        prune=not spec.get("preserveUnknownFields", False),
        unconditional_update=False,
    )


def _schema(version: Object) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _columns(version: Object) -> Sequence[Column]:
    printed = version.get("additionalPrinterColumns")
    if not printed:
        return [_AGE]
    return [
        Column(
            name=each["name"],
            path=each["jsonPath"],
            type=each["type"],
            format=each.get("format", ""),
            description=each.get("description", ""),
            priority=each.get("priority", 0),
        )
        for each in printed
    ]


def has_condition(crd: Object, type_: str) -> bool:
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(each["type"] == type_ and each["status"] == "True" for each in conditions)


class DefinitionStrategy:
    """The rules of CustomResourceDefinition objects, around those that `inner` (the built-in kind's strategy) has."""

    def __init__(self, inner: Strategy, registry: Registry) -> None:
        self._inner = inner
        self._registry = registry

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        self._inner.prepare_create(obj, context)
        _default(obj)
        if not _shape_problems(obj):
            metadata = obj["metadata"]
            metadata["finalizers"] = list(dict.fromkeys([*metadata.get("finalizers", ()), FINALIZER]))
            self._accept(obj, context)

    def prepare_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        self._inner.prepare_update(obj, old, context)
        if context.subresource == "status":
            return
        _default(obj)
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
        storage = next(each["name"] for each in spec["versions"] if each["storage"])
        stored = [name for name in status.get("storedVersions") or () if name != storage]
        status["storedVersions"] = [*stored, storage]
        accepted = ("False", conflict[0], conflict[1]) if conflict else ("True", "NoConflicts", "no conflicts found")
        ready = ("True", "InitialNamesAccepted", "the initial names have been accepted")
        if conflict and not established:
            ready = ("False", "NotAccepted", "not all names are accepted")
        _set_condition(status, "NamesAccepted", accepted, now)
        _set_condition(status, "Established", ready, now)

    def _conflict(self, obj: Object, cluster: str) -> tuple[str, str] | None:
        """Reason and message for the names that other resources of the group hold; of several, the last one's."""
        spec, wanted = obj["spec"], obj["spec"]["names"]
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
        return _shape_problems(obj) or [*self._inner.validate(obj, context), *_problems(obj)]

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        if context.subresource == "status":
            return []
        found = _shape_problems(obj) or [*self._inner.validate_update(obj, old, context), *_problems(obj)]
        return found or _immutable_problems(obj, old)

    def check_delete(self, obj: Object, context: WriteContext) -> None:
        self._inner.check_delete(obj, context)

    def generation_changed(self, obj: Object, old: Object) -> bool:
        return bool(obj.get("spec") != old.get("spec"))

    def cells(self, obj: Object, now: float) -> Mapping[str, Any]:
        return self._inner.cells(obj, now)


def _default(obj: Object) -> None:
    spec = obj.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("names"), dict):
        return
    accepted = spec["names"]
    kind = accepted.get("kind")
    if isinstance(kind, str):
        if not accepted.get("singular"):
            accepted["singular"] = kind.lower()
        if not accepted.get("listKind"):
            accepted["listKind"] = f"{kind}List"
    spec.setdefault("conversion", {"strategy": "None"})


def _shape_problems(obj: Object) -> list[FieldProblem]:
    """What must hold before anything else can be looked at."""
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


def _problems(obj: Object) -> list[FieldProblem]:
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    found: list[FieldProblem] = []
    plural, group = spec["names"]["plural"], spec["group"]
    if name != f"{plural}.{group}":
        found.append(bad_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if problems := naming.dns_subdomain(group):
        found += [bad_value("spec.group", group, problem) for problem in problems]
    elif "." not in group:
        found.append(bad_value("spec.group", group, "should be a domain with at least one dot"))
    found += [bad_value("spec.names.plural", plural, problem) for problem in naming.dns_1035_label(plural)]
    for problem in naming.dns_1035_label(spec["names"]["kind"].lower()):
        message = f"may have mixed case, but should otherwise match: {problem}"
        found.append(bad_value("spec.names.kind", spec["names"]["kind"], message))
    if spec["scope"] not in ("Cluster", "Namespaced"):
        supported = '"Cluster", "Namespaced"'
        found.append(
            FieldProblem(
                "spec.scope",
                f'Unsupported value: "{spec["scope"]}": supported values: {supported}',
                "FieldValueNotSupported",
            )
        )
    for index, version in enumerate(spec["versions"]):
        found += _version_problems(f"spec.versions[{index}]", version)
    return found


def _version_problems(path: str, version: Object) -> list[FieldProblem]:
    name = version["name"]
    found = [bad_value(f"{path}.name", name, problem) for problem in naming.dns_1035_label(name)]
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    where = f"{path}.schema.openAPIV3Schema"
    if not isinstance(schema, dict):
        return [*found, required(where, "schemas are required")]
    if schema.get("type") != "object":
        found.append(bad_value(f"{where}.type", schema.get("type", ""), "must be object at the root"))
    try:
        Structural.compile(schema)
    except SchemaError as error:
        found.append(bad_value(where, "", str(error)))
    return found


def _immutable_problems(obj: Object, old: Object) -> list[FieldProblem]:
    spec, before = obj["spec"], old["spec"]
    found = []
    for path, now, then in (
        ("spec.group", spec["group"], before["group"]),
        ("spec.names.plural", spec["names"]["plural"], before["names"]["plural"]),
        ("spec.names.kind", spec["names"]["kind"], before["names"]["kind"]),
        ("spec.scope", spec["scope"], before["scope"]),
    ):
        if now != then:
            found.append(bad_value(path, now, "field is immutable"))
    listed = {version["name"] for version in spec["versions"]}
    stored = old.get("status", {}).get("storedVersions") or ()
    for index, name in enumerate(stored):
        if name not in listed:
            found.append(bad_value(f"status.storedVersions[{index}]", name, _STILL_STORED.format(name=name)))
    return found


def _set_condition(status: Object, type_: str, said: tuple[str, str, str], now: str) -> None:
    value, reason, message = said
    conditions = [dict(each) for each in status.get("conditions") or ()]
    status["conditions"] = conditions
    for each in conditions:
        if each["type"] == type_:
            if each["status"] != value:
                each["lastTransitionTime"] = now
            each.update(status=value, reason=reason, message=message)
            return
    conditions.append({"type": type_, "status": value, "lastTransitionTime": now, "reason": reason, "message": message})


class DefinitionController:
    """Takes the objects of CRDs that are being deleted, and looks again at CRDs whose names were taken."""

    def __init__(self, ctx: Context, kinds: CustomKinds) -> None:
        self._ctx = ctx
        self._kinds = kinds
        self.queue: KeyQueue[Key] = KeyQueue("custom-resources", ctx.clock, self._look_at)
        ctx.storage.listen(self._changed)
        self._ending: dict[str, Key] = {}
        """Buckets of objects that must go, and the CRD that waits for it."""

    async def start(self) -> None:
        await self.queue.start()
        for bucket in await self._ctx.storage.buckets(""):
            if bucket.endswith(f"/{SUFFIX}"):
                for record in (await self._ctx.storage.list(bucket)).records:
                    self._seen(record.key, record.value)

    async def stop(self) -> None:
        await self.queue.stop()

    def forget(self, cluster: str) -> None:
        prefix = f"{cluster}/"
        self._ending = {bucket: key for bucket, key in self._ending.items() if not bucket.startswith(prefix)}

    def _changed(self, change: Change) -> None:
        if change.record is not None and not change.record.bucket.endswith(SUFFIX):
            return
        key = change.key
        if not key.bucket.endswith(SUFFIX):
            if key.bucket in self._ending:
                self.queue.add(self._ending[key.bucket])
        elif change.value is not None:
            self._seen(key, change.value)
        else:
            self._ending = {bucket: crd for bucket, crd in self._ending.items() if crd != key}
            self.queue.add(Key(key.bucket, ""))

    def _seen(self, key: Key, value: bytes) -> None:
        if b'"deletionTimestamp"' in value:
            self.queue.add(key)

    async def _look_at(self, key: Key) -> None:
        cluster = key.bucket.partition("/")[0]
        kind = await self._ctx.registry.find(cluster, GROUP, "v1", PLURAL)
        if kind is None:
            return
        if not key.name:
            await self._accept_waiting(cluster, kind)
            return
        record = await self._ctx.storage.get(key)
        if record is not None and b'"deletionTimestamp"' in record.value:
            await self._finish(cluster, kind, key, orjson.loads(record.value))

    async def _accept_waiting(self, cluster: str, kind: Kind) -> None:
        """A CRD has gone: its names may be what others wait for. Any write makes the strategy look again."""
        for record in (await self._ctx.storage.list(f"{cluster}/{SUFFIX}")).records:
            crd = orjson.loads(record.value)
            if not has_condition(crd, "NamesAccepted"):
                scope = Scope(cluster, kind, SERVER, "", crd["metadata"]["name"])
                await self._modify(scope, lambda obj: obj)

    async def _finish(self, cluster: str, kind: Kind, key: Key, crd: Object) -> None:
        spec = crd["spec"]
        bucket = f"{cluster}/{spec['group']}/{spec['names']['plural']}"
        self._ending[bucket] = key
        await self._ctx.registry.load(cluster)
        instances = self._ctx.registry.by_suffix(cluster, bucket.partition("/")[2])
        if instances is not None:
            for record in (await self._ctx.storage.list(bucket)).records:
                await self._delete_instance(cluster, instances, record.name)
        scope = Scope(cluster, kind, SERVER, "", crd["metadata"]["name"])
        if await self._ctx.storage.count(bucket):
            now = format_time(self._ctx.clock.now())
            if not has_condition(crd, "Terminating"):
                await self._modify(scope._replace(subresource="status"), lambda obj: _terminating(obj, now))
            return
        del self._ending[bucket]
        await self._modify(scope, _without_finalizer)

    async def _delete_instance(self, cluster: str, kind: Kind, name: str) -> None:
        namespace, _, plain = name.partition("/")
        try:
            await delete(self._ctx, Scope(cluster, kind, SERVER, namespace, plain), DeleteOptions())
        except NotFound:
            return

    async def _modify(self, scope: Scope, change: Any) -> None:
        try:
            await modify(self._ctx, scope, change, WriteOptions(manager="hortus-apiserver"))
        except NotFound:
            return


def _terminating(obj: Object, now: str) -> Object:
    status = obj["status"] = dict(obj.get("status") or {})
    _set_condition(
        status, "Terminating", ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"), now
    )
    return obj


def _without_finalizer(obj: Object) -> Object:
    finalizers = obj["metadata"].get("finalizers", ())
    obj["metadata"]["finalizers"] = [name for name in finalizers if name != FINALIZER]
    return obj
