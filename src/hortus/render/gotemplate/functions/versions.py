"""The functions of templates for semantic versions and constraints, as Masterminds/semver v3 takes them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from hortus.kube.constraints import Constraint, ImproperConstraint
from hortus.kube.versions import Version, VersionError
from hortus.render.gotemplate.calls import Function, Functions, table
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.values import Int64, Struct
from hortus.schema.quoting import quote


def semver_compare(constraint: str, version: str) -> bool:
    try:
        return Constraint(constraint).allows(Version(version))
    except ImproperConstraint as error:
        raise FunctionError(f"improper constraint: {quote(error.text)}") from None
    except VersionError as error:
        raise FunctionError(str(error)) from None


def _version(text: str) -> Version:
    try:
        return Version(text)
    except VersionError as error:
        raise FunctionError(str(error)) from None


def semver(text: str) -> Struct:
    """A *semver.Version: Major, Minor, Patch, Prerelease, Metadata, Original, Compare and the increments."""
    return _struct(_version(text))


def _struct(version: Version) -> Struct:
    found = Struct(
        "semver.Version", {}, text=lambda: str(version), pointer=True, state=(str(version), version.original)
    )
    simple: dict[str, Callable[[], Any]] = {
        "Major": lambda: Int64(version.major),
        "Minor": lambda: Int64(version.minor),
        "Patch": lambda: Int64(version.patch),
        "Prerelease": lambda: version.pre,
        "Metadata": lambda: version.metadata,
        "Original": lambda: version.original,
        "String": lambda: str(version),
        "IncMajor": lambda: _struct(Version(f"{version.major + 1}.0.0")),
        "IncMinor": lambda: _struct(Version(f"{version.major}.{version.minor + 1}.0")),
        "IncPatch": lambda: _struct(Version(_next_patch(version))),
    }
    found.methods = {name: Function(name, "", call) for name, call in simple.items()}
    comparisons: dict[str, Callable[[Version], Any]] = {
        "Compare": version.compare,
        "Equal": lambda other: version == other,
        "LessThan": lambda other: version < other,
        "GreaterThan": lambda other: version > other,
    }
    for name, compare in comparisons.items():
        found.methods[name] = Function(name, "any", functools.partial(_against, compare))
    return found


def _next_patch(version: Version) -> str:
    patch = version.patch if version.pre else version.patch + 1
    return f"{version.major}.{version.minor}.{patch}"


def _against(compare: Callable[[Version], Any], other: Any) -> Any:
    if not isinstance(other, Struct) or other.type_name != "semver.Version":
        raise FunctionError("the argument must be a version made by semver")
    assert other.text is not None
    return compare(Version(other.text()))


VERSIONS: Functions = table(
    ("semver", "string", semver),
    ("semverCompare", "string, string", semver_compare),
)
