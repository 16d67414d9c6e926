"""Seeds that take a cluster whose control plane must lie in its own region."""

from __future__ import annotations

from collections.abc import Iterable

from hortus.kube.objects import Object, shaped
from hortus.schema import Fields
from hortus.schema.kind import ObjectMeta


class _Provider(Fields, frozen=True):
    type: str
    region: str


class _Scheduling(Fields, frozen=True):
    visible: bool = False


class _Settings(Fields, frozen=True):
    scheduling: _Scheduling | None = None


class _Spec(Fields, frozen=True):
    provider: _Provider
    backup: object = None
    settings: _Settings | None = None


class _Condition(Fields, frozen=True):
    type: str
    status: str


class _Status(Fields, frozen=True):
    conditions: tuple[_Condition, ...] | None = None
    last_operation: dict[str, object] | None = None


class Seed(Fields, frozen=True):
    """A Seed, as far as its fields are read here."""

    metadata: ObjectMeta
    spec: _Spec
    status: _Status | None = None


def regions(documents: Iterable[Object], provider: str) -> list[str]:
    """The regions in which a usable seed of the provider stands, sorted."""
    seeds = (shaped(document, Seed) for document in documents)
    return sorted({seed.spec.provider.region for seed in seeds if seed is not None and usable(seed, provider)})


def usable(seed: Seed, provider: str) -> bool:
    """True when new clusters of the provider may be put on this seed."""
    spec, status = seed.spec, seed.status or _Status()
    conditions = {found.type: found.status for found in status.conditions or ()}
    needed = ("GardenletReady", "BackupBucketsReady") if spec.backup else ("GardenletReady",)
    scheduling = spec.settings.scheduling if spec.settings is not None else None
    return (
        spec.provider.type == provider
        and seed.metadata.deletion_timestamp is None
        and scheduling is not None
        and scheduling.visible
        and bool(status.last_operation)
        and all(conditions.get(kind) == "True" for kind in needed)
    )
