"""The due time where only what was granted counts: properties for all numbers, and times that cannot be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.engine.kubeconfigs import RotationPolicy, fraction_of

NOW = 1_700_000_000.0
LEAST, SPREAD = 30.0, 0.1

lifetimes = st.floats(600, 86400)
shares = st.floats(0.1, 0.9)
fractions = st.floats(0, 1, exclude_max=True)


def policy(share: float = 0.6) -> RotationPolicy:
    return RotationPolicy(share=share, spread=SPREAD, least=LEAST)


@given(lifetimes, shares, fractions)
def test_a_kubeconfig_is_replaced_before_it_ends_and_never_far_before_its_share(
    lifetime: float, share: float, fraction: float
) -> None:
    wait = policy(share).wait(lifetime, fraction)
    assert LEAST <= wait < lifetime
    assert wait >= lifetime * share * (1 - SPREAD) - 1e-6


@given(lifetimes, shares, fractions, st.floats(-200, 100_000))
def test_a_later_look_never_makes_it_due_later(lifetime: float, share: float, fraction: float, age: float) -> None:
    def left(now: float) -> float:
        due = policy(share).next(issued=NOW, expires=NOW + lifetime, fraction=fraction, now=now)
        return 0.0 if due.now else due.after

    assert left(NOW + age) >= left(NOW + age + 1)
    assert left(NOW + lifetime) == 0


@pytest.mark.parametrize(("issued", "expires"), [(None, NOW), (NOW, None), (NOW + 3600, NOW + 7200), (NOW, NOW - 1)])
def test_times_that_cannot_be_make_it_due(issued: float | None, expires: float | None) -> None:
    assert policy().next(issued=issued, expires=expires, fraction=0.5, now=NOW).now


def test_a_short_life_is_replaced_no_more_often_than_the_least_wait() -> None:
    assert policy().wait(10.0, 0.0) == LEAST


@given(st.lists(st.uuids(), min_size=200, max_size=200, unique=True))
def test_fractions_are_spread(uids: list[object]) -> None:
    found = [fraction_of(str(uid)) for uid in uids]
    assert all(0 <= fraction < 1 for fraction in found)
    assert 0.3 < sum(found) / len(found) < 0.7
