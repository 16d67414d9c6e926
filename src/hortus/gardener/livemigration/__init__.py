"""Live migration of a control plane from one seed to another: states, rules and steps. Pure but for `walk`.

    record = migration_record(observation)
    decision = next_step(MigrationView(record, observation))

- `next_step`: the phase and the step for an observation, forwards or back.
- `problems`: what speaks against the first step; `forbidden`: the garden's admission.
- `walk`: observes, decides and acts through a `MovingPlane`, until something has to be waited for.

Source: gardener/enhancements, GEP-39.
"""

from hortus.gardener.livemigration.admission import (
    MovingSeed,
    MovingShoot,
    forbidden,
    forbidden_at_creation,
)
from hortus.gardener.livemigration.decision import MoveDecision, next_step
from hortus.gardener.livemigration.distances import (
    CLOUD_PROFILES_ANNOTATION,
    REGION_CONFIG,
    RegionConfig,
    UnreadableDistances,
    config_for,
)
from hortus.gardener.livemigration.phases import (
    ABORT,
    ABORTED,
    ALLOW_DISTANT,
    COORDINATOR_MAP,
    FORCE_SHRINK,
    LEARNER_SYNCING,
    LIVE_MIGRATE,
    OPERATION,
    RECORD,
    WITHOUT_HA,
    MigrationPhase,
)
from hortus.gardener.livemigration.preflight import PreflightProblem, problems
from hortus.gardener.livemigration.state import (
    Backends,
    EtcdMember,
    MigrationRecord,
    Observation,
    RecordedMember,
    ServerState,
    Site,
    SiteMember,
    SiteState,
    migration_record,
    quorum,
)
from hortus.gardener.livemigration.view import MigrationView
from hortus.gardener.livemigration.walking import MovingPlane, StepRefused, walk

__all__ = [
    "ABORT",
    "ABORTED",
    "ALLOW_DISTANT",
    "CLOUD_PROFILES_ANNOTATION",
    "COORDINATOR_MAP",
    "FORCE_SHRINK",
    "LEARNER_SYNCING",
    "LIVE_MIGRATE",
    "OPERATION",
    "RECORD",
    "REGION_CONFIG",
    "WITHOUT_HA",
    "Backends",
    "EtcdMember",
    "MigrationPhase",
    "MigrationRecord",
    "MigrationView",
    "MoveDecision",
    "MovingPlane",
    "MovingSeed",
    "MovingShoot",
    "Observation",
    "PreflightProblem",
    "RecordedMember",
    "RegionConfig",
    "ServerState",
    "Site",
    "SiteMember",
    "SiteState",
    "StepRefused",
    "UnreadableDistances",
    "config_for",
    "forbidden",
    "forbidden_at_creation",
    "migration_record",
    "next_step",
    "problems",
    "quorum",
    "walk",
]
