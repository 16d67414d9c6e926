"""Chart.yaml: what a chart says of itself, checked as Helm checks it."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import msgspec

from hortus.render.gotemplate.functions.strings import SPACES
from hortus.render.gotemplate.functions.versions import Version, VersionError
from hortus.render.gotemplate.numbers import general
from hortus.render.gotemplate.quoting import quote
from hortus.render.gotemplate.values import NilList, NilStrings, StringMap, Strings, Struct
from hortus.render.helm.errors import ChartError

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


def _text(value: Any, where: str) -> str:
    """Text, or a number or boolean written where text is wanted."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value) if isinstance(value, int) else general(value, single=True, high=21)
    raise ChartError(f"{where} must be a string, not {type(value).__name__}")


def _texts(value: Any, where: str) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ChartError(f"{where} must be a list of strings, not {type(value).__name__}")
    return [_text(part, f"{where}[{number}]") for number, part in enumerate(value)]


def read_metadata(document: Any, known: Metadata | None = None, *, file: str = "Chart.yaml") -> Metadata:
    """Chart.yaml, or an old requirements.yaml on top of a `known` one. Raises ChartError."""
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise ChartError(f"cannot load {file}: it must hold a mapping, not {type(document).__name__}")
    found = known or Metadata()
    for key, field in _TEXTS.items():
        if key in document:
            setattr(found, field, _text(document[key], f"{file}: {key}"))
    for key in _LISTS:
        if key in document:
            setattr(found, key, _texts(document[key], f"{file}: {key}"))
    if "deprecated" in document:
        if not isinstance(document["deprecated"], bool | type(None)):
            raise ChartError(f"{file}: deprecated must be true or false")
        found.deprecated = bool(document["deprecated"])
    _read_rest(found, document, file)
    return found


def _read_rest(found: Metadata, document: dict[str, Any], file: str) -> None:
    if document.get("annotations") is not None:
        notes = _mapping(document["annotations"], f"{file}: annotations")
        found.annotations = {key: _text(value, f"{file}: annotations.{key}") for key, value in notes.items()}
    if document.get("maintainers") is not None:
        found.maintainers = [
            {key: _text(part.get(key), f"{file}: maintainers") for key in ("name", "email", "url")}
            for part in _mappings(document["maintainers"], f"{file}: maintainers")
        ]
    if document.get("dependencies") is not None:
        where = f"{file}: dependencies"
        found.dependencies = [_dependency(part, where) for part in _mappings(document["dependencies"], where)]


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ChartError(f"{where} must be a mapping, not {type(value).__name__}")
    return value


def _mappings(value: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise ChartError(f"{where} must be a list, not {type(value).__name__}")
    if any(part is None for part in value):
        raise ChartError(f"validation: {where.rpartition(' ')[2]} must not contain empty or null nodes")
    return [_mapping(part, where) for part in value]


def _dependency(part: dict[str, Any], where: str) -> Dependency:
    imported = part.get("import-values")
    if imported is not None and not isinstance(imported, list):
        raise ChartError(f"{where}: import-values must be a list")
    return Dependency(
        name=_printable(_text(part.get("name"), where)),
        version=_printable(_text(part.get("version"), where)),
        repository=_printable(_text(part.get("repository"), where)),
        condition=_printable(_text(part.get("condition"), where)),
        tags=[_printable(tag) for tag in _texts(part.get("tags"), where)],
        import_values=list(imported or []),
        alias=_text(part.get("alias"), where),
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
