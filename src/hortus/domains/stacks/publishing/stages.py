"""clusteraddon.yaml as far as a release's author can have it checked: hooks, stages and their actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from hortus.domains.stacks.publishing.errors import BadStack
from hortus.kube.shapes import problem_of
from hortus.kube.yaml import YamlError, load

HOOKS: Final = ("AfterControlPlaneInitialized", "BeforeClusterUpgrade", "AfterClusterUpgrade")
ACTIONS: Final = ("apply", "delete")


class PublishedStage(msgspec.Struct, frozen=True):
    """One chart in one hook."""

    name: str
    action: str = ""


class _Document(msgspec.Struct, rename="camel"):
    addon_stages: dict[str, list[PublishedStage]] = {}


def read_stages(data: bytes, place: str) -> Mapping[str, list[PublishedStage]]:
    """The stages by hook. Raises BadStack."""
    try:
        found = msgspec.convert(load(data) or {}, _Document).addon_stages
    except YamlError as error:
        raise BadStack(f"{place}: {error}") from None
    except msgspec.ValidationError as error:
        raise BadStack(problem_of(error, place=place)) from None
    if not found:
        raise BadStack(f"{place}: addonStages: has no stages; list the charts of each hook")
    return found
