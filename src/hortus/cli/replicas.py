"""`hortus run --replicas N`: N processes on this machine that share the objects, each kept running.

The parent supervises and does nothing else. A replica is `python -m hortus.cli.replicas` with the flags of `hortus
run`: it logs to the same standard error, says on its standard output how far it is, and ends when its parent is gone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from hortus.cli import sharding
from hortus.cli.up.supervisor import MODULE, Child, ChildFailed, ChildReport, report

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def supervise(arguments: Sequence[str], values: Mapping[str, Any]) -> int:
    """Run the replicas until SIGINT or SIGTERM; the exit code. Raises FlagError."""
    children = [
        Child(f"replica-{number + 1}", _command(arguments, values, number), log=None)
        for number in range(values["replicas"])
    ]
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    starting = asyncio.create_task(_start(children))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            await starting
            _log.info("all replicas work", replicas=len(children))
        await stopping
    except ChildFailed as error:
        _log.error("a replica cannot run", replica=error.name, error=str(error))
        return 1
    finally:
        starting.cancel()
        stopping.cancel()
        await asyncio.gather(starting, stopping, return_exceptions=True)
        await asyncio.gather(*(child.stop() for child in children))
    return 0


async def _start(children: Sequence[Child]) -> None:
    await asyncio.gather(*(child.start(_heard) for child in children))


def _command(arguments: Sequence[str], values: Mapping[str, Any], number: int) -> list[str]:
    own = ["--replicas=1", "--sharding=true", *sharding.addresses(values, number)]
    return [*MODULE, "hortus.cli.replicas", *arguments, *own]


def _heard(name: str, said: ChildReport) -> None:
    _log.info("replica", replica=name, state=said.state, message=said.message)


def main(arguments: Sequence[str]) -> int:
    """One replica."""
    from hortus.cli.flags import FLAGS
    from hortus.cli.program import program
    from hortus.engine import process
    from hortus.engine.configuration import FlagValues
    from hortus.engine.flags import FlagError, FlagSet
    from hortus.engine.hosting import log_settings
    from hortus.engine.logging import configure_logging
    from hortus.engine.serving.listening import CANNOT_LISTEN
    from hortus.kube.errors import KubeError
    from hortus.kube.kubeconfig import KubeconfigError

    async def work() -> int:
        async with program(values, configuration) as manager:
            process.stop_with_supervisor(manager.stop)
            telling = asyncio.create_task(manager.wait_started())
            telling.add_done_callback(lambda done: None if done.cancelled() else report("ready"))
            try:
                return await process.run_manager(manager)
            finally:
                telling.cancel()

    try:
        configuration = FlagValues(FlagSet(FLAGS), arguments, os.environ)
        values = configuration.load()
        configure_logging(log_settings(values))
        return process.run(work)
    except (FlagError, KubeconfigError, KubeError) as error:
        report("failed", str(error))
        return 1
    except OSError as error:
        if error.strerror is None or not error.strerror.startswith(CANNOT_LISTEN):
            raise
        report("failed", error.strerror)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
