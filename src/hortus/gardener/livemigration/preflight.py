"""Checks before the first step of a migration: the members, the plan and the way between the sites. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from hortus.gardener.livemigration.state import EtcdMember, Observation, ServerState

LATENCY_LIMIT: Final = 0.180
"""Seconds of a round trip between the sites, as GEP-39 has them."""
DATABASE_LIMIT: Final = 8 * 1024**3
"""Bytes: etcd's own advice for the largest database."""


class PreflightProblem(msgspec.Struct, frozen=True):
    """A reason not to begin."""

    reason: str
    """CamelCase."""
    message: str
    """With the fix."""


def problems(seen: Observation, *, allows_single: bool = False) -> list[PreflightProblem]:
    """Everything that speaks against the first step."""
    return [*_members(seen), *_plan(seen), *_count(seen, allows_single), *_keys(seen), *_sites(seen)]


def _members(seen: Observation) -> Iterator[PreflightProblem]:
    if not seen.members:
        yield PreflightProblem("NoMembers", "etcd at the source does not answer: check that the control plane runs")
        return
    if down := [one.title for one in seen.members if not one.is_healthy]:
        yield PreflightProblem("MembersUnhealthy", f"etcd members do not answer: {', '.join(down)}; repair them first")
    if learners := [one.title for one in seen.learners]:
        yield PreflightProblem("LearnerPresent", f"etcd has a learner, {learners[0]}: remove or promote it first")
    if alarmed := [f"{one.title}: {', '.join(one.alarms)}" for one in seen.members if one.alarms]:
        yield PreflightProblem(
            "EtcdAlarm", f"etcd has raised alarms ({'; '.join(alarmed)}): free space and disarm them first"
        )
    if len(minors := {_minor(one) for one in seen.members if one.version}) > 1:
        yield PreflightProblem("VersionsDiffer", f"members run different minor versions: {', '.join(sorted(minors))}")
    for name, number in Counter(one.name for one in seen.members).items():
        if number > 1:
            yield PreflightProblem(
                "EqualNames", f"{number} members are named {name}: etcd cannot start with such a list"
            )
    if (largest := max(one.db_size for one in seen.members)) > DATABASE_LIMIT:
        yield PreflightProblem(
            "DatabaseTooLarge", f"the database has {largest // 1024**2} MiB: compact and defragment it first"
        )


def _plan(seen: Observation) -> Iterator[PreflightProblem]:
    names, urls = {one.name for one in seen.members}, {url for one in seen.members for url in one.peer_urls}
    planned = seen.destination.members
    if clash := sorted(names & {one.name for one in planned}):
        yield PreflightProblem(
            "EqualNames",
            f"members of the destination would be named like those of the source ({', '.join(clash)}): give them a "
            "prefix of their own",
        )
    if clash := sorted(urls & {one.peer_url for one in planned}):
        yield PreflightProblem("EqualPeerURLs", f"peer URLs of the destination are in use already: {', '.join(clash)}")
    if stale := [one.name for one in planned if one.has_data or one.is_running]:
        yield PreflightProblem(
            "StaleData", f"the destination has data of former members: {', '.join(stale)}; delete it first"
        )


def _count(seen: Observation, allows_single: bool) -> Iterator[PreflightProblem]:
    number = len(seen.voters)
    if number == 1 and not allows_single:
        yield PreflightProblem(
            "NoHighAvailability", "etcd has one member: configure high availability for the control plane"
        )
    elif number and number % 2 == 0:
        yield PreflightProblem("EvenMembers", f"etcd has {number} voters: a member is missing; repair it first")
    if number > len(seen.destination.members):
        yield PreflightProblem(
            "TooFewMembers", f"etcd has {number} members, and the destination offers {len(seen.destination.members)}"
        )


def _keys(seen: Observation) -> Iterator[PreflightProblem]:
    """API servers with other keys would refuse every token, and could not read a Secret."""
    here, there = seen.source.keys, seen.destination.keys
    if not here:
        yield PreflightProblem("KeysUnknown", "the source shows no keys of its API servers: check its agent")
    elif foreign := sorted(name for name, found in there.items() if here.get(name) != found):
        yield PreflightProblem(
            "KeysDiffer",
            f"keys at the destination are not those of the source: {', '.join(foreign)}; delete them there",
        )


def _sites(seen: Observation) -> Iterator[PreflightProblem]:
    if not seen.destination.is_reachable:
        yield PreflightProblem("DestinationUnreachable", "the destination does not answer: check its agent")
    if seen.source.servers != ServerState.READY:
        yield PreflightProblem("ServersNotReady", "the API servers of the source are not ready")
    if seen.latency > LATENCY_LIMIT:
        yield PreflightProblem(
            "TooDistant",
            f"a round trip between the sites takes {seen.latency * 1000:.0f} ms, and API servers need less than "
            f"{LATENCY_LIMIT * 1000:.0f} ms to become ready",
        )


def _minor(member: EtcdMember) -> str:
    return ".".join(member.version.split(".")[:2])
