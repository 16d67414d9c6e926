from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.nodeagent.world import PATH, Osc, World, file, osc_of, service, unit

from hortus.nodeagent.changes import CONTAINERD_DROP_IN, Verb, differences, plan_steps, units_of, waves
from hortus.nodeagent.osc import convert
from hortus.nodeagent.steps import CommandUnit

KUBELET = "kubelet.service"


def verbs(old: Osc | None, new: Osc) -> dict[str, Verb | None]:
    found = differences(convert(old) if old else None, convert(new), hostname="node-1", path=PATH)
    return {each.name: each.verb for each in found.units}


def kubelet(content: str | None = None, **more: Any) -> Osc:
    """A configuration of one unit and two files."""
    paths = more.pop("filePaths", ["/a"])
    data = more.pop("data", "1")
    written = service() if content is None else content
    return osc_of([file("/a", data), file("/b", "1")], [unit(KUBELET, written, filePaths=paths, **more)])


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (kubelet(), {}),
        (kubelet(content=service("/bin/other")), {KUBELET: "restart"}),
        (kubelet(data="2"), {KUBELET: "restart"}),
        (kubelet(filePaths=["/a", "/b"]), {KUBELET: "restart"}),
        (kubelet(filePaths=[]), {KUBELET: "restart"}),
        (kubelet(dropIns=[{"name": "a.conf", "content": "x"}]), {KUBELET: "restart"}),
        (kubelet(enable=True), {KUBELET: None}),
        (kubelet(command="start"), {KUBELET: None}),
        (kubelet(command="restart"), {KUBELET: None}),
        (kubelet(command="stop"), {KUBELET: "stop"}),
        (kubelet(enable=False), {KUBELET: "stop"}),
        (kubelet(enable=False, command="start"), {KUBELET: "stop"}),
    ],
)
def test_a_unit_restarts_when_something_that_it_has_read_changes(new: Osc, expected: dict[str, str | None]) -> None:
    assert verbs(kubelet(), new) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, kubelet(), {KUBELET: "restart"}),
        (None, kubelet(command="start"), {KUBELET: "restart"}),
        (None, kubelet(command="stop"), {KUBELET: "stop"}),
        (kubelet(command="stop"), kubelet(), {KUBELET: "restart"}),
        (kubelet(command="stop"), kubelet(command="stop", data="2"), {KUBELET: None}),
        (kubelet(enable=False), kubelet(enable=True), {KUBELET: "restart"}),
    ],
)
def test_a_unit_follows_the_wish_that_it_runs(old: Osc | None, new: Osc, expected: dict[str, str | None]) -> None:
    assert verbs(old, new) == expected


def test_a_file_that_is_gone_restarts_only_units_that_named_it() -> None:
    old = osc_of([file("/a", "1"), file("/b", "1")], [unit(KUBELET, service(), filePaths=["/a"])])
    new = osc_of([file("/a", "1")], [unit(KUBELET, service(), filePaths=["/a"])])
    found = differences(convert(old), convert(new), hostname="node-1", path=PATH)
    assert (found.units, found.removed_files) == ((), ("/b",))


def test_the_order_of_drop_ins_and_paths_restarts_nothing() -> None:
    ins = [{"name": "a.conf", "content": "x"}, {"name": "b.conf", "content": "y"}]
    old = kubelet(dropIns=ins, filePaths=["/a", "/b"])
    assert verbs(old, kubelet(dropIns=ins[::-1], filePaths=["/b", "/a"])) == {KUBELET: None}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"sandboxImage": "pause:3.9"}, True),
        ({"plugins": [{"path": ["a"], "values": {"b": 1}}]}, True),
        ({"registries": [{"upstream": "docker.io"}]}, False),
    ],
)
def test_containerd_restarts_for_its_configuration_and_not_for_registries(
    changes: dict[str, Any], expected: bool
) -> None:
    old = osc_of(containerd={"sandboxImage": "pause:3.8"})
    new = osc_of(containerd={"sandboxImage": "pause:3.8", **changes})
    found = differences(convert(old), convert(new), hostname="node-1", path=PATH)
    assert found.containerd is expected
    restarts = [step for step in plan_steps(found, convert(new), hostname="node-1") if "CommandUnit" in repr(step)]
    assert len(restarts) == expected


def test_containerd_that_is_to_be_stopped_is_not_restarted_for_its_configuration() -> None:
    stopped = [unit("containerd.service", command="stop")]
    old = convert(osc_of(units=stopped, containerd={"sandboxImage": "pause:3.8"}))
    new = convert(osc_of(units=stopped, containerd={"sandboxImage": "pause:3.9"}))
    found = differences(old, new, hostname="node-1", path=PATH)
    steps = plan_steps(found, new, hostname="node-1")
    assert found.containerd
    assert not [step for step in steps if isinstance(step, CommandUnit)]


def test_registries_stay_where_containerd_is_configured_no_more() -> None:
    old = osc_of(containerd={"sandboxImage": "pause:3.8", "registries": [{"upstream": "docker.io"}]})
    new = osc_of()
    new["spec"]["criConfig"] = {"name": "containerd"}
    other = osc_of(containerd={"sandboxImage": "pause:3.8", "registries": [{"upstream": "docker.io"}]})
    other["spec"]["criConfig"]["name"] = "other"
    for later in (new, other):
        found = differences(convert(old), convert(later), hostname="node-1", path=PATH)
        assert (found.registries, found.removed_registries, found.containerd) == ((), (), False)
        (gone,) = found.removed_units
        assert (gone.name, list(gone.by_name)) == ("containerd.service", [CONTAINERD_DROP_IN])


