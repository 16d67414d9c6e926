"""The charts that a cluster has as they would be applied again, so that an upgrade can leave them alone.

A ClusterAddon notes, when a run ends, a digest of the objects of each chart. It counts for the next run only if no
other was begun in between, by anybody: the note names the class that it belongs to, and a chart is struck from it
before objects of it change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import orjson

from hortus.domains.stacks.addons.service import TARGET
from hortus.domains.stacks.types import ClusterAddon
from hortus.kube.objects import Object

CHARTS: Final = "fleet.hortus.dev/addon-charts"
"""Annotation of a ClusterAddon: a class, and the digest of each of its charts."""
_LENGTH: Final = 32
"""Hexadecimal digits of a digest: 128 bits."""


def digest_of(objects: Sequence[Object]) -> str:
    """A digest of the objects of one chart, in their order."""
    data = orjson.dumps(list(objects), option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    return hashlib.sha256(data).hexdigest()[:_LENGTH]


def noted(addon: ClusterAddon) -> dict[str, str]:
    """The digests by chart that are in the annotation, of any class."""
    _, *pairs = addon.metadata.annotations.get(CHARTS, "").split(" ")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def installed(addon: ClusterAddon) -> dict[str, str]:
    """The digests by chart of what the cluster has before a run begins; none where another run came in between."""
    class_name = addon.metadata.annotations.get(CHARTS, "").partition(" ")[0]
    last = addon.metadata.annotations.get(TARGET, "").partition("/")[2]
    return noted(addon) if class_name and class_name == addon.spec.cluster_stack == last else {}


def note(class_name: str, digests: Mapping[str, str], charts: Iterable[str]) -> str | None:
    """The annotation for those of the charts that have a digest; None where there is none."""
    pairs = [f"{chart}={digests[chart]}" for chart in charts if chart in digests]
    return " ".join((class_name, *pairs)) if pairs else None
