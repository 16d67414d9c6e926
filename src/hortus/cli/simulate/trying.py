"""One trial of a RolloutPolicy from the command line: the file, the clusters, the report, the exit code."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from hortus.cli.simulate.rollout import Share
from hortus.cli.simulate.trialpage import STAGE_HEADS, clock, halt_rows, html, remarks, stage_rows
from hortus.domains.rollouts.terms import Terms, TermsError, terms_of
from hortus.domains.rollouts.trial import TrialResult, run_trial
from hortus.domains.rollouts.trialfleet import LabelShares, TrialConditions, trial_fleet
from hortus.domains.rollouts.windows import WindowError, window
from hortus.engine.rollouts.types import RolloutPolicy
from hortus.kube import yaml
from hortus.kube.naming import label_value, qualified_name
from hortus.schema import Structural, decode, schema
from hortus.schema.problems import NO_PATH
from hortus.simulation.load.amounts import number
from hortus.simulation.load.series import Series
from hortus.terminal import EXIT_USAGE, CommandError, OutputFormat, Table, clean, plain, print_line, print_table

_KIND = ("fleet.hortus.dev/v1alpha1", "RolloutPolicy")


def try_policy(path: Path, given: Mapping[str, Any]) -> int:
    """Runs the trial that the options describe and prints its report; returns the exit code. Raises CommandError."""
    policy = read_policy(path)
    try:
        terms = terms_of(policy.spec)
    except TermsError as error:
        raise CommandError(f"{path}: spec.{error}", code=EXIT_USAGE) from None
    output, page = given["output"], given["page"]
    if page is not None and not page.absolute().parent.is_dir():
        raise CommandError(f"--html {page}: there is no folder {page.absolute().parent}")
    conditions = _conditions(given)
    series = Series()
    paused = "spec.paused is true" if policy.spec.paused else ""
    result = run_trial(terms, trial_fleet(terms, conditions), conditions, paused=paused, record=series.add)
    name = policy.metadata.name or path.stem
    _show(result, name, terms, conditions, output)
    if page is not None:
        page.write_text(html(result, name, terms, conditions, series))
        print(f"report: {page}", file=sys.stderr)
    return 0 if result.succeeded else 1


def read_policy(path: Path) -> RolloutPolicy:
    """The policy in a file, checked as an API server does. Raises CommandError, which names the field."""
    try:
        documents = [one for one in yaml.load_all(path.read_bytes()) if one is not None]
    except OSError as error:
        raise CommandError(f"{path}: cannot be read: {error.strerror}", code=EXIT_USAGE) from None
    except yaml.YamlError as error:
        raise CommandError(f"{path}: {error}", code=EXIT_USAGE) from None
    found = [one for one in documents if isinstance(one, dict) and (one.get("apiVersion"), one.get("kind")) == _KIND]
    if len(found) != 1:
        raise CommandError(
            f"{path}: has {len(found)} objects with apiVersion {_KIND[0]} and kind {_KIND[1]}, and must have one",
            code=EXIT_USAGE,
        )
    structural = Structural.compile(schema(RolloutPolicy))
    problems = [f"{field}: unknown field: remove it or correct its name" for field in structural.prune(found[0])]
    problems += [str(problem) for problem in structural.validate(found[0]) if problem.path != NO_PATH]
    if problems:
        raise CommandError("\n".join(f"{path}: {problem}" for problem in problems), code=EXIT_USAGE)
    return decode(RolloutPolicy, found[0])


def _conditions(given: Mapping[str, Any]) -> TrialConditions:
    """Raises CommandError."""
    if given["fail"] + given["hang"] + given["flap"] > 1:
        raise CommandError("--fail, --hang and --flap are more than 100% together: a cluster has one fault", code=2)
    if given["window"]:
        try:
            window(given["window"])
        except WindowError as error:
            raise CommandError(f"--window: {error}", code=EXIT_USAGE) from None
    chosen = {name: given[name] for name in TrialConditions._fields if name in given and name not in ("labels", "seed")}
    seed = 1 if given["seed"] is None else given["seed"]
    return TrialConditions(**chosen, seed=seed, labels=tuple(map(_label, given["labels"])))


def _label(text: str) -> LabelShares:
    """`ring=canary:3%,early:20%`; a value without a share stands for the others. Raises CommandError."""
    key, _, values = text.partition("=")
    shares: dict[str, float] = {}
    for part in values.split(","):
        value, _, share = part.partition(":")
        problem = qualified_name(key) or label_value(value) if value and share and value not in shares else ["form"]
        try:
            shares[value] = Share().convert(share, None, None)
        except click.BadParameter:
            problem = ["share"]
        if problem:
            raise _wrong_label(text)
    if sum(shares.values()) > 1 + 1e-9:
        raise CommandError(f"--label {text!r}: the shares are more than 100% together", code=EXIT_USAGE)
    return LabelShares(key, shares)


def _wrong_label(text: str) -> CommandError:
    return CommandError(
        f"--label {text!r} must be KEY=VALUE:SHARE,..., as in ring=canary:3%,early:20%, each value once; "
        "the other clusters do not have the label",
        code=EXIT_USAGE,
    )


# The report.


def _show(result: TrialResult, name: str, terms: Terms, conditions: TrialConditions, output: OutputFormat) -> None:
    if not output.tabular:
        found = {"policy": name, "seed": conditions.seed, "succeeded": result.succeeded}
        plain(found | msgspec.to_builtins(result), output)
        return
    click.echo(f"{clean(name)}: {result.phase} after {clock(result.seconds)}, {number(result.clusters)} clusters")
    for line in remarks(result, terms, conditions):
        print_line(line)
    _table(STAGE_HEADS, list(stage_rows(result)))
    _table(("halted at", "stage", "reason"), list(halt_rows(result)))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if rows:
        click.echo("")
        print_table(Table(list(heads), rows))
