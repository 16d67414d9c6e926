"""Chart.yaml: what a chart says of itself, checked as Helm checks it."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import msgspec

from hortus.kube.versions import Version, VersionError
from hortus.render.gotemplate.functions.strings import SPACES
from hortus.render.gotemplate.values import NilList, NilStrings, StringMap, Strings, Struct
from hortus.render.helm.decoding import (
    TOP,
    DecodingError,
    anything,
    boolean,
    struct,
    structs,
    text,
    text_map,
    texts,
)
from hortus.render.helm.errors import ChartError
from hortus.schema.quoting import quote

_ALIAS = re.compile(r"[a-zA-Z0-9_-]+")


class Dependency(msgspec.Struct):
    """One entry of `dependencies`. Rendering changes `name` (an alias) and `enabled` on its own copy."""

    name: str = ""
    version: str = ""
    repository: str = ""
    condition: str = ""
    tags: list[str] = []
    enabled: bool = False
    import_values: list[Any] = []
    alias: str = ""


class Metadata(msgspec.Struct):
    name: str = ""
    home: str = ""
    sources: list[str] = []
    version: str = ""
    description: str = ""
    keywords: list[str] = []
    maintainers: list[dict[str, str]] = []
    icon: str = ""
    api_version: str = ""
    condition: str = ""
    tags: str = ""
    app_version: str = ""
    deprecated: bool = False
    annotations: dict[str, str] | None = None
    kube_version: str = ""
    dependencies: list[Dependency] | None = None
    type: str = ""
    empty_nodes: list[str] = []
    """Lists that hold a null."""


_TEXTS = {
    "name": "name",
    "home": "home",
    "version": "version",
    "description": "description",
    "icon": "icon",
    "apiVersion": "api_version",
    "condition": "condition",
    "tags": "tags",
    "appVersion": "app_version",
    "kubeVersion": "kube_version",
    "type": "type",
}
_LISTS = ("sources", "keywords")


def _printable(text: str) -> str:
    """White space becomes blanks, what cannot be printed goes."""
    return "".join(
        " " if char in SPACES else char for char in text if char in SPACES or unicodedata.category(char)[0] not in "CZ"
    )


_DEPENDENCY = struct(
    {
        "name": text,
        "version": text,
        "repository": text,
        "condition": text,
        "tags": texts,
        "enabled": boolean,
        "import-values": anything,
        "alias": text,
    },
    name="Dependency",
    shown="chart.Dependency",
)
_MAINTAINER = struct(dict.fromkeys(("name", "email", "url"), text), name="Maintainer", shown="chart.Maintainer")
_METADATA = struct(
    {
        **dict.fromkeys(_TEXTS, text),
        **dict.fromkeys(_LISTS, texts),
        "deprecated": boolean,
        "annotations": text_map,
        "maintainers": structs(_MAINTAINER, shown="chart.Maintainer"),
        "dependencies": structs(_DEPENDENCY, shown="chart.Dependency"),
    },
    name="Metadata",
    shown="chart.Metadata",
)


def read_metadata(document: Any, known: Metadata | None = None, *, file: str = "Chart.yaml") -> Metadata:
    """Chart.yaml, or an old requirements.yaml on top of a `known` one. Raises ChartError."""
    try:
        fields: dict[str, Any] = {} if document is None else _METADATA(document, TOP)
    except DecodingError as error:
        raise ChartError(f"cannot load {file}: {error}") from None
    found = known or Metadata()
    for key, value in fields.items():
        if key == "maintainers":
            found.maintainers = [
                {name: part.get(name, "") for name in ("name", "email", "url")} for part in value if part is not None
            ]
        elif key == "dependencies":
            found.dependencies = [_dependency(part) for part in value if part is not None]
        else:
            setattr(found, _TEXTS.get(key, key), value)
        if key in ("maintainers", "dependencies") and None in value:
            found.empty_nodes.append(key)
    return found


def _dependency(part: dict[str, Any]) -> Dependency:
    return Dependency(
        name=_printable(part.get("name", "")),
        version=_printable(part.get("version", "")),
        repository=_printable(part.get("repository", "")),
        condition=_printable(part.get("condition", "")),
        tags=[_printable(tag) for tag in part.get("tags", [])],
        import_values=list(part.get("import-values", [])),
        alias=part.get("alias", ""),
    )


def check_metadata(found: Metadata) -> None:
    """Raises ChartError, worded as by Helm, for a chart that must not be used."""
    for field in ("name", "description", "home", "icon", "condition", "tags", "app_version", "kube_version"):
        setattr(found, field, _printable(getattr(found, field)))
    found.sources = list(map(_printable, found.sources))
    found.keywords = list(map(_printable, found.keywords))
    problem = _problem(found)
    if problem:
        raise ChartError(f"validation: {problem}")
    seen: set[str] = set()
    for dependency in found.dependencies or []:
        if dependency.alias and not _ALIAS.fullmatch(dependency.alias):
            raise ChartError(f"validation: dependency {quote(dependency.name)} has disallowed characters in the alias")
        name = dependency.alias or dependency.name
        if name in seen:
            raise ChartError(f"validation: more than one dependency with name or alias {quote(name)}")
        seen.add(name)


def _problem(found: Metadata) -> str | None:
    for key, value in (("apiVersion", found.api_version), ("name", found.name)):
        if not value:
            return f"chart.metadata.{key} is required"
    if found.name in (".", ".."):
        return f"chart.metadata.name {quote(found.name)} is not allowed"
    if "/" in found.name or "\\" in found.name:
        return f"chart.metadata.name {quote(found.name)} is invalid"
    if not found.version:
        return "chart.metadata.version is required"
    try:
        Version(found.version)
    except VersionError:
        return f"chart.metadata.version {quote(found.version)} is invalid"
    if found.type not in ("", "application", "library"):
        return "chart.metadata.type must be application or library"
    for key in ("maintainers", "dependencies"):
        if key in found.empty_nodes:
            return f"{key} must not contain empty or null nodes"
    return None


_FIELDS = (
    ("Name", "name"),
    ("Home", "home"),
    ("Sources", "sources"),
    ("Version", "version"),
    ("Description", "description"),
    ("Keywords", "keywords"),
    ("Maintainers", "maintainers"),
    ("Icon", "icon"),
    ("APIVersion", "apiVersion"),
    ("Condition", "condition"),
    ("Tags", "tags"),
    ("AppVersion", "appVersion"),
    ("Deprecated", "deprecated"),
    ("Annotations", "annotations"),
    ("KubeVersion", "kubeVersion"),
    ("Dependencies", "dependencies"),
    ("Type", "type"),
)
_METADATA_TAGS = tuple((field, key, True) for field, key in _FIELDS)
_CHART_TAGS = (*_METADATA_TAGS, ("IsRoot", "IsRoot", False))
_DEPENDENCY_TAGS = (
    ("Name", "name", False),
    ("Version", "version", True),
    ("Repository", "repository", False),
    ("Condition", "condition", True),
    ("Tags", "tags", True),
    ("Enabled", "enabled", True),
    ("ImportValues", "import-values", True),
    ("Alias", "alias", True),
)


def _strings(values: list[str]) -> list[str]:
    return Strings(values) if values else NilStrings()


def _metadata_fields(found: Metadata) -> dict[str, Any]:
    return {
        "Name": found.name,
        "Home": found.home,
        "Sources": _strings(found.sources),
        "Version": found.version,
        "Description": found.description,
        "Keywords": _strings(found.keywords),
        "Maintainers": [_maintainer(part) for part in found.maintainers] or NilList(),
        "Icon": found.icon,
        "APIVersion": found.api_version,
        "Condition": found.condition,
        "Tags": found.tags,
        "AppVersion": found.app_version,
        "Deprecated": found.deprecated,
        "Annotations": StringMap(found.annotations or {}),
        "KubeVersion": found.kube_version,
        "Dependencies": [_dependency_struct(part) for part in found.dependencies or []] or NilList(),
        "Type": found.type,
    }


def _maintainer(part: dict[str, str]) -> Struct:
    fields = {"Name": part["name"], "Email": part["email"], "URL": part["url"]}
    tags = (("Name", "name", True), ("Email", "email", True), ("URL", "url", True))
    return Struct("chart.Maintainer", fields, tags=tags, pointer=True)


def _dependency_struct(part: Dependency) -> Struct:
    fields = {
        "Name": part.name,
        "Version": part.version,
        "Repository": part.repository,
        "Condition": part.condition,
        "Tags": _strings(part.tags),
        "Enabled": part.enabled,
        "ImportValues": part.import_values or NilList(),
        "Alias": part.alias,
    }
    return Struct("chart.Dependency", fields, tags=_DEPENDENCY_TAGS, pointer=True)


def chart_struct(found: Metadata, *, is_root: bool) -> Struct:
    """.Chart as templates see it."""
    fields = _metadata_fields(found)
    inner = Struct("chart.Metadata", fields, tags=_METADATA_TAGS)
    outer = {**fields, "IsRoot": is_root}
    chart = Struct("struct { chart.Metadata; IsRoot bool }", outer, tags=_CHART_TAGS)
    chart.fields["Metadata"] = inner
    chart.printed = ("Metadata", "IsRoot")
    return chart
