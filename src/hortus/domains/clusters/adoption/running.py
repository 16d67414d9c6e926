"""One command from start to end: it reads, plans or compares, writes on request, and reports.

Raises CommandError with code 2 for what keeps a whole command from its end; what keeps one cluster is in its entry.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec
import orjson

from hortus.domains.clusters import service
from hortus.domains.clusters.adoption import sources
from hortus.domains.clusters.adoption.insight import look_inside
from hortus.domains.clusters.adoption.landscape import Choices, Landscape, read_landscape, with_ranges
from hortus.domains.clusters.adoption.planning import (
    Plan,
    Wishes,
    duplicates_refused,
    origin_of,
    plan_kubeconfig,
    plan_kyma,
    plan_secret,
    plan_shoot,
)
from hortus.domains.clusters.adoption.report import Entry, Outcome, Report, report_of
from hortus.domains.clusters.adoption.sources import KYMAS, ClusterObject, Surroundings
from hortus.domains.clusters.adoption.steps import Comparing, each, make, structured_authentication
from hortus.domains.clusters.shoot import LiveShoot
from hortus.domains.clusters.types import RUNTIMES
from hortus.engine.typed import NotReadable
from hortus.kube.clock import SystemClock
from hortus.kube.errors import KubeError
from hortus.kube.kubeconfig import KubeconfigError
from hortus.kube.objects import format_time
from hortus.terminal import (
    CommandError,
    Connections,
    OutputFormat,
    TargetSelection,
    clean,
    confirm,
    counted,
    plain,
    print_line,
    print_table,
)

if TYPE_CHECKING:
    from hortus.kube import Client

EXIT_DIFFERS: Final = 1
EXIT_FAILED: Final = 2
"""Exit codes as `kubectl diff` has them: 0 without a difference, 1 with one, more after a failure."""


class Telling(msgspec.Struct, frozen=True):
    """The options for the report of a command."""

    format: OutputFormat = OutputFormat()
    diff: bool = False
    report: Path | None = None
    quiet: bool = False


class Work(msgspec.Struct, frozen=True):
    """The options of all commands."""

    selection: TargetSelection
    wishes: Wishes
    choices: Choices
    telling: Telling
    apply: bool = False
    inside: bool = False
    """True to read inside the clusters."""
    at_once: int = 8
    yes: bool = False
    """True to ask nothing before what is not named is changed."""


async def adopt_shoots(connections: Connections, work: Work) -> None:
    async with _places(connections, work) as (client, garden, landscape):
        around = await sources.surroundings(client, work.wishes.namespace)
        shoots = await sources.shoots(garden, landscape.namespace, work.selection)

        async def plan(shoot: LiveShoot) -> Plan:
            if around.runtimes_of(shoot.name):
                return plan_shoot(shoot, around, landscape, work.wishes)
            structured = await structured_authentication(garden, shoot)
            inside = await look_inside(garden, shoot) if work.inside else None
            return plan_shoot(shoot, around, landscape, work.wishes, structured=structured, inside=inside)

        with Progress(len(shoots), work.telling) as progress:
            plans = await each(shoots, plan, at_once=work.at_once, done=progress.step)
        await _finish("shoots", client, landscape, work, plans)


async def adopt_kymas(connections: Connections, work: Work) -> None:
    async with _places(connections, work) as (client, garden, landscape):
        around = await sources.surroundings(client, work.wishes.namespace, kymas=True)
        matching = around.kymas
        if work.selection.labels:
            listed = (await client.list(KYMAS, work.wishes.namespace, labels=work.selection.labels)).items
            matching = [ClusterObject(kyma) for kyma in listed]
        kymas = sources.named(list(matching), work.selection.names, "Kyma")
        found = await _all_shoots(garden, landscape)
        named = {shoot.name: shoot for shoot in found}
        plans = [plan_kyma(kyma, named, around, work.wishes) for kyma in kymas]
        await _finish("kyma", client, landscape, work, plans)


async def adopt_kubeconfigs(connections: Connections, work: Work, *, from_secrets: bool) -> None:
    """The names of the selection are files, or those of Secrets."""
    async with _places(connections, work) as (client, garden, landscape):
        around = await sources.surroundings(client, work.wishes.namespace)
        addresses = sources.by_address(await _all_shoots(garden, landscape))
        if from_secrets:
            plans = await _of_secrets(client, work, addresses, around)
        else:
            plans = [
                plan_kubeconfig(origin_of(Path(name)), _read(Path(name)), addresses, around, work.wishes)
                for name in work.selection.names
            ]
        await _finish("kubeconfigs", client, landscape, work, plans)


async def _of_secrets(client: Client, work: Work, addresses: dict[str, LiveShoot], around: Surroundings) -> list[Plan]:
    secrets = await sources.kubeconfig_secrets(client, work.wishes.namespace, work.selection.labels)
    secrets = sources.named(secrets, work.selection.names, "Secret with a kubeconfig")
    return [plan_secret(secret, addresses, around, work.wishes) for secret in secrets]


async def compare(connections: Connections, work: Work) -> None:
    async with _places(connections, work) as (client, garden, landscape):
        comparing = Comparing(client, garden, landscape)
        await _over_locked("compare", client, landscape, work, comparing.compare)


async def release(connections: Connections, work: Work, *, accept: bool) -> None:
    async with _places(connections, work) as (client, garden, landscape):
        comparing = Comparing(client, garden, landscape)

        async def step(runtime: ClusterObject) -> Entry:
            return await comparing.release(runtime, accept=accept)

        await _over_locked("release", client, landscape, work, step)


async def _over_locked(
    command: str, client: Client, landscape: Landscape, work: Work, step: Callable[[ClusterObject], Awaitable[Entry]]
) -> None:
    runtimes = await _locked(client, work)
    if command == "release":
        _agree(work, "Release", "Runtime", [one.metadata.name for one in runtimes])
    with Progress(len(runtimes), work.telling) as progress:
        entries = await each(runtimes, step, at_once=work.at_once, done=progress.step)
    _tell(command, landscape, entries, work, dry_run=command == "compare")


async def _locked(client: Client, work: Work) -> list[ClusterObject]:
    """The chosen Runtimes that await their release, by their name, their shoot's or their runtime-id."""
    namespace, names = work.wishes.namespace, work.selection.names
    listed = [
        ClusterObject(found) for found in (await client.list(RUNTIMES, namespace, labels=work.selection.labels)).items
    ]
    if not names:
        return [one for one in listed if service.locked(one.runtime)]
    found = []
    for name in dict.fromkeys(names):
        runtime = next((one for one in listed if name in _called(one)), None)
        if runtime is None:
            raise CommandError(f"no Runtime {name} in namespace {namespace}; `hortus adopt shoots {name} --apply`?")
        if not service.locked(runtime.runtime):
            raise CommandError(f"Runtime {runtime.title} is not locked: it is served already")
        found.append(runtime)
    return found


