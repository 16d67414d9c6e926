"""The members of one etcd, over its JSON gateway: their state, and the steps of a migration that change them.

Each change is safe to repeat: one that etcd has made already counts as made.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from hortus.etcd import EtcdFailed, EtcdLogin, EtcdWire, Message, OutOfRange
from hortus.gardener.livemigration import EtcdMember, StepRefused, quorum, steps

ANSWER_WITHIN: Final = 2.0
"""Seconds for the answer of a member; a healthy one needs milliseconds."""
CHANGE_WITHIN: Final = 7.0
"""Seconds for a change: etcd ends a request by itself after 5 s and two election timeouts."""
_PRESENT: Final = ("Peer URLs already exists",)
_ABSENT: Final = ("member not found",)
_PROMOTED: Final = ("can only promote a learner member",)
_BEHIND: Final = "in sync with leader"
S = TypeVar("S")
MemberStep: TypeAlias = (
    steps.AddLearner | steps.Promote | steps.Swing | steps.Remove | steps.TransferLeadership | steps.UpdatePeerUrls
)


class _Head(msgspec.Struct, frozen=True):
    cluster_id: str = ""
    member_id: str = ""
    revision: int = 0


class _Status(msgspec.Struct, frozen=True):
    """A member's own account. etcd leaves out what is zero, and writes 64-bit numbers as strings."""

    header: _Head = _Head()
    leader: str = "0"
    version: str = ""
    is_learner: bool = msgspec.field(default=False, name="isLearner")
    applied: int = msgspec.field(default=0, name="raftAppliedIndex")
    size: int = msgspec.field(default=0, name="dbSize")


class _Listed(msgspec.Struct, frozen=True):
    id: str = msgspec.field(name="ID")
    name: str = ""
    peer_urls: tuple[str, ...] = msgspec.field(default=(), name="peerURLs")
    is_learner: bool = msgspec.field(default=False, name="isLearner")


class _Members(msgspec.Struct, frozen=True):
    header: _Head = _Head()
    members: tuple[_Listed, ...] = ()


class _Alarm(msgspec.Struct, frozen=True):
    member: str = msgspec.field(default="", name="memberID")
    alarm: str = "NONE"


class _Alarms(msgspec.Struct, frozen=True):
    alarms: tuple[_Alarm, ...] = ()


class EtcdState(NamedTuple):
    """The cluster as its members report it."""

    cluster_id: str
    revision: int
    members: tuple[EtcdMember, ...]


