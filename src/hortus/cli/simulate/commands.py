"""`hortus simulate`: what people type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hortus.terminal import CommandError, Connections, run

if TYPE_CHECKING:
    from hortus.cli.simulate.running import Options
    from hortus.simulation.load import Scenario

Connect = Callable[[], Connections]

Seed = Annotated[int | None, typer.Option(min=0, help="Decides all that is left to chance.", show_default="1")]
LoadId = Annotated[
    str, typer.Option("--load-id", metavar="ID", help="Names and labels objects; a new one if not given.")
]
Cleanup = Annotated[bool, typer.Option("--cleanup", help="Delete all that was made, after the report was taken.")]
Output = Annotated[str, typer.Option("--output", "-o", help="table, json or yaml.")]
Page = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report as one HTML page, too.")]
FailIf = Annotated[
    list[str] | None,
    typer.Option("--fail-if", metavar="GATE", help="Exit with 1 if so, as in 'p99(time_to_ready) > 30s'. Repeatable."),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=URL", help="A process's /metrics; those of `hortus up` are found. Repeatable."),
]
ShowPlan = Annotated[bool, typer.Option("--plan", "--dry-run", help="Print what would be done, and do nothing.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Project = Annotated[str, typer.Option(help="The Gardener project of the shoots.")]
Template = Annotated[
    str, typer.Option("--template", "--kind", help="gardenercluster, runtime, configmap or a YAML file.")
]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Where.", show_default="the template's")]
Rate = Annotated[str | None, typer.Option(metavar="NUMBER", help="Creations a second.", show_default="unlimited")]
Concurrency = Annotated[str | None, typer.Option(metavar="NUMBER", help="Calls in flight at once.", show_default="32")]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="CONDITION",
        help="Ready when: condition=TYPE, jsonpath=PATH=VALUE or exists.",
        show_default="the template's",
    ),
]
Timeout = Annotated[str | None, typer.Option(metavar="DURATION", help="Wait for it so long.", show_default="5m")]


def register(app: typer.Typer, connect: Connect) -> None:
    """Add the command group to `app`."""
    group = typer.Typer(
        name="simulate",
        help="Load a fleet, let it churn, let things fail, and measure it.\n\n"
        "Only clusters that are marked for it are touched; those of `hortus up` are.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    _register_load(group, connect)
    _register_fleet(group, connect)
    _register_faults(group, connect)
    _register_scenarios(group, connect)
    _register_upkeep(group, connect)
    app.add_typer(group, rich_help_panel="On this machine")


def _register_load(group: typer.Typer, connect: Connect) -> None:
    @group.command()
    def load(
        count: Annotated[str, typer.Option(metavar="NUMBER", help="How many objects.")] = "100",
        template: Template = "gardenercluster",
        rate: Rate = None,
        ramp: Annotated[str | None, typer.Option(metavar="DURATION", help="Time until the rate is reached.")] = None,
        concurrency: Concurrency = None,
        until: Until = None,
        timeout: Timeout = None,
        namespace: Namespace = None,
        project: Project = "demo",
        seed: Seed = None,
        load_id: LoadId = "",
        cleanup: Cleanup = False,
        output: Output = "table",
        html: Page = None,
        fail_if: FailIf = None,
        metrics: Metrics = None,
        plan: ShowPlan = False,
        quiet: Quiet = False,
    ) -> None:
        """Create objects from a template and measure until all are ready.

        \b
        hortus simulate load --count 1000 --rate 50 --ramp 10s --html report.html
        """
        from hortus.cli.simulate.making import given

        phase = given(
            count=count,
            template=template,
            rate=rate,
            ramp=ramp,
            concurrency=concurrency,
            until=until,
            timeout=timeout,
            namespace=namespace,
        )
        options = _options(load_id, seed, output, html, fail_if, metrics, cleanup=cleanup, plan=plan, quiet=quiet)
        _simulate(connect, lambda: _scenario("load", phase, seed, project), options)


def _register_fleet(group: typer.Typer, connect: Connect) -> None:
    @group.command()
    def fleet(
        clusters: Annotated[str, typer.Option(metavar="NUMBER", help="How many to begin with.")] = "20",
        duration: Annotated[str, typer.Option(metavar="DURATION", help="How long operations go on.")] = "1m",
        churn: Annotated[str, typer.Option(metavar="NUMBER", help="Operations a second on average.")] = "1",
        weights: Annotated[
            str, typer.Option(metavar="LIST", help="How often which, beside create=1,rotate=4,fail=2,delete=1.")
        ] = "",
        template: Template = "gardenercluster",
        rate: Rate = None,
        concurrency: Concurrency = None,
        until: Until = None,
        timeout: Timeout = None,
        namespace: Namespace = None,
        project: Project = "demo",
        seed: Seed = None,
        load_id: LoadId = "",
        cleanup: Cleanup = False,
        output: Output = "table",
        html: Page = None,
        fail_if: FailIf = None,
        metrics: Metrics = None,
        plan: ShowPlan = False,
        quiet: Quiet = False,
    ) -> None:
        """Clusters that are created, rotated, broken and deleted, at random.

        \b
        hortus simulate fleet --clusters 50 --duration 5m --churn 2 --weights fail=0
        """
        from hortus.cli.simulate.making import given, weights_of

        def scenario() -> Scenario:
            phase = given(
                clusters=clusters,
                duration=duration,
                churn=churn,
                weights=weights_of(weights),
                template=template,
                rate=rate,
                concurrency=concurrency,
                until=until,
                timeout=timeout,
                namespace=namespace,
            )
            return _scenario("fleet", phase, seed, project)

        options = _options(load_id, seed, output, html, fail_if, metrics, cleanup=cleanup, plan=plan, quiet=quiet)
        _simulate(connect, scenario, options)


def _register_faults(group: typer.Typer, connect: Connect) -> None:
    @group.command()
    def faults(
        events: Annotated[
            list[str], typer.Argument(metavar="FAULT...", help="As in 'latency delay=200ms lasts=10s every=30s'.")
        ],
        duration: Annotated[str, typer.Option(metavar="DURATION", help="How long faults go on.")] = "1m",
        seed: Seed = None,
        output: Output = "table",
        html: Page = None,
        plan: ShowPlan = False,
        quiet: Quiet = False,
    ) -> None:
        """Let things fail in the fleet of `hortus up`, while you watch.

        Faults: latency, error, partition, dropWatches, clockStep, kill, pause. All pass when the command ends.

        \b
        hortus simulate faults 'kill process=controllers every=20s' 'error code=429 share=20% lasts=10s'
        """
        from hortus.cli.simulate.making import fault_of

        def scenario() -> Scenario:
            phase = {"duration": duration, "events": [fault_of(text) for text in events]}
            return _scenario("faults", phase, seed, "demo")

        _simulate(connect, scenario, _options("", seed, output, html, None, None, plan=plan, quiet=quiet))


def _register_scenarios(group: typer.Typer, connect: Connect) -> None:
    @group.command(name="run")
    def run_scenario(
        scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A YAML file.")],
        seed: Seed = None,
        load_id: LoadId = "",
        cleanup: Cleanup = False,
        output: Output = "table",
        html: Page = None,
        fail_if: FailIf = None,
        metrics: Metrics = None,
        plan: ShowPlan = False,
        quiet: Quiet = False,
    ) -> None:
        """Run a scenario file: phases of load, churn and faults, and gates.

        A phase with gates of its own that breaks one of them is the last.

        Exit code 0: passed; 1: a gate does not hold, or without gates something failed; 2: the file is wrong; 130:
        stopped with Ctrl-C, after the report.
        """
        from hortus.simulation.load import load_file

        options = _options(load_id, seed, output, html, fail_if, metrics, cleanup=cleanup, plan=plan, quiet=quiet)
        _simulate(connect, lambda: load_file(scenario), options, folder=scenario.parent)

    @group.command()
    def check(scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A YAML file.")]) -> None:
        """Tell whether a scenario file can be used, without touching a cluster."""
        from hortus.cli.simulate.running import templates_of
        from hortus.simulation.load import ScenarioError, load_file, plan_of

        try:
            found = load_file(scenario)
            plan = plan_of(found, templates_of(found, scenario.parent))
        except ScenarioError as error:
            _wrong(str(error))
        strikes = sum(len(track.strikes) for track in plan.tracks)
        operations = sum(len(track.operations) for track in plan.tracks)
        gates = len(found.gates) + sum(len(phase.gates) for phase in found.phases)
        typer.echo(
            f"{found.name}: {len(plan.stages)} phases, {plan.objects} objects, {operations} operations, "
            f"{strikes} strikes of faults, {gates} gates"
        )


def _register_upkeep(group: typer.Typer, connect: Connect) -> None:
    @group.command()
    def cleanup(
        load_id: Annotated[str, typer.Option("--load-id", metavar="ID", help="Of the run whose objects are to go.")],
    ) -> None:
        """Delete what a run has left, in the management cluster and the garden."""
        from hortus.cli.simulate.running import checked, clean, opened

        async def work() -> int:
            async with opened(connect(), garden=False) as system:
                return await clean(system, checked(load_id))

        typer.echo(f"{run(work())} objects of load {load_id} deleted.")

    @group.command()
    def mark(
        garden: Annotated[bool, typer.Option("--garden", help="The garden, not the management cluster.")] = False,
        remove: Annotated[bool, typer.Option("--remove", help="Take the mark away.")] = False,
    ) -> None:
        """Allow simulations in a cluster: label its namespace `default`."""
        from hortus.simulation.load import remove_mark, set_mark

        async def work() -> str:
            async with connect().garden() if garden else connect().management() as client:
                await (remove_mark if remove else set_mark)(client)
                return client.host

        typer.echo(f"{run(work())} is {'no longer ' if remove else ''}marked for simulations.")


def _options(
    load_id: str,
    seed: int | None,
    output: str,
    page: Path | None,
    fail_if: list[str] | None,
    metrics: list[str] | None,
    *,
    cleanup: bool = False,
    plan: bool,
    quiet: bool,
) -> dict[str, Any]:
    return {
        "load_id": load_id,
        "seed": seed,
        "output": output,
        "page": page,
        "fail_if": tuple(fail_if or ()),
        "metrics": tuple(metrics or ()),
        "cleanup": cleanup,
        "plan": plan,
        "quiet": quiet,
    }


def _scenario(name: str, phase: dict[str, Any], seed: int | None, project: str) -> Scenario:
    from hortus.cli.simulate.making import scenario_of

    return scenario_of(name, phase, seed=1 if seed is None else seed, project=project)


def _simulate(
    connect: Connect, scenario: Callable[[], Scenario], options: dict[str, Any], *, folder: Path | None = None
) -> None:
    from hortus.cli.simulate.making import metrics_of
    from hortus.cli.simulate.running import Options, simulate
    from hortus.simulation.load import ScenarioError

    try:
        found = scenario()
        chosen: Options = Options(**{**options, "metrics": metrics_of(options["metrics"])}, folder=folder or Path.cwd())
        code = simulate(connect(), found, chosen)
    except ScenarioError as error:
        _wrong(str(error))
    except CommandError as error:
        _wrong(str(error), error.code)
    raise typer.Exit(code)


def _wrong(message: str, code: int = 2) -> Any:
    typer.secho(f"error: {message}", fg=typer.colors.RED, err=True)
    raise typer.Exit(code)
