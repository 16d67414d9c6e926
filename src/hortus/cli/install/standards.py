"""CRDs of kinds that are a standard of others: one that another program has installed is left alone.

Programs that apply one CRD in turn take each other's fields away. So a CRD that is there and that Hortus did not make
stays as it is, and is never deleted. The fields that Hortus writes and that it does not have are named: the server
drops them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from hortus.cli.install import contents
from hortus.engine import metadata_of
from hortus.kube.objects import Object

_RELEASE = "meta.helm.sh/release-name"
_NAME = "app.kubernetes.io/name"
_OURS = "hortus"
"""The label of our objects, and the beginning of the names of our field managers."""
_IMPLICIT = frozenset({"apiVersion", "kind", "metadata"})
"""Fields that every kind has, whether or not its schema names them."""
_SHOWN = 5
"""Missing fields that a message names."""


class ForeignDefinition(NamedTuple):
    """A CRD of a standard that another program has installed."""

    owner: str
    missing: tuple[str, ...]
    """The parts that Hortus needs and that it does not serve."""

    def __str__(self) -> str:
        if not self.missing:
            return f"left alone: {self.owner} made it, and it serves what Hortus needs"
        more = len(self.missing) - _SHOWN
        named = ", ".join(self.missing[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        return f"left alone: {self.owner} made it, and it lacks {named}; have it updated there"


def foreign_definition(live: Object, wanted: Object | None = None) -> ForeignDefinition | None:
    """The CRD `live` if it is of a standard and another made it, else None. `wanted` is ours, where it is at hand."""
    metadata = metadata_of(live)
    if metadata.name not in _names() or metadata.labels.get(_NAME) == _OURS:
        return None
    entries = live["metadata"].get("managedFields") or ()
    managers = [str(entry.get("manager")) for entry in entries if _owns_spec(entry)]
    if any(manager.startswith(_OURS) for manager in managers):
        return None
    release = metadata.annotations.get(_RELEASE)
    owner = f"Helm release {release}" if release else next(iter(managers), "another program")
    return ForeignDefinition(owner, () if wanted is None else tuple(_lacks(live["spec"], wanted["spec"])))


def _names() -> set[str]:
    return {f"{resource.plural}.{resource.group}" for resource in contents.STANDARDS}


def _owns_spec(entry: Mapping[str, Any]) -> bool:
    return "f:spec" in (entry.get("fieldsV1") or {}) and not entry.get("subresource")


def _lacks(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    if live["scope"] != wanted["scope"]:
        yield f"scope {wanted['scope']}"
    served = {version["name"]: version for version in live["versions"] if version["served"]}
    for version in wanted["versions"]:
        found = served.get(version["name"])
        if found is None:
            yield f"version {version['name']}"
            continue
        if "status" in (version.get("subresources") or {}) and "status" not in (found.get("subresources") or {}):
            yield "the subresource status"
        yield from _missing(_schema(found), _schema(version), "")


def _schema(version: Mapping[str, Any]) -> Mapping[str, Any]:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def _missing(live: Mapping[str, Any], wanted: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yields the fields of a schema that another does not have; of a missing field with fields, itself alone."""
    if live.get("x-kubernetes-preserve-unknown-fields"):
        return
    known = live.get("properties") or {}
    for name, schema in (wanted.get("properties") or {}).items():
        if not path and name in _IMPLICIT:
            continue
        if name in known:
            yield from _missing(known[name], schema, f"{path}{name}.")
        elif "additionalProperties" not in live:
            yield f"{path}{name}"
    if "items" in wanted and "items" in live:
        yield from _missing(live["items"], wanted["items"], path)
