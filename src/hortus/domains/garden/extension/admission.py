"""Admission of Shoots: each topic judges the configuration that it would get. Pure; docs/garden/README.md serves it.

A Shoot that is being deleted is let through, since its finalizers must be removable. So is one whose configuration was
there before with the same errors: a rule that became stricter must not make a cluster unchangeable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from hortus.domains.garden.extension.topic import ConfigFindings, ConfigReview, ConfigReviewer
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.schema import FieldError
from hortus.schema.problems import duplicate


def review_shoot(
    topics: Iterable[ConfigReviewer], shoot: GardenShoot, former: GardenShoot | None = None
) -> ConfigFindings:
    """The judgement of all topics about a Shoot that is created, or updated from `former`."""
    if shoot.metadata.deletion_timestamp is not None:
        return ConfigFindings()
    known = {topic.facts.type: topic for topic in topics}
    errors: list[FieldError] = []
    warnings: list[str] = []
    seen: set[str] = set()
    for index, extension in enumerate(shoot.spec.extensions or ()):
        topic = known.get(extension.type)
        if topic is None:
            continue
        if extension.type in seen:
            errors.append(duplicate(f"spec.extensions[{index}].type", extension.type))
            continue
        seen.add(extension.type)
        if extension.disabled:
            continue
        found = _review(topic, shoot, former, index)
        errors += found.errors
        warnings += found.warnings
    return ConfigFindings(tuple(errors), tuple(warnings))


def _review(topic: ConfigReviewer, shoot: GardenShoot, former: GardenShoot | None, index: int) -> ConfigFindings:
    path, type_ = f"spec.extensions[{index}].providerConfig", topic.facts.type
    config, before = _config(shoot, type_), _config(former, type_) if former is not None else None
    found = topic.review(ConfigReview(config=config, shoot=shoot, path=path, former=before, former_shoot=former))
    if former is None or not found.errors or config != before or not _is_on(former, type_):
        return found
    # The rest of the Shoot may have changed, as its hibernation: what was wrong already stays a warning.
    was = topic.review(ConfigReview(config=before, shoot=former, path=path, former=before, former_shoot=former)).errors
    old = tuple(f"{one.path}: {one.message}" for one in found.errors if one in was)
    return ConfigFindings(tuple(one for one in found.errors if one not in was), (*found.warnings, *old))


def _is_on(shoot: GardenShoot, type_: str) -> bool:
    """Reports whether the Shoot has the extension, so that its configuration was judged."""
    entry = shoot.extension(type_)
    return entry is not None and not entry[1].disabled


def _config(shoot: GardenShoot, type_: str) -> Any:
    entry = shoot.extension(type_)
    return entry[1].provider_config if entry is not None else None


def read_shoot(document: Mapping[str, Any]) -> GardenShoot:
    """The parts of a Shoot that are judged. Raises msgspec.ValidationError."""
    return msgspec.convert(document, GardenShoot)
