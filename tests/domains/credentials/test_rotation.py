"""The due time of a kubeconfig: the contract's worked numbers, and properties that hold for all numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.domains.credentials.settings import contract_policy
from hortus.engine.kubeconfigs.rotation import CLOCK_SKEW, Due, fraction_of

MINUTE = 60.0
HOUR = 3600.0
NANOSECOND = 1e-9
NOW = 1_700_000_000.0
THRESHOLD = 820.8 * MINUTE


def due(age: float | None, lifetime: float = 24 * HOUR) -> Due:
    """The next rotation of a kubeconfig that was written `age` seconds ago; None when it never was."""
    issued = None if age is None else NOW - age
    return contract_policy(lifetime).next(issued=issued, expires=None, fraction=0.0, now=NOW)


@pytest.mark.parametrize(
    ("lifetime", "ratio", "period", "threshold"),
    [
        (24 * HOUR, 0.6, 864 * MINUTE, 820.8 * MINUTE),
        (1 * HOUR, 0.6, 36 * MINUTE, 34.2 * MINUTE),
        (1 * HOUR, 0.95, 57 * MINUTE, 54.15 * MINUTE),
        (90 * MINUTE, 0.333, 29 * MINUTE, 27.55 * MINUTE),
        (12 * HOUR, 0.6, 432 * MINUTE, 410.4 * MINUTE),
    ],
)
def test_the_period_is_cut_to_whole_minutes_and_the_threshold_is_95_percent_of_it(
    lifetime: float, ratio: float, period: float, threshold: float
) -> None:
    policy = contract_policy(lifetime, ratio)
    assert policy.period(lifetime) == pytest.approx(period)
    assert policy.wait(None, 0.0) == pytest.approx(threshold)


@pytest.mark.parametrize(
    ("age", "period", "after"),
    [
        (None, 1 * MINUTE, 57.0),
        (30.0, 1 * MINUTE, 27.0),
        (900.0, 1 * MINUTE, 57.0),
        (0.0, 1 * MINUTE, 57.0),
        (45 * MINUTE, 1 * HOUR, 720.0),
        (13 * HOUR + 40 * MINUTE + 48, 864 * MINUTE, 13 * HOUR + 40 * MINUTE + 48),
        (5 * HOUR, 864 * MINUTE, 8 * HOUR + 40 * MINUTE + 48),
    ],
)
def test_the_next_look_is_as_the_contracts_table_says(age: float | None, period: float, after: float) -> None:
    assert due(age, period / 0.6).after == pytest.approx(after, abs=1e-6)


def test_a_kubeconfig_is_due_at_the_threshold_and_not_before() -> None:
    assert not due(THRESHOLD - 1).now
    assert due(THRESHOLD).now


def test_a_last_sync_in_the_future_does_not_put_off_rotation_for_ever() -> None:
    assert due(-10 * 365 * 24 * HOUR).now
    within_skew = due(-CLOCK_SKEW)
    assert not within_skew.now
    assert within_skew.after <= THRESHOLD


@pytest.mark.parametrize("granted", [86_400.0, 86_399.0, 86_341.0, None, 200_000.0, 0.0])
def test_a_grant_as_asked_or_of_nothing_keeps_the_contracts_threshold(granted: float | None) -> None:
    assert contract_policy().wait(granted, 0.5) == pytest.approx(820.8 * MINUTE)


def test_a_shorter_grant_is_rotated_within_its_own_life() -> None:
    policy = contract_policy(48 * HOUR)
    assert policy.wait(24 * HOUR, 0.0) == pytest.approx(820.8 * MINUTE)
    assert policy.wait(None, 0.0) > 24 * HOUR


@given(
    lifetime=st.floats(min_value=1, max_value=1e7),
    ratio=st.floats(min_value=0.01, max_value=1.0),
    spread=st.floats(min_value=0.0, max_value=0.5),
    granted=st.none() | st.floats(min_value=1, max_value=1e7),
    share=st.floats(min_value=0, max_value=1, exclude_max=True),
)
def test_every_kubeconfig_is_replaced_while_it_still_works(
    lifetime: float, ratio: float, spread: float, granted: float | None, share: float
) -> None:
    policy = contract_policy(lifetime, ratio, spread=spread)
    wait = policy.wait(granted, share)
    assert 0 < wait <= min(lifetime, granted or lifetime)
    assert wait <= policy.wait(granted, 0.0)


@given(
    age=st.none() | st.floats(min_value=-1e6, max_value=1e6),
    lifetime=st.floats(min_value=0.001, max_value=1e6),
)
def test_the_next_look_is_never_further_than_one_wait(age: float | None, lifetime: float) -> None:
    assert 0 < due(age, lifetime).after <= contract_policy(lifetime).wait(None, 0.0)


@given(st.lists(st.uuids(), min_size=200, max_size=200, unique=True))
def test_a_fleet_made_in_one_minute_is_not_rotated_in_one_minute(uids: list[object]) -> None:
    policy = contract_policy(spread=0.05)
    waits = sorted(policy.wait(None, fraction_of(str(uid))) for uid in uids)
    busiest = max(sum(1 for w in waits if start <= w < start + MINUTE) for start in waits)
    assert busiest <= 25
    assert waits[0] >= THRESHOLD * 0.95 - NANOSECOND
    assert waits[-1] <= THRESHOLD
