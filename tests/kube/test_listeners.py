"""Places of a listener, shared out by sender."""

from __future__ import annotations

import pytest

from hortus.kube.listeners import ConnectionPhase, ConnectionPlace, ConnectionPlaces, sender_of


class Taken:
    """A listener's places, and the names of the connections that it dropped."""

    def __init__(self, connections: int = 8, held: int = 100) -> None:
        self.places = ConnectionPlaces(connections, held)
        self.dropped: list[str] = []

    def take(
        self, sender: str, name: str = "", phase: ConnectionPhase = ConnectionPhase.WORK
    ) -> ConnectionPlace | None:
        place = self.places.take(sender, lambda: self.dropped.append(name))
        if place is not None:
            self.places.move(place, phase)
        return place


@pytest.mark.parametrize(
    ("peer", "sender"),
    [
        (("192.0.2.7", 1234), "192.0.2.7"),
        (("::ffff:192.0.2.7", 1234, 0, 0), "192.0.2.7"),
        (("2001:db8:1:2:3::9", 1234, 0, 0), sender_of(("2001:db8:1:2::1", 1, 0, 0))),
        (("fe80::1%eth0", 1234, 0, 2), sender_of(("fe80::2", 1, 0, 0))),
        ("", ""),
    ],
)
def test_addresses_that_one_host_chooses_among_are_one_sender(peer: object, sender: str) -> None:
    assert sender_of(peer) == sender
    assert sender_of(("2001:db8:1:3::1", 1, 0, 0)) != sender_of(("2001:db8:1:2::1", 1, 0, 0))


def test_one_sender_has_half_of_the_places_even_at_work() -> None:
    taken = Taken()
    assert [taken.take("a") is not None for _ in range(6)] == [True] * 4 + [False] * 2
    assert [taken.take("b") is not None for _ in range(6)] == [True] * 4 + [False] * 2
    assert taken.take("c") is None
    assert taken.dropped == []


def test_what_is_waited_for_the_longest_gives_way_and_work_does_not() -> None:
    taken = Taken()
    for phase in (ConnectionPhase.WORK, ConnectionPhase.BODY, ConnectionPhase.IDLE, ConnectionPhase.HEAD):
        taken.take("a", phase.name, phase)
    for _ in range(4):
        taken.take("a", "new", ConnectionPhase.WORK)
    assert taken.dropped == ["HEAD", "IDLE", "BODY"]


def test_a_sender_of_few_connections_loses_none_to_one_of_many() -> None:
    taken = Taken()
    taken.take("few", "few", ConnectionPhase.IDLE)
    for number in range(20):
        taken.take(f"many-{number % 3}", "many", ConnectionPhase.HEAD)
    taken.take("new", "new", ConnectionPhase.HEAD)
    assert set(taken.dropped) == {"many"}


def test_the_next_sender_gives_way_where_the_largest_is_at_work() -> None:
    taken = Taken()
    for _ in range(4):
        taken.take("at work")
    for _ in range(4):
        taken.take("idle", "idle", ConnectionPhase.IDLE)
    assert taken.take("new") is not None
    assert taken.dropped == ["idle"]


def test_bytes_are_shared_by_sender_and_given_back_after_each_request() -> None:
    taken = Taken(held=100)
    one, two, other = taken.take("a"), taken.take("a"), taken.take("b")
    assert one is not None
    assert two is not None
    assert other is not None
    assert (taken.places.hold(one, 30), taken.places.hold(two, 20), taken.places.hold(two, 1)) == (True, True, False)
    assert (taken.places.hold(other, 50), taken.places.hold(other, 1)) == (True, False)
    taken.places.move(one, ConnectionPhase.IDLE)
    assert taken.places.hold(two, 30)
    for place in (one, two, other, two):
        taken.places.leave(place)
    assert (taken.places._taken, taken.places._held, taken.places._senders) == (0, 0, {})


def test_a_dropped_place_is_no_longer_counted_whatever_its_connection_does() -> None:
    taken = Taken(connections=2)
    place = taken.take("a", "first", ConnectionPhase.HEAD)
    assert place is not None
    assert taken.take("a", "second", ConnectionPhase.HEAD) is not None
    assert taken.dropped == ["first"]
    taken.places.move(place, ConnectionPhase.WORK)
    taken.places.leave(place)
    assert not taken.places.hold(place, 101)
    assert taken.places._taken == 1
