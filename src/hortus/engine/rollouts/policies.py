"""RolloutPolicy: the order, the rate and the failures under which changes reach clusters."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from hortus.engine.rollouts.changekinds import GROUP, VERSION
from hortus.kube.objects import Object, Resource
from hortus.schema import AGE, Column, Condition, Extra, Fields, Format, Kind, ListMap, ListSet, ValidationRule, kind

StageName = Annotated[str, Meta(min_length=1, max_length=63, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
Subject = Annotated[str, Meta(min_length=1, max_length=253)]
Selector = Annotated[
    Object,
    Extra(
        {
            "type": "object",
            "properties": {
                "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
                "matchExpressions": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["key", "operator"],
                        "properties": {
                            "key": {"type": "string"},
                            "operator": {"type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
                            "values": {"type": "array", "items": {"type": "string"}},
                        },
                    },
                },
            },
        }
    ),
]
"""A metav1.LabelSelector; an empty one selects everything."""

NAME_FITS_LABEL: Final = ValidationRule(
    "self.metadata.name.size() <= 63",
    message="the name has more than 63 characters: PlacementDecisions have it as a label",
)
_DURATION = "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
_Duration = Annotated[str, Meta(max_length=32, pattern=_DURATION)]


class GovernedChange(Fields, frozen=True):
    """Changes that a policy governs."""

    kind: Annotated[str, Meta(min_length=1, max_length=253)]
    """Name of a ChangeKind."""
    subjects: Annotated[tuple[Subject, ...], Meta(min_length=1, max_length=100), ListSet()] = ("*",)
    """Subjects, where * stands for any characters."""


_MaxConcurrency = Annotated[int | str, Extra({"minimum": 1, "maxLength": 4, "pattern": "^([1-9][0-9]?|100)%$"})]
_MaxFailures = Annotated[int | str, Extra({"minimum": 0, "maxLength": 4, "pattern": "^([1-9]?[0-9]|100)%$"})]


class Stage(Fields, frozen=True):
    """Clusters that change together, at a bounded rate."""

    name: StageName
    """Name of the stage, unique in its policy; approvals refer to it."""
    clusters: Selector = field(default_factory=dict)
    """Selects ClusterProfiles by label; a cluster belongs to the first stage that selects it. Empty selects all."""
    order: Annotated[str, Meta(max_length=316)] = ""
    """Label key: clusters are admitted in the order of its values, then by name."""
    max_concurrency: _MaxConcurrency = 1
    """Clusters admitted and not finished at a time: a number, or a share of the stage, rounded down, at least 1."""
    max_failures: _MaxFailures = 0
    """Failed clusters that the stage bears: a number, or a share of the stage, rounded down. One more halts."""
    min_success_time: _Duration = "0s"
    """Time between the end of the last cluster and the end of the stage."""
    progress_deadline: _Duration = "1h"
    """Time after which an admitted cluster that has not succeeded counts as failed; 0s for no limit."""
    approval: Literal["None", "Before", "After"] = "None"
    """When somebody with the verb approve has to agree. Writing a policy that asks for it needs that verb, too."""
    windows: Literal["Respect", "Ignore"] = "Ignore"
    """Respect admits a cluster only within its maintenance window."""


class PolicyTerms(Fields, frozen=True):
    """Terms under which clusters change."""

    __rules__ = (
        ValidationRule(
            "self.stages.all(s, self.stages.exists_one(t, t.name == s.name))", message="stages have different names"
        ),
    )

    stages: Annotated[tuple[Stage, ...], Meta(min_length=1, max_length=20)]
    """Stages in their order."""
    max_failures: _MaxFailures = "100%"
    """Failed clusters that the whole rollout bears, in number or as a share of its clusters."""
    unselected: Literal["Last", "Exclude", "Refuse"] = "Last"
    """Clusters that no stage selects come last on the terms of the last stage, are left out, or stop the rollout."""
    unavailable: Literal["Skip", "Wait", "Fail"] = "Skip"
    """Clusters that are hibernated or unreachable are left out until they return, waited for, or count as failed."""
    on_failure: Literal["Halt", "HaltAndRevert"] = "Halt"
    """HaltAndRevert also starts a rollout back to the version before, over the clusters that were admitted."""


class RolloutPolicySpec(PolicyTerms, frozen=True, kw_only=True):
    """Changes, and the terms under which clusters change."""

    changes: Annotated[tuple[GovernedChange, ...], Meta(min_length=1, max_length=50)]
    """The changes that the policy governs. Of several policies for one change, one that asks for approval comes first,
    then the first by name."""
    paused: bool = False
    """True admits no further cluster in any rollout under this policy."""


class RolloutPolicyStatus(Fields, frozen=True):
    """State of the policy."""

    observed_generation: Annotated[int, Meta(ge=0), Format("int64")] | None = None
    """The generation that the conditions report."""
    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """Ready: the policy can be used, and governs all the changes that it names."""


@kind(
    group=GROUP,
    version=VERSION,
    plural="rolloutpolicies",
    short_names=("rp",),
    status=True,
    columns=(
        Column("PAUSED", ".spec.paused", type="boolean"),
        Column("READY", '.status.conditions[?(@.type=="Ready")].status'),
        Column("REASON", '.status.conditions[?(@.type=="Ready")].reason', priority=1),
        AGE,
    ),
)
class RolloutPolicy(Kind, frozen=True):
    """The order, the rate and the failures under which changes reach clusters."""

    __rules__ = (NAME_FITS_LABEL,)

    spec: RolloutPolicySpec
    """Changes and terms."""
    status: RolloutPolicyStatus = RolloutPolicyStatus()
    """State of the policy."""


ROLLOUT_POLICIES: Final = Resource(GROUP, VERSION, "rolloutpolicies", "RolloutPolicy")
