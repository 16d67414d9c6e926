"""The rotation of a kubeconfig as a change that a RolloutPolicy may spread over time.

Its version is a date in UTC: the day since when a kubeconfig is due. A GardenerCluster that waits, and one that was
rotated by a rollout, have that date in an annotation; one that no policy governs has neither.
"""

from __future__ import annotations

from typing import Final

from hortus.domains.credentials.types import GARDENER_CLUSTERS, Label
from hortus.engine.rollouts.types import MOVED, WANTS, ChangedResource, ChangeKind, ChangeKindSpec
from hortus.schema import ObjectMeta

KUBECONFIG_ROTATION: Final = "kubeconfig-rotation"
"""Name of the ChangeKind."""
KUBECONFIG: Final = "kubeconfig"
"""Its only subject."""

_WANTED = f"self.metadata.?annotations[?'{WANTS}{KUBECONFIG_ROTATION}'].orValue('')"
_MOVED = f"self.metadata.?annotations[?'{MOVED}{KUBECONFIG_ROTATION}'].orValue('')"
_FAILS = "self.?status.?state.orValue('') == 'Error'"

ROTATION: Final = ChangeKind(
    metadata=ObjectMeta(name=KUBECONFIG_ROTATION),
    spec=ChangeKindSpec(
        resource=ChangedResource(
            group=GARDENER_CLUSTERS.group, version=GARDENER_CLUSTERS.version, resource=GARDENER_CLUSTERS.plural
        ),
        cluster=f"self.metadata.?labels[?'{Label.RUNTIME_ID}'].orValue(self.metadata.name)",
        subject=f"'{KUBECONFIG}'",
        # The date of the last rotation; that of the one that fails, while it does.
        version=f"{_FAILS} && {_WANTED} != '' ? {_WANTED} : {_MOVED}",
        succeeded=f"{_MOVED} == to && !({_FAILS})",
        failed=_FAILS,
        message="self.?status.?conditions.orValue([]).map(c, c.?message.orValue('')).join('; ')",
    ),
)
