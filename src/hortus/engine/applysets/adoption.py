"""The decision about an object that is there already and that the set has not marked: it is taken over, or left alone.

An object that exists is somebody's. A set takes it over in two cases only: the caller recognizes it as made for this
very set by a system that had no marks (`AdoptionClaim.OURS`), or its owner has granted it with an annotation
(`AdoptionClaim.GRANTED`). The grant lies on the object that exists, where the author of a set does not reach.

Of a granted object the inventory keeps what the set changes in it, as the merge patch that changes it back. That is
sent when the object leaves the set, in place of a deletion.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Protocol

import orjson

from hortus.engine.applysets.inventory import Member
from hortus.engine.owners import controller_of
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object

GRANT: Final = "fleet.hortus.dev/adoptable-by"
"""Annotation of an object that exists: who may take it over, as `AgentConfiguration fleet/everywhere`."""
BOOTSTRAPPING: Final = "kubernetes.io/bootstrapping"
"""Label of the roles and bindings that kube-apiserver itself makes."""
LARGEST_UNDO: Final = 8192
"""Bytes of a merge patch that is kept; an inventory may lie in a status, of which etcd stores 1.5 MiB."""
_RBAC: Final = "rbac.authorization.k8s.io"
_MANAGED_BY: Final = "app.kubernetes.io/managed-by"

FoundObjects = Mapping[Member, Object]
"""The objects that are there now of those that a run is to apply."""


class AdoptionClaim(Enum):
    """The relation of a set to an object that exists and that it has not marked."""

    NONE = "none"
    """It is somebody else's."""
    OURS = "ours"
    """It was made for this very set, before it had a mark of ours."""
    GRANTED = "granted"
    """Its owner lets this set take it over."""
    USED = "used"
    """It is somebody else's and serves as it is, as a namespace does: the set neither changes nor remembers it."""


class AdoptionPolicy(Protocol):
    """Decides for one set which objects that exist are taken over."""

    def remedy(self, member: Member) -> str:
        """The fix that a message about an object of somebody else ends with."""

    def claim(self, member: Member, live: Object, owner: str, found: FoundObjects) -> AdoptionClaim:
        """`owner` is the identity of the set that marked `live`, "" for none."""


class NoAdoption:
    """Takes over nothing; with `namespaces` the set may lie in namespaces of others."""

    def __init__(self, remedy: str = "delete it, or choose another name", *, namespaces: bool = False) -> None:
        self._remedy = remedy
        self._namespaces = namespaces

    def remedy(self, member: Member) -> str:
        return self._remedy

    def claim(self, member: Member, live: Object, owner: str, found: FoundObjects) -> AdoptionClaim:
        return AdoptionClaim.USED if self._namespaces and not owner and is_namespace(member) else AdoptionClaim.NONE


NO_ADOPTION: Final = NoAdoption()


class LabelledAdoption:
    """Takes over what another system made for the same purpose, by the labels that it gives to all its objects.

    For a purpose that one cluster has once, so that the labels say enough.
    """

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = labels
        named = ", ".join(f"{name}={value}" for name, value in labels.items())
        self._remedy = f"delete it, or give it the labels {named}, so that it is taken over and deleted with the others"

    def remedy(self, member: Member) -> str:
        return self._remedy

    def claim(self, member: Member, live: Object, owner: str, found: FoundObjects) -> AdoptionClaim:
        if owner:
            return AdoptionClaim.NONE
        if self._labels.items() <= (live["metadata"].get("labels") or {}).items():
            return AdoptionClaim.OURS
        return AdoptionClaim.USED if is_namespace(member) else AdoptionClaim.NONE


class GrantedAdoption:
    """Takes over what carries the annotation `fleet.hortus.dev/adoptable-by` with this grantee.

    Secrets and RBAC objects are never taken over: their former state cannot be kept without being shown, and cannot be
    put back without granting it.
    """

    def __init__(self, grantee: str) -> None:
        self._grantee = grantee

    def remedy(self, member: Member) -> str:
        if _is_sensitive(member):
            return "delete it, or choose another name"
        return f"delete it, choose another name, or have its owner annotate it with {GRANT}: {self._grantee}"

    def claim(self, member: Member, live: Object, owner: str, found: FoundObjects) -> AdoptionClaim:
        if owner or _is_sensitive(member):
            return AdoptionClaim.NONE
        return AdoptionClaim.GRANTED if is_granted(live, self._grantee) else AdoptionClaim.NONE


class ForeignObject(KubeError):
    """An object that exists belongs to somebody else; nothing was sent."""

    def __init__(self, title: str, problem: str) -> None:
        super().__init__(f"{title}: {problem}")
        self.problem = problem


def is_namespace(member: Member) -> bool:
    return (member.group, member.kind) == ("", "Namespace")


def _is_sensitive(member: Member) -> bool:
    return member.group == _RBAC or (member.group, member.kind) == ("", "Secret")


def is_granted(live: Object, grantee: str) -> bool:
    """Reports whether the owner of an object lets `grantee` take it over."""
    granted = str((live["metadata"].get("annotations") or {}).get(GRANT, ""))
    return grantee in (one.strip() for one in granted.split(","))


def is_bootstrapping(live: Object) -> bool:
    """Reports whether kube-apiserver keeps an object for itself."""
    return BOOTSTRAPPING in (live["metadata"].get("labels") or {})


def is_applied_by(live: Object, manager: str) -> bool:
    """Reports whether a field manager has applied an object, and still has fields in it."""
    entries = live["metadata"].get("managedFields") or ()
    return any((one.get("manager"), one.get("operation")) == (manager, "Apply") for one in entries)


def holder_of(live: Object) -> str:
    """The owner of an object, as far as the object shows: its controller, its manager, or who wrote it."""
    controller = controller_of(live)
    if controller is not None:
        return f"is controlled by {controller['kind']} {controller['name']}"
    metadata = live["metadata"]
    if managed := (metadata.get("labels") or {}).get(_MANAGED_BY):
        return f"is managed by {managed}"
    writers = sorted({str(one.get("manager")) for one in metadata.get("managedFields") or () if one.get("manager")})
    return f"was written by {', '.join(writers)}" if writers else "was made by somebody else"


def undo_of(live: Object, config: Object) -> str:
    """The merge patch that gives `live` back what applying `config` changes, as JSON. Lists are put back whole."""
    content = {key: value for key, value in config.items() if key not in ("apiVersion", "kind")}
    return orjson.dumps(_former(live, content)).decode()


def _former(live: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in config.items():
        former = live.get(key)
        if isinstance(value, dict) and (former is None or isinstance(former, dict)):
            if below := _former(former or {}, value):
                found[key] = below
        elif former != value:
            found[key] = former
    return found
