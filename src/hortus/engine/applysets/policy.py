"""The permissions of a set in a cluster: which conflicts it forces, what it may delete, how far it waits."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec

from hortus.engine.applysets.adoption import AdoptionPolicy
from hortus.engine.applysets.identity import PART_OF_LABEL, Marking
from hortus.engine.applysets.ordering import stage
from hortus.kube import Propagation
from hortus.kube.objects import Resource


class Conflicts(StrEnum):
    """The treatment of a field of ours that another manager owns."""

    FORCE = "force"
    """It is taken: what the set says holds."""
    REFUSE = "refuse"
    """The object fails with a message that names the field and its manager."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The caller decides about objects and fields of others; the other defaults are those of kubectl's apply sets."""

    conflicts: Conflicts
    """Holds for objects of the set. One that is new is never forced on another that somebody makes meanwhile."""
    adopt: AdoptionPolicy
    """Decides about objects that exist and that the set has not marked."""
    by_name: bool = False
    """An object that the inventory names without a uid is ours, with or without a mark: for inventories that a contract
    keeps so, where nobody but the controller writes."""
    try_first: bool = False
    """Send every write as a dry run before the first is made: where one is refused, nothing is written."""
    prune: bool = True
    """Delete what left the set."""
    prune_content: bool = False
    """Delete namespaces and definitions that left the set also while they hold objects."""
    propagation: Propagation = Propagation.BACKGROUND
    parallel: int = 8
    """Calls at once."""
    wait: float = 30.0
    """Seconds to wait until namespaces and definitions are ready, before what needs them is put off."""
    marking: Marking = PART_OF_LABEL
    """The mark of members."""
    stage: Callable[[Resource], int] = stage
    """The stage in which an object is pruned; a lower one is over before the next begins."""
