"""The values of the gardenlet chart, from a Gardenlet and its computed configuration. Pure.

Names are those of Gardener's chart (gardener, charts/gardener/gardenlet/values.yaml).
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from hortus.domains.garden.kinds.gardenlet import Gardenlet, GardenletImage

BACKUP_CHECKSUM: Final = "checksum/seed-backup-secret"
"""Annotation of the pods: they are replaced when the credentials of the backup change."""
TO_GARDEN: Final = "networking.resources.gardener.cloud/to-virtual-garden-kube-apiserver-tcp-443"
"""Label of the pods that may reach the garden's API server, where that runs in the same cluster."""
_OPTIONAL: Final = {
    "service_account_name": "serviceAccountName",
    "resources": "resources",
    "additional_volumes": "additionalVolumes",
    "additional_volume_mounts": "additionalVolumeMounts",
    "env": "env",
    "tolerations": "tolerations",
    "image_vector_overwrite": "imageVectorOverwrite",
    "component_image_vector_overwrite": "componentImageVectorOverwrites",
}
"""Fields whose value is that of the chart where they are left out."""


def chart_values(
    gardenlet: Gardenlet, config: Mapping[str, Any], *, backup: str = "", in_garden: bool = False
) -> dict[str, Any]:
    """The values. `backup` is the checksum of the backup's credentials; `in_garden` that of a garden's own cluster."""
    given = gardenlet.spec.deployment
    values: dict[str, Any] = {
        "replicaCount": given.replica_count,
        "revisionHistoryLimit": given.revision_history_limit,
        "enableHealthProbes": given.enable_health_probes,
        "config": dict(config),
    }
    for field, name in _OPTIONAL.items():
        value = getattr(given, field)
        if value is not None:
            values[name] = list(value) if isinstance(value, tuple) else value
    if given.image is not None and (image := _image(given.image)):
        values["image"] = image
    annotations = {**(given.pod_annotations or {}), **({BACKUP_CHECKSUM: backup} if backup else {})}
    labels = {**(given.pod_labels or {}), **({TO_GARDEN: "allowed"} if in_garden else {})}
    return {
        **values,
        **({"podAnnotations": annotations} if annotations else {}),
        **({"podLabels": labels} if labels else {}),
    }


def _image(image: GardenletImage) -> dict[str, str]:
    found: dict[str, str | None] = {
        "repository": image.repository,
        "tag": image.tag,
        "ref": image.ref,
        "pullPolicy": image.pull_policy,
    }
    return {name: value for name, value in found.items() if value}


def checksum_of(name: str, data: Mapping[str, str]) -> str:
    """`<name>-<8 digits>` for a Secret and its data."""
    return f"{name}-{sha256(msgspec.json.encode(sorted(data.items()))).hexdigest()[:8]}"
