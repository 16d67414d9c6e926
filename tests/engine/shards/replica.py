"""One replica of a trial controller, as a process: `python -m tests.engine.shards.replica KUBECONFIG JOURNAL`.

Its objects are the ConfigMaps with a label. Each reconcile writes its own name into the object twice, so that the
server's order of writes shows whether two reconciles of one object ever overlapped.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from hortus.engine import Cache, Manager, Result, Watch, generation_changed, run, run_manager
from hortus.engine.leases import LeaseTimes
from hortus.engine.shards import Shards
from hortus.kube import Client, ObjectKey, Resource, SystemClock

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACE = "default"
TIMES = LeaseTimes(duration=3.0, renew_deadline=2.0, retry_period=0.4)
STEPS = 3


class Trial:
    def __init__(self, client: Client, objects: Cache, journal: int) -> None:
        self._client = client
        self._objects = objects
        self._journal = journal
        self._count = 0

    async def reconcile(self, key: ObjectKey) -> Result | None:
        self._count += 1
        name = f"{os.getpid()}-{self._count}"
        # The monotonic clock is the same for all processes of a machine.
        os.write(self._journal, f"{time.monotonic():.6f} {os.getpid()} {key.name}\n".encode())
        for step in range(STEPS):
            await self._client.patch(CONFIGMAPS, key.name, {"data": {"by": f"{name} {step}"}}, key.namespace)
            await asyncio.sleep(0.01)
        return Result(requeue_after=0.2)


async def main(kubeconfig: str, journal: Path) -> int:
    descriptor = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    async with Client.from_kubeconfig(kubeconfig) as client:
        clock = SystemClock()
        shards = Shards(client, group="trial", namespace="default", clock=clock, times=TIMES)
        manager = Manager(client, clock=clock, shards=shards)
        manager.on_resume(client.cut)
        objects = manager.cache(CONFIGMAPS, namespace=NAMESPACE, labels="trial=yes")
        manager.controller(
            "trial", Trial(client, objects, descriptor), sources=[Watch(objects, when=generation_changed)], workers=8
        )
        return await run_manager(manager)


if __name__ == "__main__":
    sys.exit(run(lambda: main(sys.argv[1], Path(sys.argv[2]))))
