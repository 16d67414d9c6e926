"""Late answers of most clusters are a general strain; those of a few, and of the silent, are not."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.remote.world import place_of

from hortus.engine.remote.strain import Strain


def strain_of(*late: bool) -> Strain:
    strain = Strain()
    for number, one in enumerate(late):
        strain.answered(place_of(f"c-{number}"), late=one)
    return strain


def test_a_few_clusters_say_nothing_in_general() -> None:
    assert not strain_of(*[True] * 15).is_general
    assert strain_of(*[True] * 16).is_general


def test_more_than_half_must_be_late() -> None:
    assert not strain_of(*[True] * 16, *[False] * 16).is_general
    assert strain_of(*[True] * 17, *[False] * 16).is_general


def test_one_busy_cluster_counts_once() -> None:
    strain = strain_of(*[False] * 20)
    for _ in range(100):
        strain.answered(place_of("busy"), late=True)
    assert not strain.is_general


@given(st.lists(st.tuples(st.integers(0, 99), st.booleans()), max_size=300))
@settings(deadline=None, max_examples=50)
def test_the_last_answers_of_the_last_64_clusters_count(answers: list[tuple[int, bool]]) -> None:
    strain, last = Strain(), dict[int, bool]()
    for number, late in answers:
        strain.answered(place_of(f"c-{number}"), late=late)
        last.pop(number, None)
        last[number] = late
    recent = list(last.values())[-64:]
    assert strain.is_general == (len(recent) >= 16 and 2 * sum(recent) > len(recent))
