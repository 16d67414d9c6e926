"""Distances between regions, as the ConfigMaps of Gardener's scheduler hold them. Pure.

A ConfigMap is for the cloud profiles that its annotation lists. Each key of `data` is a region, its value a YAML map
from other regions to distances in milliseconds. The largest distance of a live migration is an annotation of the
ConfigMap, so that the operator of the garden sets it and no owner of a Shoot.

Source: gardener/gardener, docs/concepts/scheduler.md and plugin/pkg/shoot/validator (1.150).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from hortus.gardener.livemigration.phases import DEFAULT_DISTANCE, DISTANCE_LIMIT
from hortus.kube import yaml

REGION_CONFIG: Final = ("scheduling.gardener.cloud/purpose", "region-config")
"""Label of the ConfigMaps with distances."""
CLOUD_PROFILES_ANNOTATION: Final = "scheduling.gardener.cloud/cloudprofiles"
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,18}")
"""A number as Go's strconv.Atoi reads it."""


class UnreadableDistances(ValueError):
    """A ConfigMap of distances that Gardener cannot read; the message names the ConfigMap, the field and the value."""


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    annotations: Mapping[str, str] | None = None


class RegionConfig(msgspec.Struct, frozen=True):
    """A ConfigMap of distances between regions, in milliseconds."""

    metadata: _Metadata = _Metadata()
    data: Mapping[str, str] | None = None

    @property
    def limit(self) -> int:
        """The largest distance of a live migration. Raises UnreadableDistances."""
        text = (self.metadata.annotations or {}).get(DISTANCE_LIMIT)
        if text is None:
            return DEFAULT_DISTANCE
        if not _NUMBER.fullmatch(text) or int(text) < 0:
            raise UnreadableDistances(
                f"ConfigMap {self.metadata.name}: annotation {DISTANCE_LIMIT} is {text!r}, it must be a whole number "
                "of milliseconds, 0 or more"
            )
        return int(text)

    def distances_from(self, region: str) -> Mapping[str, int] | None:
        """The distances from a region, None where the ConfigMap has no key for it. Raises UnreadableDistances."""
        text = (self.data or {}).get(region)
        if text is None:
            return None
        place = f"ConfigMap {self.metadata.name}: the distances of region {region}"
        try:
            row = yaml.load(text)
            # Go reads null as a map without entries, and in a map as 0.
            return {name: distance or 0 for name, distance in msgspec.convert(row or {}, dict[str, int | None]).items()}
        except (yaml.YamlError, msgspec.ValidationError) as error:
            raise UnreadableDistances(f"{place} cannot be read: {error}") from None


def config_for(profile: str, configs: Iterable[RegionConfig]) -> RegionConfig | None:
    """The first ConfigMap that lists a cloud profile, None where none does."""
    for one in configs:
        named = (one.metadata.annotations or {}).get(CLOUD_PROFILES_ANNOTATION, "")
        if profile in (part.strip() for part in named.split(",")):
            return one
    return None
