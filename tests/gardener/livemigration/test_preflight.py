"""Reasons not to begin a migration: one for each input that cannot be moved, and none for one that can."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hortus.gardener.livemigration import EtcdMember, Observation, ServerState, SiteMember, SiteState, problems


def member(number: int, **changes: Any) -> EtcdMember:
    made = EtcdMember(
        id=f"a{number}",
        name=f"old-{number}",
        peer_urls=(f"https://old-{number}:2380",),
        is_healthy=True,
        is_leader=number == 0,
        version="3.5.9",
    )
    return msgspec.structs.replace(made, **changes)


MEMBERS = tuple(map(member, range(3)))
PLANNED = tuple(SiteMember(name=f"new-{number}", peer_url=f"https://new-{number}:2380") for number in range(3))
KEYS = {"encryption-configuration": "aa", "service-account-key": "bb"}
WELL = Observation(
    cluster_id="c",
    members=MEMBERS,
    source=SiteState(servers=ServerState.READY, keys=KEYS),
    destination=SiteState(members=PLANNED),
)


def seen(**changes: Any) -> Observation:
    return msgspec.structs.replace(WELL, **changes)


def planned(**changes: Any) -> Observation:
    first = msgspec.structs.replace(PLANNED[0], **changes)
    return seen(destination=SiteState(members=(first, *PLANNED[1:])))


def keys_there(keys: dict[str, str]) -> Observation:
    return seen(destination=SiteState(members=PLANNED, keys=keys))


def test_a_control_plane_that_is_well_can_move() -> None:
    assert problems(WELL) == []


@pytest.mark.parametrize(
    ("observation", "reasons", "words"),
    [
        (seen(members=()), ["NoMembers"], "check that the control plane runs"),
        (seen(members=(*MEMBERS[:2], member(2, is_healthy=False))), ["MembersUnhealthy"], "old-2"),
        (seen(members=(*MEMBERS, member(3, is_learner=True))), ["LearnerPresent"], "old-3"),
        (seen(members=(*MEMBERS[:2], member(2, alarms=("NOSPACE",)))), ["EtcdAlarm"], "old-2: NOSPACE"),
        (seen(members=(*MEMBERS[:2], member(2, version="3.6.4"))), ["VersionsDiffer"], "3.5, 3.6"),
        (seen(members=(*MEMBERS[:2], member(2, version="3.5.21"))), [], ""),
        (seen(members=(*MEMBERS[:2], member(2, name="old-1"))), ["EqualNames"], "2 members are named old-1"),
        (seen(members=(*MEMBERS[:2], member(2, db_size=9 * 1024**3))), ["DatabaseTooLarge"], "9216 MiB"),
        (seen(members=MEMBERS[:2]), ["EvenMembers"], "2 voters"),
        (seen(members=MEMBERS[:1]), ["NoHighAvailability"], "one member"),
        (planned(name="old-0"), ["EqualNames"], "old-0"),
        (planned(peer_url="https://old-1:2380"), ["EqualPeerURLs"], "https://old-1:2380"),
        (planned(has_data=True), ["StaleData"], "new-0"),
        (seen(destination=SiteState(members=PLANNED[:2])), ["TooFewMembers"], "offers 2"),
        (
            seen(destination=SiteState(members=PLANNED, is_reachable=False)),
            ["DestinationUnreachable"],
            "check its agent",
        ),
        (seen(source=SiteState(servers=ServerState.STARTING, keys=KEYS)), ["ServersNotReady"], "not ready"),
        (seen(source=SiteState(servers=ServerState.READY)), ["KeysUnknown"], "shows no keys"),
        (keys_there(KEYS), [], ""),
        (keys_there({"service-account-key": "bb"}), [], ""),
        (keys_there({**KEYS, "service-account-key": "cc"}), ["KeysDiffer"], "the source: service-account-key; delete"),
        (keys_there({"front-proxy": "dd"}), ["KeysDiffer"], "front-proxy"),
        (seen(latency=0.21), ["TooDistant"], "210 ms"),
    ],
)
def test_each_reason_names_what_is_wrong(observation: Observation, reasons: list[str], words: str) -> None:
    found = problems(observation)
    assert [one.reason for one in found] == reasons
    assert words in "; ".join(one.message for one in found)


def test_one_member_is_enough_where_that_is_allowed() -> None:
    assert problems(seen(members=MEMBERS[:1]), allows_single=True) == []
