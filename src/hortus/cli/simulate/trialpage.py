"""The rows of a trial's report, and the report as one HTML page that draws each stage over time."""

from __future__ import annotations

from collections.abc import Iterator

from hortus.domains.rollouts.trial import TrialResult, TrialStage
from hortus.domains.rollouts.trialfleet import TrialConditions
from hortus.simulation.load.amounts import number, seconds
from hortus.simulation.load.page import document, facts, headline, section, table
from hortus.simulation.load.plots import Band, Curve, plot
from hortus.simulation.load.series import Series
from hortus.simulation.load.tables import Row

STAGE_HEADS = ("stage", "clusters", "began", "soaked from", "ended", "most in work", "failed", "healed", "halts")
_UNITS = ((2 * 86_400, 86_400, "d"), (2 * 3600, 3600, "h"), (0, 60, "min"))
"""From so many seconds on, the time axis has this unit."""
_CURVES = ("waiting", "working", "succeeded", "failed")


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


def html(result: TrialResult, name: str, conditions: TrialConditions, series: Series) -> str:
    """The whole document."""
    title = f"Rollout under {name}"
    plots = "".join(_stage_plot(result, stage, series) for stage in result.stages if stage.clusters)
    tables = section("Stages", table(STAGE_HEADS, stage_rows(result)), wide=True)
    if result.halts:
        tables += section("Halts", table(("at", "stage", "reason"), halt_rows(result), long=True), wide=True)
    said = f'<p class="dim">simulated on virtual time · seed {conditions.seed}</p>'
    return document(
        f"{title}: {result.phase}",
        f"{headline(title, result.phase.lower(), good=result.succeeded)}{said}{facts(_figures(result))}"
        f'<div class="grid2">{_whole_plot(result, series)}{plots}</div>{tables}',
    )


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
    return section("All stages", drawn, "clusters that changed. Shaded: halts.")


def _stage_plot(result: TrialResult, stage: TrialStage, series: Series) -> str:
    scale, unit = _unit(result.seconds)
    lines = [Curve(word, _steps(result, stage, word, series, scale)) for word in _CURVES]
    bands = _halts(result, scale, stage.name)
    if stage.settled is not None:
        ends = result.seconds if stage.ended is None else stage.ended
        bands.append(Band(stage.settled / scale, max(ends, stage.settled) / scale, "soak and approval"))
    drawn = plot(lines, bands=bands, unit=unit, label=f"clusters of stage {stage.name} over time")
    note = f"at most {number(stage.most_in_work)} of {number(stage.limit)} in work. Shaded: soak, approval, halts."
    return section(f"Stage {stage.name}", drawn, note)


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
