"""From the kind of an object to where it is served, looked up once and again when a kind is new."""

from __future__ import annotations

from typing import Protocol

from hortus.kube import Client, Discovery, UnknownResource
from hortus.kube.objects import GroupVersionKind, Object, Resource


class UnknownKind(LookupError):
    """The cluster does not serve this kind, or not yet."""


class Kinds(Protocol):
    """Where kinds are served."""

    async def resource(self, gvk: GroupVersionKind, *, fresh: bool = False) -> Resource:
        """Raises UnknownKind; with `fresh` only after the server was asked again."""

    async def named(self, group_kind: str) -> Resource | None:
        """Where `Deployment.apps` is served in its preferred version, or None."""

    async def namespaced(self) -> list[Resource]:
        """Every kind whose objects lie in namespaces and can be listed, in the preferred version of its group."""


class DiscoveredKinds:
    """Asks the server's discovery when it is first needed, and when a kind is not found."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: Discovery | None = None

    async def resource(self, gvk: GroupVersionKind, *, fresh: bool = False) -> Resource:
        known = self._known
        if known is None or fresh:
            known = self._known = await Discovery.look(self._client)
        try:
            return known.kind(gvk).resource
        except UnknownResource as error:
            raise UnknownKind(str(error)) from None

    async def named(self, group_kind: str) -> Resource | None:
        known = self._known
        if known is None:
            known = self._known = await Discovery.look(self._client)
        kind, _, group = group_kind.partition(".")
        found = (entry.resource for entry in known.served)
        return next((one for one in found if (one.group, one.kind) == (group, kind)), None)

    async def namespaced(self) -> list[Resource]:
        known = self._known = await Discovery.look(self._client)
        found: dict[tuple[str, str], Resource] = {}
        for entry in known.served:
            if entry.resource.namespaced and "list" in entry.verbs:
                found.setdefault((entry.resource.group, entry.resource.plural), entry.resource)
        return list(found.values())


def gvk_of(obj: Object) -> GroupVersionKind:
    """Raises ValueError for an object without apiVersion, kind or name."""
    version, kind = obj.get("apiVersion"), obj.get("kind")
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(version, str) or not isinstance(kind, str) or not version or not kind:
        raise ValueError(f"object {name or '(no name)'}: apiVersion and kind are missing: an object needs both")
    if not isinstance(name, str) or not name:
        raise ValueError(f"a {kind}: metadata.name is missing: generateName cannot be applied")
    group, _, version = version.rpartition("/")
    return GroupVersionKind(group, version, kind)