def _called(runtime: ClusterObject) -> tuple[str, str, str]:
    return runtime.metadata.name, runtime.shoot, service.runtime_id(runtime.runtime)


@asynccontextmanager
async def _places(connections: Connections, work: Work) -> AsyncIterator[tuple[Client, Client, Landscape]]:
    """The management cluster, the garden and the landscape; errors of them end the command with code 2."""
    try:
        work.selection.check()
        choices = work.choices
        if connections.garden_project and not choices.project:
            choices = msgspec.structs.replace(choices, project=connections.garden_project)
        landscape = read_landscape(choices, connections.folder)
        async with connections.management() as client, connections.garden() as garden:
            yield client, garden, await with_ranges(landscape, client, work.wishes.namespace)
    except CommandError as error:
        raise CommandError(str(error), code=max(error.code, EXIT_FAILED)) from error
    except (KubeError, KubeconfigError, NotReadable) as error:
        raise CommandError(str(error), code=EXIT_FAILED) from error


async def _all_shoots(garden: Client, landscape: Landscape) -> list[LiveShoot]:
    return await sources.shoots(garden, landscape.namespace, TargetSelection(everything=True))


async def _finish(command: str, client: Client, landscape: Landscape, work: Work, plans: Iterable[Plan]) -> None:
    plans = duplicates_refused(plans)
    entries = [plan.entry for plan in plans]
    if work.apply:
        _agree(work, "Make the objects of", "shoot", [plan.entry.shoot for plan in plans if plan.manifests])

        async def step(plan: Plan) -> Entry:
            return await make(client, plan)

        with Progress(len(plans), work.telling) as progress:
            entries = await each(plans, step, at_once=work.at_once, done=progress.step)
    _tell(command, landscape, entries, work, dry_run=not work.apply)


