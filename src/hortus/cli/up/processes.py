"""The three children of `hortus up`, one function each: `python -m hortus.cli.up.processes NAME --state-dir DIR ...`.

A child says on standard output how far it is (`report`), logs JSON to standard error, and stops on SIGTERM or when its
standard input ends, which is when the supervisor is gone. A stop is a cancellation, so that it ends every wait: a child
that starts waits for other processes, and these may have stopped before it. The supervisor kills a child that does not
stop in time; without one the system does. With `--load-first` it imports what it needs, and begins with the first line
on its standard input. `--lock` is the descriptor of the state directory's lock, which it holds until it ends.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import structlog

from hortus.cli.up.state import StateDirectory
from hortus.cli.up.supervisor import LOAD_FIRST, CannotRun, report
from hortus.engine import process
from hortus.engine.logging import LogSettings, configure_logging

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Body = Callable[[argparse.Namespace, asyncio.Event], Coroutine[Any, Any, None]]
"""Imports what it needs, waits until it may begin, and runs until it is cancelled."""


async def _apiserver(arguments: argparse.Namespace, begun: asyncio.Event) -> None:
    from hortus.cli.up.server import serve

    await begun.wait()
    await serve(
        StateDirectory(arguments.state_dir),
        port=arguments.port,
        ephemeral=arguments.ephemeral,
        audit_policy=arguments.audit_policy,
        store=arguments.store,
        config=read_config(arguments.config),
    )


async def _simulation(arguments: argparse.Namespace, begun: asyncio.Event) -> None:
    from hortus.cli.up.garden import simulate

    state = StateDirectory(arguments.state_dir)
    await simulate(state, clusters=arguments.clusters, config=read_config(arguments.config), begun=begun)


async def _controllers(arguments: argparse.Namespace, begun: asyncio.Event) -> None:
    from hortus.cli.up.controllers import control, load

    load()
    await begun.wait()
    state, config = StateDirectory(arguments.state_dir), read_config(arguments.config)
    await control(state, config=config, replica=arguments.replica)


_BODIES: dict[str, Body] = {"apiserver": _apiserver, "simulation": _simulation, "controllers": _controllers}


def read_config(path: Path | None) -> dict[str, Any]:
    """The configuration file's document. Raises CannotRun with the file and the place in it."""
    from hortus.kube import yaml

    if path is None:
        return {}
    try:
        document = yaml.load(path.read_bytes())
    except (OSError, yaml.YamlError) as error:
        raise CannotRun(f"configuration {path}: {error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise CannotRun(f"configuration {path}: must be a mapping with the parts simulation, controllers and apiserver")
    unknown = sorted(map(str, set(document) - {"simulation", "controllers", "apiserver"}))
    if unknown:
        raise CannotRun(
            f"configuration {path}: unknown part {unknown[0]!r}; there are: simulation, controllers, apiserver"
        )
    return document


def main() -> None:
    arguments = _arguments()
    if arguments.lock is not None:
        # uvloop hands on what is inheritable: a renderer would have the lock, and might outlive this process.
        os.set_inheritable(arguments.lock, False)
    configure_logging(LogSettings())
    try:
        process.run(lambda: _supervised(_BODIES[arguments.name], arguments))
    except CannotRun as error:
        report("failed", str(error))
        sys.exit(1)
    except Exception as error:
        _log.error("this process ends by a fault of its own", process=arguments.name, exc_info=error)
        sys.exit(1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hortus.cli.up.processes")
    parser.add_argument("name", choices=sorted(_BODIES))
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--lock", type=int)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--clusters", type=int, default=0)
    parser.add_argument("--replica", type=int)
    parser.add_argument("--ephemeral", action="store_true")
    parser.add_argument("--config", type=Path)
    parser.add_argument("--audit-policy", type=Path)
    parser.add_argument("--store", default="")
    parser.add_argument(LOAD_FIRST, action="store_true")
    return parser.parse_args()


async def _supervised(body: Body, arguments: argparse.Namespace) -> None:
    """Runs `body` until it ends, or cancels it once when this process is asked to stop."""
    stop, begun = asyncio.Event(), asyncio.Event()
    if not arguments.load_first:
        begun.set()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    process.stop_with_supervisor(stop.set, heard=begun.set, within=process.ORPHAN_GRACE)
    work = asyncio.create_task(body(arguments, begun), name=arguments.name)
    asked = asyncio.create_task(stop.wait(), name="stop")
    await asyncio.wait({work, asked}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    work.cancel()
    await asyncio.wait({work})
    if not work.cancelled():
        work.result()


if __name__ == "__main__":
    main()
