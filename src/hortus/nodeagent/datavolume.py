"""Puts /var/lib of a new machine on its volume for data of the kubelet, which `bootstrap.kubeletDataVolumeSize` names.

The volume is the disk of exactly that size with neither partitions, file system nor mounts: a disk with data is never
taken. It gets a file system with a label of its own only when all of /var/lib has been copied, so that a bootstrap that
was killed in between begins again.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import structlog

from hortus.nodeagent.seams import MachineControl, NodeFault

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

LABEL = "KUBEDEV"
_UNFINISHED = "KUBEDEV-NEW"
"""The label of a volume to which not everything is copied yet."""
_DATA = "/var/lib"
_COPY = "/run/kubelet-data-volume"
_MOUNT_OPTIONS = "defaults,prjquota,errors=remount-ro"
_EXTENDED = "lazy_itable_init=0,lazy_journal_init=0,quotatype=usrquota:grpquota:prjquota"
_PATIENCE = 600.0
_NOT_FOUND = 2
"""The exit code of blkid when no device has the label."""


class BlockDevice(msgspec.Struct, frozen=True):
    """A line of lsblk; sizes are in bytes."""

    path: str
    type: str = ""
    size: int = 0
    fstype: str | None = None
    label: str | None = None
    pttype: str | None = None
    mountpoints: tuple[str | None, ...] = ()
    children: tuple[BlockDevice, ...] = ()

    @property
    def is_blank(self) -> bool:
        return not (self.pttype or self.children or any(self.mountpoints)) and (
            not self.fstype or self.label == _UNFINISHED
        )


class _Listing(msgspec.Struct, frozen=True):
    blockdevices: tuple[BlockDevice, ...] = ()


def blank_disks(listing: str, size: int) -> Iterator[str]:
    """The paths of the disks of this size on which nothing is, in a listing of lsblk in JSON."""
    for device in msgspec.json.decode(listing, type=_Listing).blockdevices:
        if device.type == "disk" and device.size == size and device.is_blank:
            yield device.path


async def place_data_volume(machine: MachineControl, size: int) -> None:
    """Formats the volume of `size` bytes and mounts it on /var/lib; one that has the label is only mounted.

    Raises NodeFault when no disk, or more than one, is meant.
    """
    code, output = await machine.run(("blkid", "--label", LABEL), patience=_PATIENCE)
    if code == 0:
        await _mount(machine, output.strip())
        return
    if code != _NOT_FOUND:
        raise NodeFault(f"blkid failed with exit code {code}: {output.strip()}")
    # A bootstrap that was killed may have left it there.
    await machine.run(("umount", _COPY), patience=_PATIENCE)
    columns = "PATH,TYPE,SIZE,FSTYPE,LABEL,PTTYPE,MOUNTPOINTS"
    found = list(blank_disks(await _ran(machine, "lsblk", "--json", "--bytes", "--output", columns), size))
    if len(found) != 1:
        taken = f"{len(found)} disks ({', '.join(found)})" if found else "no disk"
        raise NodeFault(
            f"bootstrap.kubeletDataVolumeSize is {size}, and {taken} of that size without data: attach exactly one"
        )
    await _format(machine, found[0])
    _log.info("the data of the kubelet is on its volume", device=found[0])


async def _format(machine: MachineControl, device: str) -> None:
    await _ran(machine, "mkfs.ext4", "-F", "-L", _UNFINISHED, "-O", "quota", "-E", _EXTENDED, device)
    await _ran(machine, "mkdir", "-p", _COPY)
    await _ran(machine, "mount", device, _COPY)
    try:
        await _ran(machine, "cp", "-a", f"{_DATA}/.", _COPY)
    finally:
        await _ran(machine, "umount", _COPY)
    await _ran(machine, "e2label", device, LABEL)
    await _mount(machine, device)


async def _mount(machine: MachineControl, device: str) -> None:
    code, _ = await machine.run(("findmnt", "--source", device, "--target", _DATA), patience=_PATIENCE)
    if code:
        await _ran(machine, "mount", device, _DATA, "-o", _MOUNT_OPTIONS)


async def _ran(machine: MachineControl, *command: str) -> str:
    code, output = await machine.run(command, patience=_PATIENCE)
    if code:
        raise NodeFault(f"{command[0]} failed with exit code {code}: {output.strip()[:200]}")
    return output
