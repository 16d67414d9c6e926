"""The modules that a cluster is offered: those of its catalog, and community modules. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from hortus.domains.modules.names import MANAGED_BY_KYMA, Label
from hortus.domains.modules.types import ModuleReleaseMeta, ModuleTemplate
from hortus.kube.versions import Version, VersionError

HEADS: Final = ("Name", "Available Versions", "Origin")
CORE: Final = "kyma"
COMMUNITY: Final = "community"


class ModuleOffer(NamedTuple):
    """One module with its versions."""

    name: str
    versions: tuple[str, ...]
    """As `1.2.3(regular)`; community modules have no channels."""
    origin: str
    """`kyma`, `community` for those of the remote list, or namespace and name of a ModuleTemplate in the cluster."""

    @property
    def row(self) -> tuple[str, str, str]:
        return (self.name, ", ".join(self.versions), self.origin)

    def summary(self) -> dict[str, object]:
        """The offer as JSON."""
        return {"name": self.name, "availableVersions": ", ".join(self.versions), "origin": self.origin}


def is_community(template: ModuleTemplate) -> bool:
    """Reports whether a ModuleTemplate in the cluster is no copy of the control plane's."""
    return template.metadata.labels.get(Label.MANAGED_BY) != MANAGED_BY_KYMA


def module_of(template: ModuleTemplate) -> str:
    """The name of the module; templates of older versions have it in a label."""
    return template.spec.module_name or template.metadata.labels.get(Label.MODULE_NAME, "")


def offers(
    releases: Iterable[ModuleReleaseMeta],
    templates: Sequence[ModuleTemplate],
    remote: Iterable[ModuleTemplate] = (),
) -> list[ModuleOffer]:
    """All offers: the catalog's, community modules in the cluster, and those of the remote list; each by name.

    In a cluster that is its own control plane nothing is copied: there the catalog's templates are those that a
    ModuleReleaseMeta of their namespace names.
    """
    releases = list(releases)
    named = {
        (release.metadata.namespace, release.metadata.name, channel.version)
        for release in releases
        for channel in release.spec.channels
    }
    core_templates = [
        one
        for one in templates
        if not is_community(one) or (one.metadata.namespace, module_of(one), one.spec.version) in named
    ]
    published = {(module_of(one), one.spec.version) for one in core_templates}
    core = [
        ModuleOffer(release.metadata.name, versions, CORE)
        for release in releases
        if release.spec.mandatory is None
        and (
            versions := tuple(
                f"{one.version}({one.channel})"
                for one in release.spec.channels
                if (release.metadata.name, one.version) in published
            )
        )
    ]
    local = [
        ModuleOffer(module_of(one), (one.spec.version,), f"{one.metadata.namespace}/{one.metadata.name}")
        for one in templates
        if one not in core_templates and module_of(one)
    ]
    return [*sorted(core), *sorted(local), *_remote(remote)]


def _remote(templates: Iterable[ModuleTemplate]) -> list[ModuleOffer]:
    found: dict[str, list[str]] = {}
    for template in templates:
        if module_of(template):
            found.setdefault(module_of(template), []).append(template.spec.version)
    return sorted(
        ModuleOffer(name, tuple(sorted(versions, key=by_version)), COMMUNITY) for name, versions in found.items()
    )


def by_version(text: str) -> tuple[bool, Version | str]:
    """Sorts versions; texts that are none come first, by letters."""
    try:
        return (True, Version(text))
    except VersionError:
        return (False, text)
