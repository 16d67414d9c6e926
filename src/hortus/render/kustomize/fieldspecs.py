"""Finding fields by kind and path, and the fields that labels, annotations, namespaces and counts go to.

A path leads through lists by itself; `name[]` says that a list must be there; `\\/` is a slash within a name. The
tables are the built-in transformer configuration of kustomize v5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from hortus.kube.objects import Object
from hortus.render.kustomize.documents import ConfiguredField, FieldSpec
from hortus.render.kustomize.errors import KustomizeError
from hortus.render.kustomize.resources import Resource

Setter = Callable[[Any], Any]
"""From the value at a place, which may be null, to the value that it gets."""

_POD_TEMPLATES = ("Deployment", "ReplicaSet", "DaemonSet")


def _spec(path: str, kind: str = "", group: str = "", version: str = "", *, create: bool = True) -> ConfiguredField:
    return ConfiguredField(path=path, group=group, version=version, kind=kind, create=create)


def _templates(field: str, stateful_group: str) -> list[ConfiguredField]:
    """The metadata of an object and of the pods it makes."""
    template = f"spec/template/metadata/{field}"
    return [
        _spec(f"metadata/{field}"),
        _spec(template, "ReplicationController", version="v1"),
        *(_spec(template, kind) for kind in _POD_TEMPLATES),
        _spec(template, "StatefulSet", stateful_group),
        _spec(template, "Job", "batch"),
        _spec(f"spec/jobTemplate/metadata/{field}", "CronJob", "batch"),
        _spec(f"spec/jobTemplate/spec/template/metadata/{field}", "CronJob", "batch"),
    ]


_AFFINITY = "spec/template/spec/affinity/{}/{}/matchLabels"
_TERMS = (
    "preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm/labelSelector",
    "requiredDuringSchedulingIgnoredDuringExecution/labelSelector",
)


def _pod_selectors(kind: str) -> list[ConfiguredField]:
    """The fields of a workload by which its pods select other pods of it."""
    paths = [_AFFINITY.format(side, term) for side in ("podAffinity", "podAntiAffinity") for term in _TERMS]
    paths.append("spec/template/spec/topologySpreadConstraints/labelSelector/matchLabels")
    return [_spec(path, kind, "apps", create=False) for path in paths]


_SELECTOR = "spec/selector/matchLabels"
METADATA_LABELS = _spec("metadata/labels")
TEMPLATE_LABELS = [
    *_templates("labels", "apps"),
    _spec("spec/volumeClaimTemplates[]/metadata/labels", "StatefulSet", "apps"),
]
COMMON_LABELS = [
    _spec("spec/selector", "Service", version="v1"),
    _spec("spec/selector", "ReplicationController", version="v1"),
    *(_spec(_SELECTOR, kind) for kind in _POD_TEMPLATES),
    _spec(_SELECTOR, "StatefulSet", "apps"),
    *_pod_selectors("Deployment"),
    *_pod_selectors("StatefulSet"),
    _spec(_SELECTOR, "Job", "batch", create=False),
    _spec("spec/jobTemplate/spec/selector/matchLabels", "CronJob", "batch", create=False),
    _spec(_SELECTOR, "PodDisruptionBudget", "policy", create=False),
    _spec("spec/podSelector/matchLabels", "NetworkPolicy", "networking.k8s.io", create=False),
    _spec("spec/ingress/from/podSelector/matchLabels", "NetworkPolicy", "networking.k8s.io", create=False),
    _spec("spec/egress/to/podSelector/matchLabels", "NetworkPolicy", "networking.k8s.io", create=False),
    *TEMPLATE_LABELS,
]
COMMON_ANNOTATIONS = _templates("annotations", "")
REPLICAS = [
    _spec("spec/replicas", kind) for kind in ("Deployment", "ReplicationController", "ReplicaSet", "StatefulSet")
]
NAME = [_spec("metadata/name", create=False)]
NAMESPACE = [
    _spec("spec/service/namespace", "APIService", "apiregistration.k8s.io"),
    _spec(
        "spec/conversion/webhook/clientConfig/service/namespace",
        "CustomResourceDefinition",
        "apiextensions.k8s.io",
        create=False,
    ),
]


_POD_PATHS = {
    "Pod": "spec",
    "CronJob": "spec/jobTemplate/spec/template/spec",
    **dict.fromkeys(("DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"), "spec/template/spec"),
}
_SERVERS = {
    "CronJob": "spec/jobTemplate/spec/template/volumes",
    "StatefulSet": "spec/volumeClaimTemplates/spec",
    "PersistentVolume": "spec",
}
"""Fields that name an NFS server other than in the volumes of pods."""
VARIABLES = [
    *(
        _spec(f"{path}/{containers}/{field}", kind, create=False)
        for kind, path in _POD_PATHS.items()
        for containers in ("containers", "initContainers")
        for field in ("args", "command", "env/value", "volumeMounts/mountPath")
    ),
    *(
        _spec(f"{path}/volumes/nfs/server", kind, create=False)
        for kind, path in _POD_PATHS.items()
        if kind not in _SERVERS
    ),
    *(_spec(f"{path}/nfs/server", kind, create=False) for kind, path in _SERVERS.items()),
    _spec("spec/template/metadata/annotations", "Deployment", create=False),
    *(_spec(f"spec/{field}", "Ingress", create=False) for field in ("rules/host", "tls/hosts", "tls/secretName")),
    *(_spec(f"spec/ports/{field}", "Service", create=False) for field in ("port", "targetPort")),
    _spec("metadata/labels", create=False),
    _spec("metadata/annotations", create=False),
]
"""Fields in which `$(NAME)` stands for a variable."""

Fields = TypeVar("Fields", bound=FieldSpec)


def merged(specs: Iterable[Fields], others: Iterable[Fields], place: str) -> list[Fields]:
    """`specs` and those of `others` that none of them covers. Raises KustomizeError when two disagree on creating."""
    found = list(specs)
    for other in others:
        known = next((one for one in found if one.path == other.path and _covers(one, other)), None)
        if known is None:
            found.append(other)
        elif known.create != other.create:
            raise KustomizeError(place, f"the field {other.path!r} is given twice, once to create and once not")
    return found


def _covers(one: FieldSpec, other: FieldSpec) -> bool:
    pairs = ((one.group, other.group), (one.version, other.version), (one.kind, other.kind))
    return all(not b or a == b for a, b in pairs)


def set_field(resource: Resource, spec: FieldSpec, setter: Setter, *, empty: Callable[[], Any], place: str) -> None:
    """Set all fields of `resource` that `spec` means; `empty` makes what a field holds that is created."""
    group, version = resource.group_version
    pairs = ((spec.group, group), (spec.version, version), (spec.kind, resource.kind))
    if all(not wanted or wanted == found for wanted, found in pairs):
        _Walk(spec, setter, empty, f"{place}: {resource.current}").step(resource.obj, split_path(spec.path))


class _Walk:
    def __init__(self, spec: FieldSpec, setter: Setter, empty: Callable[[], Any], place: str) -> None:
        self._spec = spec
        self._setter = setter
        self._empty = empty
        self._place = place

    def step(self, value: Any, path: list[str]) -> None:
        """Go on from a map or list; the last part of a path is set in the map that holds it."""
        if isinstance(value, list):
            for item in value:
                self.step(item, path)
        elif isinstance(value, dict):
            self._field(value, path)
        elif value is not None:
            raise KustomizeError(self._place, f"{self._spec.path}: a scalar stands where a map or list is expected")

    def _field(self, value: Object, path: list[str]) -> None:
        name = path[0].removesuffix("[]")
        if not name:
            raise KustomizeError(self._place, f"the path {self._spec.path!r} has an empty part")
        is_list, is_last = name != path[0], len(path) == 1
        create = self._spec.create and not is_list
        if name not in value and not create:
            return
        found = value.get(name)
        if found is None and (create or is_list):
            found = value[name] = [] if is_list else self._empty() if is_last else {}
        if not is_last:
            self.step(found, path[1:])
        elif isinstance(found, list):
            value[name] = [self._setter(item) for item in found]
        else:
            value[name] = self._setter(found)


def split_path(path: str) -> list[str]:
    """The parts of a path with `/`, in which a backslash keeps the slash after it."""
    parts = path.removeprefix("/").split("/")
    found = [parts[0]]
    for part in parts[1:]:
        if found[-1].endswith("\\"):
            found[-1] = f"{found[-1][:-1]}/{part}"
        else:
            found.append(part)
    return found
