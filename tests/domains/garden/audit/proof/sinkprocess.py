"""A sink as a process: `python -m tests.domains.garden.audit.proof.sinkprocess PORT FILE`.

It compares each event with the bytes that it must have, and counts its arrivals in FILE, one byte each. The file is
mapped into memory, so that it survives a kill. A request with an altered event ends the process with code 3.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import sys
from pathlib import Path

import uvloop
from aiohttp import web
from tests.domains.garden.audit.proof.events import number_of

ALTERED = 3


async def serve(port: int, file: Path) -> None:
    with file.open("r+b") as opened:
        counts = mmap.mmap(opened.fileno(), 0)

    async def receive(request: web.Request) -> web.Response:
        for line in (await request.read()).splitlines():
            try:
                number = number_of(line)
            except ValueError as error:
                sys.stderr.write(f"{error}\n")
                os._exit(ALTERED)
            if number is not None and counts[number] < 255:
                counts[number] += 1
        return web.Response()

    app = web.Application(client_max_size=1 << 28)
    app.router.add_post("/", receive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True).start()
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
