"""One run from the command line: the chosen clusters, the live display, the report, the exit code."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import msgspec

from hortus.cli.simulate.printing import show
from hortus.cli.simulate.progress import showing
from hortus.cli.up.state import StateDirectory, is_alive
from hortus.kube import Client, ConnectionSettings, SystemClock
from hortus.simulation.load import (
    Gate,
    GateError,
    LeftBehind,
    LoadPlan,
    LoadRun,
    LoadTemplate,
    NotMarked,
    RunReport,
    Scenario,
    ScenarioError,
    System,
    html,
    lines,
    load_template,
    new_load_id,
    plan_of,
    remove_load,
    require_mark,
)
from hortus.simulation.load.conditions import parse_until
from hortus.terminal import CommandError, Connections, OutputFormat, plain, print_line
from hortus.terminal import run as run_command

INTERRUPTED = 130
_LOAD_ID = re.compile(r"[a-z][a-z0-9]{0,7}\Z")
_CONNECTIONS = ConnectionSettings(connections=320, timeout=30.0, connect_timeout=5.0, user_agent="hortus-simulate")
"""More than any scenario's `concurrency`, so that calls wait at one place only."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a run, whichever command starts it."""

    folder: Path
    """The folder that paths of templates are relative to."""
    load_id: str = ""
    seed: int | None = None
    cleanup: bool = False
    output: OutputFormat = OutputFormat()
    page: Path | None = None
    """The file for the report as HTML; None for no file."""
    fail_if: tuple[str, ...] = ()
    metrics: Mapping[str, str] = {}
    plan: bool = False
    """Print the plan and do nothing."""
    quiet: bool = False


def simulate(connections: Connections, scenario: Scenario, options: Options) -> int:
    """Run it, or print its plan; returns the exit code. Raises CommandError."""
    try:
        templates = templates_of(scenario, options.folder)
        plan = plan_of(scenario, templates, seed=options.seed)
        gates = (*scenario.parsed_gates, *(Gate.parse(text, fails_if=True) for text in options.fail_if))
    except (ScenarioError, GateError) as error:
        raise CommandError(str(error), code=2) from None
    if options.plan:
        for text in lines(plan):
            print_line(text)
        return 0
    load_id = checked(options.load_id) if options.load_id else new_load_id()
    format = options.output
    if options.page is not None and not options.page.absolute().parent.is_dir():
        raise CommandError(f"--html {options.page}: there is no folder {options.page.absolute().parent}")
    report = run_command(_run(connections, plan, templates, gates, load_id, options))
    if format.tabular:
        show(report)
    else:
        plain(msgspec.to_builtins(report) | {"passed": report.passed, "throughput": report.throughput}, format)
    if options.page is not None:
        options.page.write_text(html(report))
        print(f"report: {options.page}", file=sys.stderr)
    if report.objects and not options.cleanup:
        print(f"its objects are still there: hortus simulate cleanup --load-id {load_id}", file=sys.stderr)
    return INTERRUPTED if report.interrupted else 0 if report.passed else 1


def checked(load_id: str) -> str:
    """A load id that can be part of the names of shoots. Raises CommandError."""
    if not _LOAD_ID.match(load_id):
        raise CommandError(
            f"--load-id {load_id!r} must be 1 to 8 lower-case letters and digits that begin with a letter", code=2
        )
    return load_id


def templates_of(scenario: Scenario, folder: Path) -> dict[str, LoadTemplate]:
    """The templates that a scenario names. Raises ScenarioError."""
    works = [track.load or track.fleet for phase in scenario.phases for track in phase.tracks]
    for work in works:
        if work is not None and work.until:
            parse_until(work.until)
    return {work.template: load_template(work.template, folder) for work in works if work is not None}


async def _run(
    connections: Connections,
    plan: LoadPlan,
    templates: Mapping[str, LoadTemplate],
    gates: tuple[Gate, ...],
    load_id: str,
    options: Options,
) -> RunReport:
    stop = asyncio.Event()
    needs_garden = any(part.garden for template in templates.values() for part in template.parts)
    async with opened(connections, garden=needs_garden) as system:
        metrics = {**system.metrics, **plan.scenario.metrics, **options.metrics}
        system = msgspec.structs.replace(system, metrics=metrics)
        with showing(quiet=options.quiet) as listener, _stopping(stop):
            run = LoadRun(plan, templates, system, load_id=load_id, clock=SystemClock(), gates=gates, listener=listener)
            try:
                report = await run.run(stop)
            except (ScenarioError, NotMarked) as error:
                raise CommandError(str(error)) from None
        if options.cleanup:
            await clean(system, load_id)
        return report


async def clean(system: System, load_id: str) -> int:
    """Remove a load from both clusters; returns how many objects there were. Raises CommandError."""
    total = 0
    for which, client in (("management", system.management), ("garden", system.garden)):
        if client is None:
            continue
        try:
            await require_mark(client, which)
            total += await remove_load(client, load_id, clock=SystemClock())
        except (NotMarked, LeftBehind) as error:
            raise CommandError(str(error)) from None
    return total


@asynccontextmanager
async def opened(connections: Connections, *, garden: bool) -> AsyncIterator[System]:
    """The clusters that the options of the command line name, and the local fleet if it is one of them."""
    async with connections.management(_CONNECTIONS) as client:
        state = StateDirectory(connections.local_state)
        local = _is_local(client, state)
        metrics = {socket.stem: f"unix:{socket}" for socket in state.path.glob("controllers*.sock")} if local else {}
        processes = (lambda: _processes(state)) if local else dict
        async with AsyncExitStack() as stack:
            control = other = None
            if local:
                # A fixed token: a certificate is refused while the server's clock is wrong.
                found = Client.from_kubeconfig(state.simulation_kubeconfig, settings=_CONNECTIONS)
                control = await stack.enter_async_context(found)
            try:
                other = await stack.enter_async_context(connections.garden(_CONNECTIONS))
            except CommandError:
                if garden:
                    raise
            yield System(client, other, processes, metrics, control)


def _is_local(client: Client, state: StateDirectory) -> bool:
    run = state.run()
    return run is not None and client.access.server == run.server and is_alive(run.pid)


def _processes(state: StateDirectory) -> dict[str, int]:
    run = state.run()
    return dict(run.processes) if run is not None else {}


@contextmanager
def _stopping(stop: asyncio.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the run and not the program; a second one ends that."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def asked() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
        elif not stop.is_set():
            print("stopping; the report follows. Ctrl-C again ends at once", file=sys.stderr, flush=True)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
