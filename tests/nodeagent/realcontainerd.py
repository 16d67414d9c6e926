"""A real containerd of Debian's package, with its folders and its socket in the folder of a test."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.waiting import until

from hortus.nodeagent.containerd import Containerd
from hortus.nodeagent.seams import NodeFault


def containerd_programs() -> tuple[str, str]:
    """containerd and its client, from Debian's package `containerd`; HORTUS_CONTAINERD names their folder."""
    folder = os.environ.get("HORTUS_CONTAINERD")
    found = [shutil.which(name, path=folder) for name in ("containerd", "ctr")]
    if not all(found):
        pytest.skip("containerd is missing: apt-get install containerd, or set HORTUS_CONTAINERD to its folder")
    return str(found[0]), str(found[1])


@contextlib.asynccontextmanager
async def real_containerd(folder: Path) -> AsyncIterator[tuple[Containerd, Path]]:
    """A running containerd, and its socket."""
    program, ctr = containerd_programs()
    socket, config = folder / "containerd.sock", folder / "config.toml"
    config.write_text(
        f"version = 2\nroot = '{folder}/root'\nstate = '{folder}/state'\n"
        "disabled_plugins = ['io.containerd.grpc.v1.cri']\n"
        f"[grpc]\naddress = '{socket}'\n[ttrpc]\naddress = '{socket}.ttrpc'\n"
    )
    containerd = Containerd(str(socket), ctr=ctr, containerd=program, hosts=str(folder / "certs.d"))
    process = await asyncio.create_subprocess_exec(
        program, "--config", str(config), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:

        async def answers() -> str:
            try:
                return await containerd.version()
            except NodeFault:
                return ""

        await until(answers)
        yield containerd, socket
    finally:
        process.terminate()
        await process.wait()
