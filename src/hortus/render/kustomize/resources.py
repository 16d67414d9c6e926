"""Resources while they are being customized, with the identities they had on the way.

References are found by what a resource was called before, so each change of name, namespace or kind is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from hortus.kube.objects import Object
from hortus.kube.yaml import YamlError, load_all
from hortus.render.kustomize.errors import KustomizeError


class _Blank:
    """A null that is not written out: `key:`. A patch takes such a key away, and keeps `key: null`."""

    def __repr__(self) -> str:
        return "blank"


BLANK: Final = _Blank()
NOT_NAMESPACED = "_non_namespaceable_"
_DEFAULT = "default"

_CLUSTER_SCOPED = {
    ("admissionregistration.k8s.io", "v1 v1beta1"): "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
    ("apiextensions.k8s.io", "v1 v1beta1"): "CustomResourceDefinition",
    ("apiregistration.k8s.io", "v1 v1beta1"): "APIService",
    ("certificates.k8s.io", "v1 v1beta1"): "CertificateSigningRequest",
    ("flowcontrol.apiserver.k8s.io", "v1beta1"): "FlowSchema PriorityLevelConfiguration",
    ("networking.k8s.io", "v1 v1beta1"): "IngressClass",
    ("node.k8s.io", "v1 v1beta1"): "RuntimeClass",
    ("policy", "v1beta1"): "PodSecurityPolicy",
    ("rbac.authorization.k8s.io", "v1 v1beta1"): "ClusterRole ClusterRoleBinding",
    ("scheduling.k8s.io", "v1 v1beta1"): "PriorityClass",
    ("storage.k8s.io", "v1 v1beta1"): "CSIDriver CSINode StorageClass VolumeAttachment",
    ("", "v1"): "ComponentStatus Namespace Node PersistentVolume",
}
"""The kinds that kustomize v5 knows to be cluster-scoped; any other counts as namespaced, newer built-in ones too."""
_CLUSTER_SCOPED_KINDS = {
    (group, version, kind)
    for (group, versions), kinds in _CLUSTER_SCOPED.items()
    for version in versions.split()
    for kind in kinds.split()
}


Path = tuple[str | int, ...]


class Identity(NamedTuple):
    """Group, version, kind, name, and the namespace that counts: `default` for none."""

    group: str
    version: str
    kind: str
    name: str
    space: str

    def __str__(self) -> str:
        version = f"{self.group}/{self.version}" if self.group else self.version
        return f"{version} {self.kind} {self.name} in {self.space}"

    def is_kind(self, group: str, version: str, kind: str) -> bool:
        """True when the three match where they are given."""
        return group in ("", self.group) and version in ("", self.version) and kind in ("", self.kind)


class Resource:
    """One object and what customizing needs to know of it."""

    __slots__ = ("behavior", "blanks", "needs_hash", "obj", "prefixes", "previous", "suffixes", "variables")

    def __init__(self, obj: Object, *, behavior: str = "", needs_hash: bool = False) -> None:
        self.obj = obj
        self.previous: list[Identity] = []
        self.prefixes: list[str] = []
        self.suffixes: list[str] = []
        self.behavior = behavior
        self.needs_hash = needs_hash
        self.variables: list[str] = []
        """Names of the variables that read this object."""
        self.blanks: list[Path] = []
        """The places at which its file has a key with nothing after it."""

    @property
    def group_version(self) -> tuple[str, str]:
        group, slash, version = str(self.obj.get("apiVersion") or "").partition("/")
        return (group, version) if slash else ("", group)

    @property
    def kind(self) -> str:
        return str(self.obj.get("kind") or "")

    @property
    def name(self) -> str:
        return text(metadata(self.obj).get("name"))

    @property
    def namespace(self) -> str:
        return text(metadata(self.obj).get("namespace"))

    @property
    def is_cluster_scoped(self) -> bool:
        return (*self.group_version, self.kind) in _CLUSTER_SCOPED_KINDS

    @property
    def current(self) -> Identity:
        space = NOT_NAMESPACED if self.is_cluster_scoped else self.namespace or _DEFAULT
        return Identity(*self.group_version, self.kind, self.name, space)

    @property
    def original(self) -> Identity:
        return self.previous_identities()[0] if self.previous else self.current

    def previous_identities(self) -> list[Identity]:
        """Earlier identities, oldest first; group and version are always those of now."""
        group, version = self.group_version
        return [one._replace(group=group, version=version) for one in self.previous]

    def identities(self) -> list[Identity]:
        return [*self.previous_identities(), self.current]

    def remember(self) -> None:
        """Note the present identity before it changes."""
        self.previous.append(self.current)

    @property
    def is_marked(self) -> bool:
        """True when kustomize would have annotations of its own on it by now."""
        return bool(self.previous or self.prefixes or self.suffixes or self.needs_hash or self.behavior)


class Resources:
    """An ordered set of resources without two of one identity."""

    def __init__(self) -> None:
        self._all: list[Resource] = []

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._all))

    def __len__(self) -> int:
        return len(self._all)

    def append_all(self, others: list[Resource], place: str) -> None:
        """Raises KustomizeError for an identity that is taken."""
        taken = {one.current for one in self._all}
        for other in others:
            if other.current in taken:
                raise KustomizeError(place, f"{other.current} stands in the resources twice")
            taken.add(other.current)
            self._all.append(other)

    def replace(self, old: Resource, new: Resource) -> None:
        self._all[self._all.index(old)] = new

    def drop_empty(self) -> None:
        self._all = [one for one in self._all if one.obj]

    def matching(self, wanted: Callable[[Identity], bool]) -> list[Resource]:
        """The resources that have or had an identity like that."""
        return [one for one in self._all if any(map(wanted, one.identities()))]

    def only(self, identity: Identity, what: str, place: str) -> Resource:
        """The one resource that has or had `identity`. Raises KustomizeError."""
        found = self.matching(identity.__eq__)
        if len(found) != 1:
            problem = f"{len(found)} resources match" if found else "no resource matches"
            raise KustomizeError(place, f"{problem} {what} for {identity}")
        return found[0]


def metadata(obj: Object) -> Object:
    """The metadata of an object, or nothing where it has no usable one."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def strings(obj: Object, field: str) -> dict[str, str]:
    """Labels or annotations as texts."""
    found = metadata(obj).get(field)
    return {key: text(value) for key, value in found.items()} if isinstance(found, dict) else {}


