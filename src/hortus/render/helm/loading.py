"""Load charts: from a directory, from an archive, from files in memory.

An archive is untrusted: `hortus.render.archive` refuses paths that leave it, links, devices and bombs, and nothing is
ever written to disk. The bounds on a chart are Helm's own; the charts within it share them.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hortus.render.archive import ArchiveError, Limits, RemainingLimits, Trailing, read_archive
from hortus.render.gotemplate import goyaml
from hortus.render.gotemplate.values import wire_text
from hortus.render.helm.chart import Chart, digest_of
from hortus.render.helm.decoding import DecodingError, table
from hortus.render.helm.errors import ChartError
from hortus.render.helm.ignore import IgnoreRules
from hortus.render.helm.metadata import Metadata, check_metadata, read_metadata
from hortus.schema.quoting import quote

LARGEST_CHART = 100 << 20
"""Bytes of all files, unpacked."""
LARGEST_FILE = 5 << 20
MOST_FILES = 10_000
DEEPEST = 16
"""Charts within charts."""
LIMITS = Limits(
    compressed=LARGEST_CHART, total=LARGEST_CHART + MOST_FILES * 1024, file=LARGEST_FILE, entries=MOST_FILES
)
"""A tar has a header and up to one block of padding for each file."""
_MARK = b"\xef\xbb\xbf"
Files = list[tuple[str, bytes]]


def load_chart(path: Path) -> Chart:
    """A chart from a directory or a .tgz. Raises ChartError; reads only below a directory, and follows no link out."""
    if path.is_dir():
        return load_files(read_directory(path))
    try:
        size = path.stat().st_size
        if size > LARGEST_CHART:
            raise ChartError(f"{path.name}: the archive is larger than {LARGEST_CHART} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise ChartError(f"cannot read chart {path}: {error.strerror}") from None
    return load_archive(data, name=path.name)


def read_directory(folder: Path) -> Files:
    """The files of a chart's directory that .helmignore leaves. Raises ChartError."""
    ignored = folder / ".helmignore"
    rules = IgnoreRules(ignored.read_text("utf-8", "replace") if ignored.is_file() else "")
    found: Files = []
    total = 0
    for name, path in _walked(folder, folder.resolve(), "", rules, 0):
        size = path.stat().st_size
        total += size
        if size > LARGEST_FILE:
            raise ChartError(f"chart file {quote(name)} is larger than the maximum file size {LARGEST_FILE}")
        if total > LARGEST_CHART or len(found) >= MOST_FILES:
            raise ChartError(f"chart {folder.name} is larger than {LARGEST_CHART} bytes or {MOST_FILES} files")
        found.append((name, path.read_bytes().removeprefix(_MARK)))
    return found


def _walked(folder: Path, root: Path, prefix: str, rules: IgnoreRules, depth: int) -> Iterator[tuple[str, Path]]:
    if depth > 4 * DEEPEST:
        raise ChartError(f"chart directory {folder.name} is nested deeper than {4 * DEEPEST} levels")
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        name = prefix + path.name
        is_folder = path.is_dir()
        if rules.ignores(name, is_directory=is_folder):
            continue
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            raise ChartError(f"chart file {quote(name)} is a link that leaves the chart")
        if is_folder:
            yield from _walked(path, root, name + "/", rules, depth + 1)
        elif stat.S_ISREG(path.stat().st_mode):
            yield name, path
        else:
            raise ChartError(f"cannot load irregular file {name} as it has file mode type bits set")


def load_archive(data: bytes, *, name: str = "archive") -> Chart:
    """A chart from the bytes of a .tgz. Raises ChartError."""
    budget = RemainingLimits(LIMITS)
    return load_files(read_packed(data, name=name, budget=budget), budget=budget)


def read_packed(data: bytes, *, name: str = "archive", budget: RemainingLimits | None = None) -> Files:
    """The files of a packed chart, without the folder they lie in. Raises ChartError.

    Charts within a chart give the same `budget`, so that all of them together stay within one set of limits.
    """
    if not data.startswith(b"\x1f\x8b"):
        raise ChartError(f"chart {name} is not a gzipped archive")
    try:
        tree = read_archive(data, budget=budget or RemainingLimits(LIMITS), trailing=Trailing.IGNORE, name=name)
    except ArchiveError as error:
        raise ChartError(f"chart {name}: {error}") from None
    if not tree:
        raise ChartError(f"chart {name}: the archive holds no files")
    return [(_inside(path, name), file.data.removeprefix(_MARK)) for path, file in tree.items()]


def _inside(path: str, name: str) -> str:
    """A path without its first folder, the chart's own."""
    _, _, rest = path.partition("/")
    if not rest:
        raise ChartError(f"chart {name}: {quote(path)} lies outside of the chart's folder")
    return rest


def load_files(files: Iterable[tuple[str, bytes]], *, depth: int = 0, budget: RemainingLimits | None = None) -> Chart:
    """A chart from names and contents. Raises ChartError."""
    budget = budget or RemainingLimits(LIMITS)
    if depth > DEEPEST:
        raise ChartError(f"charts are nested deeper than {DEEPEST} levels")
    found = list(files)
    chart = Chart(_metadata(found))
    chart.digest = digest_of(found)
    below: dict[str, Files] = {}
    for name, data in found:
        if name.startswith("charts/") and not name.endswith(".prov"):
            inner = name.removeprefix("charts/")
            below.setdefault(inner.partition("/")[0], []).append((inner, data))
        else:
            _place(chart, name, data)
    check_metadata(chart.metadata)
    chart.adopt(
        [_subchart(chart, name, parts, depth, budget) for name, parts in below.items() if name[:1] not in ("_", ".")]
    )
    return chart


def _metadata(files: Files) -> Metadata:
    found: Metadata | None = None
    for name, data in files:
        if name == "Chart.yaml":
            found = read_metadata(_document(data, name), found)
            found.api_version = found.api_version or "v1"
    for name, data in files:
        if name == "requirements.yaml":
            found = read_metadata(_document(data, name), found, file=name)
    if found is None or not any(name == "Chart.yaml" for name, _ in files):
        raise ChartError("Chart.yaml file is missing")
    return found


def _document(data: bytes, name: str) -> Any:
    try:
        return goyaml.read(data)
    except goyaml.GoYamlError as error:
        raise ChartError(f"cannot load {name}: error converting YAML to JSON: {error}") from None


def _place(chart: Chart, name: str, data: bytes) -> None:
    if name in ("Chart.yaml", "Chart.lock"):
        return
    if name in ("requirements.yaml", "requirements.lock"):
        if chart.metadata.api_version == "v1":
            chart.files.append((name, data))
        return
    if name == "values.yaml":
        try:
            chart.values = table(_document(data, name))
        except DecodingError as error:
            raise ChartError(f"cannot load values.yaml: {error}") from None
    elif name == "values.schema.json":
        chart.schema = data
    elif name.startswith("templates/"):
        chart.templates.append((name, wire_text(data)))
    else:
        chart.files.append((name, data))


def _subchart(parent: Chart, name: str, files: Files, depth: int, budget: RemainingLimits) -> Chart:
    try:
        if name.endswith(".tgz"):
            if files[0][0] != name:
                raise ChartError(f"expected {name}, got {files[0][0]}")
            packed = read_packed(files[0][1], name=name, budget=budget)
            return load_files(packed, depth=depth + 1, budget=budget)
        inner = [(path.partition("/")[2], data) for path, data in files if "/" in path]
        return load_files(inner, depth=depth + 1, budget=budget)
    except ChartError as error:
        raise ChartError(f"error unpacking subchart {name} in {parent.name}: {error}") from None
