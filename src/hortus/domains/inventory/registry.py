"""The registry: which claims are about one cluster, and the name of its profile.

Claims of one realm that share a token are about one cluster. Claims that share none may be, which is proven in the
cluster itself (`hortus.domains.inventory.identity`). Such a finding is recorded in the annotation of the profile that
stays, so every replica and every restart has the same view without asking a cluster. What is recorded wins over what
could be guessed: a profile keeps its name as long as one of its sources lives.

All of it is in memory, follows the caches of the sources and of the profiles, and costs a few look-ups a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import structlog

from hortus.domains.inventory.claims import ClusterClaim, Origin, other_name, place_token, profile_name
from hortus.domains.inventory.sources import ClusterSource
from hortus.domains.inventory.types import MANAGER, ClusterProfile, ProfileAnnotation, Property, way_of
from hortus.engine import Cache, Change, NotReadable, Priority, read
from hortus.engine.remote import KubeconfigRef
from hortus.engine.sources import Add, Detach
from hortus.kube.clock import Clock
from hortus.kube.objects import ObjectKey

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
Order = tuple[bool, int, str, Origin]


class _Record:
    """A profile, as far as it matters here."""

    __slots__ = ("ours", "sources", "uid", "way")

    def __init__(self, profile: ClusterProfile) -> None:
        self.ours = profile.spec.cluster_manager.name == MANAGER
        self.sources = dict(parse_sources(profile.metadata.annotations)) if self.ours else {}
        """The fingerprint that each origin was recorded with; empty where it counts whatever its credential is."""
        properties = {one.name: one.value for one in profile.status.properties}
        self.uid = properties.get(Property.UID, "") if self.ours else ""
        way = way_of(profile)
        self.way = hash((way.server, way.certificate_authority_data, properties.get(Property.MARK))) if way else 0
        """Changes with what a proof depends on."""

    @property
    def matters(self) -> tuple[object, ...]:
        return self.sources, self.uid, self.way


class FleetRegistry:
    """The clusters by the names of their profiles. A source of a controller: announces names as keys."""

    def __init__(
        self, sources: Sequence[ClusterSource], profiles: Cache, namespace: str, *, trusts: Callable[[str], bool]
    ) -> None:
        """`trusts` reports whether the authors of a namespace may add to what others say of a cluster."""
        self._trusts = trusts
        self._sources = sources
        self._profiles = profiles
        self._namespace = namespace
        self._claims: dict[Origin, ClusterClaim] = {}
        self._by_token: dict[str, set[Origin]] = {}
        self._by_choice: dict[str, set[Origin]] = {}
        self._by_shoot: dict[str, set[Origin]] = {}
        self._records: dict[str, _Record] = {}
        self._recorded: dict[Origin, set[str]] = {}
        self._by_uid: dict[str, set[str]] = {}
        self._disputes: dict[str, str] = {}
        """The uids that clusters answer with and that other profiles have on record, by the names of their profiles."""
        self._disputants: dict[str, set[str]] = {}
        self._adds: list[Add] = []
        for source in sources:
            source.cache.subscribe(self._follower(source))
        profiles.subscribe(self._profile_changed)

    # For the controller.

    def claims_of(self, name: str) -> list[ClusterClaim]:
        """The claims about the cluster of that name, those that count first; none when there is no such cluster."""
        record = self._records.get(name)
        seeds = {*self._by_choice.get(name, ()), *(record.sources if record is not None else ())}
        found = {origin for seed in seeds if seed in self._claims for origin in self._component(seed)}
        return sorted(
            (self._claims[origin] for origin in found if self.name_of(origin) == name), key=lambda claim: claim.order
        )

    def name_of(self, origin: Origin) -> str:
        """The name of the profile of the cluster that `origin` names."""
        together = self._component(origin)
        recorded = {name for one in together for name in self._names_recorded(one)}
        if recorded:
            return min(recorded, key=lambda name: (self.standing(name), name))
        leader = min((self._claims[one] for one in together), key=lambda claim: claim.order)
        choice = profile_name(leader)
        # Nobody else than those who are trusted takes a name that one of them may want later.
        free = not leader.realm and self._is_free(choice, together, leader)
        return choice if free else other_name(leader)

    def standing(self, name: str) -> Order:
        """The order of a profile's first source: of two profiles of one cluster the one with the lower stays."""
        record = self._records.get(name)
        sources: Iterable[Origin] = record.sources if record is not None else ()
        orders = [self._claims[one].order for one in sources if one in self._claims]
        return min(orders, default=(True, 99, "", Origin("", ObjectKey("", name))))

    def realm(self, name: str) -> str:
        """The realm of the sources of a profile on record."""
        origin = self.standing(name)[-1]
        return self._claims[origin].realm if origin in self._claims else ""

    def twins(self, name: str, uid: str) -> list[str]:
        """The other profiles of ours that have this uid on record."""
        return sorted(self._by_uid.get(uid, set()) - {name}) if uid else []

    def dispute(self, name: str, uid: str) -> None:
        """Announce `name` again when a profile that has this uid on record changes."""
        if self._disputes.get(name) != uid:
            self.settle(name)
            self._disputes[name] = uid
            self._disputants.setdefault(uid, set()).add(name)

    def settle(self, name: str) -> None:
        """The cluster of that profile is in no dispute."""
        _drop(self._disputants, self._disputes.pop(name, ""), name)

    def recorded(self, name: str, origin: Origin) -> str:
        """The fingerprint with which `origin` stands in the profile `name`; empty for none."""
        record = self._records.get(name)
        return record.sources.get(origin, "") if record is not None else ""

    def keys_of_place(self, place: KubeconfigRef) -> Iterable[ObjectKey]:
        """The keys of the profiles of the cluster whose kubeconfig lies there."""
        tokens = (f"{realm} {place_token(place)}" for realm in ("", place.namespace))
        names = {self.name_of(origin) for token in tokens for origin in self._by_token.get(token, ())}
        return [ObjectKey(self._namespace, name) for name in names]

    # As a source.

    def attach(self, add: Add, clock: Clock) -> Detach:
        self._adds.append(add)
        for name in {self.name_of(origin) for origin in self._claims}:
            add(ObjectKey(self._namespace, name), int(Priority.INITIAL))
        return lambda: self._adds.remove(add)

    async def ready(self) -> None:
        for cache in (*(source.cache for source in self._sources), self._profiles):
            await cache.synced()

    def keys_of_shoot(self, shoot: str) -> Iterable[ObjectKey]:
        """The keys of the profiles of the clusters with this Shoot."""
        names = {self.name_of(origin) for origin in self._by_shoot.get(shoot, ())} if shoot else ()
        return [ObjectKey(self._namespace, name) for name in names]

    # Following the caches.

    def _follower(self, source: ClusterSource) -> Callable[[Change], None]:
        def follow(change: Change) -> None:
            origin = Origin(source.kind, change.key)
            claim: ClusterClaim | None = None
            if change.new is not None:
                try:
                    realm = "" if self._trusts(change.key.namespace) else change.key.namespace
                    claim = source.claim(change.new).within(realm)
                except NotReadable as error:
                    _log.warning("a source of the inventory cannot be read", problem=str(error))
                    return
            if claim == self._claims.get(origin):
                return
            if not self._adds:
                self._replace(origin, claim)
                return
            around = self._around(origin)
            names = self._names_of(around)
            self._replace(origin, claim)
            self._fire(names | self._names_of(around | self._around(origin)))

        return follow

    def _replace(self, origin: Origin, claim: ClusterClaim | None) -> None:
        before = self._claims.pop(origin, None)
        if before is not None:
            for token in before.tokens:
                _drop(self._by_token, token, origin)
            for name in (profile_name(before), other_name(before)):
                _drop(self._by_choice, name, origin)
            _drop(self._by_shoot, before.shoot, origin)
        if claim is not None:
            self._claims[origin] = claim
            for token in claim.tokens:
                self._by_token.setdefault(token, set()).add(origin)
            for name in (profile_name(claim), other_name(claim)):
                self._by_choice.setdefault(name, set()).add(origin)
            self._by_shoot.setdefault(claim.shoot, set()).add(origin)

    def _profile_changed(self, change: Change) -> None:
        name = change.key.name
        names = {name, *self._names_around_profile(name)}
        before = self._records.pop(name, None)
        if before is not None:
            for origin in before.sources:
                _drop(self._recorded, origin, name)
            _drop(self._by_uid, before.uid, name)
        if change.new is not None:
            try:
                record = _Record(read(ClusterProfile, change.new))
            except NotReadable as error:
                _log.warning("a cluster profile cannot be read", problem=str(error))
                return
            self._records[name] = record
            for origin in record.sources:
                self._recorded.setdefault(origin, set()).add(name)
            if record.uid:
                self._by_uid.setdefault(record.uid, set()).add(name)
            if before is not None and before.matters == record.matters:
                return
        # Sources that it has released are clusters of their own now.
        released = {self.name_of(origin) for origin in before.sources if origin in self._claims} if before else set()
        self._fire(names | released | set(self._names_around_profile(name)))

    def _around(self, origin: Origin) -> set[Origin]:
        """The origins that a change of this claim may concern: its cluster's, and rivals for the name."""
        claim = self._claims.get(origin)
        rivals = self._by_choice.get(profile_name(claim), set()) if claim is not None else set()
        return self._component(origin) | rivals

    def _names_of(self, origins: Iterable[Origin]) -> set[str]:
        names: set[str] = set()
        for origin in origins:
            names |= self._recorded.get(origin, set())
            if origin in self._claims:
                names.add(self.name_of(origin))
        return names

    def _names_around_profile(self, name: str) -> Iterator[str]:
        record = self._records.get(name)
        for origin in {*(record.sources if record is not None else ()), *self._by_choice.get(name, ())}:
            if origin in self._claims:
                yield self.name_of(origin)
            # A profile whose source another one has taken over is deleted, also when it never learned its uid.
            yield from self._recorded.get(origin, ())
        if record is not None and record.uid:
            yield from self.twins(name, record.uid)
            yield from self._disputants.get(record.uid, ())

    def _fire(self, names: Iterable[str]) -> None:
        for name in names:
            for add in self._adds:
                add(ObjectKey(self._namespace, name), int(Priority.EVENT))

    # Grouping.

    def _component(self, origin: Origin) -> set[Origin]:
        """The origins that share tokens with `origin`, directly or through others."""
        found, open_ = {origin}, [origin]
        while open_:
            claim = self._claims.get(open_.pop())
            for token in claim.tokens if claim is not None else ():
                more = self._by_token.get(token, set()) - found
                found |= more
                open_ += more
        return found

    def _names_recorded(self, origin: Origin) -> Iterator[str]:
        claim = self._claims[origin]
        for name in self._recorded.get(origin, ()):
            if self._records[name].sources[origin] in ("", claim.fingerprint) and self.realm(name) == claim.realm:
                yield name

    def _is_free(self, name: str, together: set[Origin], leader: ClusterClaim) -> bool:
        """True when no other manager, no other cluster on record and no earlier cluster has the name."""
        record = self._records.get(name)
        if record is not None and not record.ours:
            return False
        if record is not None and any(
            name in self._names_recorded(one) for one in record.sources if one in self._claims
        ):
            return False
        rivals = (self._claims[one] for one in self._by_choice.get(name, ()) if one not in together)
        return all(
            leader.order < rival.order
            for rival in rivals
            if profile_name(rival) == name and not any(self._names_recorded(rival.origin))
        )


def parse_sources(annotations: dict[str, str]) -> Iterator[tuple[Origin, str]]:
    """The origins in a profile's annotation, each with the fingerprint it was recorded with, if any."""
    for entry in annotations.get(ProfileAnnotation.SOURCES, "").split(","):
        text, _, fingerprint = entry.strip().partition("@")
        origin = Origin.parse(text)
        if origin is not None:
            yield origin, fingerprint


def format_sources(sources: Iterable[tuple[Origin, str]]) -> str:
    """The value of the annotation."""
    return ",".join(sorted(f"{origin}@{mark}" if mark else str(origin) for origin, mark in sources))


def _drop(index: dict, value: object, member: object) -> None:  # type: ignore[type-arg]
    members = index.get(value, set())
    members.discard(member)
    if not members:
        index.pop(value, None)
