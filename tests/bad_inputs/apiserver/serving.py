"""An API server as a process of its own, so that its memory can be measured.

    python -m tests.bad_inputs.apiserver.serving

Its first line of input is a JSON object of options; its first line of output says where it listens. It ends with its
input.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import signal
import sys
from typing import Any

import msgspec
import uvloop

from hortus.apiserver import ApiServerSettings, open_server
from hortus.apiserver.authn import UserInfo
from hortus.apiserver.authn.static_tokens import EVERY_CLUSTER
from hortus.apiserver.clusters import RESOURCE as LOGICAL_CLUSTER
from hortus.apiserver.store import MemoryBackend

_LONGEST = 240.0
"""Seconds after which a server ends by itself; a module's tests take a tenth of it."""


async def _serve(options: dict[str, Any]) -> None:
    settings = msgspec.convert(options["settings"], ApiServerSettings)
    names = ("attacker", "bystander")
    tokens = {
        (EVERY_CLUSTER, token): UserInfo(name, groups=("system:masters", "system:authenticated"))
        for name, token in zip(names, options["tokens"], strict=True)
    }
    server = await open_server(settings, MemoryBackend(), tokens=tokens)
    await server.start()
    for name in options["clusters"]:
        made = {"apiVersion": LOGICAL_CLUSTER.api_version, "kind": LOGICAL_CLUSTER.kind, "metadata": {"name": name}}
        await server.local("root").create(LOGICAL_CLUSTER, made)
    print(json.dumps({"port": server.port, "ca": server.clusters.server_ca.decode()}), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop()


if __name__ == "__main__":
    # A process that hangs ends after this time and prints its stacks.
    faulthandler.dump_traceback_later(_LONGEST, exit=True)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    uvloop.run(_serve(json.loads(sys.stdin.readline())))
