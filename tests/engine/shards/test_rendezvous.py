from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hortus.engine.shards import owner
from hortus.kube.objects import ObjectKey

NAMES = st.lists(st.text("abcdef0123456789", min_size=1, max_size=12), min_size=1, max_size=8, unique=True)
KEYS = [ObjectKey("kcp-system", f"cluster-{number}") for number in range(4000)]


@given(NAMES, st.text("xyz", min_size=1), st.integers(0, len(KEYS) - 200))
def test_one_that_comes_takes_from_the_others_and_nothing_moves_between_those(
    members: list[str], newcomer: str, start: int
) -> None:
    for key in KEYS[start : start + 200]:
        assert owner([*members, newcomer], key) in (owner(members, key), newcomer)


@given(NAMES, st.integers(0, len(KEYS) - 200), st.data())
def test_one_that_goes_moves_only_what_was_its_own(members: list[str], start: int, data: st.DataObject) -> None:
    leaver = data.draw(st.sampled_from(members))
    rest = [name for name in members if name != leaver]
    for key in KEYS[start : start + 200] if rest else ():
        before = owner(members, key)
        assert before == leaver or owner(rest, key) == before


@given(NAMES, st.randoms())
def test_the_order_in_which_members_are_known_does_not_matter(members: list[str], random: object) -> None:
    assert [owner(members, key) for key in KEYS[:50]] == [owner(members[::-1], key) for key in KEYS[:50]]


def test_a_change_of_one_in_n_moves_one_nth_of_the_keys() -> None:
    for count in (1, 2, 3, 5, 10):
        members = [f"replica-{number}" for number in range(count)]
        moved = sum(owner(members, key) != owner([*members, "newcomer"], key) for key in KEYS)
        share = 1 / (count + 1)
        # Five standard deviations of a binomial distribution.
        slack = 5 * (share * (1 - share) / len(KEYS)) ** 0.5
        assert abs(moved / len(KEYS) - share) < slack


def test_keys_that_only_look_alike_are_different_keys() -> None:
    members = [f"replica-{number}" for number in range(64)]
    pairs = [(ObjectKey("a", f"bc{number}"), ObjectKey("ab", f"c{number}")) for number in range(50)]
    assert any(owner(members, one) != owner(members, other) for one, other in pairs)
