"""The rows of a trial's report, and the report as one HTML page that draws each stage over time."""

from __future__ import annotations

from collections.abc import Iterator

from hortus.domains.rollouts.terms import Terms
from hortus.domains.rollouts.trial import TrialResult, TrialStage
from hortus.domains.rollouts.trialfleet import TrialConditions
from hortus.engine.rollouts.types import RolloutPhase
from hortus.simulation.load.amounts import number, seconds
from hortus.simulation.load.page import document, facts, headline, section, table
from hortus.simulation.load.plots import Band, Curve, plot
from hortus.simulation.load.series import Series
from hortus.simulation.load.tables import Row
from hortus.terminal import clean
from hortus.terminal.escaping import html as escape

STAGE_HEADS = ("stage", "clusters", "began", "soaked from", "ended", "most in work", "failed", "healed", "halts")
_UNITS = ((2 * 86_400, 86_400, "d"), (2 * 3600, 3600, "h"), (0, 60, "min"))
"""From so many seconds on, the time axis has this unit."""
_CURVES = (("waiting", "idle"), ("working", ""), ("succeeded", "good"), ("failed", "bad"))
"""The curves of a stage, each with its tone."""


def clock(value: float | None) -> str:
    """A time since the begin; `-` where there is none."""
    return "-" if value is None else seconds(value)


def stage_rows(result: TrialResult) -> Iterator[Row]:
    """The stages, without the one of unselected clusters where it has none."""
    for stage in result.stages:
        if stage.clusters or stage.name != "unselected":
            times = map(clock, (stage.began, stage.settled, stage.ended))
            most = f"{number(stage.most_in_work)} of {number(stage.limit)}"
            counts = map(number, (stage.failed, stage.healed, stage.halts))
            yield stage.name, number(stage.clusters), *times, most, *counts


def halt_rows(result: TrialResult) -> Iterator[Row]:
    for halt in result.halts:
        yield clock(halt.at), halt.stage, halt.message


def remarks(result: TrialResult, terms: Terms, conditions: TrialConditions) -> Iterator[str]:
    """Yields the sentences about the end of the trial, and about clusters and windows that the policy cannot mean."""
    if result.phase == RolloutPhase.HALTED:
        yield "with --resume it goes on after a halt"
    elif not result.succeeded:
        yield clean(result.message)
        yield "nothing further happens in the simulation"
    if result.joined:
        yield f"{number(result.joined)} clusters joined after the begin"
    if result.excluded:
        yield f"{number(result.excluded)} clusters are in no stage and keep their version"
    for stage in result.stages:
        if not stage.clusters and stage.name != "unselected":
            yield f"stage {stage.name} has no clusters"
    if not conditions.window and any(stage.respects_windows for stage in terms.stages):
        yield "the policy respects maintenance windows, and the clusters have none: see --window"


def html(result: TrialResult, name: str, terms: Terms, conditions: TrialConditions, series: Series) -> str:
    """The whole document."""
    title = f"Policy {name}, tried on {number(result.clusters)} clusters"
    plots = "".join(_stage_plot(result, stage, series) for stage in result.stages if stage.clusters)
    tables = section("Stages", table(STAGE_HEADS, stage_rows(result)), wide=True)
    if result.halts:
        tables += section("Halts", table(("at", "stage", "reason"), halt_rows(result), long=True), wide=True)
    halted = [result.message] if result.phase == RolloutPhase.HALTED else []
    lines = (*halted, *remarks(result, terms, conditions))
    said = f'<p class="dim">{escape(_given(conditions))}</p>' + "".join(f"<p>{escape(line)}</p>" for line in lines)
    return document(
        f"{title}: {result.phase}",
        f"{headline(title, result.phase.lower(), good=result.succeeded)}{said}{facts(_figures(result))}"
        f'<div class="grid2">{_whole_plot(result, series)}{plots}</div>{tables}',
    )


def _given(conditions: TrialConditions) -> str:
    """The fleet and the faults, as they were given."""
    faults = [
        f"{share:.3g} % {word}"
        for share, word in (
            (conditions.fail * 100, "fail"),
            (conditions.hang * 100, "hang"),
            (conditions.flap * 100, "fail and heal"),
            (conditions.late * 100, "join late"),
        )
        if share
    ]
    parts = [*(faults or ["no faults"]), f"a change takes {clock(conditions.change_time)}"]
    parts += [f"an approval {clock(conditions.approval_time)}"] if conditions.approval_time else []
    parts += [f"window {conditions.window}"] if conditions.window else []
    parts += ["resumed after each halt"] if conditions.resumes else []
    return " · ".join([*parts, "virtual time", f"seed {conditions.seed}"])


def _figures(result: TrialResult) -> Iterator[Row]:
    yield "whole time", clock(result.seconds)
    yield "clusters", number(result.clusters)
    yield "failed", number(sum(stage.failed for stage in result.stages))
    yield "healed", number(sum(stage.healed for stage in result.stages))
    yield "joined after the begin", number(result.joined)
    yield "halts", number(len(result.halts))


def _whole_plot(result: TrialResult, series: Series) -> str:
    scale, unit = _unit(result.seconds)
    stages = [stage for stage in result.stages if stage.clusters]
    lines = [Curve(stage.name, _steps(result, stage, "succeeded", series, scale)) for stage in stages]
    drawn = plot(lines, bands=_halts(result, scale), unit=unit, label="clusters that changed in each stage over time")
    return section("All stages", drawn, f"clusters that changed.{' Shaded: halts.' if result.halts else ''}")


def _stage_plot(result: TrialResult, stage: TrialStage, series: Series) -> str:
    scale, unit = _unit(result.seconds)
    lines = [Curve(word, _steps(result, stage, word, series, scale), tone) for word, tone in _CURVES]
    bands = _halts(result, scale, stage.name)
    if stage.settled is not None:
        ends = result.seconds if stage.ended is None else stage.ended
        bands.append(Band(stage.settled / scale, max(ends, stage.settled) / scale, "soak and approval"))
    drawn = plot(lines, bands=bands, unit=unit, label=f"clusters of stage {stage.name} over time")
    return section(f"Stage {stage.name}", drawn, _note(stage, shaded=bool(bands)))


def _note(stage: TrialStage, *, shaded: bool) -> str:
    if stage.began is None:
        return "has not begun."
    text = f"at most {number(stage.most_in_work)} of {number(stage.limit)} in work."
    return f"{text} Shaded: soak, approval, halts." if shaded else text


def _steps(
    result: TrialResult, stage: TrialStage, word: str, series: Series, scale: float
) -> list[tuple[float, float | None]]:
    """A staircase, since nothing changes between two decisions; it ends with the rollout."""
    found: list[tuple[float, float | None]] = []
    last: float | None = None
    final = float(getattr(stage, word))
    samples = zip(series.times, series.values[f"{stage.name} {word}"], strict=True)
    for at, value in (*samples, (result.seconds, final)):
        if value != last:
            found += [(at / scale, last), (at / scale, value)] if found else [(at / scale, value)]
            last = value
    return [*found, (result.seconds / scale, final)]


def _halts(result: TrialResult, scale: float, stage: str = "") -> list[Band]:
    found = (halt for halt in result.halts if stage in ("", halt.stage))
    return [Band(halt.at / scale, halt.at / scale, f"halted: {halt.message}") for halt in found]


def _unit(total: float) -> tuple[float, str]:
    return next((scale, unit) for least, scale, unit in _UNITS if total >= least)
