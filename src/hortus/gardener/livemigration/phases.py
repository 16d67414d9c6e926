"""The phases of a migration, which are the types of its conditions, and Gardener's names around them.

Sources: gardener/enhancements, GEP-39; gardener, docs/api-reference/core.md (ShootStatus.liveMigration).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class MigrationPhase(StrEnum):
    """Types of the conditions in `status.liveMigration.conditions`, in order."""

    SOURCE_PREPARED = "SourceEtcdPreparedForPeerJoin"
    PEERS_JOINED = "DestinationEtcdPeersJoined"
    EXTENSIONS = "MigrateExtensionsNeededBeforeKubeAPIServer"
    SERVERS_READY = "DestinationKubeAPIServerReady"
    DNS = "MigrateDNSRecords"
    ETCD_COMPLETE = "EtcdMigrationComplete"
    SOURCE_CLEANUP = "SourceSeedCleanup"
    COMPLETED = "MigrationCompleted"


LIVE_MIGRATE: Final = "migration.gardener.cloud/live-migrate"
"""With a changed spec.seedName: move without downtime."""
ALLOW_DISTANT: Final = "migration.gardener.cloud/allow-distant-regions"
DISTANCE_LIMIT: Final = "migration.gardener.cloud/inter-region-distance-threshold"
ABORT: Final = "migration.shoot.gardener.cloud/abort-live-migration"
FORCE_SHRINK: Final = "migration.gardener.cloud/force-shrink-etcd"
RECORD: Final = "migration.fleet.hortus.dev/record"
"""The `MigrationRecord` in JSON, from the first step to the end."""
WITHOUT_HA: Final = "migration.fleet.hortus.dev/allow-without-ha"
"""Ours: a control plane of one member may move too, by a learner."""
COORDINATOR_MAP: Final = ("garden", "live-migration-coordinator")
"""Namespace and name of the ConfigMap by which a garden shows that a coordinator is at work."""
OPERATION: Final = "LiveMigrate"
"""Type of lastOperation."""
LEARNER_SYNCING: Final = "LearnerSyncing"
"""Reason of a phase that waits for a learner."""
ABORTED: Final = "Aborted"
"""Reason of all conditions after an abort."""
DEFAULT_DISTANCE: Final = 180
"""Milliseconds; at 200 ms kube-apiserver does not become ready (GEP-39)."""
