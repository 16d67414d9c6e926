"""The rules one by one, without any task or clock but a number."""

from __future__ import annotations

import pytest

from hortus.engine.shards import LeaseRecord, MemberRoster, owner
from hortus.kube.fencing import Fenced
from hortus.kube.objects import ObjectKey

KEYS = [ObjectKey("default", str(number)) for number in range(40)]


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def roster(time: Time) -> MemberRoster:
    made = MemberRoster("me", renew_deadline=10, settling=5, monotonic=time)
    assert made.renewed(time.now)
    return made


def record(member: str, version: int = 1, *, view: tuple[str, ...] = (), released: bool = False) -> LeaseRecord:
    return LeaseRecord(
        member=member,
        identity=member,
        version=version,
        uid=member,
        resource_version=str(version),
        duration=15.0,
        view=frozenset(view),
        released=released,
    )


def held(roster: MemberRoster) -> set[ObjectKey]:
    return {key for key in KEYS if roster.holds(key)}


def test_nothing_is_held_before_the_first_look(roster: MemberRoster) -> None:
    assert held(roster) == set()
    roster.first_look([])
    assert held(roster) == set(KEYS)


def test_who_was_there_before_has_to_acknowledge(roster: MemberRoster) -> None:
    roster.first_look([record("other")])
    assert (held(roster), roster.awaited) == (set(), ["other"])
    roster.saw(record("other", 2, view=("somebody",)))
    assert held(roster) == set()
    roster.saw(record("other", 3, view=("me",)))
    assert held(roster) == {key for key in KEYS if owner(["me", "other"], key) == "me"}


def test_who_comes_later_gets_its_share_at_once_and_need_not_acknowledge(roster: MemberRoster) -> None:
    roster.first_look([])
    roster.saw(record("late"))
    assert held(roster) == {key for key in KEYS if owner(["me", "late"], key) == "me"}
    assert roster.acknowledged() == {"late"}


def test_work_that_has_moved_is_not_acknowledged_before_it_ends(roster: MemberRoster, time: Time) -> None:
    roster.first_look([])
    moving = next(key for key in KEYS if owner(["me", "late"], key) == "late")
    permit = roster.enter(moving, lambda: None)
    assert permit is not None
    roster.saw(record("late"))
    permit.check()
    assert (roster.acknowledged(), roster.foreign()) == (frozenset(), [permit])
    roster.leave(permit)
    assert roster.acknowledged() == {"late"}


@pytest.mark.parametrize("cut", [True, False])
def test_after_work_that_did_not_end_well_its_last_request_is_waited_for(
    roster: MemberRoster, time: Time, *, cut: bool
) -> None:
    roster.first_look([])
    moving = next(key for key in KEYS if owner(["me", "late"], key) == "late")
    interrupted: list[bool] = []
    permit = roster.enter(moving, lambda: interrupted.append(True))
    assert permit is not None
    roster.saw(record("late"))
    if cut:
        roster.revoke([permit])
        roster.revoke([permit])
        with pytest.raises(Fenced, match="default/"):
            permit.check()
    assert interrupted == [True] * cut
    roster.leave(permit, clean=False)
    time.now += 4.9
    assert (roster.acknowledged(), roster.next_settled()) == (frozenset(), pytest.approx(105))
    time.now += 0.1
    assert roster.acknowledged() == {"late"}


def test_time_ends_every_permit_and_no_answer_brings_it_back(roster: MemberRoster, time: Time) -> None:
    roster.first_look([])
    permit = roster.enter(KEYS[0], lambda: None)
    assert permit is not None
    began = time.now = 109.0
    time.now = 110.0
    with pytest.raises(Fenced):
        permit.check()
    assert not roster.renewed(began), "the answer came when it was over: another may have looked in between"
    assert held(roster) == set()


def test_who_did_not_renew_is_asked_about_and_only_then_gone(roster: MemberRoster, time: Time) -> None:
    roster.first_look([record("other", view=("me",))])
    share = held(roster)
    time.now += 9
    assert roster.renewed(time.now)
    roster.saw(record("other", 2, view=("me",)))
    time.now += 9
    assert roster.renewed(time.now)
    roster.saw(record("other", 2, view=("me",)))
    assert roster.overdue() == []
    assert roster.next_overdue() == 124.0
    time.now = 124.0
    assert [one.member for one in roster.overdue()] == ["other"]
    assert held(roster) == share, "the server has not been asked yet"
    roster.is_gone("other")
    assert held(roster) == set(KEYS)
    roster.saw(record("other", 9))
    assert roster.members == ["me"], "a name never comes back"


def test_who_gives_its_lease_back_is_gone_at_once(roster: MemberRoster) -> None:
    roster.first_look([record("other")])
    roster.saw(record("other", 2, released=True))
    assert held(roster) == set(KEYS)


def test_what_is_seen_late_does_not_count_as_a_renewal(roster: MemberRoster, time: Time) -> None:
    roster.first_look([record("other", 7)])
    time.now += 5
    roster.saw(record("other", 3))
    assert roster.next_overdue() == 115.0
