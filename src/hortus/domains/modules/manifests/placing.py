"""The places of a module's objects: the scope of each kind, and namespaces that modules may not use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from hortus.domains.modules.manifests.rendering import ObjectId, id_of
from hortus.domains.modules.manifests.transforms import BadObject, title
from hortus.engine.applysets import Kinds, UnknownKind
from hortus.engine.applysets.wanted import defined_kinds
from hortus.kube.objects import GroupVersionKind, Object

_ALLOWED: Final = ("Role", "RoleBinding")
"""Kinds that may lie in forbidden namespaces: an aggregated API server needs a RoleBinding in kube-system."""


async def scopes_of(objects: Sequence[Object], kinds: Kinds) -> Callable[[ObjectId], bool | None]:
    """Reports by the identity of an object whether its kind has namespaces; None where that is not known yet."""
    known = {gvk: resource.namespaced for gvk, resource in defined_kinds(objects).items()}
    for obj in objects:
        found = id_of(obj)
        gvk = GroupVersionKind(found.group, found.version, found.kind)
        if gvk not in known:
            try:
                known[gvk] = (await kinds.resource(gvk)).namespaced
            except UnknownKind:
                continue
    return lambda one: known.get(GroupVersionKind(one.group, one.version, one.kind))


def check_places(objects: Sequence[Object], forbidden: Collection[str]) -> None:
    """Raises BadObject for an object in a namespace that modules may not use."""
    for obj in objects:
        found = id_of(obj)
        if found.namespace in forbidden and found.kind not in _ALLOWED:
            raise BadObject(
                f"{title(obj)}: metadata.namespace is {found.namespace}, which --module-forbidden-namespaces forbids "
                "for all but Roles and RoleBindings: move it to another namespace"
            )
