"""Rollout: one change on its way through the clusters."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from msgspec import Meta, field

from hortus.engine.rollouts.changekinds import GROUP, VERSION
from hortus.engine.rollouts.policies import NAME_FITS_LABEL, PolicyTerms, Selector, StageName, Subject
from hortus.kube.objects import Resource
from hortus.schema import AGE, Column, Condition, Fields, Format, Kind, ListMap, ListSet, ValidationRule, kind

REVERT: Final = "-revert"
"""The end of the name of a rollout that takes another one back."""
_NUMBER: Final = re.compile(rf"-([0-9]{{1,9}})(?:{REVERT})?$")
_Version = Annotated[str, Meta(max_length=253)]
_Time = Annotated[str, Format("date-time")]
_Count = Annotated[int, Meta(ge=0), Format("int32")]


class RolloutChange(Fields, frozen=True):
    """One change of one subject."""

    kind: Annotated[str, Meta(min_length=1, max_length=253)]
    """Name of the ChangeKind."""
    subject: Subject
    """The subject that changes."""
    to: Annotated[str, Meta(min_length=1, max_length=253)]
    """The version to which it changes."""
    from_: _Version = field(name="from", default="")
    """Only clusters of this version change; empty for all that differ from `to`."""


class RolloutSpec(Fields, frozen=True):
    """The change, its terms, and the decisions of people about it."""

    __rules__ = (
        ValidationRule("self.change == oldSelf.change", message="change is immutable: start another rollout"),
        ValidationRule(
            "has(self.execute) == has(oldSelf.execute) && (!has(self.execute) || self.execute == oldSelf.execute)",
            message="execute is immutable: start another rollout",
        ),
        ValidationRule(
            "oldSelf.state != 'Abort' || self.state == 'Abort'", message="an aborted rollout stays so: start another"
        ),
    )

    change: RolloutChange
    """The change."""
    policy_name: Annotated[str, Meta(max_length=253)] = ""
    """The RolloutPolicy from which the terms were copied."""
    policy: PolicyTerms | None = None
    """The terms, copied from the policy when the rollout began: editing the policy does not change them."""
    clusters: Selector = field(default_factory=dict)
    """Only ClusterProfiles with these labels take part."""
    execute: Literal["Owner", "Patch"] = "Owner"
    """Owner leaves the change to the controllers of the objects; Patch sets the objects by the ChangeKind's patch."""
    state: Literal["Run", "Pause", "Abort"] = "Run"
    """Pause admits no further cluster; Abort ends the rollout, and clusters that have begun finish."""
    approved: Annotated[tuple[StageName, ...], Meta(max_length=40), ListSet()] = ()
    """Stages that are approved."""
    reverts: Annotated[str, Meta(max_length=253)] = ""
    """A Rollout whose admitted clusters this one takes back to the version before."""
    resumes: _Count = 0
    """Number of times somebody resumed the rollout after it halted; failures seen until then count no longer."""


class StageStatus(Fields, frozen=True):
    """One stage in numbers."""

    name: str
    """Name of the stage."""
    clusters: _Count = 0
    """Its clusters."""
    pending: _Count = 0
    """Not admitted yet."""
    running: _Count = 0
    """Admitted and not finished."""
    succeeded: _Count = 0
    """At the new version and well."""
    failed: _Count = 0
    """Failed, or over the deadline."""
    skipped: _Count = 0
    """Unavailable and left out for now."""
    forgiven: _Count = 0
    """Failures that count no longer, since the rollout was resumed after them."""
    settled_at: _Time | None = None
    """When its last cluster ended."""
    ended: bool = False
    """True once the next stage may begin."""


class ClusterFailure(Fields, frozen=True):
    """A cluster that failed."""

    cluster: str
    """Name of its ClusterProfile."""
    stage: str
    """Its stage."""
    message: str
    """The failure."""


class RolloutStatus(Fields, frozen=True):
    """State of the rollout."""

    observed_generation: Annotated[int, Meta(ge=0), Format("int64")] | None = None
    """The generation that the conditions report."""
    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """Progressing, Halted and Succeeded."""
    phase: str = ""
    """Pending, Progressing, Paused, Halted, Aborted, Superseded or Succeeded."""
    stage: str = ""
    """The stage under way."""
    stages: Annotated[tuple[StageStatus, ...], ListMap("name")] = ()
    """Each stage in numbers."""
    excluded: _Count = 0
    """Clusters that no stage selects and the policy leaves out."""
    failures: Annotated[tuple[ClusterFailure, ...], Meta(max_length=20)] = ()
    """The first 20 failures by name of the cluster."""
    halts: _Count = 0
    """Number of times the rollout halted by itself."""
    forgiven_halts: _Count = 0
    """Number of these after which somebody resumed it."""
    started_at: _Time | None = None
    """When the first cluster was admitted."""
    ended_at: _Time | None = None
    """When the rollout ended. It stays when clusters that were left out, or that asked late, change afterwards."""
    estimated_end: _Time | None = None
    """When it ends if it goes on at the rate it had."""


@kind(
    group=GROUP,
    version=VERSION,
    status=True,
    short_names=("ro",),
    columns=(
        Column("KIND", ".spec.change.kind"),
        Column("SUBJECT", ".spec.change.subject"),
        Column("TO", ".spec.change.to"),
        Column("PHASE", ".status.phase"),
        Column("STAGE", ".status.stage"),
        Column("POLICY", ".spec.policyName", priority=1),
        Column("MESSAGE", '.status.conditions[?(@.type=="Progressing")].message', priority=1),
        AGE,
    ),
)
class Rollout(Kind, frozen=True):
    """One change on its way through the clusters."""

    __rules__ = (NAME_FITS_LABEL,)

    spec: RolloutSpec
    """The change, its terms, and the decisions of people about it."""
    status: RolloutStatus = RolloutStatus()
    """State of the rollout."""


class RolloutCondition:
    """Types of the conditions of a Rollout."""

    PROGRESSING: Final = "Progressing"
    HALTED: Final = "Halted"
    SUCCEEDED: Final = "Succeeded"


ROLLOUTS: Final = Resource(GROUP, VERSION, "rollouts", "Rollout")


class RolloutPhase:
    """Values of `status.phase` of a Rollout."""

    PENDING: Final = "Pending"
    """No cluster is admitted yet."""
    PROGRESSING: Final = "Progressing"
    PAUSED: Final = "Paused"
    HALTED: Final = "Halted"
    """Failures exceeded a budget; `hortus rollout resume` goes on."""
    ABORTED: Final = "Aborted"
    SUPERSEDED: Final = "Superseded"
    """A newer change of the same subject took its place."""
    SUCCEEDED: Final = "Succeeded"


ENDED: Final = frozenset({RolloutPhase.ABORTED, RolloutPhase.SUPERSEDED, RolloutPhase.SUCCEEDED})


def age_of(created: str, name: str) -> tuple[str, int, str]:
    """The order of two rollouts of a subject, from creationTimestamp and name; the newest is the greatest.

    Timestamps have whole seconds. Within one the number at the end of the name counts, which grows with each rollout.
    """
    return created, sequence_of(name), name


def sequence_of(name: str) -> int:
    """The number at the end of a rollout's name, that of its original for a revert; 0 for none."""
    found = _NUMBER.search(name)
    return int(found[1]) if found else 0
