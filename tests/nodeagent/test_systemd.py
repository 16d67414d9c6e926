"""The agent's systemd against a real one, and what it does when the bus refuses, is silent, or is not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.nodeagent.realsystemd import booted
from tests.nodeagent.world import World, file, osc_of, service, unit
from tests.waiting import until

from hortus.nodeagent.seams import NodeFault, UnitStatus
from hortus.nodeagent.systemd import Systemd

SLEEP = "/bin/sleep 1000"
INSTALL = "[Install]\nWantedBy=multi-user.target\n"


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[tuple[Systemd, Path]]:
    async with booted(tmp_path) as found:
        yield found


def put(root: Path, name: str, text: str) -> None:
    (root / "etc/systemd/system" / name).write_text(text)


async def test_a_unit_is_loaded_enabled_started_restarted_and_stopped(machine: tuple[Systemd, Path]) -> None:
    systemd, root = machine
    name = "kubelet.service"
    assert await systemd.status([name]) == {name: UnitStatus()}
    put(root, name, service(SLEEP) + INSTALL)
    await systemd.reload()
    await systemd.enable(name)
    before = (await systemd.status([name]))[name]
    assert (before.load, before.active, before.enabled, before.invocation) == ("loaded", "inactive", "enabled", "")
    assert (root / "etc/systemd/system/multi-user.target.wants" / name).is_symlink()
    assert await systemd.restart(name) == "done"
    first = (await systemd.status([name]))[name]
    assert (first.active, first.sub, first.kind, first.runs) == ("active", "running", "simple", True)
    assert await systemd.restart(name) == "done"
    second = (await systemd.status([name]))[name]
    assert len(second.invocation) == len(first.invocation) == 32
    assert second.invocation != first.invocation, "each start has an invocation of its own"
    assert second.started > first.started > 1.7e9
    await systemd.disable(name)
    assert await systemd.stop(name) == "done"
    after = (await systemd.status([name]))[name]
    assert (after.active, after.enabled) == ("inactive", "disabled")
    assert (await systemd.status([name], details=False))[name] == UnitStatus(load="loaded")


async def test_jobs_that_fail_last_long_or_name_no_unit_differ(
    machine: tuple[Systemd, Path],
) -> None:
    systemd, root = machine
    put(
        root,
        "broken.service",
        "[Service]\nType=oneshot\nExecStart=/no/such/program\n",
    )
    put(root, "slow.service", "[Service]\nType=oneshot\nExecStart=/bin/sleep 1000\n")
    await systemd.reload()
    assert await systemd.restart("broken.service") == "failed"
    assert (await systemd.status(["broken.service"]))["broken.service"].active == "failed"
    hasty = Systemd(systemd.address, patience=0.2)
    assert await hasty.restart("slow.service") == "timeout"
    await hasty.close()
    assert (await systemd.status(["slow.service"]))["slow.service"].active == "activating"
    with pytest.raises(NodeFault, match=r"systemd refused RestartUnit no\.service: Unit no\.service not found"):
        await systemd.restart("no.service")


async def test_a_connection_that_broke_is_made_again(machine: tuple[Systemd, Path]) -> None:
    systemd, _ = machine
    assert systemd._bus is not None
    systemd._bus.disconnect()
    assert (await systemd.status(["dbus.service"]))["dbus.service"].active == "active"


async def test_a_missing_bus_is_reported_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(NodeFault, match=r"cannot connect to the D-Bus of the system: .*; start dbus\.socket"):
        await Systemd(f"unix:path={tmp_path}/none").reload()


async def test_a_real_systemd_restarts_a_changed_unit_once_however_often_the_agent_is_killed(
    machine: tuple[Systemd, Path], tmp_path: Path
) -> None:
    systemd, root = machine
    world = World(root)
    world.units = systemd  # type: ignore[assignment]
    names = ["kubelet.service", "kept.service"]

    def osc(data: str) -> dict[str, object]:
        return osc_of(
            [file("/etc/kubelet.conf", data), file("/etc/kept", "k")],
            [
                unit(names[0], service(SLEEP) + INSTALL, filePaths=["/etc/kubelet.conf"]),
                unit(names[1], service(SLEEP) + INSTALL, filePaths=["/etc/kept"]),
            ],
        )

    class NoBoot:
        def boot(self) -> None:
            return None

    async def invocations() -> list[str]:
        found = await systemd.status(names)
        assert all(each.active == "active" for each in found.values())
        return [found[name].invocation for name in names]

    systemd.boot = NoBoot().boot  # type: ignore[attr-defined]
    await world.converge(osc("0"))
    first = await invocations()
    world.seen.clear()
    await world.converge(osc("1"))
    changes = len(world.seen)
    second = await invocations()
    assert (second[0] != first[0], second[1]) == (True, first[1])
    for number in range(changes):
        started = await invocations()
        world.seen.clear()
        world.strike = number
        await world.converge(osc(str(number + 2)))
        assert world.strike == -1, "nothing was killed"
        ended = await invocations()
        assert ended[0] != started[0]
        assert ended[1] == first[1], "a unit whose files did not change never restarts"


async def test_units_started_together_keep_their_order(machine: tuple[Systemd, Path]) -> None:
    systemd, root = machine
    world = World(root)
    world.units = systemd  # type: ignore[assignment]
    await world.converge(
        osc_of(
            units=[
                unit("second.service", "[Unit]\nAfter=first.service\n" + service(SLEEP)),
                unit(
                    "first.service",
                    "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n",
                ),
            ]
        )
    )

    async def both() -> bool:
        found = await systemd.status(["first.service", "second.service"])
        return all(each.active == "active" for each in found.values())

    await until(both)
    found = await systemd.status(["first.service", "second.service"])
    assert found["first.service"].started < found["second.service"].started


async def test_many_callers_share_one_connection(machine: tuple[Systemd, Path]) -> None:
    systemd, root = machine
    for number in range(8):
        put(root, f"s{number}.service", service(SLEEP))
    await systemd.reload()
    assert await asyncio.gather(*(systemd.restart(f"s{number}.service") for number in range(8))) == ["done"] * 8
