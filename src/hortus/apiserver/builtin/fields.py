"""Fields that clients select by and that are not simply the text at their path: Go selects by `false` and `0` too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hortus.apiserver.builtin.cells.parts import look
from hortus.kube.objects import Object

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
"""By kind and path."""
IGNORED: Mapping[str, Mapping[str, dict[str, Any]]] = {
    "certificates.CertificateSigningRequest": {
        "": {"f:spec": {}, "f:status": {}},
        "status": {"f:spec": {}, "f:status": {"f:conditions": {}}},
        "approval": {"f:spec": {}, "f:status": {"f:certificate": {}}},
    },
}
"""By type, and subresource, what its endpoint gives nobody ownership of (ResourceDefinition.ignored)."""
