"""The cluster that a profile is about, as proven by `hortus.engine.remote.identity`.

The profile that has a uid on record is the first; another one whose cluster answers with that uid is given to it only
when both are proven to be one cluster. Without that proof nothing moves: the first stays as it is, the second keeps its
profile, does not get the uid, and says why. Proofs are remembered as long as nothing changes that they depend on, and
so is a mark that is refused: a reconcile at rest asks no cluster.
"""

from __future__ import annotations

import enum
from base64 import b64decode
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from hortus.domains.inventory.claims import ClusterClaim
from hortus.domains.inventory.member import RemoteClusters, is_refusal
from hortus.domains.inventory.registry import FleetRegistry
from hortus.domains.inventory.types import ClusterEndpoint, ClusterProfile, Property, way_of
from hortus.engine import TypedCache
from hortus.engine.remote import KubeconfigRef, MemberIdentity, are_one
from hortus.kube import Access
from hortus.kube.errors import KubeError
from hortus.kube.objects import ObjectKey

AGAIN: Final = 60.0
"""Seconds until a cluster that did not answer is asked again for a proof: no event of ours reports it everywhere."""


class Proof(enum.Enum):
    """The relation of two clusters that answer with one uid."""

    SAME = "same"
    OTHER = "other"
    """The word that was written through one way is not seen through the other."""
    REFUSED = "refused"
    """A kubeconfig may not read or write the mark."""
    SILENT = "silent"
    """One of them does not answer now."""


class RecordedIdentity(NamedTuple):
    """The identity in a profile."""

    identity: MemberIdentity = MemberIdentity()
    mark: str = ""

    @classmethod
    def of(cls, profile: ClusterProfile) -> RecordedIdentity:
        properties = {one.name: one.value for one in profile.status.properties}
        uid, way = properties.get(Property.UID, ""), way_of(profile)
        try:
            identity = MemberIdentity.reached(_access(way), uid) if way is not None else MemberIdentity(uid)
        except ValueError:
            identity = MemberIdentity(uid)  # somebody else wrote an address that is none
        return cls(identity, properties.get(Property.MARK, ""))


class Dispute(NamedTuple):
    """Another profile has the uid on record, and is not proven to be of the same cluster."""

    first: str
    """The name of that profile."""
    address: str
    """The address by which its cluster is reached."""
    proof: Proof


class FoundIdentity(NamedTuple):
    """The identity of a cluster, as far as it is known now."""

    uid: str = ""
    mark: str = ""
    """The digest of the mark."""
    refused: bool = False
    """The kubeconfig may not read or write the mark."""
    moved: bool = False
    """The cluster is not proven to be the one on record."""
    takes_over: str = ""
    """The name of an earlier profile of this very cluster."""
    dispute: Dispute | None = None
    unfinished: bool = False
    """True where it is to be tried again after `AGAIN`."""


