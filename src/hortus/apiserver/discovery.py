"""Discovery of a logical cluster: /api, /apis, /apis/<group>, /apis/<group>/<version>, in the legacy form and
aggregated (apidiscovery.k8s.io/v2, KEP-3352), which kubectl requests first.

Aggregated bodies are cached by the set of kinds; clusters without kinds of their own share one.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Protocol

import orjson

from hortus.apiserver.registrations import VersionPriority, priority
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.resources.subresources import BODIES, STATUS_VERBS, WRITTEN
from hortus.kube.errors import NotFound

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?\Z")
_KEPT = 64
"""Bodies of aggregated discovery; one is about 60 KiB."""
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""As kube-apiserver lists them for CRDs."""
_FIRST_STORED = {"CustomResourceDefinition": "v1beta1", "VolumeAttributesClass": "v1beta1"}
"""Versions that kube-apiserver stores these in, for the sake of the previous release."""


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Sort key: v2 before v1 before v2beta1 before v1alpha1 before anything else (CRD version priority)."""
    match = _VERSION.match(version)
    if match is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[match[2]]
    return (stage, -int(match[1]), -int(match[3] or 0), version)


class RemoteDiscovery(Protocol):
    """The versions that other servers serve in a cluster."""

    def versions(self, cluster: str) -> Mapping[tuple[str, str], VersionPriority]:
        """Their places by group and version."""

    def entry(self, cluster: str, group: str, version: str) -> dict[str, Any]:
        """The part of aggregated discovery that a version is."""

    def fingerprint(self, cluster: str) -> Hashable:
        """A value that changes with the answers of the other methods."""


class DiscoveryDocuments:
    def __init__(self, registry: Registry, remote: RemoteDiscovery) -> None:
        self._registry = registry
        self._remote = remote
        self._bodies: dict[Hashable, tuple[bytes, str]] = {}

    def core_versions(self, address: str) -> dict[str, Any]:
        return {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        }

    def groups(self, cluster: str) -> dict[str, Any]:
        groups = [_group(name, versions) for name, versions in self._versions(cluster).items() if name]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def group(self, cluster: str, name: str) -> dict[str, Any]:
        versions = self._versions(cluster).get(name)
        if not versions:
            raise NotFound("the server could not find the requested resource")
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}

    def resources(self, cluster: str, group: str, version: str) -> dict[str, Any]:
        kinds = [
            kind
            for kind in self._registry.kinds(cluster)
            if kind.resource.group == group and kind.resource.version == version
        ]
        if not kinds:
            raise NotFound("the server could not find the requested resource", details={})
        entries = [entry for kind in sorted(kinds, key=_by_plural) for entry in _legacy_entries(kind)]
        # kube-apiserver leaves the type's version out of the oldest list.
        head = {"apiVersion": "v1"} if group else {}
        return {
            "kind": "APIResourceList",
            **head,
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": entries,
        }

    def aggregated_body(self, cluster: str, *, core: bool) -> tuple[bytes, str]:
        """`aggregated` as JSON, and its ETag."""
        remote = self._remote.fingerprint(cluster)
        key = (core, self._registry.signature(cluster), (cluster, remote) if remote else None)
        found = self._bodies.get(key)
        if found is None:
            body = orjson.dumps(self.aggregated(cluster, core=core))
            found = body, f'"{hashlib.sha512(body).hexdigest().upper()}"'
            if len(self._bodies) >= _KEPT:
                del self._bodies[next(iter(self._bodies))]
            self._bodies[key] = found
        return found

    def aggregated(self, cluster: str, *, core: bool) -> dict[str, Any]:
        by_version: dict[tuple[str, str], list[Kind]] = {}
        for kind in self._registry.kinds(cluster):
            by_version.setdefault((kind.resource.group, kind.resource.version), []).append(kind)
        remote = self._remote.versions(cluster)
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    self._remote.entry(cluster, group, version)
                    if (group, version) in remote
                    else _aggregated_version(version, by_version[group, version])
                    for version in versions
                ],
            }
            for group, versions in self._versions(cluster).items()
            if (not group) == core
        ]
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }

    def _versions(self, cluster: str) -> dict[str, list[str]]:
        """Versions by group, both in the order in which clients should prefer them: by priority, then by name."""
        places = {
            (kind.resource.group, kind.resource.version): priority(kind.resource.group, kind.resource.version)
            for kind in self._registry.kinds(cluster)
        }
        places |= self._remote.versions(cluster)
        found: dict[str, list[str]] = {}
        groups: dict[str, int] = {}
        for (group, version), place in places.items():
            found.setdefault(group, []).append(version)
            groups[group] = max(groups.get(group, 0), place.group)
        return {
            group: sorted(found[group], key=lambda each: (-places[group, each].version, version_priority(each)))
            for group in sorted(found, key=lambda group: (-groups[group], group))
        }


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def _by_plural(kind: Kind) -> str:
    return kind.resource.plural


def _legacy_entries(kind: Kind) -> Iterable[dict[str, Any]]:
    definition, resource = kind.definition, kind.resource
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": definition.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": [verb for verb in _CUSTOM_VERBS if verb in definition.verbs]
        if kind.custom
        else sorted(definition.verbs),
    }
    if definition.short_names:
        entry["shortNames"] = list(definition.short_names)
    if definition.categories:
        entry["categories"] = list(definition.categories)
    if definition.answer is None and "create" in definition.verbs and "get" in definition.verbs:
        entry["storageVersionHash"] = _storage_version_hash(kind)
    yield entry
    own = {"group": resource.group, "version": resource.version}
    for name, (response, verbs) in _subresources(kind).items():
        yield {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            **(
                {"kind": response["kind"]} if response["version"] == "" or own.items() <= response.items() else response
            ),
            "verbs": verbs,
        }


def _storage_version_hash(kind: Kind) -> str:
    """The hash that changes when objects are stored in another version (KEP-2339)."""
    group, _, version = kind.storage_api_version.rpartition("/")
    version = _FIRST_STORED.get(kind.resource.kind, version)
    digest = hashlib.sha256(f"{group}/{version}/{kind.resource.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _aggregated_version(version: str, kinds: list[Kind]) -> dict[str, Any]:
    return {
        "version": version,
        "freshness": "Current",
        "resources": [_aggregated_entry(kind) for kind in sorted(kinds, key=_by_plural)],
    }


def _aggregated_entry(kind: Kind) -> dict[str, Any]:
    definition, resource = kind.definition, kind.resource
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": _response_kind(kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": definition.singular,
        "verbs": sorted(definition.verbs),
    }
    if definition.short_names:
        entry["shortNames"] = list(definition.short_names)
    if definition.categories:
        entry["categories"] = list(definition.categories)
    subresources = [
        {"subresource": name, "responseKind": {"group": "", "version": "", **response}, "verbs": verbs}
        for name, (response, verbs) in _subresources(kind).items()
    ]
    if subresources:
        entry["subresources"] = subresources
    return entry


def _response_kind(kind: Kind) -> dict[str, str]:
    """kube-apiserver omits group and version where they are those of the list, but not for CRDs."""
    resource = kind.resource
    if kind.custom:
        return {"group": resource.group, "version": resource.version, "kind": resource.kind}
    return {"group": "", "version": "", "kind": resource.kind}


def _subresources(kind: Kind) -> dict[str, tuple[dict[str, str], list[str]]]:
    resource = kind.resource
    own = _response_kind(kind)
    found: dict[str, tuple[dict[str, str], list[str]]] = {}
    for (group, plural, name), verbs in WRITTEN.items():
        if (group, plural) == (resource.group, resource.plural):
            found[name] = (own, verbs)
    for name, verbs in kind.definition.written.items():
        found[name] = (own, verbs)
    for name in kind.definition.subresources:
        found[name] = (own, ["create"])
    if not resource.group:
        for (plural, name), body in BODIES.items():
            if plural == resource.plural:
                version = body.version if body.group else ""
                found[name] = ({"group": body.group, "version": version, "kind": body.kind}, ["create"])
    if kind.definition.scale is not None:
        found["scale"] = ({"group": "autoscaling", "version": "v1", "kind": "Scale"}, STATUS_VERBS)
    if kind.definition.status:
        found["status"] = (own, STATUS_VERBS)
    return dict(sorted(found.items(), reverse=kind.custom))
