"""The commands `hortus up`, `hortus down` and `hortus status`."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import click

from hortus.terminal import OUTPUT, CommandGroup, Number, OutputFormat, plain, together

if TYPE_CHECKING:
    from hortus.cli.up.session import UpOptions
    from hortus.cli.up.state import StateDirectory

STATE_DIR = click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The state directory.",
    show_default="$XDG_STATE_HOME/hortus, else ~/.local/state/hortus",
)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FLEET = together(
    click.option(
        "--port",
        type=Number(0, 65535),
        metavar="PORT",
        default=6443,
        help="Port on 127.0.0.1 for the API server; 0 takes any free one.",
    ),
    click.option(
        "--dashboard-port",
        type=Number(0, 65535),
        metavar="PORT",
        default=0,
        help="Port on 127.0.0.1 for the dashboard; 0 takes the one it had, else any free one.",
    ),
    click.option(
        "--clusters",
        type=Number(0, 20000),
        metavar="NUMBER",
        default=5,
        help="Minimum number of demo clusters at the start, on each provider in turn.",
    ),
    click.option(
        "--controllers",
        type=Number(1, 64),
        metavar="NUMBER",
        default=1,
        help="Number of controller processes, which share the clusters.",
    ),
    click.option("--ephemeral", is_flag=True, help="Keep objects in memory only."),
    click.option("--config", type=_FILE, help="YAML with settings of the simulation and the controllers."),
)
_SERVER = together(
    click.option(
        "--audit-policy",
        type=_FILE,
        help="An audit.k8s.io/v1 Policy: requests are recorded in logs/audit.log.",
    ),
    click.option(
        "--store",
        default="",
        metavar="URL",
        help="Keep objects in etcd: etcd://HOST:PORT[,...][/ROOT], or etcds:// for TLS.",
        show_default="state.db in the state directory",
    ),
    click.option("--serve-only", is_flag=True, help="Run only an API server, a further one on the etcd of --store."),
)
STOP_LIMIT = 30.0
"""Seconds that `hortus down` waits. The supervisor itself kills each child after 10 s."""


def register(app: CommandGroup) -> None:
    command = app.command(panel="On this machine", uses=("state_dir",))
    for function in (up, down, status):
        command(function)


@STATE_DIR
@_FLEET
@_SERVER
@click.option("--detach", "-d", is_flag=True, help="Return once it is up; `hortus down` stops it.")
@click.pass_context
def up(
    context: click.Context, /, state_dir: Path | None, store: str, ephemeral: bool, detach: bool, **given: Any
) -> None:
    """Start a fleet control plane on this machine.

    An API server, the controllers and a simulated Gardener with workload clusters behind it. Nothing but Python is
    needed; `kubectl` works at once with the kubeconfig named at the end. State survives restarts.
    """
    from hortus.cli.up.session import UpOptions

    state = _state(context, state_dir)
    if store:
        _check_store(store, ephemeral=ephemeral)
    options = UpOptions(state.path, ephemeral=ephemeral, store=store, **given)
    if detach:
        _detach(state, options)
    else:
        _run(state, options)


@STATE_DIR
@click.pass_context
def down(context: click.Context, state_dir: Path | None) -> None:
    """Stop what `hortus up` started. State is kept."""
    from hortus.cli.up.state import command_for

    state = _state(context, state_dir)
    holder = state.holder()
    if not state.held_elsewhere() or holder is None:
        click.echo(f"Hortus does not run on {state.path}.")
        return
    with suppress(ProcessLookupError):
        os.kill(holder, signal.SIGTERM)
    if not state.wait_until_free(STOP_LIMIT):
        _fail(f"process {holder} did not stop within {STOP_LIMIT:.0f} s; its logs are in {state.logs}")
    run = state.run()
    if run is not None and run.ephemeral:
        click.echo("Stopped. Its objects were in memory and are gone.")
    else:
        click.echo(f"Stopped. State is kept in {state.path}; `{command_for('up', state.path)}` goes on from there.")


@STATE_DIR
@OUTPUT
@click.pass_context
def status(context: click.Context, state_dir: Path | None, output: OutputFormat) -> None:
    """Show the processes of the local fleet and their health.

    Exit code 0: up and healthy; 1: up, but something is not; 3: not running.
    """
    from hortus.cli.up.status import lines, look

    found = look(_state(context, state_dir))
    if output.tabular:
        for title, value in lines(found):
            click.echo(f"{title:<18} {value}")
    else:
        import msgspec

        plain(msgspec.to_builtins(found), output)
    raise SystemExit(found.exit_code)


def _state(context: click.Context, given: Path | None) -> StateDirectory:
    """The directory of the option after the command, else of the option before it, else the default one."""
    from hortus.cli.up.state import StateDirectory, StateError, default_directory

    before: Path | None = context.find_root().params.get("state_dir")
    state = StateDirectory(given or before or default_directory())
    try:
        # The check comes before anything in it is trusted: a process id to stop, a kubeconfig to use.
        state.check_owner()
    except (StateError, OSError) as error:
        _fail(str(error))
    return state


def _run(state: StateDirectory, options: UpOptions) -> None:
    import asyncio

    from rich.console import Console

    from hortus.cli.up.progress import Display
    from hortus.cli.up.session import PortTaken, Session
    from hortus.cli.up.state import StateError
    from hortus.cli.up.supervisor import ChildFailed

    console = Console(stderr=False)
    try:
        state.acquire()
    except StateError as error:
        _fail(str(error))
    try:
        display = Display(console, state=state.path, ephemeral=options.ephemeral, store=options.store)
        asyncio.run(Session(options, state, display).run())
    except PortTaken as error:
        _fail(str(error))
    except ChildFailed as error:
        _fail(f"{error.name}: {error}")
    finally:
        state.release()


def _detach(state: StateDirectory, options: UpOptions) -> None:
    """Run `hortus up` as a background process whose output goes to a file, and show that output until it is up."""
    import subprocess
    import time

    from hortus.cli.up.progress import STOPS_IT
    from hortus.cli.up.state import StateError, command_for
    from hortus.cli.up.supervisor import MODULE

    try:
        # Locked here, so that the log of a supervisor that runs already is not overwritten.
        state.acquire()
        state.release()
    except StateError as error:
        _fail(str(error))
    command = [*MODULE, "hortus", "up", "--state-dir", str(state.path), "--port", str(options.port)]
    command += ["--clusters", str(options.clusters), "--controllers", str(options.controllers)]
    command += ["--dashboard-port", str(options.dashboard_port)]
    command += ["--ephemeral"] if options.ephemeral else []
    command += ["--config", str(options.config)] if options.config else []
    command += ["--audit-policy", str(options.audit_policy)] if options.audit_policy else []
    command += ["--store", options.store] if options.store else []
    command += ["--serve-only"] if options.serve_only else []
    log = state.logs / "up.log"
    with _opened(log) as output:
        child = subprocess.Popen(  # noqa: S603 - our own interpreter with our own arguments
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    shown = 0
    while True:
        text, up, rest = log.read_text(errors="replace").partition(STOPS_IT)
        click.echo(text[shown:], nl=False)
        shown = len(text)
        if up:
            click.echo(f"`{command_for('down', state.path)}` stops it{rest}", nl=False)
            return
        if child.poll() is not None:
            raise SystemExit(1)
        time.sleep(0.05)  # a file, so that the child can go on writing when we have returned: nothing wakes its readers


def _check_store(store: str, *, ephemeral: bool) -> None:
    from hortus.cli.up.store import checked_url
    from hortus.cli.up.supervisor import CannotRun

    if ephemeral:
        _fail("--ephemeral keeps objects in memory, --store in etcd: choose one")
    try:
        checked_url(store)
    except CannotRun as error:
        _fail(str(error))


def _opened(log: Path) -> BinaryIO:
    try:
        return open(log, "wb", opener=lambda path, flags: os.open(path, flags, 0o600))
    except OSError as error:
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    click.secho(f"error: {message}", fg="red", err=True)
    raise SystemExit(1)
