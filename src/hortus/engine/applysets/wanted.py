"""The objects that a set shall consist of, each with where it is served, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hortus.engine.applysets.identity import PART_OF_LABEL, Marking
from hortus.engine.applysets.inventory import Member, member_of
from hortus.engine.applysets.ordering import is_foundation, rank
from hortus.engine.applysets.resources import Kinds, UnknownKind, gvk_of
from hortus.kube.objects import GroupVersionKind, Object, Resource

ROLES = frozenset(("Role", "ClusterRole"))
BINDINGS = frozenset(("RoleBinding", "ClusterRoleBinding"))


class Wanted(NamedTuple):
    member: Member
    resource: Resource
    config: Object
    """With the label of its set, and a namespace where its kind has one."""

    @property
    def foundation(self) -> bool:
        return is_foundation(self.resource)

    def needs(self, foundation: Wanted) -> bool:
        """True when `foundation` is its namespace, its definition, or the role that it binds."""
        if foundation.member.kind in ROLES:
            reference = self.config.get("roleRef") or {}
            named = (reference.get("apiGroup"), reference.get("kind"), reference.get("name"))
            within = foundation.member.namespace in ("", self.member.namespace)
            return within and named == (foundation.member.group, foundation.member.kind, foundation.member.name)
        if foundation.member.kind == "Namespace":
            return self.member.namespace == foundation.member.name
        spec = foundation.config.get("spec") or {}
        names = spec.get("names") or {}
        return (spec.get("group"), names.get("kind")) == (self.member.group, self.member.kind)


async def wanted_of(
    objects: Sequence[Object], kinds: Kinds, *, identity: str, namespace: str, marking: Marking = PART_OF_LABEL
) -> tuple[list[Wanted], list[tuple[Object, Exception]]]:
    """The objects in order, and those that cannot be applied, with the reason."""
    defined = defined_kinds(objects)
    found: dict[Member, Wanted] = {}
    refused: list[tuple[Object, Exception]] = []
    asked = False
    for obj in objects:
        try:
            gvk = gvk_of(obj)
            resource = defined.get(gvk)
            if resource is None:
                try:
                    resource = await kinds.resource(gvk)
                except UnknownKind:
                    if asked:
                        raise
                    asked = True
                    resource = await kinds.resource(gvk, fresh=True)
            config = marking.marked(obj, identity, _place(obj, resource, namespace))
            member = member_of(resource, config)
            if member in found:
                raise ValueError(f"{member} is given twice: remove one")
            found[member] = Wanted(member, resource, config)
        except (UnknownKind, ValueError) as error:
            refused.append((obj, error))
    return sorted(found.values(), key=lambda one: (rank(one.resource), one.member)), refused


def _place(obj: Object, resource: Resource, namespace: str) -> str:
    """The namespace for an object that names none, "" where its kind has none. Raises ValueError."""
    given = obj["metadata"].get("namespace")
    if given and not resource.namespaced:
        raise ValueError(
            f"{resource.kind} {obj['metadata']['name']}: metadata.namespace is {given!r}: remove it, the kind has none"
        )
    if resource.namespaced and not given and not namespace:
        raise ValueError(f"{resource.kind} {obj['metadata']['name']}: metadata.namespace is missing: name one")
    return namespace if resource.namespaced else ""


def defined_kinds(objects: Iterable[Object]) -> dict[GroupVersionKind, Resource]:
    """The kinds that definitions among the objects bring along: they need not be served yet."""
    found: dict[GroupVersionKind, Resource] = {}
    for obj in objects:
        spec = obj.get("spec")
        if obj.get("kind") != "CustomResourceDefinition" or not isinstance(spec, dict):
            continue
        names, group = spec.get("names") or {}, spec.get("group")
        for version in spec.get("versions") or ():
            if isinstance(version, dict) and version.get("served", True) and names.get("plural") and names.get("kind"):
                resource = Resource(
                    str(group),
                    str(version.get("name")),
                    str(names["plural"]),
                    str(names["kind"]),
                    spec.get("scope") != "Cluster",
                )
                found[resource.gvk] = resource
    return found
