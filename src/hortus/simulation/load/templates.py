"""Objects from a template: YAML with `${...}` in its texts.

    ${name}       the object's own name, made of the load id and a number
    ${index}      its number; `${seed}` a number that depends on it and on the run's seed alone
    ${load}       the load id; `${namespace}` and `${project}` as the run says

A value that is nothing but `${index}` or `${seed}` becomes a number, except among labels and annotations. Of several
documents the last one is the object itself, and those before are made first, in their order. Two annotations say more
about a document and are not sent: `simulation.hortus.dev/cluster: garden` puts it into the garden, and
`simulation.hortus.dev/until` is when it is ready. A template is parsed once; rendering an object costs a few µs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hortus.kube import yaml
from hortus.kube.objects import GroupVersionKind, Object
from hortus.simulation.load.conditions import Until, parse_until
from hortus.simulation.load.settings import ScenarioError

LOAD_LABEL = "simulation.hortus.dev/load-id"
"""On every object that a run makes; its value is the load id."""
KIM_LABEL = "kim.performance.loadId"
"""The same for those who look for the label of infrastructure-manager's own load generator, rt-load."""
CLUSTER = "simulation.hortus.dev/cluster"
UNTIL = "simulation.hortus.dev/until"
_OURS = "simulation.hortus.dev/namespace"
_SAMPLES = Path(__file__).parent / "samples"
_HOLE = re.compile(r"\$\{([^}]*)\}")
_NAMES = ("name", "index", "seed", "load", "namespace", "project")
_NUMBERS = ("index", "seed")
Values = Mapping[str, Any]
_Render = Callable[[Values], Any]


class Part(msgspec.Struct, frozen=True):
    """One document of a template."""

    kind: GroupVersionKind
    garden: bool
    """True when it belongs to the garden, not to the management cluster."""
    until: Until | None
    """When it is ready; None: as soon as it exists."""
    render: _Render

    def make(self, values: Values) -> Object:
        """The object for these values."""
        found: Object = self.render(values)
        return found


class LoadTemplate(msgspec.Struct, frozen=True):
    """The objects that are made for each unit of a load."""

    name: str
    parts: tuple[Part, ...]
    namespace: str
    """The default of `${namespace}`."""

    @property
    def subject(self) -> Part:
        """The object itself."""
        return self.parts[-1]

    @property
    def is_cluster(self) -> bool:
        """True when it is a GardenerCluster, which can be rotated and made to fail."""
        return self.subject.kind.kind == "GardenerCluster"


def builtin_names() -> list[str]:
    """The templates that are always there."""
    return sorted(path.stem for path in _SAMPLES.glob("*.yaml"))


def load_template(name: str, folder: Path) -> LoadTemplate:
    """A built-in template, or the one in a file below `folder`. Raises ScenarioError."""
    path = _SAMPLES / f"{name}.yaml"
    if name not in builtin_names():
        path = folder / name
        if not path.is_file():
            raise ScenarioError(
                f"template {name!r} is neither built in ({', '.join(builtin_names())}) nor a file: {path}"
            )
    try:
        return parse_template(name, path.read_bytes())
    except (OSError, ValueError, ScenarioError) as error:
        raise ScenarioError(f"template {path}: {error}") from None


def parse_template(name: str, text: bytes) -> LoadTemplate:
    """Raises ScenarioError, ValueError (YAML)."""
    documents = [one for one in yaml.load_all(text) if one is not None]
    if not documents:
        raise ScenarioError("holds no object")
    namespace = "default"
    parts = []
    for document in documents:
        if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
            raise ScenarioError("each document must be an object with apiVersion, kind and metadata")
        annotations = document["metadata"].get("annotations") or {}
        namespace = annotations.pop(_OURS, namespace)
        parts.append(_part(document, annotations))
    return LoadTemplate(name, tuple(parts), namespace)


def _part(document: Object, annotations: dict[str, Any]) -> Part:
    group, _, version = str(document.get("apiVersion", "")).rpartition("/")
    kind = document.get("kind")
    if not version or not isinstance(kind, str):
        raise ScenarioError(f"a document has no apiVersion or no kind: {document.get('metadata')}")
    cluster, until = annotations.pop(CLUSTER, "management"), annotations.pop(UNTIL, "")
    if cluster not in ("management", "garden"):
        raise ScenarioError(f"{kind}: annotation {CLUSTER}: {cluster!r} must be garden or management")
    metadata = document["metadata"]
    if not annotations:
        metadata.pop("annotations", None)
    metadata.setdefault("name", "${name}")
    if "${name}" not in str(metadata["name"]):
        raise ScenarioError(f"{kind}: metadata.name: {metadata['name']!r} must contain ${{name}}, or all would be one")
    labels = metadata.setdefault("labels", {})
    labels.update({LOAD_LABEL: "${load}", KIM_LABEL: "${load}"})
    return Part(
        GroupVersionKind(group, version, kind),
        cluster == "garden",
        parse_until(until) if until else None,
        _compiled(document, kind, texts=False),
    )


def _compiled(value: Any, path: str, *, texts: bool) -> _Render:
    """A function that makes `value` with its holes filled; what has none is used as it is."""
    if isinstance(value, dict):
        inner = {
            key: _compiled(one, f"{path}.{key}", texts=texts or key in ("labels", "annotations"))
            for key, one in value.items()
        }
        return lambda values: {key: render(values) for key, render in inner.items()}
    if isinstance(value, list):
        items = [_compiled(one, f"{path}[{index}]", texts=texts) for index, one in enumerate(value)]
        return lambda values: [render(values) for render in items]
    if isinstance(value, str) and "${" in value:
        return _text(value, path, texts=texts)
    return lambda values: value


def _text(value: str, path: str, *, texts: bool) -> _Render:
    for hole in _HOLE.findall(value):
        if hole not in _NAMES:
            allowed = ", ".join(f"${{{name}}}" for name in _NAMES)
            raise ScenarioError(f"{path}: {'${' + hole + '}'!r} is not known; there are: {allowed}")
    whole = _HOLE.fullmatch(value)
    if whole and whole[1] in _NUMBERS and not texts:
        name = whole[1]
        return lambda values: values[name]
    return lambda values: _HOLE.sub(lambda hole: str(values[hole[1]]), value)
