"""An observation read against the record: whose members they are, and what a change of them would leave. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hortus.gardener.livemigration.state import (
    EtcdMember,
    MigrationRecord,
    Observation,
    Site,
    SiteMember,
    quorum,
)
from hortus.gardener.livemigration.steps import StartMember


class MigrationView(NamedTuple):
    """The facts that the rules of `decision` ask for."""

    record: MigrationRecord
    seen: Observation
    is_forced: bool = False
    """True where members of the source are to be removed although the destination is not whole."""

    @property
    def source(self) -> list[EtcdMember]:
        """The members that were there before."""
        known = {one.id for one in self.record.members}
        return [one for one in self.seen.members if one.id in known]

    @property
    def joined(self) -> list[EtcdMember]:
        """All other members: those of the destination."""
        known = {one.id for one in self.record.members}
        return [one for one in self.seen.members if one.id not in known]

    @property
    def joined_voters(self) -> list[EtcdMember]:
        return [one for one in self.joined if not one.is_learner]

    @property
    def learner(self) -> EtcdMember | None:
        return next(iter(self.seen.learners), None)

    @property
    def size(self) -> int:
        """Members before and after."""
        return len(self.record.members)

    @property
    def planned(self) -> tuple[SiteMember, ...]:
        """The members of the destination, as many as the source had."""
        return self.seen.destination.members[: self.size]

    @property
    def is_past_return(self) -> bool:
        """True once a member of the source was removed."""
        return len(self.source) < self.size

    def slot_of(self, member: EtcdMember) -> SiteMember | None:
        """The place of a member at the destination: by peer URL, since a member that never started has no name."""
        for one in self.seen.destination.members:
            if {one.peer_url, one.internal_url or one.peer_url} & set(member.peer_urls):
                return one
        return next((one for one in self.seen.destination.members if one.name == member.name), None)

    def foreign_keys(self, site: Site) -> list[str]:
        """Names of keys at a site that are not those of the record. A key that is missing is none of them."""
        kept = self.record.keys
        return sorted(name for name, found in self.seen.site(site).keys.items() if kept.get(name) != found)

    @property
    def lacks_keys(self) -> bool:
        """True while the destination misses a key of the record."""
        return bool(self.record.keys.keys() - self.seen.destination.keys.keys())

    def is_at(self, member: EtcdMember, site: Site) -> bool:
        return (member in self.source) is (site == Site.SOURCE)

    def unhealthy(self) -> list[EtcdMember]:
        """Voters that do not answer."""
        return [one for one in self.seen.voters if not one.is_healthy]

    def keeps_majority(self, *, without: str = "", with_learner: str = "") -> bool:
        """Reports whether a majority of the voters is healthy after a member left and a learner was promoted."""
        after = [one for one in self.seen.members if one.id != without]
        voters = [one for one in after if not one.is_learner or one.id == with_learner]
        return bool(voters) and sum(one.is_healthy for one in voters) >= quorum(len(voters))

    def has_caught_up(self, learner: EtcdMember) -> bool:
        """Reports whether a learner has applied 99 % of what the leader has: etcd itself asks for 90 % to promote."""
        leader = self.seen.leader
        return learner.is_healthy and leader is not None and learner.index * 100 >= leader.index * 99

    def starting(self, slot: SiteMember) -> StartMember:
        """The start of a member: its initial cluster is the member list, in which it stands by its peer URL alone."""
        listed = [(_listed_name(self, one), url) for one in self.seen.members for url in one.peer_urls]
        return StartMember(name=slot.name, initial_cluster=tuple(listed))


def _listed_name(view: MigrationView, member: EtcdMember) -> str:
    slot = view.slot_of(member) if member in view.joined else None
    return member.name or (slot.name if slot is not None else "")


def titles(members: Iterable[EtcdMember]) -> str:
    """Names for a message."""
    return ", ".join(sorted(one.title for one in members))
