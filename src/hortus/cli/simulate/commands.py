"""The commands of `hortus simulate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from hortus.cli.simulate import rollout
from hortus.cli.simulate.options import MADE, RATE, REPORTED, RUN, SCENARIO, SEED, SHOWN, TEMPLATE
from hortus.terminal import CommandError, CommandGroup, Connect, run

if TYPE_CHECKING:
    from hortus.simulation.load import Scenario

_OF_RUN = ("load_id", "seed", "cleanup", "output", "page", "fail_if", "metrics", "plan", "quiet")


def register(app: CommandGroup, connect: Connect) -> None:
    """Add the command group to `app`."""
    group = CommandGroup(
        "simulate",
        panel="On this machine",
        help="Put load, churn and faults on a fleet, and measure it; try a RolloutPolicy without one.\n\n"
        "Only marked clusters are touched; those of `hortus up` have the mark.",
        no_args_is_help=True,
    )
    _register_load(group, connect)
    _register_fleet(group, connect)
    _register_faults(group, connect)
    rollout.register(group)
    _register_scenarios(group, connect)
    _register_upkeep(group, connect)
    app.add_command(group)


def _register_load(group: CommandGroup, connect: Connect) -> None:
    @group.command()
    @click.option("--count", default="100", metavar="NUMBER", help="Number of objects.")
    @TEMPLATE
    @RATE
    @click.option("--ramp", metavar="DURATION", help="Time until the full rate.")
    @MADE
    @RUN
    def load(project: str, **given: Any) -> None:
        """Create objects from a template and measure until all are ready.

        \b
        hortus simulate load --count 1000 --rate 50 --ramp 10s --html report.html
        """
        phase, options = _parted(given)
        _simulate(connect, lambda: _scenario("load", phase, options, project), options)


def _register_fleet(group: CommandGroup, connect: Connect) -> None:
    @group.command()
    @click.option("--clusters", default="20", metavar="NUMBER", help="Number of clusters at the start.")
    @click.option("--duration", default="1m", metavar="DURATION", help="Duration of the operations.")
    @click.option("--churn", default="1", metavar="NUMBER", help="Average number of operations per second.")
    @click.option(
        "--weights",
        default="",
        metavar="LIST",
        help="Relative frequency of operations; defaults: create=1,rotate=4,fail=2,delete=1.",
    )
    @TEMPLATE
    @RATE
    @MADE
    @RUN
    def fleet(project: str, weights: str, **given: Any) -> None:
        """Create, rotate, break and delete clusters at random.

        \b
        hortus simulate fleet --clusters 50 --duration 5m --churn 2 --weights fail=0
        """
        from hortus.cli.simulate.making import weights_of

        phase, options = _parted(given)
        _simulate(
            connect, lambda: _scenario("fleet", phase | {"weights": weights_of(weights)}, options, project), options
        )


def _register_faults(group: CommandGroup, connect: Connect) -> None:
    @group.command()
    @click.argument(
        "events",
        nargs=-1,
        required=True,
        metavar="FAULT...",
        help="A fault, such as 'latency delay=200ms lasts=10s every=30s'.",
    )
    @click.option("--duration", default="1m", metavar="DURATION", help="Duration of the faults.")
    @SEED
    @REPORTED
    @SHOWN
    def faults(events: tuple[str, ...], duration: str, **options: Any) -> None:
        """Inject faults into the fleet of `hortus up`.

        Faults: latency, error, partition, dropWatches, clockStep, kill, pause. All end with the command.

        \b
        hortus simulate faults 'kill process=controllers every=20s' \\
            'error code=429 share=20% lasts=10s'
        """
        from hortus.cli.simulate.making import fault_of

        def scenario() -> Scenario:
            phase = {"duration": duration, "events": [fault_of(text) for text in events]}
            return _scenario("faults", phase, options, "demo")

        _simulate(connect, scenario, options)


def _register_scenarios(group: CommandGroup, connect: Connect) -> None:
    @group.command(name="run")
    @SCENARIO
    @RUN
    def run_scenario(scenario: Path, **options: Any) -> None:
        """Run a scenario file: phases of load, churn and faults, and gates.

        A phase that breaks one of its own gates ends the run.

        Exit code 0: passed; 1: a gate does not hold, or without gates something failed; 2: the file is wrong; 130:
        stopped with Ctrl-C, after the report.
        """
        from hortus.simulation.load import load_file

        _simulate(connect, lambda: load_file(scenario), options, folder=scenario.parent)

    @group.command(uses=())
    @SCENARIO
    def check(scenario: Path) -> None:
        """Check a scenario file without touching a cluster."""
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
        click.echo(
            f"{found.name}: {len(plan.stages)} phases, {plan.objects} objects, {operations} operations, "
            f"{strikes} strikes of faults, {gates} gates"
        )


def _register_upkeep(group: CommandGroup, connect: Connect) -> None:
    @group.command()
    @click.option("--load-id", required=True, metavar="ID", help="Id of the run whose objects are deleted.")
    def cleanup(load_id: str) -> None:
        """Delete the objects that a run left in the management cluster and the garden."""
        from hortus.cli.simulate.running import checked, clean, opened

        async def work() -> int:
            async with opened(connect(), garden=False) as system:
                return await clean(system, checked(load_id))

        click.echo(f"{run(work())} objects of load {load_id} deleted.")

    @group.command()
    @click.option("--garden", is_flag=True, help="Mark the garden instead of the management cluster.")
    @click.option("--remove", is_flag=True, help="Remove the mark.")
    def mark(garden: bool, remove: bool) -> None:
        """Allow simulations in a cluster: label its namespace `default`."""
        from hortus.simulation.load import remove_mark, set_mark

        async def work() -> str:
            async with connect().garden() if garden else connect().management() as client:
                await (remove_mark if remove else set_mark)(client)
                return client.host

        click.echo(f"{run(work())} is {'no longer ' if remove else ''}marked for simulations.")


def _parted(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits options into those given for the load and those of the run."""
    phase = {name: value for name, value in given.items() if name not in _OF_RUN and value is not None}
    return phase, {name: given[name] for name in _OF_RUN}


def _scenario(name: str, phase: dict[str, Any], options: dict[str, Any], project: str) -> Scenario:
    from hortus.cli.simulate.making import scenario_of

    seed = options["seed"]
    return scenario_of(name, phase, seed=1 if seed is None else seed, project=project)


def _simulate(
    connect: Connect, scenario: Callable[[], Scenario], options: dict[str, Any], *, folder: Path | None = None
) -> NoReturn:
    from hortus.cli.simulate.making import metrics_of
    from hortus.cli.simulate.running import Options, simulate
    from hortus.simulation.load import ScenarioError

    try:
        found = scenario()
        metrics = metrics_of(options.get("metrics", ()))
        code = simulate(connect(), found, Options(**{**options, "metrics": metrics}, folder=folder or Path.cwd()))
    except ScenarioError as error:
        _wrong(str(error))
    except CommandError as error:
        _wrong(str(error), error.code)
    raise SystemExit(code)


def _wrong(message: str, code: int = 2) -> NoReturn:
    click.secho(f"error: {message}", fg="red", err=True)
    raise SystemExit(code)
