"""An embedded API server on etcd, as a process: `python -m ...served PORT ROOT NAME ENDPOINT...`; the token by stdin.

SIGTERM drains and stops it. It prints its authority's certificate once it serves.
"""

from __future__ import annotations

import asyncio
import signal
import sys

import uvloop

from hortus.apiserver import ApiServerSettings, open_server
from hortus.apiserver.authn import UserInfo
from hortus.apiserver.store import EtcdBackend

DRAIN = 20.0
"""Seconds: the longest drain."""


async def main() -> None:
    port, name, *endpoints = sys.argv[1:]
    token = sys.stdin.readline().strip()
    admin = UserInfo("kubernetes-admin", groups=("system:masters", "system:authenticated"))
    settings = ApiServerSettings(port=int(port), names=(name,), drain=DRAIN, compress=False)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = await open_server(settings, EtcdBackend(endpoints), tokens={("root", token): admin})
    await server.start()
    sys.stdout.write(server.clusters.server_ca.decode() + "\0")
    sys.stdout.flush()
    await stop.wait()
    await server.stop()


if __name__ == "__main__":
    uvloop.run(main())
