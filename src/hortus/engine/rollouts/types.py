"""ChangeKind, RolloutPolicy, Rollout and PlacementDecision: one way to change many clusters.

The first three are Hortus' own (`fleet.hortus.dev`). PlacementDecision is SIG Multicluster's
(kubernetes-sigs/cluster-inventory-api): slices of at most 100 clusters that share the label decision-key. Domains and
controllers of others read these kinds; the rollouts domain alone writes Rollouts' status and the slices.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta, field

from hortus.kube.objects import Object, Resource
from hortus.schema import AGE, Column, Condition, Extra, Fields, Format, Kind, ListMap, ListSet, ValidationRule, kind

GROUP: Final = "fleet.hortus.dev"
VERSION: Final = "v1alpha1"

_Name = Annotated[str, Meta(min_length=1, max_length=63, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
_Subject = Annotated[str, Meta(min_length=1, max_length=253)]
_Version = Annotated[str, Meta(max_length=253)]
_Expression = Annotated[str, Meta(min_length=1, max_length=4096)]
_OptionalExpression = Annotated[str, Meta(max_length=4096)]
_Time = Annotated[str, Format("date-time")]
_Count = Annotated[int, Meta(ge=0), Format("int32")]
_Selector = Annotated[
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

_DURATION = "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
_Duration = Annotated[str, Meta(max_length=32, pattern=_DURATION)]


class ChangedResource(Fields, frozen=True):
    """The kind of the objects in which a change is seen, one object for each cluster and subject."""

    version: Annotated[str, Meta(min_length=1, max_length=63)]
    """API version, such as v1."""
    resource: Annotated[str, Meta(min_length=1, max_length=63)]
    """Plural, such as runtimes."""
    group: Annotated[str, Meta(max_length=253)] = ""
    """API group; empty for the core group."""


class ChangeKindSpec(Fields, frozen=True):
    """CEL expressions over one object, the variable `self`, and the version of a rollout, the variable `to`."""

    resource: ChangedResource
    """The kind of the objects."""
    cluster: _Expression
    """The name of the object's ClusterProfile; empty for an object that belongs to no cluster."""
    subject: _Expression
    """The thing that changes, such as the name of a module."""
    version: _Expression
    """The version of the subject that the object asks its controller for."""
    succeeded: _Expression
    """True when that version is in place and works."""
    wanted: _OptionalExpression = ""
    """The version to which the object moves when it is admitted; empty for none. Left out, it is the value of the
    annotation wants.fleet.hortus.dev/NAME, NAME being that of the ChangeKind."""
    failed: _OptionalExpression = ""
    """True when that version failed, whether or not it is tried again. Left out, only deadlines fail."""
    message: _OptionalExpression = ""
    """The failure, in words for people; never a credential."""
    patch: _OptionalExpression = ""
    """A merge patch, or a list of JSON patch operations, that sets the object to the version `to`. With it,
    `hortus rollout start` can change the objects; without it, their controllers follow the PlacementDecisions."""


class ChangeKindStatus(Fields, frozen=True):
    """State of the ChangeKind."""

    observed_generation: Annotated[int, Meta(ge=0), Format("int64")] | None = None
    """The generation that the conditions report."""
    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """Ready: the expressions compile and the kind of the objects is served."""


@kind(
    group=GROUP,
    version=VERSION,
    scope="Cluster",
    status=True,
    columns=(
        Column("RESOURCE", ".spec.resource.resource"),
        Column("READY", '.status.conditions[?(@.type=="Ready")].status'),
        Column("REASON", '.status.conditions[?(@.type=="Ready")].reason', priority=1),
        AGE,
    ),
)
class ChangeKind(Kind, frozen=True):
    """A sort of change and the way it is seen in API objects, so that rollouts need to know no domain."""

    spec: ChangeKindSpec
    """The expressions by which the change is seen."""
    status: ChangeKindStatus = ChangeKindStatus()
    """State of the ChangeKind."""


class GovernedChange(Fields, frozen=True):
    """Changes that a policy governs."""

    kind: Annotated[str, Meta(min_length=1, max_length=253)]
    """Name of a ChangeKind."""
    subjects: Annotated[tuple[_Subject, ...], Meta(min_length=1, max_length=100), ListSet()] = ("*",)
    """Subjects, where * stands for any characters."""


