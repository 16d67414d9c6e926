"""A node agent that is killed at each change it makes leaves a node that the next start brings to the same end."""

from __future__ import annotations

import errno
import itertools
from collections import Counter
from pathlib import Path

import pytest
from tests.nodeagent.world import FOLDER, IMAGE, Osc, World, file, osc_of, service, unit

from hortus.nodeagent.seams import NodeFault
from hortus.testing import FakeClock

KUBELET = "kubelet.service"
AGENT = "gardener-node-agent.service"
LEAST_CHANGES = 60


def before() -> Osc:
    return osc_of(
        [file("/etc/kubelet.conf", "a"), file("/etc/gone", "g"), file("/etc/kept", "k"), file("/etc/log.conf", "1")],
        [
            unit(KUBELET, service("/bin/kubelet"), filePaths=["/etc/kubelet.conf"]),
            unit(
                "kept.service", service(), filePaths=["/etc/kept"], dropIns=[{"name": "a.conf", "content": "[Unit]\n"}]
            ),
            unit("gone.service", service()),
            unit("logger.service", service(After="kubelet.service"), filePaths=["/etc/log.conf"]),
            unit("sshd.service", dropIns=[{"name": "harden.conf", "content": "[Service]\nUMask=0077\n"}]),
            unit(AGENT, service("/opt/bin/gardener-node-agent")),
        ],
        containerd={"sandboxImage": "pause:3.8", "registries": [{"upstream": "old.example.org", "hosts": []}]},
    )


def after() -> Osc:
    return osc_of(
        [
            file("/etc/kubelet.conf", "b", permissions=0o644),
            file("/etc/kept", "k"),
            file("/etc/log.conf", "2"),
            {"path": "/opt/bin/kubelet", "content": {"imageRef": {"image": IMAGE, "filePathInImage": "/bin/kubelet"}}},
        ],
        [
            unit(KUBELET, service("/opt/bin/kubelet"), filePaths=["/etc/kubelet.conf", "/opt/bin/kubelet"]),
            unit(
                "kept.service", service(), filePaths=["/etc/kept"], dropIns=[{"name": "a.conf", "content": "[Unit]\n"}]
            ),
            unit("logger.service", service(After="kubelet.service"), filePaths=["/etc/log.conf"]),
            unit("new.service", service()),
            unit("stopped.service", service(), enable=False),
            unit(AGENT, service("/opt/bin/gardener-node-agent --new")),
        ],
        containerd={
            "sandboxImage": "pause:3.10",
            "registries": [
                {"upstream": "docker.io", "hosts": [{"url": "https://mirror.example.org"}]},
                {"upstream": "quay.io", "readinessProbe": True, "hosts": [{"url": "https://cache.example.org"}]},
            ],
        },
    )


async def prepared(root: Path) -> World:
    world = World(root)
    world.units.system |= {"sshd.service", "containerd.service"}
    for name in world.units.system:
        world.units.start(name)
    await world.converge(before())
    world.units.restarts.clear()
    world.units.stops.clear()
    world.seen.clear()
    return world


def end_of(world: World) -> tuple[object, ...]:
    return world.tree(), world.unit_states(), Counter(world.units.restarts), Counter(world.units.stops)


async def test_a_kill_at_any_change_ends_the_same_and_restarts_nothing_twice(tmp_path: Path) -> None:
    unharmed = await prepared(tmp_path / "unharmed")
    await unharmed.converge(after())
    assert Counter(unharmed.units.restarts) == Counter(
        [KUBELET, "logger.service", "new.service", "containerd.service", "sshd.service"]
    )
    assert unharmed.units.stops == ["gone.service"]
    expected, changes = end_of(unharmed), len(unharmed.seen)
    assert changes >= LEAST_CHANGES
    for number in range(changes):
        world = await prepared(tmp_path / str(number))
        world.strike = number
        await world.converge(after())
        assert world.strike == -1, "nothing was killed"
        assert end_of(world) == expected, f"killed at {unharmed.seen[number]}"


async def test_two_kills_of_one_reconcile_end_the_same(tmp_path: Path) -> None:
    unharmed = await prepared(tmp_path / "unharmed")
    await unharmed.converge(after())
    expected = end_of(unharmed)
    for first, second in itertools.product(range(0, len(unharmed.seen), 29), range(1, 60, 15)):
        world = await prepared(tmp_path / f"{first}-{second}")
        world.strike = first
        original = world.units.boot

        def boot(world: World = world, at: int = second, original: object = original) -> None:
            assert callable(original)
            original()
            if world.strike == -1 and at:
                world.strike, world.units.boot = len(world.seen) + at, original  # type: ignore[method-assign]

        world.units.boot = boot  # type: ignore[method-assign]
        await world.converge(after())
        world.strike = -1
        assert end_of(world) == expected, f"killed at {first} and {second} later"


async def test_a_full_disk_at_any_write_is_reported_and_harms_nothing(tmp_path: Path) -> None:
    unharmed = await prepared(tmp_path / "unharmed")
    await unharmed.converge(after())
    expected = end_of(unharmed)
    writes = [change for change in unharmed.seen if change.startswith("fill ")]
    assert len(writes) >= 20
    for number, change in enumerate(dict.fromkeys(writes)):
        world = await prepared(tmp_path / str(number))
        world.failure = (change, OSError(errno.ENOSPC, "No space left on device"))
        with pytest.raises(NodeFault, match=r"cannot write /.*no space left on device; free space"):
            await world.converge(after())
        leftovers = [path for path in world.tree() if path.startswith(f"{FOLDER}/tmp/")]
        assert leftovers == []
        world.failure = None
        await world.converge(after())
        assert end_of(world) == expected, f"full at {change}"


async def test_a_unit_that_never_starts_is_reported_and_does_not_keep_others_waiting(tmp_path: Path) -> None:
    world = await prepared(tmp_path)
    world.units.results["new.service"] = ["failed", "failed"]
    for _ in range(2):
        with pytest.raises(NodeFault, match=r"could not restart unit new\.service \(failed\): see journalctl -u new"):
            await world.converge(after())
    await world.converge(after())
    assert Counter(world.units.restarts) == Counter(
        {KUBELET: 1, "logger.service": 1, "new.service": 3, "containerd.service": 1, "sshd.service": 1}
    )
    assert ("SystemDUnitRestart", "restarted unit new.service") in world.events


@pytest.mark.parametrize("name", ["last-applied-osc.yaml", "last-computed-osc-changes.yaml"])
async def test_a_half_written_state_file_restarts_only_units_that_have_not_read_their_files(
    name: str, tmp_path: Path
) -> None:
    world = World(tmp_path, clock=FakeClock(now=4e9))
    world.units.system |= {"sshd.service", "containerd.service"}
    await world.converge(before())
    path = tmp_path / FOLDER.lstrip("/") / name
    path.write_bytes(b"checksum: [half\n  of")
    world.units.restarts.clear()
    changed = before()
    changed["spec"]["files"][0]["content"]["inline"]["data"] = "c"
    await world.converge(changed)
    assert world.units.restarts == [KUBELET]
    assert world.files.read("/etc/kubelet.conf") == b"c"
    assert not (path.parent / f"{name}.unreadable").exists()