def test_containerd_gets_the_agents_path_and_a_configuration_of_gardeners_agent_keeps_its_own() -> None:
    osc = osc_of(containerd={"sandboxImage": "pause:3.8"})
    (drop_in,) = units_of(convert(osc), "/opt/bin:/bin")["containerd.service"].drop_ins
    assert drop_in.content == '[Service]\nEnvironment="PATH=/var/bin/containerruntimes:/opt/bin:/bin"\n'
    kept = osc_of(
        units=[unit("containerd.service", dropIns=[{"name": drop_in.name, "content": drop_in.content}])],
        containerd={"sandboxImage": "pause:3.8"},
    )
    same = differences(convert(kept), convert(osc), hostname="node-1", path="/opt/bin:/bin")
    assert same.units == ()
    other = differences(convert(kept), convert(osc), hostname="node-1", path="/bin")
    assert [(each.name, each.verb) for each in other.units] == [("containerd.service", "restart")]


def test_a_file_for_no_host_is_written_on_none() -> None:
    nowhere = convert(osc_of([file("/a", "1", hostName=""), file("/b", "1", hostName="node-1")]))
    assert differences(None, nowhere, hostname="node-1", path=PATH).files == ("/b",)


def test_a_new_container_runtime_restarts_containerd_once() -> None:
    new = convert(osc_of(units=[unit("containerd.service", service())], containerd={"sandboxImage": "pause:3.8"}))
    found = differences(None, new, hostname="node-1", path=PATH)
    names = [getattr(step, "name", "") for step in plan_steps(found, new, hostname="node-1")]
    assert Counter(names)["containerd.service"] == 2, "one step writes it, one restarts it"


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ({"a.service": "", "b.service": ""}, [["a.service", "b.service"]]),
        ({"a.service": "After=b.service", "b.service": ""}, [["b.service"], ["a.service"]]),
        ({"a.service": "Before=b.service", "b.service": ""}, [["a.service"], ["b.service"]]),
        ({"a.service": "After=network.target b.service", "b.service": ""}, [["b.service"], ["a.service"]]),
        ({"a.service": "After=b.service\nAfter=", "b.service": ""}, [["a.service", "b.service"]]),
        ({"a.service": "After=b.service", "b.service": "After=a.service"}, [["a.service", "b.service"]]),
    ],
)
def test_units_are_restarted_in_the_order_that_they_ask_for(units: dict[str, str], expected: list[list[str]]) -> None:
    osc = convert(osc_of(units=[unit(name, f"[Unit]\n{text}\n") for name, text in units.items()]))
    assert waves(units, osc.merged_units()) == expected


CONTENTS = st.sampled_from(["1", "2"])
NAMES = ["a.service", "b.service", "c.service"]
PATHS = ["/etc/a", "/etc/b", "/etc/c"]


@st.composite
def configurations(draw: st.DrawFn) -> Osc:
    """A configuration in which the kubelet may change, with other units and files around it."""
    files = [file(path, draw(CONTENTS)) for path in PATHS if draw(st.booleans())]
    present = [each["path"] for each in files]
    named = st.lists(st.sampled_from(present), unique=True) if present else st.just([])
    units = [
        unit(
            name,
            service(f"/bin/{draw(CONTENTS)}"),
            filePaths=draw(named),
            enable=draw(st.sampled_from([None, True, False])),
            dropIns=[{"name": "x.conf", "content": draw(CONTENTS)}] if draw(st.booleans()) else [],
        )
        for name in NAMES
        if draw(st.booleans())
    ]
    units.append(
        unit(
            KUBELET,
            service(f"/bin/{draw(CONTENTS)}"),
            filePaths=draw(named),
            command=draw(st.sampled_from([None, "start", "restart"])),
            enable=draw(st.sampled_from([None, True])),
        )
    )
    return osc_of(files, draw(st.permutations(units)))


def read_by_kubelet(osc: Osc) -> tuple[Any, ...]:
    decoded = convert(osc)
    mine = decoded.merged_units()[KUBELET]
    files = decoded.files_for("node-1")
    return mine.content, mine.by_name, {path: files[path] for path in mine.file_paths}


@settings(max_examples=60, deadline=None)
@given(st.lists(configurations(), min_size=2, max_size=5))
async def test_a_kubelet_whose_files_did_not_change_never_restarts(sequence: list[Osc]) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        before = None
        for osc in sequence:
            world.units.restarts.clear()
            await world.converge(osc)
            now = read_by_kubelet(osc)
            assert world.units.restarts.count(KUBELET) == (now != before)
            assert max(Counter(world.units.restarts).values(), default=0) <= 1
            before = now


@settings(max_examples=30, deadline=None)
@given(st.lists(configurations(), min_size=1, max_size=4))
async def test_a_node_that_took_any_way_to_a_configuration_is_like_one_that_began_with_it(sequence: list[Osc]) -> None:
    with TemporaryDirectory() as folder:
        walked, direct = World(Path(folder, "walked")), World(Path(folder, "direct"))
        for osc in sequence:
            await walked.converge(osc)
        await direct.converge(sequence[-1])
        assert walked.tree() == direct.tree()
        walked.units.restarts.clear()
        await walked.converge(sequence[-1])
        assert walked.units.restarts == [], "the same configuration again restarts nothing"
