"""Events that wait: order, one for each object, bounds, and what a kill leaves."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from hortus.domains.modules.watching.agent.buffer import FILE, MOST_LANES, EventBuffer
from hortus.domains.modules.watching.events import WatchedEvent

MANAGER = "lifecycle-manager"


def event(name: str) -> WatchedEvent:
    return WatchedEvent("kyma-system", name, "operator.kyma-project.io", "v1beta2", "Kyma")


def drained(buffer: EventBuffer, manager: str = MANAGER) -> list[str]:
    names = []
    while (one := buffer.begin(manager)) is not None:
        names.append(one.event.name)
        buffer.done(manager, one.number)
    return names


def test_an_object_that_changes_while_it_is_delivered_is_reported_again() -> None:
    buffer = EventBuffer()
    buffer.add(MANAGER, event("a"))
    begun = buffer.begin(MANAGER)
    assert begun is not None
    buffer.add(MANAGER, event("a"))
    buffer.add(MANAGER, event("a"))
    buffer.done(MANAGER, begun.number)
    assert drained(buffer) == ["a"]


def test_a_full_lane_refuses_and_counts_and_holds_nobody_else_up() -> None:
    buffer = EventBuffer(limit=2)
    assert [buffer.add(MANAGER, event(name)) for name in "abca"] == [True, True, False, True]
    assert (buffer.dropped, buffer.add("other", event("c"))) == (1, True)
    assert drained(buffer) == ["a", "b"]


def test_managers_are_bounded() -> None:
    buffer = EventBuffer()
    assert all(buffer.add(f"m{number}", event("a")) for number in range(MOST_LANES))
    assert not buffer.add("one-more", event("a"))


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sampled_from("abcd")),
            st.tuples(st.just("done"), st.just("")),
            st.tuples(st.just("kill"), st.integers(min_value=0, max_value=30)),
        ),
        max_size=40,
    )
)
def test_a_buffer_that_is_killed_holds_what_was_not_delivered(steps: list[tuple[str, str | int]]) -> None:
    """After any steps the buffer holds each object that was added and not delivered since, oldest first."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        buffer, model = EventBuffer(folder), list[str]()
        for step, value in steps:
            if step == "add":
                buffer.add(MANAGER, event(str(value)))
                if value not in model:
                    model.append(str(value))
            elif step == "done" and (one := buffer.begin(MANAGER)) is not None:
                buffer.done(MANAGER, one.number)
                assert one.event.name == model.pop(0)
            elif step == "kill":
                # The process is gone, and the write that it was in left a part of a line.
                buffer.close()
                with (folder / FILE).open("ab") as file:
                    file.write(b'[99999,"lifecycle-manager","kyma-system"'[: int(value)])
                buffer = EventBuffer(folder)
        assert drained(buffer) == model
        buffer.close()


def test_the_file_does_not_grow_with_what_was_delivered(tmp_path: Path) -> None:
    buffer = EventBuffer(tmp_path)
    buffer.add(MANAGER, event("first"))
    sizes = set()
    for number in range(2000):
        buffer.add(MANAGER, event(f"n{number}"))
        begun = buffer.begin(MANAGER)
        assert begun is not None
        buffer.done(MANAGER, begun.number)
        sizes.add((tmp_path / FILE).stat().st_size)
    assert max(sizes) < 100_000
    buffer.close()
    assert drained(EventBuffer(tmp_path)) == ["n1999"]


def test_a_folder_that_cannot_be_written_is_reported_and_used_again_when_it_can(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    buffer = EventBuffer(tmp_path / "file" / "folder")
    assert (buffer.persistent, buffer.problem) == (False, f"{tmp_path}/file/folder/{FILE}: Not a directory")
    buffer.add(MANAGER, event("a"))
    (tmp_path / "file").unlink()
    (tmp_path / "file" / "folder").mkdir(parents=True)
    buffer.add(MANAGER, event("b"))
    assert (buffer.persistent, buffer.problem) == (True, "")
    buffer.close()
    assert drained(EventBuffer(tmp_path / "file" / "folder")) == ["a", "b"]


def test_the_file_is_private(tmp_path: Path) -> None:
    EventBuffer(tmp_path).close()
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
