"""Discovery of the resources of a server: finds the `Resource` that a word on the command line means.

It takes two calls with aggregated discovery (KEP-3352, apidiscovery.k8s.io/v2 and v2beta1), or one for each group and
version with the older form that every server has. A group whose own server is down does not hide the others; it is
named in `failed`. The result is a value; new kinds are found by another call of `look`.
"""

from __future__ import annotations

import asyncio
import difflib
import functools
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from hortus.kube.client import Client
from hortus.kube.errors import ApiError, Garbage, NotFound
from hortus.kube.naming import dns_label, dns_subdomain
from hortus.kube.objects import GroupVersionKind, Object, Resource

_AGGREGATED = ",".join(
    (
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        "application/json",
    )
)


class UnknownResource(LookupError):
    """No resource of that name is served; the message suggests similar ones."""


class ServedResource(msgspec.Struct, frozen=True):
    """One resource in one version, with all the names it answers to."""

    resource: Resource
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: frozenset[str] = frozenset()
    subresources: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """The lower-case words that mean the resource: plural, singular, kind and short names."""
        return (self.resource.plural, self.singular, self.resource.kind.lower(), *self.short_names)


class Discovery:
    """All resources of a server, in its order of preference: core first, then groups and their versions as served."""

    def __init__(self, served: Iterable[ServedResource], *, failed: Iterable[str] = ()) -> None:
        self.served = tuple(served)
        self.failed = tuple(failed)
        """Groups and versions (`group/version`) whose resources are unknown."""
        self._by_kind = {entry.resource.gvk: entry for entry in reversed(self.served)}
        self._by_name: dict[str, list[ServedResource]] = {}
        for entry in self.served:
            for name in dict.fromkeys(entry.names):
                self._by_name.setdefault(name, []).append(entry)

    @classmethod
    async def look(cls, client: Client) -> Discovery:
        """Asks a server. Raises KubeError when there is no answer at all."""
        core, groups = await asyncio.gather(
            client.get_raw("/api", accept=_AGGREGATED), client.get_raw("/apis", accept=_AGGREGATED)
        )
        reader = _Reader(client)
        for answer in (core, groups):
            try:
                await reader.read(answer)
            except (KeyError, TypeError, AttributeError):
                raise Garbage(client.host, "the discovery document is not one", "check the server URL") from None
        return cls(reader.served, failed=reader.failed)

    async def again(self, client: Client, group: str, version: str) -> Discovery:
        """The same, with what that version of a group serves now: one call with a short answer. Raises KubeError."""
        reader = _Reader(client)
        try:
            await reader.one(group, version)
        except (KeyError, TypeError, AttributeError):
            raise Garbage(client.host, "the discovery document is not one", "check the server URL") from None
        others = [entry for entry in self.served if _place(entry) != (group, version)]
        at = next((at for at, entry in enumerate(self.served) if _place(entry) == (group, version)), len(others))
        failed = [path for path in self.failed if path != _path(group, version)]
        return Discovery([*others[:at], *reader.served, *others[at:]], failed=[*failed, *reader.failed])

    def find(self, word: str) -> ServedResource:
        """The resource that `word` means: plural, singular, kind or short name, alone or followed by `.group` or
        `.version.group`.

        Returns the server's first choice of several. Raises UnknownResource.
        """
        name, _, rest = word.lower().partition(".")
        found = [entry for entry in self._by_name.get(name, ()) if _belongs(entry.resource, rest)]
        if not found:
            close = difflib.get_close_matches(word.lower(), self._by_name, n=3)
            hint = f"; did you mean {', '.join(close)}?" if close else ""
            raise UnknownResource(f'the server does not have a resource type "{word}"{hint}{self._gap()}')
        return found[0]

    def find_all(self, words: str) -> list[ServedResource]:
        """The resources that a list such as `po,svc` or a category such as `all` means, each once. Raises
        UnknownResource."""
        found: dict[ServedResource, None] = {}
        for word in filter(None, words.split(",")):
            members = list(self._category(word.lower()))
            found.update(dict.fromkeys(members or [self.find(word)]))
        return list(found)

    def kind(self, gvk: GroupVersionKind) -> ServedResource:
        """The resource for a manifest's apiVersion and kind. Raises UnknownResource."""
        found = self._by_kind.get(gvk)
        if found is None:
            raise UnknownResource(f'no kind "{gvk.kind}" in version "{gvk.api_version}" is served{self._gap()}')
        return found

    def _category(self, category: str) -> Iterator[ServedResource]:
        """The members of a category, each in the version that the server prefers."""
        seen = set()
        for entry in self.served:
            place = (entry.resource.group, entry.resource.plural)
            if category in entry.categories and place not in seen:
                seen.add(place)
                yield entry

    def _gap(self) -> str:
        return f" (nothing is known of {', '.join(self.failed)})" if self.failed else ""


