"""Subcharts: which take part (aliases, conditions, tags), and what they give to their parent (import-values)."""

from __future__ import annotations

from typing import Any

from hortus.kube.constraints import Constraint
from hortus.kube.versions import Version, VersionError
from hortus.render.gotemplate.formatting import text_of
from hortus.render.helm.chart import Chart
from hortus.render.helm.coalescing import NoValue, Table, coalesced, copied, lay_under, table_at, value_at
from hortus.render.helm.errors import ChartError
from hortus.render.helm.metadata import Dependency


def check_present(chart: Chart) -> None:
    """Raises ChartError when Chart.yaml names charts that charts/ has not."""
    present = {child.name for child in chart.dependencies}
    missing = [part.name for part in chart.metadata.dependencies or [] if part.name not in present]
    if missing:
        raise ChartError(
            "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to"
            f" fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {', '.join(missing)}"
        )


def is_compatible(constraint: str, version: str) -> bool:
    """True when the version is in the range; a text that is no version or range is in none."""
    try:
        return Constraint(constraint).allows(Version(version))
    except VersionError:
        return False


def process_dependencies(chart: Chart, values: Table) -> None:
    """Settle the subcharts of a fresh chart for these values, in place. Raises ChartError."""
    _settle(chart, copied(values), "")
    _import_values(chart)


def _settle(chart: Chart, values: Table, path: str) -> None:
    wanted = chart.metadata.dependencies
    if wanted is None:
        return
    chosen = [child for child in chart.dependencies if not _is_named(child, wanted)]
    for part in wanted:
        found = _matching(chart.dependencies, part)
        if found is not None:
            chosen.append(found.renamed(part.alias))
        if part.alias:
            part.name = part.alias
    chart.adopt(chosen)
    for part in wanted:
        part.enabled = True
    current = coalesced(chart, values)
    _apply_tags(wanted, current)
    _apply_conditions(wanted, current, path)
    disabled = {part.name for part in wanted if not part.enabled}
    kept = [child for child in chart.dependencies if child.name not in disabled]
    for child in kept:
        _settle(child, current, f"{path}{child.name}.")
    chart.metadata.dependencies = [part for part in wanted if part.name not in disabled]
    chart.adopt(kept)


def _is_named(child: Chart, wanted: list[Dependency]) -> bool:
    return any(child.name == part.name and is_compatible(part.version, child.metadata.version) for part in wanted)


def _matching(charts: list[Chart], part: Dependency) -> Chart | None:
    for chart in charts:
        if chart.name == part.name and is_compatible(part.version, chart.metadata.version):
            return chart
    return None


def _apply_tags(wanted: list[Dependency], values: Table) -> None:
    tags = values.get("tags")
    if not isinstance(tags, dict):
        return
    for part in wanted:
        said = [tags[tag] for tag in part.tags if isinstance(tags.get(tag), bool)]
        part.enabled = True in said or False not in said


def _apply_conditions(wanted: list[Dependency], values: Table, path: str) -> None:
    for part in wanted:
        for condition in part.condition.strip().split(","):
            if not condition:
                continue
            try:
                found = value_at(values, path + condition)
            except NoValue:
                continue
            if isinstance(found, bool):
                part.enabled = found
                break


def _import_values(chart: Chart) -> None:
    for child in chart.dependencies:
        _import_values(child)
    wanted = chart.metadata.dependencies
    if wanted is None:
        return
    current = coalesced(chart, {}, merge=True)
    imported: Table = {}
    for part in wanted:
        mapped: list[Any] = []
        for entry in part.import_values:
            name, parent = _ends(entry)
            if name is None:
                continue
            mapped.append({"child": name, "parent": parent})
            try:
                table = table_at(current, f"{part.name}.{name}")
            except NoValue:
                continue
            lay_under(imported, _nested(parent, table), merge=True)
        part.import_values = mapped
    chart.values = lay_under(copied(current), imported, merge=True)


def _ends(entry: Any) -> tuple[str | None, str]:
    if isinstance(entry, dict):
        return text_of(entry.get("child")), text_of(entry.get("parent"))
    if isinstance(entry, str):
        return f"exports.{entry}", "."
    return None, ""


def _nested(path: str, table: Table) -> Table:
    if path == ".":
        return table
    for name in reversed(path.split(".")):
        table = {name: table}
    return table


def require_installable(chart: Chart) -> None:
    """Raises ChartError for a library chart."""
    if chart.is_library:
        raise ChartError("library charts are not installable")
