"""Reads `resources.txt`: how each built-in kind is served, as ResourceDefinitions for the server."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any, Literal, NamedTuple

from hortus.apiserver.builtin.cells import printer
from hortus.apiserver.builtin.cells.parts import look
from hortus.apiserver.builtin.forms import FORMS
from hortus.apiserver.builtin.rules import STRATEGIES
from hortus.apiserver.builtin.rules.configuration import end_namespace
from hortus.apiserver.builtin.schemas import kind_schema
from hortus.apiserver.builtin.shapes import builtin_shapes
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import ResourceDefinition, TableColumn
from hortus.kube.objects import Object, Resource

_TEMPLATE: Mapping[str, Any] = {"metadata": {"creationTimestamp": None}, "spec": {"containers": []}}
_BALANCED: Mapping[str, Any] = {"spec": {}, "status": {"loadBalancer": {}}}

# A new object is compared with these to find what its creator owns (KEP-555), so that nobody owns the mere presence of
# a Deployment's `strategy`. From the types of k8s.io/api: their fields without `omitempty`, and structs within.
ZERO: Mapping[str, Mapping[str, Any]] = {
    "CronJob": {"spec": {"jobTemplate": {"metadata": {"creationTimestamp": None}, "spec": {"template": _TEMPLATE}}}},
    "CustomResourceDefinition": {"spec": {"names": {}, "versions": []}, "status": {"acceptedNames": {}}},
    "DaemonSet": {"spec": {"template": _TEMPLATE, "updateStrategy": {}}},
    "Deployment": {"spec": {"template": _TEMPLATE, "strategy": {}}},
    "Event": {
        **{key: {} for key in ("involvedObject", "source", "regarding", "deprecatedSource")},
        **dict.fromkeys(("eventTime", "firstTimestamp", "lastTimestamp")),
        **dict.fromkeys(("deprecatedFirstTimestamp", "deprecatedLastTimestamp")),
        "reportingComponent": "",
        "reportingInstance": "",
    },
    "HorizontalPodAutoscaler": {"spec": {"scaleTargetRef": {}}, "status": {}},
    "Ingress": _BALANCED,
    "Job": {"spec": {"template": _TEMPLATE}},
    "NetworkPolicy": {"spec": {"podSelector": {}}},
    "PersistentVolumeClaim": {"spec": {"resources": {}}, "status": {}},
    "Pod": {"spec": {"containers": []}, "status": {}},
    "PodTemplate": {"template": _TEMPLATE},
    "ReplicaSet": {"spec": {"template": _TEMPLATE}},
    "Service": _BALANCED,
    "StatefulSet": {"spec": {"template": _TEMPLATE, "updateStrategy": {}}},
    "ClusterRole": {"rules": []},
    "ClusterRoleBinding": {"roleRef": {}},
    "Role": {"rules": []},
    "RoleBinding": {"roleRef": {}},
}
"""The spec and status that a built-in kind holds when nothing is set: Go structs that are no pointers always appear."""

_Reader = Callable[[Object], str]


def _flag(*path: str) -> _Reader:
    return lambda obj: "true" if look(obj, *path) else "false"


def _number(*path: str) -> _Reader:
    return lambda obj: str(look(obj, *path) or 0)


def _source(event: Object) -> str:
    return str(look(event, "source", "component") or event.get("reportingComponent") or "")


FIELD_VALUES: Mapping[str, Mapping[str, _Reader]] = {
    "Node": {"spec.unschedulable": _flag("spec", "unschedulable")},
    "Pod": {"spec.hostNetwork": _flag("spec", "hostNetwork")},
    "ReplicaSet": {"status.replicas": _number("status", "replicas")},
    "ReplicationController": {"status.replicas": _number("status", "replicas")},
    "Job": {"status.successful": _number("status", "succeeded")},
    "Event": {"source": _source},
}
"""By kind and path: the selectable fields that are not simply the text at their path; Go selects by `false` and `0`."""
IGNORED: Mapping[str, Mapping[str, dict[str, Any]]] = {
    "certificates.CertificateSigningRequest": {
        "": {"f:spec": {}, "f:status": {}},
        "status": {"f:spec": {}, "f:status": {"f:conditions": {}}},
        "approval": {"f:spec": {}, "f:status": {"f:certificate": {}}},
    },
}
"""By type and subresource, the fields that its endpoint gives no ownership of (ResourceDefinition.ignored)."""


_COLUMN_TYPES = {"int": "integer", "bool": "boolean"}
_SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector",
}
_NAME_RULES: dict[str, Literal["subdomain", "label", "path-segment"]] = {
    "Namespace": "label",
    "Service": "label",
    "Role": "path-segment",
    "ClusterRole": "path-segment",
    "RoleBinding": "path-segment",
    "ClusterRoleBinding": "path-segment",
    "CertificateSigningRequest": "path-segment",
    "APIService": "path-segment",
}
_CREATED_ON_PUT = frozenset({"Lease", "Event", "Endpoints", "Node", "LimitRange", "ClusterRole", "ClusterRoleBinding"})
_CREATED_ON_PUT |= {"Role", "RoleBinding", "APIService"}
_SHOWN_DELETED = frozenset({"PersistentVolume", "PersistentVolumeClaim", "Pod", "PodTemplate", "ResourceQuota"})
_SHOWN_DELETED |= {"Service", "ServiceAccount", "CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"}
_ALL_VERBS = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})
CELL_PREFIX = "cell:"


class CatalogueEntry(NamedTuple):
    """One kind as `resources.txt` lists it."""

    resource: Resource
    type_name: str
    options: dict[str, str]
    columns: tuple[tuple[str, str, frozenset[str]], ...]
    """Name, cell and options of each column."""


def entries(text: str) -> list[CatalogueEntry]:
    """The kinds listed in a text of this format."""
    found: list[CatalogueEntry] = []
    group, version, alias = "", "", ""
    for line in text.split("\n"):
        if line.startswith("= "):
            _, api_version, alias = line.split(" ")
            group, _, version = api_version.rpartition("/")
        elif line.startswith(" "):
            name, cell, *marks = line.split()
            column = (name.replace("_", " "), cell, frozenset(marks))
            found[-1] = found[-1]._replace(columns=(*found[-1].columns, column))
        elif line and not line.startswith("#"):
            plural, kind, scope, *words = line.split(" ")
            resource = Resource(group, version, plural, kind, namespaced=scope == "ns")
            options = {word.partition("=")[0]: word.partition("=")[2] for word in words}
            found.append(CatalogueEntry(resource, f"{alias}.{kind}", options, ()))
    return found


def definition(entry: CatalogueEntry) -> ResourceDefinition:
    """The ResourceDefinition by which the server serves the kind."""
    resource, options = entry.resource, entry.options
    columns = columns_of(entry)
    printers = {column.path: printer(column.path.removeprefix(CELL_PREFIX)) for column in columns}
    rules = STRATEGIES.get(entry.type_name, BuiltinStrategy)
    strategy = rules(resource, entry.type_name, builtin_shapes(), printers)
    return ResourceDefinition(
        resource=resource,
        singular=options.get("singular") or resource.kind.lower(),
        list_kind=f"{resource.kind}List",
        schema=kind_schema(entry.type_name, resource.gvk),
        strategy=strategy,
        complete=strategy.complete,
        read_for_status=strategy.read_for_status,
        allocate=strategy.allocate,
        end=end_namespace if entry.type_name == "core.Namespace" else None,
        ignored=IGNORED.get(entry.type_name, {}),
        zero=ZERO.get(resource.kind, {}),
        short_names=words_of(options, "short"),
        categories=words_of(options, "cat"),
        columns=columns,
        status="status" in options,
        status_on_create="status-on-create" in options,
        scale=_SCALE if "scale" in options else None,
        field_selectors=words_of(options, "fields"),
        field_values=FIELD_VALUES.get(resource.kind, {}),
        stored=FORMS.get(entry.type_name),
        generation="generation" in options,
        name_rule=_NAME_RULES.get(resource.kind, "subdomain"),
        shows_deleted=resource.kind in _SHOWN_DELETED,
        create_on_update=resource.kind in _CREATED_ON_PUT,
        verbs=frozenset(words_of(options, "verbs")) or _ALL_VERBS,
    )


def words_of(options: dict[str, str], name: str) -> tuple[str, ...]:
    """The words of an option."""
    return tuple(word for word in options.get(name, "").split(",") if word)


def columns_of(entry: CatalogueEntry) -> tuple[TableColumn, ...]:
    """The columns of a kind's table; the path of each names its cell."""
    listed = entry.columns or (("Created At", "created_at", frozenset[str]()),)
    if "unnamed" not in entry.options:
        listed = (("Name", ".metadata.name", frozenset[str]()), *listed)
    return tuple(
        TableColumn(
            name=name,
            # All are computed here: an empty JSONPath would print differently from a cluster's printers.
            path=CELL_PREFIX + cell,
            type=next((_COLUMN_TYPES[option] for option in options if option in _COLUMN_TYPES), "string"),
            format="name" if cell == ".metadata.name" else "",
            priority=1 if "wide" in options else 0,
        )
        for name, cell, options in listed
    )


@functools.cache
def definitions() -> Sequence[ResourceDefinition]:
    """Every built-in kind, groups in the order discovery lists them."""
    text = resources.files(__package__).joinpath("resources.txt").read_text("utf-8")
    return tuple(definition(entry) for entry in entries(text))