class EtcdCluster:
    """A client of all members. `clients` returns the URL of each member's client port by name, now."""

    def __init__(
        self,
        clients: Callable[[], Mapping[str, str]],
        *,
        tls: ssl.SSLContext | None = None,
        login: EtcdLogin | None = None,
    ) -> None:
        self._clients = clients
        self._tls = tls
        self._login = login
        self._wires: dict[str, EtcdWire] = {}
        self._stack = AsyncExitStack()

    async def close(self) -> None:
        """Closes all connections."""
        await self._stack.aclose()
        self._wires.clear()

    async def state(self) -> EtcdState:
        """The member list of the leader, with the status of each member. Raises StepRefused where none is agreed."""
        clients = dict(self._clients())
        found = await asyncio.gather(*(self._status(url) for url in clients.values()))
        statuses = {name: one for name, one in zip(clients, found, strict=True) if one is not None}
        leader = _agreed(statuses.values())
        if not leader:
            raise StepRefused("no leader is known to a majority of etcd's members", reason="NoLeader")
        url = next(clients[name] for name, one in statuses.items() if one.header.member_id == leader)
        listed = await self._ask(url, "/v3/cluster/member/list", {}, _Members, ANSWER_WITHIN)
        raised = await self._ask(url, "/v3/maintenance/alarm", {"action": "GET"}, _Alarms, ANSWER_WITHIN)
        by_id = {one.header.member_id: one for one in statuses.values()}
        members = tuple(_member(one, by_id.get(one.id), leader, raised.alarms) for one in listed.members)
        revision = max(one.header.revision for one in statuses.values())
        return EtcdState(listed.header.cluster_id, revision, members)

    async def act(self, step: MemberStep) -> None:
        """Makes one change. Raises StepRefused."""
        match step:
            case steps.AddLearner():
                body = {"peerURLs": [step.peer_url], "isLearner": True}
                await self._change("/v3/cluster/member/add", body, _PRESENT)
            case steps.Promote():
                await self._promote(step.id)
            case steps.Swing():
                await self._promote(step.id)
                await self._change("/v3/cluster/member/remove", {"ID": step.removed_id}, _ABSENT)
            case steps.Remove():
                await self._change("/v3/cluster/member/remove", {"ID": step.id}, _ABSENT)
            case steps.UpdatePeerUrls():
                body = {"ID": step.id, "peerURLs": list(step.peer_urls)}
                await self._change("/v3/cluster/member/update", body, ())
            case steps.TransferLeadership():
                await self._transfer(step)

    async def _promote(self, id_: str) -> None:
        await self._change("/v3/cluster/member/promote", {"ID": id_}, _PROMOTED)

    async def _transfer(self, step: steps.TransferLeadership) -> None:
        """Asks the leader: etcd takes the request of no other member."""
        for url in self._clients().values():
            status = await self._status(url)
            if status is not None and status.header.member_id == step.leader_id:
                body = {"targetID": step.target_id}
                await self._ask(url, "/v3/maintenance/transfer-leadership", body, _Status, CHANGE_WITHIN)
                return
        raise StepRefused(f"etcd's leader {step.leader_id} does not answer", reason="NoLeader")

    async def _change(self, path: str, body: Message, done: tuple[str, ...]) -> None:
        """One change, by a voter that answers: a learner takes no such request."""
        for url in self._clients().values():
            status = await self._status(url)
            if status is None or status.is_learner:
                continue
            try:
                await self._ask(url, path, body, _Status, CHANGE_WITHIN)
                return
            except StepRefused as refusal:
                if any(words in str(refusal) for words in done) and _BEHIND not in str(refusal):
                    return
                raise
        raise StepRefused("no voter of etcd answers", reason="NoLeader")

    async def _status(self, url: str) -> _Status | None:
        try:
            return await self._ask(url, "/v3/maintenance/status", {}, _Status, ANSWER_WITHIN)
        except StepRefused:
            return None

    async def _ask(self, url: str, path: str, body: Message, shape: type[S], within: float) -> S:
        wire = await self._wire(url)
        try:
            async with asyncio.timeout(within):
                return msgspec.convert(await wire.call(path, body), shape, strict=False)
        except TimeoutError:
            raise StepRefused(f"etcd at {url} did not answer within {within:g} s", reason="EtcdSilent") from None
        except (EtcdFailed, OutOfRange) as error:
            raise StepRefused(str(error), reason="EtcdRefused") from None

    async def _wire(self, url: str) -> EtcdWire:
        if url not in self._wires:
            wire = EtcdWire([url], self._tls, self._login)
            await wire.start()
            self._stack.push_async_callback(wire.close)
            self._wires[url] = wire
        return self._wires[url]


def _agreed(statuses: Iterable[_Status]) -> str:
    """The leader that a majority of the answering voters names, and that answers itself; empty for none."""
    voters = [one for one in statuses if not one.is_learner]
    named = Counter(one.leader for one in voters)
    leader, times = named.most_common(1)[0] if named else ("0", 0)
    answers = any(one.header.member_id == leader for one in voters)
    return leader if leader != "0" and answers and times >= quorum(len(voters)) else ""


def _member(listed: _Listed, found: _Status | None, leader: str, alarms: Iterable[_Alarm]) -> EtcdMember:
    status = found or _Status()
    return EtcdMember(
        id=listed.id,
        name=listed.name,
        peer_urls=listed.peer_urls,
        is_learner=listed.is_learner,
        is_healthy=status.leader == leader,
        is_leader=listed.id == leader,
        index=status.applied,
        version=status.version,
        alarms=tuple(one.alarm for one in alarms if one.member == listed.id),
        db_size=status.size,
    )
