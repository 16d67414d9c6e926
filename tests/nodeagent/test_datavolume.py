"""The volume for data of the kubelet: which disk is taken, and bootstraps that are killed at each command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.nodeagent.cluster import settings_text
from tests.nodeagent.world import Killed, World

from hortus.nodeagent.bootstrapping import bootstrap
from hortus.nodeagent.datavolume import blank_disks, place_data_volume
from hortus.nodeagent.host import LocalMachine
from hortus.nodeagent.seams import NodeFault
from hortus.nodeagent.settings import AgentConfigError, read

SIZE = 50 << 30


class Disks:
    """A machine with disks; keeps the rules of the programs that the bootstrap runs."""

    def __init__(self, *devices: dict[str, Any]) -> None:
        self.devices = list(devices)
        self.mounts: dict[str, str] = {"/var/lib": ""}
        self.copied: set[str] = set()
        self.commands: list[tuple[str, ...]] = []
        self.strike = -1

    def boot(self) -> str:
        return "1"

    async def run(self, command: Sequence[str], *, patience: float) -> tuple[int, str]:
        if len(self.commands) == self.strike:
            self.strike = -1
            raise Killed(command[0])
        self.commands.append(tuple(command))
        return self._acts[command[0]](command)

    @property
    def _acts(self) -> dict[str, Callable[[Sequence[str]], tuple[int, str]]]:
        return {
            "blkid": self._blkid,
            "lsblk": lambda _: (0, json.dumps({"blockdevices": [self._seen(each) for each in self.devices]})),
            "mkfs.ext4": self._mkfs,
            "mkdir": lambda _: (0, ""),
            "mount": self._mount,
            "umount": lambda command: (0, "") if self.mounts.pop(command[1], None) else (32, "not mounted"),
            "findmnt": lambda command: (0 if self.mounts[command[4]] == command[2] else 1, ""),
            "cp": self._copy,
            "e2label": self._label,
        }

    def _seen(self, device: dict[str, Any]) -> dict[str, Any]:
        places = [place for place, path in self.mounts.items() if path == device["path"]]
        return {"fstype": None, "label": None, "pttype": None, "mountpoints": places or [None], **device}

    def _named(self, path: str) -> dict[str, Any]:
        return next(each for each in self.devices if each["path"] == path)

    def _blkid(self, command: Sequence[str]) -> tuple[int, str]:
        found = [each["path"] for each in self.devices if each.get("label") == command[2]]
        return (0, found[0] + "\n") if found else (2, "")

    def _mkfs(self, command: Sequence[str]) -> tuple[int, str]:
        path = command[-1]
        if path in self.mounts.values():
            return 1, f"{path} is mounted"
        self._named(path).update(fstype="ext4", label=command[command.index("-L") + 1])
        self.copied.discard(path)
        return 0, ""

    def _mount(self, command: Sequence[str]) -> tuple[int, str]:
        self.mounts[command[2]] = command[1]
        return 0, ""

    def _copy(self, command: Sequence[str]) -> tuple[int, str]:
        self.copied.add(self.mounts[command[3]])
        return 0, ""

    def _label(self, command: Sequence[str]) -> tuple[int, str]:
        self._named(command[1])["label"] = command[2]
        return 0, ""


def disk(path: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "type": "disk", "size": SIZE, **more}


SYSTEM = disk("/dev/sda", size=20 << 30, pttype="gpt", children=[{"path": "/dev/sda1", "type": "part", "size": 1}])


@pytest.mark.parametrize(
    ("device", "taken"),
    [
        (disk("/dev/sdb"), True),
        (disk("/dev/sdb", size=SIZE + 512), False),
        (disk("/dev/sdb", type="rom"), False),
        (disk("/dev/sdb", fstype="xfs"), False),
        (disk("/dev/sdb", pttype="gpt"), False),
        (disk("/dev/sdb", mountpoints=["/data"]), False),
        (disk("/dev/sdb", children=[{"path": "/dev/dm-0", "type": "lvm"}]), False),
        (disk("/dev/sdb", fstype="ext4", label="KUBEDEV-NEW"), True),
        (disk("/dev/sdb", fstype="ext4", label="photos"), False),
    ],
)
def test_only_a_disk_of_that_size_without_anything_on_it_is_taken(device: dict[str, Any], taken: bool) -> None:
    listing = json.dumps({"blockdevices": [SYSTEM, device]})
    assert list(blank_disks(listing, SIZE)) == (["/dev/sdb"] if taken else [])


async def test_a_kill_at_any_command_ends_with_all_data_on_the_volume() -> None:
    unharmed = Disks(dict(SYSTEM), disk("/dev/sdb"))
    await place_data_volume(unharmed, SIZE)
    assert [each[0] for each in unharmed.commands] == [
        *("blkid", "umount", "lsblk", "mkfs.ext4", "mkdir", "mount", "cp", "umount", "e2label", "findmnt", "mount")
    ]
    assert "prjquota" in unharmed.commands[-1][-1]
    for number in range(len(unharmed.commands)):
        machine = Disks(dict(SYSTEM), disk("/dev/sdb"))
        machine.strike = number
        with pytest.raises(Killed):
            await place_data_volume(machine, SIZE)
        for _ in range(2):
            await place_data_volume(machine, SIZE)
        assert machine.mounts == {"/var/lib": "/dev/sdb"}, f"killed at {unharmed.commands[number][0]}"
        assert machine.copied == {"/dev/sdb"}
        formatted = [each[-1] for each in machine.commands if each[0] == "mkfs.ext4"]
        assert set(formatted) == {"/dev/sdb"}
        assert len(formatted) <= 2


@pytest.mark.parametrize(("disks", "problem"), [(0, "no disk"), (2, r"2 disks \(/dev/sdb0, /dev/sdb1\)")])
async def test_a_volume_that_is_not_clear_is_reported_and_nothing_is_formatted(disks: int, problem: str) -> None:
    machine = Disks(dict(SYSTEM), *(disk(f"/dev/sdb{number}") for number in range(disks)))
    with pytest.raises(NodeFault, match=f"kubeletDataVolumeSize is {SIZE}, and {problem} of that size without data"):
        await place_data_volume(machine, SIZE)
    assert {each[0] for each in machine.commands} == {"blkid", "umount", "lsblk"}


async def test_a_bootstrap_puts_the_data_on_its_volume_before_it_starts_the_agent(tmp_path: Path) -> None:
    world, machine = World(tmp_path), Disks(dict(SYSTEM))
    settings = read(settings_text() + f"bootstrap: {{kubeletDataVolumeSize: {SIZE}}}\n")
    with pytest.raises(NodeFault, match="no disk"):
        await bootstrap(world.files, world.units, machine, settings, config_dir="/var/lib/gardener-node-agent")
    assert world.tree() == {}
    machine.devices.append(disk("/dev/sdb"))
    await bootstrap(world.files, world.units, machine, settings, config_dir="/var/lib/gardener-node-agent")
    assert machine.mounts["/var/lib"] == "/dev/sdb"
    assert world.unit_states()["gardener-node-agent.service"] == ("active", "enabled")


def test_a_size_that_is_no_number_is_refused() -> None:
    settings = read(settings_text() + "bootstrap: {kubeletDataVolumeSize: 50Gi}\n")
    with pytest.raises(AgentConfigError, match="kubeletDataVolumeSize is '50Gi': write the bytes"):
        assert settings.data_volume_size


async def test_the_listing_of_the_systems_lsblk_is_read() -> None:
    if shutil.which("lsblk") is None:
        pytest.skip("lsblk is missing: apt-get install util-linux")
    columns = "PATH,TYPE,SIZE,FSTYPE,LABEL,PTTYPE,MOUNTPOINTS"
    code, listing = await LocalMachine().run(["lsblk", "--json", "--bytes", "--output", columns], patience=20)
    assert code == 0
    assert list(blank_disks(listing, 1)) == []
