"""Render the templates of a chart and its subcharts, in Helm's order and with what Helm gives them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from hortus.render.gotemplate.calls import METHODS
from hortus.render.gotemplate.errors import ExecutionError, LimitExceeded, Limits, ParseError, TemplateError
from hortus.render.gotemplate.run import Compiled, Execution, Spent
from hortus.render.gotemplate.skimming import Skimmer
from hortus.render.gotemplate.template_set import Shelf, TemplateSet
from hortus.render.gotemplate.values import FilesMap, ValuesMap, VersionSet
from hortus.render.helm.capabilities import METHODS_OF_VERSIONS
from hortus.render.helm.chart import Chart
from hortus.render.helm.coalescing import NoValue, table_at
from hortus.render.helm.errors import ChartError
from hortus.render.helm.files import METHODS_OF_FILES, METHODS_OF_VALUES
from hortus.render.helm.functions import HELM, REFUSED, WARNING_BEGIN, WARNING_END, Lookup
from hortus.render.helm.metadata import chart_struct

_WARNING = re.compile(f"{WARNING_BEGIN}(.*){WARNING_END}", re.DOTALL)
METHODS.update({FilesMap: METHODS_OF_FILES, ValuesMap: METHODS_OF_VALUES, VersionSet: METHODS_OF_VERSIONS})


class _Template(NamedTuple):
    text: str
    values: dict[str, Any]
    base: str


class _HelmSet(TemplateSet):
    """The templates of one rendering."""

    def __init__(self, missing: str, lookup: Lookup | None) -> None:
        self.functions = HELM
        self.missing = missing
        self.refused = REFUSED
        self.templates: dict[str, Compiled] = {}
        self.shelf = _SHELVES[missing]
        self.lookup = lookup


_SKIMMER = Skimmer(HELM, REFUSED)
_SHELVES = {"zero": Shelf(_SKIMMER), "error": Shelf(_SKIMMER)}
"""Definitions of files of charts and of texts given to `tpl`, by how missing keys are taken: charts are rendered over
and over, and copies of one library stand in many."""


def render_templates(
    chart: Chart,
    top: dict[str, Any],
    *,
    lookup: Lookup | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    strict: bool = False,
) -> dict[str, str]:
    """The text that each file writes, by its full name, partials left out. `top` has Values, Release and Capabilities.

    Raises ChartError for a template that cannot be parsed or run.
    """
    templates: dict[str, _Template] = {}
    _gather(chart, templates, top)
    names = sorted(templates, key=lambda name: (name.count("/"), name), reverse=True)
    found = _HelmSet("error" if strict else "zero", lookup)
    for name in names:
        _add(found, name, templates[name].text)
    spent = Spent(limits)
    run = Execution(found.templates, spent, found)
    rendered: dict[str, str] = {}
    for name in names:
        if not name.rpartition("/")[2].startswith("_"):
            rendered[name] = _rendered(found, run, name, templates[name])
    return rendered


def _add(found: TemplateSet, name: str, text: str) -> None:
    try:
        found.add(name, text)
    except ParseError as error:
        raise ChartError(_parse_problem(name, str(error))) from None


def _rendered(found: TemplateSet, run: Execution, name: str, template: _Template) -> str:
    template.values["Template"] = ValuesMap(Name=name, BasePath=template.base)
    try:
        text = found.run(name, template.values, run)
    except LimitExceeded as error:
        raise ChartError(f"{name}: {error}") from None
    except ExecutionError as error:
        raise ChartError(_execution_problem(str(error))) from None
    except TemplateError as error:
        raise ChartError(str(error)) from None
    return text.replace("<no value>", "") if "<no value>" in text else text


def _parse_problem(name: str, message: str) -> str:
    parts = message.split(": ")
    if len(parts) == 1:
        return f"parse error in ({name}): {message}"
    return f"parse error at ({parts[1]}): {parts[-1]}"


def _execution_problem(message: str) -> str:
    parts = message.split(": ", 2)
    if len(parts) != 3:
        return message
    warning = _WARNING.search(parts[2])
    return f"execution error at ({parts[1]}): {warning[1]}" if warning else message


def _gather(chart: Chart, templates: dict[str, _Template], above: dict[str, Any]) -> dict[str, Any]:
    """Collect the templates below a chart, each with the values of its own chart."""
    below: dict[str, Any] = {}
    current = ValuesMap(
        Chart=chart_struct(chart.metadata, is_root=chart.parent is None),
        Files=FilesMap(chart.files),
        Release=above.get("Release"),
        Capabilities=above.get("Capabilities"),
        Values=_own_values(chart, above),
        Subcharts=below,
    )
    for child in chart.dependencies:
        below[child.name] = _gather(child, templates, current)
    path = chart.full_path
    for name, text in chart.templates:
        if chart.is_library and not name.rpartition("/")[2].startswith("_"):
            continue
        templates[f"{path}/{name}"] = _Template(text, current, f"{path}/templates")
    return current


def _own_values(chart: Chart, above: dict[str, Any]) -> Any:
    if chart.parent is None:
        return above["Values"]
    try:
        return ValuesMap(table_at(above, f"Values.{chart.name}"))
    except NoValue:
        return ValuesMap()
