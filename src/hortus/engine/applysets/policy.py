"""The permissions of a set in a cluster: which conflicts it forces, what it may delete, how far it waits."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec

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
    """Defaults are those of `kubectl apply --prune --applyset --force-conflicts`."""

    conflicts: Conflicts = Conflicts.FORCE
    adopt: bool = True
    """Take over objects that exist and belong to no set. Those of another set are never taken."""
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
