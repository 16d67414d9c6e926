"""Makes served kinds of a CRD, one for each version, shared by all clusters that define it alike."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import orjson

from hortus.apiserver.admission import WebhookClient
from hortus.apiserver.crds.conditions import SUFFIX, has_condition
from hortus.apiserver.crds.conversion import WebhookConverter
from hortus.apiserver.resources.definition import ResourceDefinition, TableColumn, WriteContext
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.resources.strategy import PlainStrategy
from hortus.apiserver.store.backend import Commit
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object, Resource

_log = logging.getLogger("hortus.apiserver.crds")
_AGE = TableColumn("Age", ".metadata.creationTimestamp", type="date")


class CustomStrategy(PlainStrategy):
    """The rules of objects of custom kinds: none may be created while their definition is being deleted."""

    def __init__(self, qualified: tuple[str, str], *, terminating: bool) -> None:
        self._plural, self._group = qualified
        self._terminating = terminating

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        if self._terminating:
            name = obj["metadata"].get("name", "")
            raise Forbidden(
                f'{self._plural}.{self._group} "{name}" is forbidden: '
                "create not allowed while custom resource definition is terminating",
                details={"name": name, "group": self._group, "kind": self._plural},
            )


class CustomKinds:
    """Makes kinds from CRDs and updates each cluster's registry."""

    def __init__(self, storage: Storage, registry: Registry, client: WebhookClient) -> None:
        self._storage = storage
        self._client = client
        self._registry = registry
        self._kinds: WeakValueDictionary[tuple[str, str, bool], Kind] = WeakValueDictionary()
        registry.load_with(self.load)
        storage.listen(self._changed, SUFFIX)

    async def load(self, cluster: str) -> None:
        page = await self._storage.list(f"{cluster}/{SUFFIX}", fresh=False)
        for record in page.records:
            try:
                self._serve(cluster, orjson.loads(record.value))
            except Exception:
                # The cluster's other kinds do not depend on it.
                _log.exception("a CRD is not understood and not served", extra={"object": record.name})

    def _changed(self, change: Commit) -> None:
        cluster = change.key.cluster
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
        converter = self._converter(spec)
        kinds = []
        for version in spec["versions"]:
            if not version["served"]:
                continue
            key = (digest, version["name"], terminating)
            kind = self._kinds.get(key)
            if kind is None:
                kind = self._kinds[key] = _kind(
                    spec, version, digest, upgrade=upgrade, terminating=terminating, converter=converter
                )
            kinds.append(kind)
        return kinds

    def _converter(self, spec: Object) -> WebhookConverter | None:
        conversion = spec.get("conversion") or {}
        if conversion.get("strategy") != "Webhook":
            return None
        schemas = {f"{spec['group']}/{version['name']}": _schema(version) for version in spec["versions"]}
        return WebhookConverter(conversion.get("webhook") or {}, schemas, self._client)


def stored_kind(crd: Object) -> Kind:
    """The kind that objects of a CRD are stored in, served or not; by it they can be deleted."""
    spec = crd["spec"]
    version = next(each for each in spec["versions"] if each["storage"])
    return _kind(spec, version, "", upgrade=True, terminating=True, converter=None)


def _kind(
    spec: Object,
    version: Object,
    digest: str,
    *,
    upgrade: bool,
    terminating: bool,
    converter: WebhookConverter | None,
) -> Kind:
    storage = next(each["name"] for each in spec["versions"] if each["storage"])
    return Kind(
        _definition(spec, version, terminating=terminating),
        custom=True,
        digest=digest,
        storage_version=storage,
        upgrade=upgrade or storage != version["name"],
        converter=converter,
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
        strategy=CustomStrategy((accepted["plural"], spec["group"]), terminating=terminating),
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


def _columns(version: Object) -> Sequence[TableColumn]:
    printed = version.get("additionalPrinterColumns")
    if not printed:
        return [_AGE]
    return [
        TableColumn(
            name=each["name"],
            path=each["jsonPath"],
            type=each["type"],
            format=each.get("format", ""),
            description=each.get("description")
            or f"Custom resource definition column (in JSONPath format): {each['jsonPath']}",
            priority=each.get("priority", 0),
        )
        for each in printed
    ]
