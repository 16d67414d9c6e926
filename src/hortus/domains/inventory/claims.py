"""Claims: the words of one source about one cluster, as plain values.

Several sources may name the same cluster, as a Runtime, its GardenerCluster and a Secret with another kubeconfig do.
`hortus.domains.inventory.registry` finds which claims are about one cluster; the first of them by `order` decides
wherever they differ.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from hortus.engine.remote import KubeconfigRef
from hortus.kube.objects import ObjectKey
from hortus.schema import Condition

_LONGEST_NAME: Final = 253
"""Characters of a name of an object (RFC 1123 subdomain)."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NOT_IN_NAMES = re.compile(r"[^-.a-z0-9]+")
_NOT_IN_LABELS = re.compile(r"[^-_.A-Za-z0-9]+")
_LONGEST_LABEL: Final = 63


class Origin(NamedTuple):
    """The object that makes a claim."""

    kind: str
    key: ObjectKey

    def __str__(self) -> str:
        return f"{self.kind}/{self.key.namespace}/{self.key.name}"

    @classmethod
    def parse(cls, text: str) -> Origin | None:
        parts = text.split("/")
        return cls(parts[0], ObjectKey(parts[1], parts[2])) if len(parts) == 3 and all(parts) else None


class ClusterClaim(NamedTuple):
    """A cluster as one source names it. Empty texts stand for facts that it does not know."""

    origin: Origin
    rank: int
    """The source's rank: the lowest decides."""
    created: str
    """When the object was created, RFC 3339."""
    name: str
    """The cluster's id; the name of its profile, where that is possible."""
    display_name: str = ""
    tokens: frozenset[str] = frozenset()
    """Claims that share a token are about one cluster."""
    labels: Mapping[str, str] = {}
    region: str = ""
    provider: str = ""
    purpose: str = ""
    shoot: str = ""
    """The Shoot in the garden."""
    place: KubeconfigRef | None = None
    problem: str = ""
    """The reason for which it has no kubeconfig, where it has none, with the fix."""
    fingerprint: str = ""
    """Changes with the credential."""
    credential: Condition | None = None
    """The state of the credential, as its keeper reports it."""
    leaving: bool = False
    """The object is being deleted."""
    realm: str = ""
    """Claims of different realms are never about one cluster: empty for those of trusted namespaces, else the
    namespace, whose authors must not add to what others say."""

    @property
    def order(self) -> tuple[bool, int, str, Origin]:
        """The claims of a cluster and the clusters that want one name are compared by it: the first one counts."""
        return bool(self.realm), self.rank, self.created, self.origin

    def within(self, realm: str) -> ClusterClaim:
        """The claim as one of `realm`, where it leads to no Secret of another namespace."""
        tokens = frozenset(f"{realm} {token}" for token in self.tokens)
        if not realm or self.place is None or self.place.namespace == realm:
            return self._replace(realm=realm, tokens=tokens)
        problem = (
            f"{self.place} lies outside of namespace {realm}, which is not one of --trusted-namespaces: keep the "
            "kubeconfig in that namespace."
        )
        return self._replace(realm=realm, tokens=tokens, place=None, problem=problem)


def place_token(place: KubeconfigRef) -> str:
    """The token of claims whose kubeconfig lies in one place."""
    return f"place {place.namespace}/{place.name}/{place.key}"


def profile_name(claim: ClusterClaim) -> str:
    """The name that the profile of a cluster has unless it is taken.

    An id that no object can have as its name becomes one that can, with a checksum behind it.
    """
    if _NAME.fullmatch(claim.name) and len(claim.name) <= _LONGEST_NAME:
        return claim.name
    return other_name(claim)


def other_name(claim: ClusterClaim) -> str:
    """The name of a profile whose first choice is taken, or impossible."""
    readable = _NOT_IN_NAMES.sub("-", claim.name.lower())[:200]
    readable = re.sub(r"[-.]*\.[-.]*", ".", readable).strip("-.")
    return f"{readable or 'cluster'}-{checksum(str(claim.origin))}"


def label_value(text: str) -> str:
    """`text` as the value of a label: other characters become hyphens."""
    return _NOT_IN_LABELS.sub("-", text)[:_LONGEST_LABEL].strip("-_.")


def checksum(*parts: str) -> str:
    """Eight characters that change with the parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def first(claims: Iterable[ClusterClaim], field: str) -> str:
    """The value of a text field in the first claim that has one; `claims` are in order."""
    return next((value for claim in claims if (value := getattr(claim, field))), "")
