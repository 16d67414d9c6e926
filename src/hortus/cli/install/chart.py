"""The chart that ships with Hortus, rendered by our own renderer: the same objects that Helm would install."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hortus.kube import yaml
from hortus.kube.objects import Object
from hortus.kube.patches import apply_merge_patch
from hortus.render.helm import ChartError, Release, load_chart, render_chart
from hortus.terminal import CommandError

RELEASE = "hortus"


def chart_folder() -> Path:
    """The folder of the chart: next to this file in an installed package, in `charts/` of a source tree."""
    packaged = Path(__file__).parent / "chart"
    return packaged if packaged.exists() else Path(__file__).resolve().parents[4] / "charts" / "hortus"


def objects(namespace: str, values: Mapping[str, Any]) -> list[Object]:
    """The objects of an installation, in the order of installation. Raises CommandError that names an invalid value."""
    try:
        rendered = render_chart(load_chart(chart_folder()), dict(values), release=Release(RELEASE, namespace))
    except ChartError as error:
        raise CommandError(str(error)) from None
    return [obj for obj in rendered.objects if obj]


def values_of(files: Sequence[Path], settings: Sequence[str]) -> dict[str, Any]:
    """The values of these files, later ones over earlier, and `a.b=value` settings over them. Raises CommandError."""
    found: dict[str, Any] = {}
    for path in files:
        found = apply_merge_patch(found, _table(path))
    for setting in settings:
        found = apply_merge_patch(found, _set(setting))
    return found


def _table(path: Path) -> dict[str, Any]:
    try:
        table = yaml.load(path.read_bytes())
    except OSError as error:
        raise CommandError(f"--values {path}: cannot be read: {error.strerror}") from None
    except yaml.YamlError as error:
        raise CommandError(f"--values {path}: {error}") from None
    if not isinstance(table, dict | None):
        raise CommandError(f"--values {path}: must be a mapping from names of values")
    return table or {}


def _set(setting: str) -> dict[str, Any]:
    path, equals, text = setting.partition("=")
    names = path.split(".")
    if not equals or not all(names):
        raise CommandError(f"--set {setting}: must be of the form name.of.value=YAML, as image.tag=v1")
    try:
        found: Any = yaml.load(text) if text else ""
    except yaml.YamlError as error:
        raise CommandError(f"--set {path}: {error}") from None
    table: dict[str, Any] = {names[-1]: found}
    for name in reversed(names[:-1]):
        table = {name: table}
    return table
