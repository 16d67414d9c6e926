"""A real systemd as process 1 of namespaces of its own, with a real dbus-daemon: both from Debian's packages.

It sees an empty /run, the folder of a test as /etc/systemd/system, and no units of this machine but those for D-Bus.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.waiting import until

from hortus.nodeagent.seams import NodeFault
from hortus.nodeagent.systemd import Systemd

SYSTEMD = Path("/usr/lib/systemd/systemd")
_LIBRARY = Path("/usr/lib/systemd/system")
_UNITS = {
    "default.target": "[Unit]\nDescription=Test\nDefaultDependencies=no\nWants=dbus.socket\n",
    "sysinit.target": "[Unit]\nDescription=Start\nDefaultDependencies=no\n",
    "basic.target": "[Unit]\nDescription=Basic\nDefaultDependencies=no\nWants=dbus.socket\n",
    "multi-user.target": "[Unit]\nDescription=Services\n",
}
_TAKEN = ("dbus.socket", "dbus.service", "sockets.target", "shutdown.target", "timers.target", "exit.target")
_SCRIPT = """\
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/dbus /run/lock
mount --bind "$1/bus" /run/dbus
mount --bind "$1/root/etc/systemd/system" /etc/systemd/system
mount --bind "$1/library" /usr/lib/systemd/system
mount --bind "$1/empty" /usr/lib/systemd/system-generators
mount -t proc proc /proc
if [ ! -f /sys/fs/cgroup/cgroup.controllers ]; then
  mount -t tmpfs tmpfs /sys/fs/cgroup
  mkdir /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
fi
exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin "$2" --system --log-target=null
"""


def missing() -> str:
    """The reason why this machine cannot run one; empty when it can."""
    for program, package in (("unshare", "util-linux"), ("dbus-daemon", "dbus"), (str(SYSTEMD), "systemd")):
        if shutil.which(program) is None:
            return f"{program} is missing: apt-get install {package}"
    if os.geteuid() != 0:
        return "namespaces with mounts need root"
    return ""


@contextlib.asynccontextmanager
async def booted(folder: Path) -> AsyncIterator[tuple[Systemd, Path]]:
    """A running systemd and the root folder whose /etc/systemd/system it reads."""
    if problem := missing():
        pytest.skip(problem)
    for name in ("bus", "library", "empty", "root/etc/systemd/system"):
        (folder / name).mkdir(parents=True)
    for name, text in _UNITS.items():
        (folder / "library" / name).write_text(text)
    for name in _TAKEN:
        shutil.copy(_LIBRARY / name, folder / "library" / name)
    (folder / "boot.sh").write_text(_SCRIPT)
    arguments = ["--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "sh", str(folder / "boot.sh")]
    process = await asyncio.create_subprocess_exec(
        "unshare", *arguments, str(folder), str(SYSTEMD), stdin=asyncio.subprocess.DEVNULL
    )
    systemd = Systemd(f"unix:path={folder}/bus/system_bus_socket")
    try:
        yield await _ready(systemd, process), folder / "root"
    finally:
        await systemd.close()
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def _ready(systemd: Systemd, process: asyncio.subprocess.Process) -> Systemd:
    async def answers() -> bool:
        assert process.returncode is None, "systemd ended at its start"
        try:
            return (await systemd.status(["default.target"]))["default.target"].active == "active"
        except NodeFault:
            return False

    await until(answers)
    return systemd
