"""Programs on this node, and the boot of its machine."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Sequence
from pathlib import Path

from hortus.nodeagent.seams import NodeFault

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class LocalMachine:
    """Implements `MachineControl`."""

    def boot(self) -> str:
        return _BOOT.read_text().strip()

    async def run(self, command: Sequence[str], *, patience: float) -> tuple[int, str]:
        code, output, _ = await run_program(command, patience=patience, joined=True)
        return code, output.decode(errors="replace")


async def run_program(command: Sequence[str], *, patience: float, joined: bool = False) -> tuple[int, bytes, bytes]:
    """Returns exit code, output and errors; with `joined` the errors are in the output. Raises NodeFault."""
    try:
        process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=STDOUT if joined else PIPE)
    except OSError as error:
        raise NodeFault(f"cannot run {command[0]}: {error.strerror}") from None
    try:
        async with asyncio.timeout(patience):
            output, errors = await process.communicate()
    except TimeoutError:
        raise NodeFault(f"{command[0]} did not end within {patience:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, output, errors or b""
