"""Whether there is a seed for a cluster that must be controlled from its own region (section 2.3)."""

from __future__ import annotations

from collections.abc import Iterable

from hortus.kube.objects import Object


def regions(seeds: Iterable[Object], provider: str) -> list[str]:
    """The regions in which a usable seed of the provider stands, sorted."""
    return sorted({seed["spec"]["provider"]["region"] for seed in seeds if usable(seed, provider)})


def usable(seed: Object, provider: str) -> bool:
    """Whether new clusters of the provider may be put on this seed."""
    spec, status = seed.get("spec") or {}, seed.get("status") or {}
    conditions = {found["type"]: found["status"] for found in status.get("conditions") or ()}
    needed = ("GardenletReady", "BackupBucketsReady") if spec.get("backup") else ("GardenletReady",)
    visible = ((spec.get("settings") or {}).get("scheduling") or {}).get("visible")
    return (
        (spec.get("provider") or {}).get("type") == provider
        and not seed["metadata"].get("deletionTimestamp")
        and visible is True
        and bool(status.get("lastOperation"))
        and all(conditions.get(kind) == "True" for kind in needed)
    )
