"""Names of KEP-3659 (ApplySet): how a set, its parent and its members are marked, so that kubectl understands them."""

from __future__ import annotations

import base64
import hashlib
from typing import Protocol

from hortus.kube.objects import Object

ID = "applyset.kubernetes.io/id"
"""Label of the parent: the set's id."""
PART_OF = "applyset.kubernetes.io/part-of"
"""Label of a member: the id of its set."""
TOOLING = "applyset.kubernetes.io/tooling"
"""Annotation of the parent: `<tool>/<version>`. kubectl refuses sets of another tool than itself."""
GROUP_KINDS = "applyset.kubernetes.io/contains-group-kinds"
"""Annotation of the parent: the kinds of its members, as `ConfigMap,Deployment.apps`."""
NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
"""Annotation of the parent: where members are, other than its own namespace."""


def set_id(*, name: str, namespace: str, kind: str, group: str) -> str:
    """The id of the set with this parent: `applyset-<base64url(sha256("name.namespace.kind.group"))>-v1`."""
    digest = hashlib.sha256(f"{name}.{namespace}.{kind}.{group}".encode()).digest()
    return f"applyset-{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}-v1"


def part_of(obj: Object) -> str:
    """The id of the set that an object says it belongs to, or ""."""
    return str((obj["metadata"].get("labels") or {}).get(PART_OF, ""))


def marked(obj: Object, identity: str, namespace: str) -> Object:
    """A copy of a wanted object, one level deep, with the label of its set and, where it names none, a namespace."""
    metadata = {**obj["metadata"], "labels": {**(obj["metadata"].get("labels") or {}), PART_OF: identity}}
    if namespace and not metadata.get("namespace"):
        metadata["namespace"] = namespace
    return {**obj, "metadata": metadata}


class Marking(Protocol):
    """The mark by which a member says of which set it is."""

    @property
    def required(self) -> bool:
        """True when a member that has lost its mark is not ours any more, and is not pruned."""

    def owner(self, obj: Object) -> str:
        """The identity of the set that an object says it belongs to, or ""."""

    def title(self, owner: str) -> str:
        """The set of that identity, as messages say it."""

    def marked(self, obj: Object, identity: str, namespace: str) -> Object:
        """A copy of a wanted object with the mark and, where it names none, a namespace."""


class PartOfLabel:
    """The label of KEP-3659."""

    required = True

    def owner(self, obj: Object) -> str:
        return part_of(obj)

    def title(self, owner: str) -> str:
        return f"the set {owner}"

    def marked(self, obj: Object, identity: str, namespace: str) -> Object:
        return marked(obj, identity, namespace)


PART_OF_LABEL = PartOfLabel()
