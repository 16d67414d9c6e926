"""Updates in place of a node: kills at each change, commands that fail, and machines that come back as they were."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from tests.nodeagent.updatable import CPU_STATE, KUBELET, PKI, REAL, RELEASE, Updatable
from tests.nodeagent.world import PATH, Killed, Osc, file, in_place, osc_of, service, text_of, unit

from hortus.engine.outcomes import StepError
from hortus.nodeagent.converging import checksum_of, converge
from hortus.nodeagent.host import LocalMachine
from hortus.nodeagent.osc import decode
from hortus.nodeagent.planning import planned
from hortus.nodeagent.seams import NodeFault
from hortus.testing import FakeClock

COMMAND = ("/usr/bin/update-os", "--to", "1592.5")
LEAST_CHANGES = 50
ROTATED = "2026-01-01T00:00:00Z"


def first_files() -> Osc:
    return osc_of(
        [file("/etc/kubelet.conf", "a"), file("/etc/kept", "k")],
        [
            unit(KUBELET, service("/bin/kubelet"), filePaths=["/etc/kubelet.conf"]),
            unit("kept.service", service(), filePaths=["/etc/kept"]),
        ],
    )


def before() -> Osc:
    return in_place(first_files(), "1.32.1", "1592.4")


def after(kubelet: str = "", system: str = "1592.4") -> Osc:
    """The configuration that updates the kubelet and the system; without arguments everything else as well."""
    osc = first_files()
    osc["spec"]["files"][0]["content"]["inline"]["data"] = "b"
    if kubelet:
        in_place(osc, kubelet, system)
    else:
        rotation = {"certificateAuthorities": ROTATED, "serviceAccountKey": ROTATED}
        in_place(osc, "1.33.1", "1592.5", {"cpuManagerPolicy": "static"}, **rotation)
    osc["status"] = {"inPlaceUpdates": {"osUpdate": {"command": COMMAND[0], "args": list(COMMAND[1:])}}}
    return osc


async def prepared(root: Path, *, clock: FakeClock | None = None) -> Updatable:
    world = Updatable(root, clock=clock)
    world.put("/etc/os-release", RELEASE.format("1592.4"))
    for path in (REAL, PKI, CPU_STATE):
        world.put(path, "old")
    await world.converge(before())
    world.reports.drained = True
    world.reports.running = ["kube-system/proxy/1", "default/web/2"]
    world.units.restarts.clear()
    world.seen.clear()
    return world


def end_of(world: Updatable) -> tuple[object, ...]:
    reports = world.reports
    return (
        world.tree(),
        world.unit_states(),
        Counter(world.units.restarts),
        (reports.result, reports.reason, reports.updating, reports.running),
    )


async def test_a_kill_at_any_change_of_an_update_in_place_ends_the_same(tmp_path: Path) -> None:
    unharmed = await prepared(tmp_path / "unharmed")
    await unharmed.update(after())
    expected, changes = end_of(unharmed), len(unharmed.seen)
    assert changes >= LEAST_CHANGES
    assert unharmed.units.restarts == [KUBELET, KUBELET], "once for its version, once for its authority"
    assert unharmed.host.commands == [COMMAND]
    assert (unharmed.reports.certificates, unharmed.reports.token_syncs) == (1, 1)
    assert unharmed.reports.running == ["kube-system/proxy/1-again", "default/web/2-again"]
    assert (unharmed.reports.result, unharmed.reports.updating) == ("successful", "")
    assert unharmed.files.read("/etc/os-release") == RELEASE.format("1592.5").encode()
    assert unharmed.files.read(CPU_STATE) is None
    assert (unharmed.files.read(REAL), unharmed.files.read(PKI)) == (b"new", b"new")
    for number in range(changes):
        world = await prepared(tmp_path / str(number))
        world.strike = number
        await world.update(after())
        assert world.strike == -1, "nothing was killed"
        assert end_of(world) == expected, f"killed at {unharmed.seen[number]}"


@pytest.mark.parametrize("begun", ["before", "after"])
async def test_a_configuration_that_was_begun_and_replaced_leaves_nothing_behind(begun: str, tmp_path: Path) -> None:
    """`begun` says on which side of the update another configuration takes the place of the first."""
    first = after("1.33.1", "1592.4")
    first["spec"]["files"].append(file("/etc/added", "x"))
    first["spec"]["units"].append(unit("added.service", service()))
    unharmed = await prepared(tmp_path / "unharmed", clock=FakeClock(now=4e9))
    untouched, text = unharmed.tree(), text_of(first)
    await unharmed.update(first)
    wanted = before() if begun == "before" else after("1.34.0", "1592.4")
    for number in range(len(unharmed.seen)):
        world = await prepared(tmp_path / str(number), clock=FakeClock(now=4e9))
        world.strike = number
        with pytest.raises(Killed):
            await converge(world.node, world.state, text, checksum_of(text))
        half = world.files.read("/etc/kubelet.conf")
        world.units.restarts.clear()
        await world.update(wanted)
        if begun == "before":
            assert world.tree() == untouched, f"killed at {unharmed.seen[number]}"
            # A kubelet that may have read the other file reads this one.
            assert set(world.units.restarts) <= {KUBELET}
            assert world.units.restarts or half == b"a"
        else:
            assert world.files.read("/etc/kubelet.conf") == b"b"
            assert not {"/etc/added", "/etc/systemd/system/added.service"} & world.tree().keys()
        assert world.state.begun() == ()


async def test_an_update_command_without_a_network_is_tried_again_for_five_minutes(tmp_path: Path) -> None:
    world = await prepared(tmp_path)
    world.host.outcomes = [(1, "Network problems: no route\nretry later"), (7, "network problems")]
    work = asyncio.create_task(world.update(after()))
    await world.clock.advance(29)
    assert len(world.host.commands) == 1
    await world.clock.advance(32)
    await work
    assert world.host.commands == [COMMAND] * 3
    assert world.reports.result == "successful"
    another = await prepared(tmp_path / "another")
    another.host.outcomes = [(1, "network problems")] * 100
    ends = asyncio.create_task(another.update(after()))
    await another.clock.advance(299)
    assert another.reports.result == ""
    await another.clock.advance(2)
    with pytest.raises(StepError, match="update-os ended with exit code 1: network problems"):
        await ends
    assert len(another.host.commands) == 11
    assert another.reports.result == "failed"


@pytest.mark.parametrize("output", ["invalid arguments", "system failure", "no space left", ""])
async def test_an_update_command_that_fails_is_not_repeated_until_somebody_takes_the_label_off(
    output: str, tmp_path: Path
) -> None:
    world = await prepared(tmp_path)
    world.host.outcomes = [(3, output)]
    for _ in range(3):
        with pytest.raises(StepError) as failure:
            await world.update(after())
        assert failure.value.reason == "InPlaceUpdateFailed"
        assert "take label node.machine.sapcloud.io/update-result off the Node" in failure.value.message
    assert len(world.host.commands) == 1
    assert world.reports.result == "failed"
    assert world.reports.reason == f"/usr/bin/update-os ended with exit code 3: {output or 'no output'}"
    assert world.reports.running == ["kube-system/proxy/1", "default/web/2"], "a failed update deletes no pod"
    assert world.reports.certificates == 0
    world.reports.result = ""
    await world.update(after())
    assert len(world.host.commands) == 2
    assert (world.reports.result, world.reports.reason) == ("successful", "")


async def test_a_machine_that_comes_back_with_its_old_version_has_failed(tmp_path: Path) -> None:
    world = await prepared(tmp_path)
    world.takes = False
    with pytest.raises(StepError, match=r"started with 1592\.4 again, and not with 1592\.5"):
        await world.update(after())
    assert (world.reports.result, world.reports.updating) == ("failed", "1592.5")
    assert "started with 1592.4 again" in world.reports.reason
    assert len(world.host.commands) == 1
    better = after("1.32.1", "1592.6")
    better["status"]["inPlaceUpdates"]["osUpdate"]["args"][-1] = "1592.6"
    world.takes = True
    await world.update(better)
    assert (world.reports.result, world.reports.reason) == ("successful", "")


async def test_an_update_without_a_command_is_refused(tmp_path: Path) -> None:
    world = await prepared(tmp_path)
    osc = after()
    del osc["status"]
    with pytest.raises(StepError, match=r"status\.inPlaceUpdates\.osUpdate\.command is empty"):
        await world.update(osc)
    assert world.host.commands == []


async def test_a_kubelet_that_is_not_healthy_after_its_update_fails_it_until_it_is(tmp_path: Path) -> None:
    world = await prepared(tmp_path)
    osc = after("1.33.1", "1592.4")
    world.kubelet_problem = "refused"
    work = asyncio.create_task(world.update(osc))
    await world.clock.advance(299)
    assert world.reports.result == ""
    await world.clock.advance(6)
    with pytest.raises(NodeFault, match="not healthy 300 s after its update in place: refused"):
        await work
    assert world.reports.result == "failed"
    world.kubelet_problem = ""
    await world.update(osc)
    assert world.reports.result == "successful"
    assert world.units.restarts == [KUBELET]


async def test_a_kubelet_that_does_not_start_with_its_update_fails_it(tmp_path: Path) -> None:
    world = await prepared(tmp_path)
    world.units.results[KUBELET] = ["failed"]
    osc = after("1.33.1", "1592.4")
    with pytest.raises(NodeFault, match=r"could not restart unit kubelet\.service"):
        await world.update(osc)
    assert world.reports.result == "failed"


async def test_a_new_node_is_updated_in_nothing(tmp_path: Path) -> None:
    world = Updatable(tmp_path)
    world.put("/etc/os-release", RELEASE.format("1592.3"))
    await world.converge(after())
    assert (world.host.commands, world.reports.result) == ([], "")


async def test_a_plan_names_the_steps_of_an_update_in_place(tmp_path: Path) -> None:
    world = await prepared(tmp_path)
    old, new = decode(text_of(before())), decode(text_of(after()))
    plan = planned(old, new, world.files, hostname="node-1", path=PATH, remaining=None)
    assert [(step.action, step.subject) for step in plan.steps] == [
        ("update", "/etc/kubelet.conf"),
        ("update", "/var/lib/kubelet/config/kubelet"),
        ("keep", "/etc/systemd/system/kubelet.service"),
        ("reload", "systemd"),
        ("remove", CPU_STATE),
        ("wait", KUBELET),
        ("update", "operating system"),
        ("update", "tokens"),
        ("update", "certificate of this agent"),
        ("restart", KUBELET),
        ("wait", KUBELET),
        ("remove", "pods of this node"),
        ("restart", KUBELET),
    ]
    assert plan.untouched == ("kept.service",)


async def test_a_program_of_the_machine_reports_code_output_and_absence(tmp_path: Path) -> None:
    machine = LocalMachine()
    assert await machine.run(["sh", "-c", "echo out; echo err >&2; exit 3"], patience=20) == (3, "out\nerr\n")
    with pytest.raises(NodeFault, match="cannot run /no/such: No such file or directory"):
        await machine.run(["/no/such"], patience=20)
    with pytest.raises(NodeFault, match=r"sleep did not end within 0\.1 s"):
        await machine.run(["sleep", "1000"], patience=0.1)
    assert machine.boot() == LocalMachine().boot() != ""
