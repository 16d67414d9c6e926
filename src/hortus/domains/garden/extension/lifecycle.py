"""The operation that an Extension needs now: pure decisions, from the object to the type of the next operation.

Contract: gardener, docs/extensions/reconcile-trigger.md and docs/extensions/migration.md. gardenlet asks by annotations
and waits until the last operation has succeeded for the present generation.
"""

from __future__ import annotations

from typing import Final

from hortus.domains.garden.kinds.extension import GardenExtension
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.kube.numbers import boolean

OPERATION: Final = "gardener.cloud/operation"
RECONCILE_WORD: Final = "reconcile"
MIGRATE_WORD: Final = "migrate"
RESTORE_WORD: Final = "restore"
WAIT_WORD: Final = "wait-for-state"
FORCE_DELETION: Final = "confirmation.gardener.cloud/force-deletion"
IGNORE: Final = "shoot.gardener.cloud/ignore"

CREATE: Final = "Create"
RECONCILE: Final = "Reconcile"
DELETE: Final = "Delete"
MIGRATE: Final = "Migrate"
RESTORE: Final = "Restore"
PROCESSING: Final = "Processing"
SUCCEEDED: Final = "Succeeded"
ERROR: Final = "Error"
FAILED: Final = "Failed"


def due_operation(
    extension: GardenExtension,
    *,
    dependencies: str = "",
    present: frozenset[str] = frozenset(),
    drifted: bool = False,
) -> str | None:
    """The type of the operation to carry out now; None where the Extension is as it should be, or must wait.

    `dependencies` is the topic's digest, `present` the names of the ManagedResources of its namespace, `drifted` says
    that objects differ from those of the last operation.
    """
    status, last = extension.status, extension.status.last_operation
    word = extension.metadata.annotations.get(OPERATION, "")
    if word in _MOVES:
        return _MOVES[word]
    if word == WAIT_WORD or is_migrated(extension):
        return None
    if last is None:
        return CREATE
    if last.state != SUCCEEDED:
        return last.type if last.type in (CREATE, RESTORE) else RECONCILE
    notes = status.provider_status
    if drifted or word == RECONCILE_WORD or status.observed_generation != extension.metadata.generation:
        return RECONCILE
    if notes is not None and (notes.dependencies != dependencies or not present.issuperset(notes.managed_resources)):
        return RECONCILE
    return None


_MOVES: Final = {MIGRATE_WORD: MIGRATE, RESTORE_WORD: RESTORE}


def goes_on(extension: GardenExtension, operation: str) -> bool:
    """Reports whether an operation is under way in a stage that it waits in, whose time counts from its begin."""
    last = extension.status.last_operation
    return last is not None and last.type == operation and last.state == PROCESSING and last.progress > 0


def is_migrated(extension: GardenExtension) -> bool:
    """True for an Extension whose control plane was moved to another seed."""
    last = extension.status.last_operation
    return last is not None and last.type == MIGRATE and last.state == SUCCEEDED


def is_paused(shoot: GardenShoot) -> bool:
    """True for a Shoot that gardenlet itself does not touch: in state Failed, or ignored by its owner."""
    last = shoot.status.last_operation
    return (last is not None and last.state == FAILED) or boolean(shoot.metadata.annotations.get(IGNORE, "")) is True


def is_force_deleted(shoot: GardenShoot) -> bool:
    """True for a Shoot whose deletion leaves the infrastructure and the content of the cluster as they are."""
    return boolean(shoot.metadata.annotations.get(FORCE_DELETION, "")) is True