def _agree(work: Work, verb: str, kind: str, names: list[str]) -> None:
    """Asks before clusters are changed that were chosen by label or all together. Raises CommandError."""
    if names and not work.selection.names:
        confirm(f"{verb} {counted(kind, names)} in namespace {work.wishes.namespace}?", yes=work.yes)


def _tell(command: str, landscape: Landscape, entries: list[Entry], work: Work, *, dry_run: bool) -> None:
    taken = format_time(SystemClock().now())
    report = report_of(command, landscape.project, taken, entries, dry_run=dry_run)
    telling = work.telling
    if telling.report is not None:
        try:
            telling.report.write_bytes(orjson.dumps(msgspec.to_builtins(report), option=orjson.OPT_INDENT_2) + b"\n")
        except OSError as error:
            raise CommandError(f"--report {telling.report}: {error.strerror}") from None
    _show(report, telling, command)
    if report.failed:
        raise SystemExit(EXIT_FAILED)
    if report.differs:
        raise SystemExit(EXIT_DIFFERS)


def _show(report: Report, telling: Telling, command: str) -> None:
    if telling.diff:
        for entry in report.clusters:
            _show_diff(entry)
        return
    if not telling.format.tabular:
        plain(msgspec.to_builtins(report), telling.format)
        return
    print_table(report.table())
    for entry in report.clusters:
        for problem in entry.problems if len(entry.problems) > 1 else ():
            click.echo(f"{clean(entry.shoot)}: {clean(problem)}")
        for one in entry.differences:
            click.echo(
                f"{clean(entry.shoot)}: {clean(one.path)}: {_short(one.live)} -> {_short(one.patched)}: {one.why}"
            )
    _show_notes(report, telling, command)


def _show_diff(entry: Entry) -> None:
    """The diff, or in a line that programs which read diffs pass over the reason why there is none."""
    for line in entry.diff.splitlines():
        print_line(line)
    if entry.outcome in (Outcome.REFUSED, Outcome.FAILED) or not entry.diff:
        for reason in entry.problems or (entry.why,):
            click.echo(f"# {clean(entry.shoot)}: {entry.outcome}: {clean(reason)}")


def _show_notes(report: Report, telling: Telling, command: str) -> None:
    """On standard error: each note once, however many clusters it is about."""
    noted: dict[str, list[str]] = {}
    for entry in report.clusters:
        for note in entry.notes:
            noted.setdefault(note, []).append(entry.shoot)
    if not telling.quiet:
        for note, shoots in noted.items():
            whose = shoots[0] if len(shoots) == 1 else f"{len(shoots)} shoots"
            click.echo(f"note: {clean(whose)}: {clean(note)}", err=True)
        if report.dry_run and command not in ("compare", "release") and any(e.manifests for e in report.clusters):
            click.echo("dry run: nothing was written; --apply makes the objects")


def _short(value: object) -> str:
    text = orjson.dumps(value).decode() if value is not None else "nothing"
    return clean(text if len(text) <= 60 else f"{text[:57]}...")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None


class Progress:
    """The progress, on one line of a terminal; nothing elsewhere."""

    def __init__(self, total: int, telling: Telling) -> None:
        self._total = total
        self._done = 0
        self._shown = sys.stderr.isatty() and not telling.quiet

    def __enter__(self) -> Progress:
        return self

    def step(self) -> None:
        self._done += 1
        if self._shown:
            sys.stderr.write(f"\r{self._done}/{self._total}")
            sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\033[K")
