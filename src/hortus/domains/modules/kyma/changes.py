"""Versions of modules as changes that a RolloutPolicy may spread over a fleet.

A Manifest is the object of the change: there is one for each cluster and module. One that waits has the version it
waits for in an annotation.
"""

from __future__ import annotations

from typing import Final

from hortus.domains.modules.names import Annotation, Label, State
from hortus.domains.modules.types import MANIFESTS
from hortus.engine.rollouts.types import WANTS, ChangedResource, ChangeKind, ChangeKindSpec
from hortus.schema import ObjectMeta

MODULE: Final = "module"
"""Name of the ChangeKind. Its subjects are the names of modules."""
WAITS: Final = f"{WANTS}{MODULE}"
"""Annotation of a Manifest: the version for which it waits."""
CLUSTER: Final = "fleet.hortus.dev/cluster"
"""Annotation of a Manifest: the name of its ClusterProfile, where that is not the name of the Kyma."""

_LABELS: Final = "self.metadata.?labels"
_STATE: Final = "self.?status.?state.orValue('')"
_SYNCED: Final = f"self.metadata.?annotations[?'{Annotation.SYNCED_OCI_REF}'].orValue('')"

MODULE_CHANGE: Final = ChangeKind(
    metadata=ObjectMeta(name=MODULE),
    spec=ChangeKindSpec(
        resource=ChangedResource(group=MANIFESTS.group, version=MANIFESTS.version, resource=MANIFESTS.plural),
        cluster=f"self.metadata.?annotations[?'{CLUSTER}'].orValue({_LABELS}[?'{Label.KYMA_NAME}'].orValue(''))",
        subject=f"{_LABELS}[?'{Label.MODULE_NAME}'].orValue('')",
        version="self.?spec.?version.orValue('')",
        # The layer that is installed, not the one that is wanted: the state may still be that of the version before.
        succeeded=f"{_STATE} == '{State.READY}' && {_SYNCED} == self.?spec.?install.?source.?ref.orValue('')",
        failed=f"{_STATE} == '{State.ERROR}'",
        message="self.?status.?lastOperation.?operation.orValue('')",
    ),
)
