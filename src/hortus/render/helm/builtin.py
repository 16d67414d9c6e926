"""The renderer that needs no binary: a chart, values and capabilities to objects, within one process."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from hortus.render.bounded import Bounded
from hortus.render.gotemplate.errors import Limits
from hortus.render.gotemplate.values import ValuesMap
from hortus.render.helm.capabilities import Capabilities, capabilities_struct
from hortus.render.helm.chart import Chart
from hortus.render.helm.coalescing import coalesced
from hortus.render.helm.dependencies import check_present, is_compatible, process_dependencies, require_installable
from hortus.render.helm.engine import render_templates
from hortus.render.helm.errors import ChartError
from hortus.render.helm.functions import Lookup
from hortus.render.helm.manifests import Rendered, rendered
from hortus.schema.jsonschema import JsonSchema, JsonSchemaError

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME = 53


class Release(msgspec.Struct, frozen=True):
    """The release that a chart is rendered for."""

    name: str = "release-name"
    namespace: str = "default"
    revision: int = 1
    is_upgrade: bool = False


class ChartOptions(msgspec.Struct, frozen=True):
    """The options of rendering a chart."""

    include_crds: bool = False
    skip_tests: bool = False
    strict: bool = False
    """True when a missing key is an error."""
    skip_schema: bool = False
    """True when values.schema.json is passed over; one that refers to other documents cannot be used otherwise."""


def render_chart(
    chart: Chart,
    values: dict[str, Any],
    *,
    release: Release = Release(),  # noqa: B008 - frozen
    capabilities: Capabilities = Capabilities(),  # noqa: B008 - frozen
    options: ChartOptions = ChartOptions(),  # noqa: B008 - frozen
    lookup: Lookup | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Rendered:
    """Render here and now, in this process. Raises ChartError."""
    check_release(release)
    require_installable(chart)
    check_present(chart)
    chart = chart.fresh()
    process_dependencies(chart, values)
    served = capabilities_struct(capabilities)
    version = capabilities.parsed()[0]
    wanted = chart.metadata.kube_version
    if wanted and not is_compatible(wanted, version):
        raise ChartError(f"chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {version}")
    found = coalesced(chart, values)
    if not options.skip_schema:
        check_values(chart, found)
    top = {"Values": ValuesMap(found), "Release": _release_map(release), "Capabilities": served}
    files = render_templates(chart, top, lookup=lookup, limits=limits, strict=options.strict)
    crds = chart.crds() if options.include_crds else []
    return rendered(files, crds=crds, skip_tests=options.skip_tests)


def check_release(release: Release) -> None:
    """Raises ChartError for a name that Helm would refuse."""
    if len(release.name) > _LONGEST_NAME or not _NAME.fullmatch(release.name):
        raise ChartError(
            f"release name {release.name!r} is not valid: at most {_LONGEST_NAME} small letters, digits, '-' and '.'"
        )


def _release_map(release: Release) -> dict[str, Any]:
    return {
        "Name": release.name,
        "Namespace": release.namespace,
        "IsUpgrade": release.is_upgrade,
        "IsInstall": not release.is_upgrade,
        "Revision": release.revision,
        "Service": "Helm",
    }


_KEPT_BYTES = 32 << 20
_WEIGHT = 30
"""Bytes of a compiled schema for each of its text, about."""
_SCHEMAS: Bounded[bytes, JsonSchema] = Bounded(_KEPT_BYTES, lambda data, _: _WEIGHT * len(data))


def _compiled(data: bytes) -> JsonSchema:
    found = _SCHEMAS.get(data)
    if found is None:
        try:
            found = JsonSchema.compile(json.loads(data))
        except (ValueError, RecursionError) as error:
            raise JsonSchemaError(
                f"values.schema.json cannot be used, only be passed over (skip_schema): {error}"
            ) from None
        _SCHEMAS.put(data, found)
    return found


def check_values(chart: Chart, values: dict[str, Any]) -> None:
    """Raises ChartError that names every value which does not fit."""
    problems = _problems(chart, values)
    if problems:
        text = "\n".join(problems)
        raise ChartError(f"values don't meet the specifications of the schema(s) in the following chart(s):\n{text}")


def _problems(chart: Chart, values: dict[str, Any]) -> list[str]:
    found: list[str] = []
    if chart.schema is not None:
        try:
            violations = _compiled(chart.schema).validate(values)
        except JsonSchemaError as error:
            return [f"{chart.name}:", str(error)]
        if violations:
            found += [f"{chart.name}:", *(f"- {violation}" for violation in violations)]
    for child in chart.dependencies:
        inner = values.get(child.name)
        if isinstance(inner, dict):
            found += _problems(child, inner)
    return found
