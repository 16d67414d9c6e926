"""The power that authors of rollouts have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hortus.engine.powers import Effect, Power
from hortus.engine.rollouts.types import CHANGE_KINDS, PLACEMENT_DECISIONS, ROLLOUT_POLICIES, ROLLOUTS
from hortus.kube.objects import Resource

EFFECTS_OF_DEMAND: Final = (
    Effect(
        ("create",),
        ROLLOUTS.group,
        ROLLOUTS.plural,
        "an object that asks for a version, under a policy for it, begins a rollout of those that ask",
    ),
    Effect(
        ("patch",),
        ROLLOUTS.group,
        f"{ROLLOUTS.plural}/status",
        "reports the clusters that ask",
    ),
)
"""Effects of writing objects that a ChangeKind is about, in whatever namespace."""

POWERS: Final[Mapping[Resource, Power]] = {
    ROLLOUTS: Power(
        "Any change of the objects of a ChangeKind, in all namespaces, under the policy that governs it. Approvals, "
        "and terms of one's own, need the verb `approve`.",
        "The same as far as the deputy of the fleet's namespace may patch these objects.",
    ),
    ROLLOUT_POLICIES: Power(
        "The pace of changes of the whole fleet, and their halt. With approvals it needs the verb `approve`.",
        "The same.",
    ),
    CHANGE_KINDS: Power(
        "Any object that Hortus may list, read through messages.",
        "The same as far as the deputy of the fleet's namespace may list and watch the kind.",
    ),
    PLACEMENT_DECISIONS: Power(
        "Admission of clusters to a rollout, past its stages: for controllers alone.", "The same: grant it to nobody."
    ),
}
