"""The place at which a kind of object is served, looked up once and again when a kind is new."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from hortus.kube import Client, Discovery, UnknownResource
from hortus.kube.errors import KubeError
from hortus.kube.objects import GroupVersionKind, Object, Resource


class UnknownKind(LookupError):
    """The cluster does not serve this kind, or not yet."""


class UnreadableKinds(KubeError):
    """Discovery does not know now what a group serves: the group's own server does not answer."""


class Namespaced(NamedTuple):
    """Kinds whose objects lie in namespaces."""

    resources: list[Resource]
    """Resources that can be listed, in the preferred version of their group."""
    unknown: list[str]
    """Groups and versions, and kinds, whose objects in a namespace cannot be seen."""


class Kinds(Protocol):
    """The lookup of the resource under which a kind is served."""

    async def resource(self, gvk: GroupVersionKind, *, fresh: bool = False) -> Resource:
        """Raises UnknownKind; with `fresh` only after the server was asked again."""

    async def named(self, group_kind: str, *, fresh: bool = False) -> Resource | None:
        """The resource of `Deployment.apps` in its preferred version, or None when it is known not to be served.

        Raises UnreadableKinds when discovery does not know.
        """

    async def namespaced(self) -> Namespaced:
        """Every kind that may have objects in a namespace; the server is asked again."""


class KnownKinds:
    """A fixed choice of kinds that are served at the same path everywhere, so that discovery need not be asked."""

    def __init__(self, resources: Iterable[Resource], *, optional: Iterable[Resource] = ()) -> None:
        """`optional` are kinds that few servers have: their objects do not keep a namespace."""
        self._everywhere = tuple(resources)
        self._resources = (*self._everywhere, *optional)

    async def resource(self, gvk: GroupVersionKind, *, fresh: bool = False) -> Resource:
        for known in self._resources:
            if known.gvk == gvk:
                return known
        raise UnknownKind(str(gvk))

    async def named(self, group_kind: str, *, fresh: bool = False) -> Resource | None:
        kind, _, group = group_kind.partition(".")
        return next((known for known in self._resources if (known.group, known.kind) == (group, kind)), None)

    async def namespaced(self) -> Namespaced:
        return Namespaced([known for known in self._everywhere if known.namespaced], [])


class DiscoveredKinds:
    """Asks the server's discovery when it is first needed, and when a kind is not found."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: Discovery | None = None

    async def resource(self, gvk: GroupVersionKind, *, fresh: bool = False) -> Resource:
        known = self._known
        if known is None or not fresh:
            known = await self._discovery(fresh=False)
        else:
            # The others are as they were: a definition that was just applied brings one version of its group.
            known = self._known = await known.again(self._client, gvk.group, gvk.version)
        try:
            return known.kind(gvk).resource
        except UnknownResource as error:
            raise UnknownKind(str(error)) from None

    async def named(self, group_kind: str, *, fresh: bool = False) -> Resource | None:
        known = await self._discovery(fresh=fresh)
        kind, _, group = group_kind.partition(".")
        found = (entry.resource for entry in known.served)
        served = next((one for one in found if (one.group, one.kind) == (group, kind)), None)
        if served is None and (unread := _of_group(known.failed, group)):
            raise UnreadableKinds(f"the server cannot tell now where a {group_kind} is: {', '.join(unread)} is away")
        return served

    async def api_versions(self) -> frozenset[str]:
        """Every group and version that is served; the server is asked again, and its answer kept."""
        known = await self._discovery(fresh=True)
        return frozenset(entry.resource.api_version for entry in known.served)

    async def namespaced(self) -> Namespaced:
        known = await self._discovery(fresh=True)
        found: dict[tuple[str, str], Resource] = {}
        unlisted: dict[tuple[str, str], str] = {}
        for entry in known.served:
            resource = entry.resource
            place = (resource.group, resource.plural)
            if not resource.namespaced:
                continue
            if "list" in entry.verbs:
                found.setdefault(place, resource)
            elif entry.verbs & {"get", "delete", "deletecollection", "watch"}:
                unlisted.setdefault(place, f"{resource.kind} in {resource.api_version}")
        hidden = [title for place, title in unlisted.items() if place not in found]
        return Namespaced(list(found.values()), [*known.failed, *hidden])

    async def _discovery(self, *, fresh: bool) -> Discovery:
        if self._known is None or fresh:
            self._known = await Discovery.look(self._client)
        return self._known


def _of_group(places: Iterable[str], group: str) -> list[str]:
    """The entries of `places` (`group/version`) that are of `group`."""
    return [place for place in places if place.rpartition("/")[0] == group]


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
