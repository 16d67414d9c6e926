"""The content of a namespace or a definition. Content that cannot be seen counts as content."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import NamedTuple, Protocol

from hortus.engine.applysets.inventory import Member
from hortus.engine.applysets.resources import Kinds
from hortus.kube.errors import ApiError, NotFound
from hortus.kube.objects import Object, Resource

_BORN_WITH = frozenset(
    (
        ("", "ConfigMap", "kube-root-ca.crt"),
        ("", "ConfigMap", "openshift-service-ca.crt"),
        ("", "ServiceAccount", "default"),
    )
)
"""Objects that every namespace has by itself."""
_NO_CONTENT = frozenset((("", "Event"), ("events.k8s.io", "Event"), ("coordination.k8s.io", "Lease")))
_TOKEN_OF = "kubernetes.io/service-account.name"  # noqa: S105 - an annotation's name
_DEFAULT_TOKEN = "default-token-"  # noqa: S105 - how a Secret's name begins


class Holding(NamedTuple):
    """Something that lies in a namespace, or is of the kind of a definition."""

    text: str
    finalized: bool
    """True when it may need a controller to go: it has finalizers, or nobody can tell."""


class ContentClient(Protocol):
    def listed(self, resource: Resource, namespace: str) -> AsyncIterator[Object]:
        """The metadata of all objects, page by page."""


class Contents:
    """Looks into the namespaces and definitions of one cluster."""

    def __init__(self, client: ContentClient, kinds: Kinds) -> None:
        self._client = client
        self._kinds = kinds

    async def of(self, member: Member, live: Object) -> Holding | None:
        """One object that `live` holds; None when it is empty, and for kinds without content. Raises KubeError."""
        if (member.group, member.kind) == ("apiextensions.k8s.io", "CustomResourceDefinition"):
            return await self._instances(live)
        if (member.group, member.kind) == ("", "Namespace"):
            return await self._objects_in(member.name)
        return None

    async def _instances(self, definition: Object) -> Holding | None:
        spec, names = definition["spec"], definition["spec"]["names"]
        conditions = (definition.get("status") or {}).get("conditions") or ()
        if not any(one.get("type") == "Established" and one.get("status") == "True" for one in conditions):
            return None  # there has never been an object: what is established once remains so
        version = next((one["name"] for one in spec["versions"] if one.get("served")), "")
        resource = Resource(spec["group"], version, names["plural"], names["kind"], spec["scope"] != "Cluster")
        first: Object | None = None
        try:
            if version:
                async with aclosing(self._listed(resource, "")) as found:
                    async for obj in found:
                        first = first or obj
                        if obj["metadata"].get("finalizers"):
                            return Holding(f"the {resource.kind} {_name(obj)}", finalized=True)
                return Holding(f"the {resource.kind} {_name(first)}", finalized=False) if first is not None else None
        except NotFound:
            pass
        return Holding(f"objects of kind {resource.kind} perhaps, which are not served now", finalized=True)

    async def _objects_in(self, namespace: str) -> Holding | None:
        kinds = await self._kinds.namespaced()
        for resource in kinds.resources:
            if (resource.group, resource.kind) not in _NO_CONTENT:
                try:
                    found = await self._foreign(resource, namespace)
                except ApiError as error:
                    if error.http_code not in (404, 405):
                        raise
                    if error.http_code == 404 and await self._is_gone(resource):
                        continue
                    found = Holding(f"objects of kind {resource.kind} perhaps, which cannot be listed", finalized=True)
                if found is not None:
                    return found
        if kinds.unknown:
            return Holding(f"objects perhaps that cannot be seen now ({', '.join(kinds.unknown)})", finalized=True)
        return None

    async def _is_gone(self, resource: Resource) -> bool:
        kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
        return await self._kinds.named(kind, fresh=True) is None

    async def _foreign(self, resource: Resource, namespace: str) -> Holding | None:
        """The first object that is not there by itself."""
        async with aclosing(self._listed(resource, namespace)) as found:
            async for obj in found:
                if not _is_born(resource, obj):
                    finalized = bool(obj["metadata"].get("finalizers"))
                    return Holding(f"the {resource.kind} {obj['metadata']['name']}", finalized=finalized)
        return None

    async def _listed(self, resource: Resource, namespace: str) -> AsyncGenerator[Object, None]:
        async for obj in self._client.listed(resource, namespace):
            yield obj


def _is_born(resource: Resource, obj: Object) -> bool:
    """True when every namespace has it by itself: also a token of the default account, which old servers made."""
    name = obj["metadata"]["name"]
    if (resource.group, resource.kind, name) in _BORN_WITH:
        return True
    annotations = obj["metadata"].get("annotations") or {}
    is_token = name.startswith(_DEFAULT_TOKEN) and annotations.get(_TOKEN_OF) == "default"
    return (resource.group, resource.kind) == ("", "Secret") and is_token


def _name(obj: Object) -> str:
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])
