"""The files of a release, made from a stack's folder: the same bytes for the same folder and versions.

Layout of a stack: `cluster-class/` is a chart; `cluster-addon/` is a chart, or holds one folder for each chart where
there is a clusteraddon.yaml. Without that file, cluster-addon-values.yaml holds the values of the one chart.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from hortus.domains.stacks.names import ReleaseName
from hortus.domains.stacks.publishing.config import CONFIG_FILE, StackConfig, read_stack_config
from hortus.domains.stacks.publishing.errors import BadStack
from hortus.domains.stacks.publishing.hashes import (
    ADDON_FOLDER,
    HASHES_FILE,
    VALUES_FILE,
    StackHashes,
    stack_hashes,
)
from hortus.domains.stacks.publishing.placeholders import fill
from hortus.domains.stacks.publishing.versions import METADATA_FILE, StackVersions, release_name
from hortus.render.archive import ArchiveError, Folder, Tree, pack_tgz
from hortus.render.helm import ChartError, package_chart

CLASS_FOLDER = "cluster-class"
STAGES_FILE = "clusteraddon.yaml"


class StackSource(msgspec.Struct, frozen=True):
    """A stack's folder, read once."""

    folder: Path
    files: Tree
    config: StackConfig
    hashes: StackHashes

    @property
    def is_staged(self) -> bool:
        """True where the add-ons are several charts, applied in stages."""
        return STAGES_FILE in self.files


class BuiltStack(msgspec.Struct, frozen=True, kw_only=True):
    """A release, ready to be written or pushed."""

    name: ReleaseName
    versions: StackVersions
    hashes: StackHashes
    files: Mapping[str, bytes]
    warnings: tuple[str, ...]


def read_stack(folder: Path) -> StackSource:
    """Read and check a stack's folder. Raises BadStack."""
    try:
        files = Folder(folder).tree()
    except OSError as error:
        advice = f"name the folder that holds {CONFIG_FILE}"
        raise BadStack(f"{folder} cannot be read: {error.strerror}; {advice}") from None
    except ArchiveError as error:
        raise BadStack(f"{folder}: {error}") from None
    if CONFIG_FILE not in files:
        raise BadStack(f"{folder}: has no {CONFIG_FILE}; name the folder that holds it")
    config = read_stack_config(files.read(CONFIG_FILE), str(folder / CONFIG_FILE))
    return StackSource(folder, files, config, stack_hashes(files))


def build_release(stack: StackSource, versions: StackVersions) -> BuiltStack:
    """Make a release of a stack. Raises BadStack."""
    name = release_name(stack.config, versions)
    filled = fill(stack.files, versions.placeholders())
    problems: list[str] = []
    files = {HASHES_FILE: stack.hashes.document(), METADATA_FILE: versions.document()}
    for part in (_class_files, _staged_files if stack.is_staged else _addon_files):
        try:
            files |= part(filled.files, name, versions)
        except BadStack as error:
            problems += error.problems
    if stack.is_staged:
        # Written as it is: csctl fills placeholders in all other files only.
        files[STAGES_FILE] = stack.files.read(STAGES_FILE)
    if problems:
        raise BadStack(*(f"{stack.folder}/{one}" for one in problems))
    warnings = tuple(f"{stack.folder}/{one}" for one in filled.warnings)
    return BuiltStack(name=name, versions=versions, hashes=stack.hashes, files=files, warnings=warnings)


def _class_files(files: Tree, name: ReleaseName, versions: StackVersions) -> Mapping[str, bytes]:
    return _packed(files, CLASS_FOLDER, name, versions.cluster_stack)


def _addon_files(files: Tree, name: ReleaseName, versions: StackVersions) -> Mapping[str, bytes]:
    """The one chart of the add-ons, with the template of its values."""
    if VALUES_FILE not in files:
        advice = f"write one, or {STAGES_FILE} where {ADDON_FOLDER} holds several charts"
        raise BadStack(f"{VALUES_FILE}: is missing; {advice}")
    return _packed(files, ADDON_FOLDER, name, versions.cluster_addon) | {VALUES_FILE: files.read(VALUES_FILE)}


def _packed(files: Tree, folder: str, name: ReleaseName, version: str) -> dict[str, bytes]:
    """The archive of a folder's chart, under the name by which it is found in a release."""
    wanted = f"{name.stem}-{folder}"
    try:
        found = package_chart(_folder(files, folder), version=version)
    except ChartError as error:
        raise BadStack(f"{folder}: {error}") from None
    if found.name != wanted:
        advice = f"write {wanted!r}, by which the chart is found in a release"
        raise BadStack(f"{folder}/Chart.yaml: name: is {found.name!r}; {advice}")
    return {f"{found.name}-{found.version}.tgz": found.archive}


def _staged_files(files: Tree, name: ReleaseName, versions: StackVersions) -> Mapping[str, bytes]:
    """The folder of the add-ons, packed without a folder around it."""
    charts = _folder(files, ADDON_FOLDER)
    folders = {path.partition("/")[0] for path in charts.folders}
    lacking = [folder for folder in sorted(folders) if f"{folder}/Chart.yaml" not in charts]
    if lacking:
        raise BadStack(*(f"{ADDON_FOLDER}/{one}: has no Chart.yaml; make it a Helm chart" for one in lacking))
    return {f"{name.stem}-{ADDON_FOLDER}-{versions.cluster_addon}.tgz": pack_tgz(charts, folders=True)}


def _folder(files: Tree, folder: str) -> Tree:
    if not files.is_folder(folder):
        raise BadStack(f"{folder}: is missing; a stack has the folders {CLASS_FOLDER} and {ADDON_FOLDER}")
    return files.below(folder)
