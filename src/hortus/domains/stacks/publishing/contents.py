"""The contents of a release for its users: versions, charts, and what its author guarantees.

The author writes guarantees as annotations in Chart.yaml of the ClusterClass's chart, which csctl keeps as they are.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from hortus.domains.stacks.names import FLEET_GROUP, BadName, ReleaseName, parse_tag
from hortus.domains.stacks.publishing.building import CLASS_FOLDER, STAGES_FILE
from hortus.domains.stacks.publishing.errors import BadStack
from hortus.domains.stacks.publishing.hashes import ADDON_FOLDER
from hortus.domains.stacks.publishing.versions import METADATA_FILE, StackVersions, read_versions
from hortus.render.archive import ArchiveError, read_archive
from hortus.render.helm import ChartError, ChartSource

SUPPORTED_UNTIL: Final = f"{FLEET_GROUP}/supported-until"
GUARANTEES: Final = f"{FLEET_GROUP}/guarantees"
_CHART_FILE: Final = "Chart.yaml"


class _Dependency(msgspec.Struct):
    name: str = ""
    version: str = ""


class ChartFacts(msgspec.Struct, rename="camel"):
    """The parts of a Chart.yaml that people read."""

    name: str = ""
    version: str = ""
    app_version: str | None = None
    description: str | None = None
    annotations: dict[str, str] | None = None
    dependencies: list[_Dependency] | None = None


class ReleaseContents(NamedTuple):
    """A release as its users see it."""

    name: ReleaseName
    versions: StackVersions
    class_chart: ChartFacts
    addons: tuple[ChartFacts, ...]

    @property
    def supported_until(self) -> str:
        """A date; empty where the author names none."""
        return (self.class_chart.annotations or {}).get(SUPPORTED_UNTIL, "")

    @property
    def guarantees(self) -> str:
        return (self.class_chart.annotations or {}).get(GUARANTEES, "").strip()


def contents_of(name: str, files: Mapping[str, bytes]) -> ReleaseContents:
    """Read a release. Raises BadStack."""
    try:
        found = parse_tag(name)
    except BadName as error:
        raise BadStack(str(error)) from None
    versions = read_versions(_file(files, METADATA_FILE), METADATA_FILE)
    class_file = f"{found.stem}-{CLASS_FOLDER}-{versions.cluster_stack}.tgz"
    addon_file = f"{found.stem}-{ADDON_FOLDER}-{versions.cluster_addon}.tgz"
    addons = _stages(files, addon_file) if STAGES_FILE in files else (_facts(_chart(files, addon_file), addon_file),)
    return ReleaseContents(found, versions, _facts(_chart(files, class_file), class_file), addons)


def described(contents: ReleaseContents) -> Iterator[str]:
    """The lines of `hortus stack show`."""
    yield f"{contents.name.tag}: {contents.class_chart.description or 'no description'}"
    yield f"class            {contents.name.class_name}"
    yield f"Kubernetes       {contents.versions.kubernetes}"
    yield f"node images      {contents.versions.node_image or 'none'}"
    yield f"supported until  {contents.supported_until or 'not said'}"
    for one in contents.addons:
        application = f", of {one.app_version}" if one.app_version else ""
        yield f"addon            {one.name} {one.version}{application}"
        yield from (f"                 with {part.name} {part.version}" for part in one.dependencies or ())
    yield from (f"guarantee        {line.strip()}" for line in contents.guarantees.splitlines() if line.strip())


def check_guarantees(chart: ChartSource, place: str) -> None:
    """Raises BadStack for guarantees that nobody can read."""
    until = (_facts(chart, place).annotations or {}).get(SUPPORTED_UNTIL)
    if until is None:
        return
    try:
        datetime.date.fromisoformat(until)
    except ValueError:
        problem = f"{place}/{_CHART_FILE}: annotations[{SUPPORTED_UNTIL!r}]: is {until!r}"
        raise BadStack(f"{problem}; write a date as 2027-02-28") from None


def _stages(files: Mapping[str, bytes], file: str) -> tuple[ChartFacts, ...]:
    try:
        charts = read_archive(_file(files, file), name=file)
    except ArchiveError as error:
        raise BadStack(f"{file}: {error}") from None
    folders = sorted({path.partition("/")[0] for path, _ in charts.items() if path.count("/") == 1})
    found = []
    for folder in folders:
        chart = {path: part.data for path, part in charts.below(folder).items()}
        if _CHART_FILE in chart:
            found.append(_facts(ChartSource.from_files({_CHART_FILE: chart[_CHART_FILE]}), f"{file}/{folder}"))
    return tuple(found)


def _chart(files: Mapping[str, bytes], file: str) -> ChartSource:
    try:
        return ChartSource.from_archive(_file(files, file), name=file)
    except ChartError as error:
        raise BadStack(str(error)) from None


def _facts(chart: ChartSource, place: str) -> ChartFacts:
    try:
        document: Any = chart.document(_CHART_FILE)
        return msgspec.convert(document or {}, ChartFacts, strict=False)
    except (ChartError, msgspec.ValidationError) as error:
        raise BadStack(f"{place}/{_CHART_FILE}: {error}") from None


def _file(files: Mapping[str, bytes], name: str) -> bytes:
    if name not in files:
        raise BadStack(f"{name}: is missing from the release, which holds {', '.join(sorted(files)) or 'nothing'}")
    return files[name]
