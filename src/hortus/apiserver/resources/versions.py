"""An object of one version of a kind, as another version shows it."""

from __future__ import annotations

from hortus.apiserver.resources.kind import Kind
from hortus.kube.objects import Object


async def shown_as(kind: Kind, own: Kind, obj: Object | None) -> Object | None:
    """`obj`, which is of `own`, as `kind` shows it; both are versions of one resource. Never changes `obj`."""
    if obj is None or kind is own or obj.get("kind") != own.resource.kind:
        return obj
    return kind.reshaped(obj, own)