_MaxConcurrency = Annotated[int | str, Extra({"minimum": 1, "maxLength": 4, "pattern": "^([1-9][0-9]?|100)%$"})]
_MaxFailures = Annotated[int | str, Extra({"minimum": 0, "maxLength": 4, "pattern": "^([1-9]?[0-9]|100)%$"})]


class Stage(Fields, frozen=True):
    """Clusters that change together, at a bounded rate."""

    name: _Name
    """Name of the stage, unique in its policy; approvals refer to it."""
    clusters: _Selector = field(default_factory=dict)
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
    """When somebody with the verb approve has to agree."""
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
    """The changes that the policy governs. Of several policies for one change, the first by name governs it."""
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

    spec: RolloutPolicySpec
    """Changes and terms."""
    status: RolloutPolicyStatus = RolloutPolicyStatus()
    """State of the policy."""


class RolloutChange(Fields, frozen=True):
    """One change of one subject."""

    kind: Annotated[str, Meta(min_length=1, max_length=253)]
    """Name of the ChangeKind."""
    subject: _Subject
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
    clusters: _Selector = field(default_factory=dict)
    """Only ClusterProfiles with these labels take part."""
    execute: Literal["Owner", "Patch"] = "Owner"
    """Owner leaves the change to the controllers of the objects; Patch sets the objects by the ChangeKind's patch."""
    state: Literal["Run", "Pause", "Abort"] = "Run"
    """Pause admits no further cluster; Abort ends the rollout, and clusters that have begun finish."""
    approved: Annotated[tuple[_Name, ...], Meta(max_length=40), ListSet()] = ()
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
    """When the rollout ended."""
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

    spec: RolloutSpec
    """The change, its terms, and the decisions of people about it."""
    status: RolloutStatus = RolloutStatus()
    """State of the rollout."""


class RolloutCondition:
    """Types of the conditions of a Rollout."""

    PROGRESSING: Final = "Progressing"
    HALTED: Final = "Halted"
    SUCCEEDED: Final = "Succeeded"


class ClusterProfileRef(Fields, frozen=True):
    """A ClusterProfile."""

    name: str
    """Its name."""
    namespace: str = ""
    """Its namespace; that of the decision when empty."""


class ClusterDecision(Fields, frozen=True):
    """One cluster that was chosen."""

    cluster_profile_ref: ClusterProfileRef
    """The cluster."""
    reason: str = ""
    """The reason for which it was chosen."""


@kind(group="multicluster.x-k8s.io", version="v1alpha1")
class PlacementDecision(Kind, frozen=True):
    """A slice of at most 100 clusters of one decision."""

    decisions: Annotated[tuple[ClusterDecision, ...], Meta(max_length=100)]
    """The clusters."""
    scheduler_name: str = ""
    """The scheduler that made the decision."""


class Proposal(NamedTuple):
    """A change that a cluster is about to make."""

    kind: str
    """Name of the ChangeKind."""
    subject: str
    to: str
    """The version."""


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


class Label:
    DECISION_KEY: Final = "multicluster.x-k8s.io/decision-key"
    """On slices: the name of the Rollout."""
    DECISION_INDEX: Final = "multicluster.x-k8s.io/decision-index"
    """On slices: their order, from 0."""
    PLACEMENT_KEY: Final = "multicluster.x-k8s.io/placement-key"
    """On slices: the RolloutPolicy."""


WANTS: Final = "wants.fleet.hortus.dev/"
"""Prefix of annotations on objects; followed by the name of a ChangeKind. The value is the version for which the
object waits."""
MOVED: Final = "moved.fleet.hortus.dev/"
"""Prefix of annotations on objects; followed by the name of a ChangeKind. The value is the version to which a rollout
moved the object last."""

CHANGE_KINDS: Final = Resource(GROUP, VERSION, "changekinds", "ChangeKind", namespaced=False)
ROLLOUT_POLICIES: Final = Resource(GROUP, VERSION, "rolloutpolicies", "RolloutPolicy")
ROLLOUTS: Final = Resource(GROUP, VERSION, "rollouts", "Rollout")
PLACEMENT_DECISIONS: Final = Resource("multicluster.x-k8s.io", "v1alpha1", "placementdecisions", "PlacementDecision")
