"""A simulated etcd: members, votes and the rules by which etcd refuses changes of its members. No I/O, no clock.

Rules are those of etcd 3.4 to 3.6 as measured: one learner at a time; nothing joins until all voters have been
connected for five seconds; a learner is promoted once it has 90 % of the leader's log; every change needs a majority.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from hortus.gardener.livemigration import quorum

CONNECTED_FOR: Final = 5.0
"""Seconds for which all voters must have been connected before a member may join."""
ELECTION: Final = 1.0
"""Seconds without a leader after one was lost."""
SYNC: Final = 0.5
"""Seconds after its start in which a learner catches up."""


class EtcdRefused(Exception):
    """etcd's answer to a change that it does not make."""


@dataclass
class SimulatedMember:
    """One member and its process."""

    id: str
    name: str
    peer_urls: tuple[str, ...]
    site: str
    is_learner: bool = False
    is_up: bool = False
    joined_at: float = 0.0
    """Time at which its process started last."""
    index: int = 0
    alarms: tuple[str, ...] = ()
    version: str = "3.6.4"


@dataclass
class SimulatedEtcd:
    """A cluster of simulated members."""

    cluster_id: str
    members: dict[str, SimulatedMember] = field(default_factory=dict)
    leader_id: str = ""
    revision: int = 1
    link: bool = True
    """True while the sites reach each other."""
    pace: float = 1.0
    """Factor of all durations."""
    lost_at: float = -math.inf
    """Time at which the leader was lost."""
    _numbers: int = 0

    # Health.

    def voters(self) -> list[SimulatedMember]:
        return [one for one in self.members.values() if not one.is_learner]

    def group(self) -> set[str]:
        """The members that answer to a majority of the voters; empty where no part has one."""
        sites = {one.site for one in self.members.values()}
        parts = [sites] if self.link else [{site} for site in sorted(sites)]
        for part in parts:
            up = [one for one in self.members.values() if one.is_up and one.site in part]
            if sum(not one.is_learner for one in up) >= quorum(len(self.voters())):
                return {one.id for one in up}
        return set()

    def settle(self, now: float) -> None:
        """Elections and the log's way to learners, up to a time."""
        group = self.group()
        if self.leader_id and self.leader_id not in group:
            self.leader_id, self.lost_at = "", now
        if not self.leader_id and group and now >= self.lost_at + ELECTION * self.pace:
            able = [one for one in self.voters() if one.id in group]
            self.leader_id = max(able, key=lambda one: (one.index, one.name)).id
        for one in self.members.values():
            if one.id in group and (not one.is_learner or now >= one.joined_at + SYNC * self.pace):
                one.index = self.revision

    def write(self, now: float) -> bool:
        """One write of a client; False where no majority takes it."""
        self.settle(now)
        if not self.leader_id:
            return False
        self.revision += 1
        self.settle(now)
        return True

    # Changes of members.

    def add(self, peer_url: str, site: str, now: float) -> SimulatedMember:
        """Adds a learner. Raises EtcdRefused."""
        self._check_leader(now)
        if any(peer_url in one.peer_urls for one in self.members.values()):
            raise EtcdRefused("etcdserver: Peer URLs already exists")
        if any(one.is_learner for one in self.members.values()):
            raise EtcdRefused("etcdserver: too many learner members in cluster")
        group = self.group()
        if any(one.id not in group or now < one.joined_at + CONNECTED_FOR * self.pace for one in self.voters()):
            raise EtcdRefused("etcdserver: unhealthy cluster")
        self._numbers += 1
        made = SimulatedMember(f"{self._numbers:x}", "", (peer_url,), site, is_learner=True)
        while made.id in self.members:
            self._numbers += 1
            made.id = f"{self._numbers:x}"
        self.members[made.id] = made
        return made

    def promote(self, id_: str, now: float) -> None:
        """Makes a learner a voter. Raises EtcdRefused."""
        self._check_leader(now)
        member = self._member(id_)
        if not member.is_learner:
            raise EtcdRefused("etcdserver: can only promote a learner member")
        if not member.is_up or member.index * 10 < self.revision * 9:
            raise EtcdRefused("etcdserver: can only promote a learner member which is in sync with leader")
        member.is_learner = False

    def remove(self, id_: str, now: float) -> None:
        """Removes a member, whose process ends. Raises EtcdRefused."""
        self._check_leader(now)
        member, group = self._member(id_), self.group()
        left = [one for one in self.voters() if one.id != id_]
        if not member.is_learner and sum(one.id in group for one in left) < quorum(len(left)):
            raise EtcdRefused("etcdserver: unhealthy cluster")
        del self.members[id_]
        if self.leader_id == id_:
            self.leader_id, self.lost_at = "", now

    def transfer(self, id_: str, now: float) -> None:
        """Moves the leadership. Raises EtcdRefused."""
        self._check_leader(now)
        target = self._member(id_)
        if target.is_learner or id_ not in self.group():
            raise EtcdRefused("etcdserver: leadership cannot be transferred to this member")
        self.leader_id = id_

    def update(self, id_: str, peer_urls: tuple[str, ...], now: float) -> None:
        """Changes peer URLs. Raises EtcdRefused."""
        self._check_leader(now)
        self._member(id_).peer_urls = peer_urls

    def start(self, id_: str, name: str, now: float) -> None:
        """Starts the process of a member."""
        member = self._member(id_)
        if any(one.name == name for one in self.members.values() if one.id != id_):
            raise EtcdRefused(f"member count is unequal: another member is named {name}")
        member.name, member.is_up, member.joined_at = name, True, now

    def stop(self, id_: str, now: float) -> None:
        """Ends the process of a member; its data stay."""
        self._member(id_).is_up = False
        self.settle(now)

    def _member(self, id_: str) -> SimulatedMember:
        if id_ not in self.members:
            raise EtcdRefused("etcdserver: member not found")
        return self.members[id_]

    def _check_leader(self, now: float) -> None:
        self.settle(now)
        if not self.leader_id:
            raise EtcdRefused("etcdserver: no leader")