def text(value: Any) -> str:
    """A scalar as it is written in YAML; nothing for null, lists and maps."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else ""


def parse_resources(data: bytes | str, place: str) -> list[Resource]:
    """All objects in a file; those in lists stand after the others. Raises KustomizeError."""
    try:
        documents = list(load_all(data, own_keys_win=True, blank=BLANK))
    except YamlError as error:
        raise KustomizeError(place, str(error)) from None
    found: list[Resource] = []
    waiting = [one for one in documents if one not in (None, BLANK, {}, [])]
    while waiting:
        document = waiting.pop(0)
        blanks = list(_blanks(document, ()))
        document = filled(document)
        _check(document, place)
        items = document.get("items", metadata) if document["kind"].endswith("List") else metadata
        if items is metadata:
            found.append(Resource(document))
            found[-1].blanks = blanks
        elif isinstance(items, list):
            waiting += [one for one in items if one not in (None, {}, [])]
        elif items is not None:
            raise KustomizeError(place, f"items of {document['kind']}: expected a list")
    return found


def _check(document: Any, place: str) -> None:
    if not isinstance(document, dict):
        raise KustomizeError(place, "holds something else than objects")
    kind = document.get("kind")
    if not isinstance(kind, str) or not kind:
        raise KustomizeError(place, "holds an object without kind")
    if not isinstance(document.get("apiVersion", ""), str):
        raise KustomizeError(place, f"holds a {kind} whose apiVersion is no text")
    if not kind.endswith("List") and not text(metadata(document).get("name")):
        raise KustomizeError(place, f"holds a {kind} without metadata.name")
    if (path := null_in_list(document)) is not None:
        raise KustomizeError(place, f"holds a {kind} with an empty item in the list {path}")


def null_in_list(value: Any, path: str = "") -> str | None:
    """The path of a list with a null in it, or None."""
    if isinstance(value, dict):
        pairs = ((f"{path}.{key}" if path else key, part) for key, part in value.items())
    elif isinstance(value, list):
        if any(part is None for part in value):
            return path
        pairs = ((path, part) for part in value)
    else:
        return None
    return next((found for name, part in pairs if (found := null_in_list(part, name)) is not None), None)


def copied(value: Any) -> Any:
    """A copy that shares no map or list."""
    if isinstance(value, dict):
        return {key: copied(part) for key, part in value.items()}
    if isinstance(value, list):
        return [copied(part) for part in value]
    return value


def filled(value: Any) -> Any:
    """`value` with null for each BLANK in it, which is where they stand."""
    if isinstance(value, dict):
        for key, part in value.items():
            value[key] = filled(part)
    elif isinstance(value, list):
        value[:] = map(filled, value)
    return None if value is BLANK else value


def emptied(resource: Resource) -> Object:
    """The object with BLANK where its file has a key with nothing after it and it still has null."""
    for path in resource.blanks:
        holder: Any = resource.obj
        for part in path[:-1]:
            if isinstance(part, str):
                holder = holder.get(part) if isinstance(holder, dict) else None
            else:
                holder = holder[part] if isinstance(holder, list) and part < len(holder) else None
        if isinstance(holder, dict) and path[-1] in holder and holder[path[-1]] is None:
            holder[path[-1]] = BLANK
    resource.blanks = []
    return resource.obj


def _blanks(value: Any, path: Path) -> Iterator[Path]:
    pairs: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in pairs:
        if part is BLANK:
            yield (*path, key)
        else:
            yield from _blanks(part, (*path, key))
