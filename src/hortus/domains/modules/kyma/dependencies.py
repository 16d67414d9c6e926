"""Modules that need other modules: an addition of Hortus to the contract.

A ModuleTemplate names them in an annotation, as JSON: `[{"module": "istio", "versions": ">=1.4 <2"}]`. A module is
installed or upgraded once those that it needs are installed in such a version. Nothing waits inside a reconcile: a
module whose needs are missing is reported, and resolved again when the Kyma changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from hortus.domains.modules.names import Annotation, State
from hortus.domains.modules.types import ModuleStatus, ModuleTemplate
from hortus.kube.constraints import Constraint
from hortus.kube.objects import shaped
from hortus.kube.versions import Version, VersionError


class DependencyError(ValueError):
    """Needs that are malformed or form a cycle; the text names the module and the fix."""


class ModuleDependency(NamedTuple):
    """A module that another one needs."""

    module: str
    versions: str = ""
    """Constraint on its version, such as `>=1.4 <2`; empty allows all."""

    def __str__(self) -> str:
        return f"{self.module} ({self.versions})" if self.versions else self.module

    def allows(self, version: str) -> bool:
        """Reports whether a version of the module will do; a text that is no version does only where all do."""
        try:
            return not self.versions or Constraint(self.versions).allows(Version(version))
        except VersionError:
            return False


class _DependencyFields(msgspec.Struct):
    module: str
    versions: str = ""


def read_dependencies(value: Any, where: str) -> tuple[ModuleDependency, ...]:
    """Dependencies of a list of {module, versions}; `where` names it in errors. Raises DependencyError."""
    if not isinstance(value, list):
        raise DependencyError(f"{where} must be a list of objects with module and versions")
    found = []
    for at, one in enumerate(value):
        fields = shaped(one, _DependencyFields)
        if fields is None or not fields.module:
            raise DependencyError(f"{where}[{at}].module must be the name of a module, and versions a text")
        try:
            if fields.versions:
                Constraint(fields.versions)
        except VersionError as error:
            raise DependencyError(f"{where}[{at}].versions: {error}; write a range such as >=1.4 <2") from None
        found.append(ModuleDependency(fields.module, fields.versions))
    names = [dependency.module for dependency in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DependencyError(f"{where} names {', '.join(twice)} twice; join the ranges with a comma")
    return tuple(found)


def dependencies_of(template: ModuleTemplate) -> tuple[ModuleDependency, ...]:
    """The dependencies of one version of a module. Raises DependencyError."""
    text = template.metadata.annotations.get(Annotation.DEPENDENCIES, "")
    if not text:
        return ()
    where = f"annotation {Annotation.DEPENDENCIES} of ModuleTemplate {template.metadata.name}"
    try:
        value = json.loads(text)
    except ValueError as error:
        raise DependencyError(f"{where} is not JSON: {error}") from None
    return read_dependencies(value, where)


def missing(dependencies: Iterable[ModuleDependency], installed: Mapping[str, ModuleStatus]) -> list[str]:
    """The dependencies that `installed` does not satisfy yet, each with the reason."""
    found = []
    for dependency in dependencies:
        status = installed.get(dependency.module)
        if status is None:
            found.append(f"{dependency}: not in the list of modules; add it")
        elif status.version and not dependency.allows(status.version):
            found.append(f"{dependency}: installed is {status.version}")
        elif status.state not in _INSTALLED:
            found.append(f"{dependency}: is {status.state or 'not reconciled yet'}")
    return found


_INSTALLED = frozenset((State.READY, State.WARNING, State.UNMANAGED))


def ordered(needs: Mapping[str, Iterable[ModuleDependency]]) -> list[str]:
    """The modules of `needs`, each after those that it needs; else by name. Raises DependencyError for a cycle."""
    done: list[str] = []
    path: list[str] = []

    def visit(name: str) -> None:
        if name in done:
            return
        if name in path:
            cycle = " -> ".join((*path[path.index(name) :], name))
            raise DependencyError(f"modules need each other in a circle: {cycle}; remove one of these dependencies")
        path.append(name)
        for module in sorted(dependency.module for dependency in needs[name]):
            if module in needs:
                visit(module)
        path.pop()
        done.append(name)

    for name in sorted(needs):
        visit(name)
    return done