class Identities:
    """Finds the identity of the cluster of a profile."""

    def __init__(
        self,
        members: RemoteClusters,
        registry: FleetRegistry,
        profiles: TypedCache[ClusterProfile],
        place_of: Callable[[Sequence[ClusterClaim]], KubeconfigRef | None],
    ) -> None:
        """`place_of` gives the place of the kubeconfig of a cluster with these claims."""
        self._members = members
        self._registry = registry
        self._profiles = profiles
        self._place_of = place_of
        self._proofs: dict[ObjectKey, dict[ObjectKey, tuple[object, Proof]]] = {}
        """By profile and earlier profile: what was proven, with all that it depends on."""

    async def find(self, key: ObjectKey, claims: Sequence[ClusterClaim], recorded: RecordedIdentity) -> FoundIdentity:
        """The identity of the cluster of a profile, of which `recorded` is known. Raises no KubeError."""
        reached = self._members.identity(key)
        if reached is None:
            found = FoundIdentity(recorded.identity.uid, recorded.mark)
        else:
            found = await self._reached(key, reached, recorded)
        return await self._among_twins(key, claims, reached, found, recorded)

    def forget(self, key: ObjectKey) -> None:
        """The profile is gone, or its cluster is without a dispute."""
        self._proofs.pop(key, None)
        self._registry.settle(key.name)

    async def _reached(self, key: ObjectKey, reached: MemberIdentity, recorded: RecordedIdentity) -> FoundIdentity:
        """The identity of a cluster that answers, compared with the one on record."""
        known = recorded.identity
        here = reached.same_way(known)
        if here and recorded.mark and (not known.uid or reached.uid in ("", known.uid)):
            return FoundIdentity(reached.uid or known.uid, recorded.mark)
        mark = await self._members.mark(key)
        uid = reached.uid or (known.uid if here else "")
        proven = here or not known.address or bool(mark.digest and mark.digest == recorded.mark)
        moved = bool(known.uid) and (uid != known.uid or not proven)
        return FoundIdentity(uid, mark.digest, refused=mark.refused, moved=moved, unfinished=mark.silent)

    async def _among_twins(
        self,
        key: ObjectKey,
        claims: Sequence[ClusterClaim],
        reached: MemberIdentity | None,
        found: FoundIdentity,
        known: RecordedIdentity,
    ) -> FoundIdentity:
        """The same, where other profiles have the uid on record."""
        registry, claimed = self._registry, (reached or known.identity)._replace(uid=found.uid)
        order = min(registry.standing(key.name), claims[0].order), key.name
        on_record = bool(found.uid) and known.identity.uid == found.uid and not found.moved
        dispute: Dispute | None = None
        for standing, twin in sorted((registry.standing(name), name) for name in registry.twins(key.name, found.uid)):
            is_older = (standing, twin) < order
            if on_record and not is_older:
                continue  # the other one looks for the proof
            foreign = registry.realm(twin) != claims[0].realm
            if foreign and not claims[0].realm:
                continue  # sources that are not trusted dispute nothing of those that are
            first = ObjectKey(key.namespace, twin)
            profile = self._profiles.get(first)
            if profile is None:
                continue
            on_its_record = RecordedIdentity.of(profile)
            proof = await self._prove(key, claimed, found, first, on_its_record)
            if proof is Proof.SAME and is_older and not foreign:
                self.forget(key)
                return found._replace(takes_over=twin)
            if proof is not Proof.SAME and reached is not None and dispute is None:
                dispute = Dispute(twin, on_its_record.identity.address, proof)
        if dispute is None:
            self.forget(key)
            return found
        registry.dispute(key.name, found.uid)
        return found._replace(dispute=dispute, unfinished=found.unfinished or dispute.proof is Proof.SILENT)

    async def _prove(
        self, key: ObjectKey, claimed: MemberIdentity, found: FoundIdentity, first: ObjectKey, known: RecordedIdentity
    ) -> Proof:
        """The relation to the cluster of `first`, which has `known` on record."""
        proofs, basis = self._proofs.setdefault(key, {}), (claimed, found.mark, known)
        before = proofs.get(first)
        if before is not None and before[0] == basis:
            return before[1]
        proof = await self._compare(key, claimed, found, first, known)
        if proof is not Proof.SILENT:
            proofs[first] = basis, proof
        return proof

    async def _compare(
        self, key: ObjectKey, claimed: MemberIdentity, found: FoundIdentity, first: ObjectKey, known: RecordedIdentity
    ) -> Proof:
        place, own = self._place_of(self._registry.claims_of(first.name)), self._members.place(key)
        live = await self._members.look(place) if place is not None else None
        # A kubeconfig that has just been replaced is newer than the record.
        other = live or known.identity
        if other.uid == claimed.uid and claimed.same_way(other):
            return Proof.SAME
        if live is None or live.uid != claimed.uid or place is None or own is None:
            return Proof.SILENT
        if not found.mark:
            return Proof.REFUSED if found.refused else Proof.SILENT
        pool = self._members.pool
        try:
            return Proof.SAME if await are_one(pool.at(place), pool.at(own)) else Proof.OTHER
        except KubeError as error:
            return Proof.REFUSED if is_refusal(error) else Proof.SILENT


def _access(way: ClusterEndpoint) -> Access:
    return Access(
        server=way.server,
        ca=b64decode(way.certificate_authority_data),
        insecure=bool(way.insecure_skip_tls_verify),
        tls_server_name=way.tls_server_name,
    )