def _place(entry: ServedResource) -> tuple[str, str]:
    return entry.resource.group, entry.resource.version


def _path(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _belongs(resource: Resource, rest: str) -> bool:
    return rest.rstrip(".") in ("", resource.group, f"{resource.version}.{resource.group}".rstrip("."))


class _Reader:
    """Reads either form of a discovery document, asking for the parts of the older one."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.served: list[ServedResource] = []
        self.failed: list[str] = []

    async def read(self, answer: Object) -> None:
        match answer.get("kind"):
            case "APIGroupDiscoveryList":
                for item in answer["items"]:
                    self._group((item.get("metadata") or {}).get("name", ""), item)
            case "APIVersions":
                await self._versions([("", version) for version in answer["versions"]])
            case "APIGroupList":
                await self._versions([place for group in answer["groups"] for place in _preferred_first(group)])
            case kind:
                raise Garbage(self._client.host, f"discovery answered with a {kind!r}", "check the server URL")

    async def one(self, group: str, version: str) -> None:
        """Reads one version of a group by the older form; it may serve nothing.

        Both may be texts of an object's author, which must not lead to another path.
        """
        if (group and dns_subdomain(group)) or dns_label(version):
            return
        path = _path(group, version)
        try:
            answer = await self._client.get_raw(f"/apis/{path}" if group else f"/api/{path}")
        except NotFound:
            return
        except ApiError:
            self.failed.append(path)
            return
        self.served += _legacy(group, version, list(answer["resources"] or []))

    def _group(self, group: str, item: Object) -> None:
        for version in item["versions"]:
            place = f"{group}/{version['version']}" if group else version["version"]
            if version.get("freshness") == "Stale" and not version.get("resources"):
                self.failed.append(place)
            for entry in version.get("resources") or []:
                self.served.append(_aggregated(group, version["version"], entry))

    async def _versions(self, places: list[tuple[str, str]]) -> None:
        answers = await asyncio.gather(*(self._one(group, version) for group, version in places))
        for (group, version), entries in zip(places, answers, strict=True):
            self.served += _legacy(group, version, entries)

    async def _one(self, group: str, version: str) -> list[Object]:
        place = f"{group}/{version}" if group else version
        try:
            answer = await self._client.get_raw(f"/apis/{place}" if group else f"/api/{place}")
        except ApiError:
            self.failed.append(place)
            return []
        return list(answer["resources"] or [])


def _preferred_first(group: Object) -> list[tuple[str, str]]:
    preferred = (group.get("preferredVersion") or {}).get("version")
    versions = [version["version"] for version in group["versions"]]
    versions.sort(key=lambda version: version != preferred)
    return [(group["name"], version) for version in versions]


@functools.lru_cache(maxsize=4096)
def _shared(served: ServedResource) -> ServedResource:
    """The equal entry that was seen first: the clusters of a fleet serve the same, and each takes 1.1 KiB."""
    return served


def _aggregated(group: str, version: str, entry: Object) -> ServedResource:
    kind = (entry.get("responseKind") or {}).get("kind", "")
    served = ServedResource(
        Resource(group, version, entry["resource"], kind, entry.get("scope") == "Namespaced"),
        entry.get("singularResource") or kind.lower(),
        tuple(entry.get("shortNames") or ()),
        tuple(entry.get("categories") or ()),
        frozenset(entry.get("verbs") or ()),
        frozenset(part["subresource"] for part in entry.get("subresources") or ()),
    )
    return _shared(served)


def _legacy(group: str, version: str, entries: list[Any]) -> list[ServedResource]:
    below: dict[str, set[str]] = {}
    for entry in entries:
        plural, slash, subresource = entry["name"].partition("/")
        if slash:
            below.setdefault(plural, set()).add(subresource)
    return [
        ServedResource(
            Resource(group, version, entry["name"], entry["kind"], bool(entry["namespaced"])),
            entry.get("singularName") or entry["kind"].lower(),
            tuple(entry.get("shortNames") or ()),
            tuple(entry.get("categories") or ()),
            frozenset(entry.get("verbs") or ()),
            frozenset(below.get(entry["name"], ())),
        )
        for entry in entries
        if "/" not in entry["name"]
    ]
