"""The judgement of access lists at admission, and again before each operation. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hortus.domains.garden.acl.cidrs import contains
from hortus.domains.garden.acl.config import AccessList, read_config
from hortus.domains.garden.acl.egress import config_warning
from hortus.domains.garden.acl.lockout import lockouts, open_families
from hortus.domains.garden.acl.names import FACTS
from hortus.domains.garden.acl.settings import AclSettings
from hortus.domains.garden.extension.topic import ConfigFindings, ConfigReview, ConfigReviewer, ExtensionFacts
from hortus.domains.garden.kinds.seedcluster import GardenShoot


class AclReviewer(ConfigReviewer):
    """Judges configurations of access lists."""

    facts: ClassVar[ExtensionFacts] = FACTS

    def __init__(self, settings: AclSettings) -> None:
        self.settings = settings

    def review(self, review: ConfigReview) -> ConfigFindings:
        found = read_config(review.config, review.path, max_cidrs=self.settings.max_cidrs)
        access, path = found.access, review.path
        if found.errors:
            return ConfigFindings(found.errors, found.warnings)
        warnings = [*found.warnings, *_warnings(access, review.shoot, path)]
        return ConfigFindings(tuple(lockouts(access, path)), tuple(warnings))


def _warnings(access: AccessList, shoot: GardenShoot, path: str) -> Iterator[str]:
    if not access.rules:
        yield f"{path}: there is no rule; the extension stays in state Error until there is one"
        return
    for one in open_families(access):
        yield f"{path}: the rules let everybody in from {one}"
    if any(rule.type == "source_ip" for rule in access.rules):
        yield f"{path}: type source_ip is deprecated in Envoy; use remote_ip"
    if egress := config_warning(shoot):
        yield f"{path}: {egress} The access list may lock out the nodes."
    for cidr in _inside(access, shoot):
        yield f"{path}: {cidr} is denied, but nodes call from it; they stay allowed"


def _inside(access: AccessList, shoot: GardenShoot) -> list[str]:
    """The networks of nodes that DENY rules have."""
    networking = shoot.spec.networking
    nodes = networking.nodes if networking is not None else None
    if not nodes or not access.denied:
        return []
    found = read_config({"keepOpenFor": [nodes]}, "").access.keep_open_for
    return [str(one) for one in access.denied if any(contains(one, node) for node in found)]
