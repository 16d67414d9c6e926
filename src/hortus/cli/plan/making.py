"""Makes a plan from the options of the command line."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hortus.cli.plan.changing import change_of
from hortus.cli.plan.flags import plan_flags
from hortus.cli.plan.progress import PlanProgress, showing
from hortus.cli.plan.running import PlanRequest, run_plan
from hortus.cli.plan.saving import plan_file
from hortus.domains import all_domains
from hortus.engine.flags import FlagError
from hortus.engine.logging import LogSettings, configure_logging
from hortus.engine.planfile import save
from hortus.kube.errors import KubeError
from hortus.kube.kubeconfig import KubeconfigError
from hortus.kube.selectors import LabelSelector, SelectorError
from hortus.simulation.fork import LiveReadFailed
from hortus.simulation.plan.composing import PlanRun, plan_of
from hortus.simulation.plan.model import FleetPlan
from hortus.terminal import CommandError, Connections, GardenMissing, fail
from hortus.terminal.failures import EXIT_INTERRUPTED

HORIZON: Final = 30 * 86400.0


def made(connections: Connections, given: Mapping[str, Any]) -> FleetPlan:
    """The plan; ends the program with a message for what cannot be planned."""
    try:
        return _made(connections, given)
    except CommandError as error:
        fail(str(error), error.code)
    except KeyboardInterrupt:
        print("interrupted: there is no plan, and the fleet is as it was", file=sys.stderr)
        raise SystemExit(EXIT_INTERRUPTED) from None
    except (KubeError, KubeconfigError, LiveReadFailed, FlagError) as error:
        fail(str(error))


def _made(connections: Connections, given: Mapping[str, Any]) -> FleetPlan:
    labels, target = given["labels"], given["save"]
    try:
        LabelSelector.parse(labels)
    except SelectorError as error:
        raise CommandError(f"-l {labels!r}: {error}", code=2) from None
    if target is not None and not Path(target).absolute().parent.is_dir():
        raise CommandError(f"--save {target}: there is no folder {Path(target).absolute().parent}", code=2)
    change = change_of(
        given["files"],
        given["policies"],
        given["channels"],
        given["outages"],
        given["deletions"],
        namespace=given["namespace"],
    )
    try:
        garden = connections.garden_access
    except GardenMissing:
        garden = None
    values = plan_flags(connections, given["config"], garden.namespace if garden is not None else "")
    until = given["until"]
    request = PlanRequest(
        management=connections.target.access,
        garden=garden,
        values=values,
        change=change.apply,
        labels=labels,
        offline=given["offline"],
        until=until or HORIZON,
        whole=until is not None,
        budget=given["budget"],
        seed=given["seed"],
        replica_fails=change.replica_fails,
    )
    _silence()

    def finish(run: PlanRun) -> FleetPlan:
        views = [view for domain in all_domains() for view in domain.fleet_views()]
        plan = plan_of(run, change.words, views)
        if target is not None:
            try:
                save(plan_file(run, plan), target)
            except OSError as error:
                raise CommandError(f"--save {target}: {error.strerror}") from None
            print(f"plan saved: {target}", file=sys.stderr)
        return plan

    progress = PlanProgress()
    with showing(progress):
        return run_plan(request, finish, progress)


def _silence() -> None:
    """Drop what the controllers log: it is about the fork, and what fails there stands in the plan."""
    configure_logging(LogSettings(level=logging.CRITICAL))
