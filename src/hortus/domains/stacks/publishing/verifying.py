"""Checks a release, from a folder or a registry, before a cluster depends on it. Pure, but for rendering its charts.

Each check yields one line for each problem, with the file, the value and the fix. Nothing is applied and no network is
used, so that a chart whose dependencies are not in charts/ is not rendered but reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import msgspec

from hortus.domains.stacks.addons.config import AddonConfigError, parse_config
from hortus.domains.stacks.addons.expressions import NotYet, compiled
from hortus.domains.stacks.addons.values import ValuesError, check_values_template
from hortus.domains.stacks.names import BadName, ReleaseName, parse_dot, parse_minor, parse_tag
from hortus.domains.stacks.publishing.building import CLASS_FOLDER, STAGES_FILE
from hortus.domains.stacks.publishing.contents import check_guarantees
from hortus.domains.stacks.publishing.errors import BadStack
from hortus.domains.stacks.publishing.hashes import ADDON_FOLDER, HASHES_FILE, VALUES_FILE, StackHashes, read_hashes
from hortus.domains.stacks.publishing.stages import ACTIONS, HOOKS, read_stages
from hortus.domains.stacks.publishing.versions import METADATA_FILE, StackVersions, read_versions
from hortus.kube.objects import shaped
from hortus.render.archive import ArchiveError, Tree, read_archive
from hortus.render.helm import (
    Capabilities,
    ChartError,
    ChartOptions,
    ChartSource,
    Release,
    Rendered,
    load_files,
    render_chart,
)

_OVERWRITE = "overwrite.yaml"


class VerifiedRelease(msgspec.Struct, frozen=True):
    """The outcome: problems make the release unusable, remarks do not."""

    problems: tuple[str, ...]
    remarks: tuple[str, ...]


class _Named(msgspec.Struct):
    name: str = ""


class _Rendered(msgspec.Struct):
    kind: str = ""
    metadata: _Named = msgspec.field(default_factory=_Named)


class _Check:
    """One run over the files of a release."""

    def __init__(self, name: ReleaseName, files: Mapping[str, bytes], source: StackHashes | None) -> None:
        self.name = name
        self.files = files
        self.source = source
        self.problems: list[str] = []
        self.remarks: list[str] = []

    def run(self) -> VerifiedRelease:
        versions = self._versions()
        steps: list[Callable[[], None]] = [self._hashes]
        if versions is not None:
            addon = self._staged if STAGES_FILE in self.files else self._single
            steps += [partial(self._class, versions), partial(addon, versions)]
        for step in steps:
            try:
                step()
            except BadStack as error:
                self.problems += error.problems
        return VerifiedRelease(tuple(self.problems), tuple(self.remarks))

    def _versions(self) -> StackVersions | None:
        try:
            versions = read_versions(self._file(METADATA_FILE), METADATA_FILE)
            kubernetes = parse_minor(versions.kubernetes)
        except BadStack as error:
            self.problems += error.problems
            return None
        except BadName as error:
            self.problems.append(f"{METADATA_FILE}: versions.kubernetes: {error}")
            return None
        if parse_dot(versions.cluster_stack) != self.name.version:
            problem = f"{METADATA_FILE}: versions.clusterStack: is {versions.cluster_stack!r}"
            self.problems.append(f"{problem}; the release is called {self.name.tag}, so write {self.name.version.dot}")
        if kubernetes != self.name.kubernetes:
            problem = f"{METADATA_FILE}: versions.kubernetes: is {versions.kubernetes!r}"
            self.problems.append(f"{problem}; the release is called {self.name.tag}, whose minor version differs")
        return versions

    def _hashes(self) -> None:
        if HASHES_FILE not in self.files:
            self.remarks.append(f"{HASHES_FILE}: is missing; `create` in mode stable cannot follow this release")
            return
        hashes = read_hashes(self.files[HASHES_FILE], HASHES_FILE)
        version = self.name.version
        if version.channel == "sha" and version.patch != hashes.short:
            problem = f"{HASHES_FILE}: clusterStack: begins with {hashes.short!r}"
            self.problems.append(f"{problem}; the release is called {self.name.tag}: it was made of other sources")
        if self.source is not None and hashes != self.source:
            own, found = msgspec.structs.asdict(self.source), msgspec.structs.asdict(hashes)
            parts = ", ".join(sorted(part for part in own if own[part] != found[part]))
            self.problems.append(f"{HASHES_FILE}: differs from the hashes of the stack in {parts}")

    def _class(self, versions: StackVersions) -> None:
        stem = f"{self.name.stem}-{CLASS_FOLDER}"
        file = f"{stem}-{versions.cluster_stack}.tgz"
        chart = _chart(self._file(file), file)
        check_guarantees(chart, file)
        found = self._render(chart, file, release=self.name.stem, kubernetes="")
        if found is None:
            return
        classes = [one.metadata.name for one in _objects(found) if one.kind == "ClusterClass"]
        if self.name.class_name not in classes:
            there = f"renders the ClusterClasses {', '.join(classes)}" if classes else "renders no ClusterClass"
            self.problems.append(f"{file}: {there}; Clusters name {self.name.class_name}")

    def _single(self, versions: StackVersions) -> None:
        file = f"{self.name.stem}-{ADDON_FOLDER}-{versions.cluster_addon}.tgz"
        self._render(_chart(self._file(file), file), file, release=ADDON_FOLDER, kubernetes=versions.kubernetes)
        self._template(self._file(VALUES_FILE), VALUES_FILE)

    def _staged(self, versions: StackVersions) -> None:
        file = f"{self.name.stem}-{ADDON_FOLDER}-{versions.cluster_addon}.tgz"
        try:
            charts = read_archive(self._file(file), name=file)
        except ArchiveError as error:
            raise BadStack(f"{file}: {error}") from None
        known: set[str] = set()
        for hook, stages in read_stages(self.files[STAGES_FILE], STAGES_FILE).items():
            if hook not in HOOKS:
                self.problems.append(f"{STAGES_FILE}: addonStages: {hook!r} is no hook; use {' or '.join(HOOKS)}")
            for at, stage in enumerate(stages):
                place = f"{STAGES_FILE}: addonStages.{hook}[{at}]"
                if stage.action not in ACTIONS:
                    self.problems.append(f"{place}.action: is {stage.action!r}; use {' or '.join(ACTIONS)}")
                if charts.is_folder(stage.name):
                    known.add(stage.name)
                else:
                    self.problems.append(f"{place}.name: {file} has no folder {stage.name!r}; correct the name")
        self._conditions()
        for folder in sorted(known):
            self._stage_chart(charts.below(folder), f"{file}/{folder}", versions)

    def _conditions(self) -> None:
        """Compile the conditions of all stages."""
        try:
            config = parse_config(self.files[STAGES_FILE])
        except AddonConfigError as error:
            self.problems.append(str(error))
            return
        for hook, stages in config.stages.items():
            for at, stage in enumerate(stages):
                for side, condition in (("waitForPreCondition", stage.before), ("waitForPostCondition", stage.after)):
                    try:
                        if condition is not None:
                            compiled(condition)
                    except NotYet as error:
                        place = f"{STAGES_FILE}: addonStages.{hook}[{at}].{side}.conditions"
                        self.problems.append(f"{place}: {error}")

    def _stage_chart(self, chart: Tree, place: str, versions: StackVersions) -> None:
        try:
            source = ChartSource.from_files({path: file.data for path, file in chart.items()})
        except ChartError as error:
            self.problems.append(f"{place}: {error}")
            return
        self._render(source, place, release=ADDON_FOLDER, kubernetes=versions.kubernetes)
        if _OVERWRITE in chart:
            self._template(chart.read(_OVERWRITE), f"{place}/{_OVERWRITE}")

    def _render(self, chart: ChartSource, place: str, *, release: str, kubernetes: str) -> Rendered | None:
        try:
            if missing := chart.missing():
                names = ", ".join(sorted(f"{one.name} {one.version}" for one in missing))
                self.remarks.append(
                    f"{place}: not rendered: its dependencies are not in charts/, and nothing fetches them: {names}"
                )
                return None
            return render_chart(
                load_files(chart.files),
                {},
                release=Release(name=release, namespace="default"),
                capabilities=Capabilities(kube_version=kubernetes) if kubernetes else Capabilities(),
                options=ChartOptions(include_crds=bool(kubernetes)),
            )
        except ChartError as error:
            self.problems.append(f"{place}: does not render with its own values: {error}")
            return None

    def _template(self, data: bytes, place: str) -> None:
        try:
            check_values_template(data, file=place)
        except ValuesError as error:
            self.problems.append(f"{error}: it cannot be used as a template of values")

    def _file(self, name: str) -> bytes:
        if name not in self.files:
            known = ", ".join(sorted(self.files)) or "nothing"
            raise BadStack(f"{name}: is missing from the release, which holds {known}")
        return self.files[name]


def verify(name: str, files: Mapping[str, bytes], *, source: StackHashes | None = None) -> VerifiedRelease:
    """Check a release; with `source`, also that it was made of the stack with these hashes."""
    try:
        return _Check(parse_tag(name), files, source).run()
    except BadName as error:
        return VerifiedRelease((str(error),), ())


def _chart(data: bytes, file: str) -> ChartSource:
    try:
        return ChartSource.from_archive(data, name=file)
    except ChartError as error:
        raise BadStack(str(error)) from None


def _objects(found: Rendered) -> Iterator[_Rendered]:
    for one in found.objects:
        if (read := shaped(one, _Rendered)) is not None:
            yield read
