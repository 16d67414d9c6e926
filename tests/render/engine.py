"""One template rendered as the only one of a small chart, as the oracle renders it."""

from __future__ import annotations

from typing import Any

from hortus.render.gotemplate.errors import Limits
from hortus.render.gotemplate.values import ValuesMap
from hortus.render.helm.capabilities import Capabilities, capabilities_struct
from hortus.render.helm.chart import Chart
from hortus.render.helm.coalescing import copied
from hortus.render.helm.engine import render_templates
from hortus.render.helm.errors import ChartError
from hortus.render.helm.metadata import Metadata

_RELEASE = {"Name": "r", "Namespace": "n", "Revision": 1, "IsInstall": True, "IsUpgrade": False, "Service": "Helm"}


def render_line(
    template: str,
    values: dict[str, Any],
    *,
    files: dict[str, bytes] | None = None,
    strict: bool = False,
    limits: Limits | None = None,
) -> tuple[str, str]:
    """Output and error, one of them empty."""
    chart = Chart(Metadata(name="c", version="1.2.3", app_version="4.5.6", api_version="v2"))
    chart.templates = [("templates/main", template)]
    chart.files = list((files or {}).items())
    served = capabilities_struct(Capabilities("v1.20.0"))
    top = {"Values": ValuesMap(copied(values)), "Release": _RELEASE, "Capabilities": served}
    try:
        return render_templates(chart, top, strict=strict, limits=limits or Limits())["c/templates/main"], ""
    except ChartError as error:
        return "", str(error)
