"""The check of a module's dependencies against the modules that are published: cycles are refused. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hortus.domains.modules.kyma.dependencies import DependencyError, ModuleDependency, dependencies_of
from hortus.domains.modules.publishing.config import ModuleConfig
from hortus.domains.modules.types import ModuleTemplate


class PublishedVersion(NamedTuple):
    """One version of a module, with the modules that it needs."""

    module: str
    version: str
    needs: tuple[ModuleDependency, ...]

    def __str__(self) -> str:
        return f"{self.module} {self.version}"


def published(templates: Iterable[ModuleTemplate]) -> list[PublishedVersion]:
    """The versions that ModuleTemplates describe. Raises DependencyError."""
    return [
        PublishedVersion(one.spec.module_name, one.spec.version, dependencies_of(one))
        for one in templates
        if one.spec.module_name
    ]


def check_dependencies(config: ModuleConfig, catalog: Sequence[PublishedVersion]) -> list[str]:
    """Refuse a version that would need itself; returns warnings about what the catalog lacks. Raises DependencyError.

    A version reaches another one if it needs its module in a range that allows it.
    """
    own = PublishedVersion(config.module, config.version, config.dependencies)
    known = [own, *(one for one in catalog if (one.module, one.version) != (own.module, own.version))]
    if cycle := _cycle(own, known):
        path = " -> ".join(map(str, cycle))
        raise DependencyError(f"dependencies: {config.module} would need itself: {path}; remove one of these needs")
    return list(_lacking(own, known))


def _cycle(own: PublishedVersion, known: Sequence[PublishedVersion]) -> list[PublishedVersion]:
    """The way from a version back to itself, empty if there is none."""
    done: set[PublishedVersion] = set()
    ways = [[own]]
    while ways:
        way = ways.pop()
        for reached in _reached(way[-1], known):
            if reached == own:
                return [*way, own]
            if reached not in done:
                done.add(reached)
                ways.append([*way, reached])
    return []


def _reached(version: PublishedVersion, known: Sequence[PublishedVersion]) -> Iterator[PublishedVersion]:
    for need in version.needs:
        for one in known:
            if one.module == need.module and need.allows(one.version):
                yield one


def _lacking(own: PublishedVersion, known: Sequence[PublishedVersion]) -> Iterator[str]:
    for need in own.needs:
        versions = sorted(one.version for one in known if one.module == need.module)
        if not versions:
            yield f"dependencies: the catalog has no module {need.module}"
        elif not any(need.allows(version) for version in versions):
            yield f"dependencies: the catalog has no version of {need}; there are: {', '.join(versions)}"
