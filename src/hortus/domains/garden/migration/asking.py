"""The requests of `hortus migrate` to the garden: the wish, the plan, and the states of the Shoot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import msgspec

from hortus.gardener.livemigration import (
    COORDINATOR_MAP,
    LIVE_MIGRATE,
    REGION_CONFIG,
    MovingSeed,
    MovingShoot,
    RegionConfig,
    UnreadableDistances,
    config_for,
    forbidden,
)
from hortus.kube import Client
from hortus.kube.errors import ApiError, Forbidden, NotFound, NotServed
from hortus.kube.objects import Object, Resource
from hortus.terminal import CommandError

SHOOTS: Final = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")
SEEDS: Final = Resource("core.gardener.cloud", "v1beta1", "seeds", "Seed", namespaced=False)
_CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
_GARDEN: Final = "garden"
"""Namespace of the ConfigMaps with distances."""


NO_COORDINATOR: Final = (
    "no coordinator of live migrations is at work in this garden, and its gardenlets would migrate with downtime. The "
    "garden of `hortus up` has one; for real seeds, the steps on Etcds of etcd-druid, Deployments and DNSRecords are "
    "missing"
)


class MigrationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a migration that the garden knows, and what speaks against it."""

    shoot: str
    source: str
    destination: str
    regions: tuple[str, str]
    distance: int | None
    limit: int | None
    """The largest distance that the garden allows, in milliseconds. None, as `distance`, where it is not known."""
    versions: tuple[str, str]
    is_ha: bool
    problems: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    """Facts that could not be read."""

    def lines(self) -> list[str]:
        """The plan for people."""
        distance = "not known" if self.distance is None else f"{self.distance} of at most {self.limit}"
        facts = [
            f"Shoot {self.shoot}: from {self.source} ({self.regions[0]}) to {self.destination} ({self.regions[1]})",
            f"distance: {distance if self.regions[0] != self.regions[1] else 'same region'}",
            f"gardenlets: {self.versions[0] or 'unknown'} and {self.versions[1] or 'unknown'}",
            f"high availability: {'yes' if self.is_ha else 'no'}",
        ]
        checked = [*(f"not checked: {one}" for one in self.unknown), *(f"problem: {one}" for one in self.problems)]
        end = "Nothing speaks against it." if not self.problems else "The garden would refuse it."
        later = "The members of etcd are checked by the coordinator, before its first step."
        return [*facts, *checked, end, later]

    def document(self) -> dict[str, Any]:
        """The plan for programs."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


class MigrationRequests:
    """The requests about one Shoot."""

    def __init__(self, garden: Client, name: str, namespace: str) -> None:
        self._garden = garden
        self._name = name
        self._namespace = namespace

    async def plan(self, seed: str, wishes: Mapping[str, str]) -> MigrationPlan:
        """Judge a migration as the garden would. Raises CommandError."""
        shoot = await self._shoot(wishes)
        present = shoot.status.seed_name or ""
        if not present:
            raise CommandError(f"Shoot {self._name} has no seed yet")
        if present == seed:
            raise CommandError(f"Shoot {self._name} is on seed {seed} already")
        source, destination = await self._seed(present), await self._seed(seed)
        configs, unknown = await self._distances()
        config = config_for(shoot.cloud_profile, configs)
        here, there = source.spec.provider.region, destination.spec.provider.region
        distance, limit = _distance(config, here, there)
        plane = shoot.spec.control_plane
        found = forbidden(shoot, source, destination, config)
        if not await self._has_coordinator():
            found.insert(0, NO_COORDINATOR)
        return MigrationPlan(
            shoot=f"{self._namespace}/{self._name}",
            source=present,
            destination=seed,
            regions=(here, there),
            distance=distance,
            limit=limit,
            versions=(source.status.gardener.version, destination.status.gardener.version),
            is_ha=plane is not None and plane.high_availability is not None,
            problems=tuple(found),
            unknown=unknown,
        )

    async def ask(self, seed: str, wishes: Mapping[str, str]) -> None:
        """Ask for a migration; one that is on its way to this seed goes on. Raises CommandError.

        Nothing is asked of a garden without a coordinator: its gardenlets would take another seed for the wish to
        migrate with downtime.
        """
        shoot = await self._shoot({})
        if shoot.status.seed_name == seed and shoot.spec.seed_name == seed:
            raise CommandError(f"Shoot {self._name} is on seed {seed} already")
        if shoot.moves and shoot.spec.seed_name == seed:
            return
        if shoot.spec.seed_name != shoot.status.seed_name:
            raise CommandError(f"Shoot {self._name} is on its way to seed {shoot.spec.seed_name}: abort that first")
        if not await self._has_coordinator():
            raise CommandError(NO_COORDINATOR)
        try:
            await self.annotate({LIVE_MIGRATE: "true", **wishes})
        except ApiError as error:  # so does a garden without the feature gate LiveControlPlaneMigration
            raise CommandError(f"the garden refuses: {error}") from None
        try:
            await self._bind(seed)
        except ApiError as error:
            await self.annotate(dict.fromkeys((LIVE_MIGRATE, *wishes)))
            raise CommandError(f"the garden refuses: {error}") from None

    async def turn(self, wishes: Mapping[str, str]) -> None:
        """Ask for another way of a migration that has begun. Raises CommandError."""
        if not (await self._shoot({})).moves:
            raise CommandError(f"Shoot {self._name} is on no way to another seed")
        await self.annotate(wishes)

    async def annotate(self, wishes: Mapping[str, str | None]) -> None:
        """Set annotations. Raises CommandError."""
        try:
            patch = {"metadata": {"annotations": dict(wishes)}}
            await self._garden.patch(SHOOTS, self._name, patch, self._namespace)
        except NotFound:
            raise self._missing() from None

    async def states(self) -> AsyncIterator[Object]:
        """The Shoot, now and whenever it changes."""
        async with self._garden.watch(
            SHOOTS, self._namespace, fields=f"metadata.name={self._name}", initial_events=True
        ) as events:
            async for event in events:
                if event.type == "DELETED":
                    raise CommandError(f"Shoot {self._name} was deleted")
                if event.type != "BOOKMARK":
                    yield event.object

    async def _bind(self, seed: str) -> None:
        """Gardener takes another seed by the binding alone; a garden without it by the Shoot."""
        patch = {"spec": {"seedName": seed}}
        try:
            await self._garden.patch(SHOOTS, self._name, patch, self._namespace, subresource="binding")
        except (NotFound, NotServed):
            await self._garden.patch(SHOOTS, self._name, patch, self._namespace)

    async def _has_coordinator(self) -> bool:
        """Reports whether the garden shows a coordinator. Raises CommandError where that may not be read."""
        namespace, name = COORDINATOR_MAP
        try:
            return bool(await self._garden.get(_CONFIG_MAPS, name, namespace))
        except NotFound:
            return False
        except Forbidden as error:
            raise CommandError(
                f"the garden does not let you read ConfigMap {namespace}/{name}, which a coordinator shows: {error}"
            ) from None

    async def _shoot(self, wishes: Mapping[str, str]) -> MovingShoot:
        try:
            found = await self._garden.get(SHOOTS, self._name, self._namespace)
        except NotFound:
            raise self._missing() from None
        shoot = msgspec.convert(found, MovingShoot)
        metadata = msgspec.structs.replace(shoot.metadata, annotations={**shoot.annotations, **wishes})
        return msgspec.structs.replace(shoot, metadata=metadata)

    def _missing(self) -> CommandError:
        return CommandError(f"no Shoot {self._namespace}/{self._name} in the garden; choose a project with --namespace")

    async def _seed(self, name: str) -> MovingSeed:
        try:
            return msgspec.convert(await self._garden.get(SEEDS, name), MovingSeed)
        except NotFound:
            raise CommandError(f"there is no Seed {name} in the garden") from None
        except Forbidden as error:
            raise CommandError(f"the garden does not let you read Seed {name}: {error}") from None

    async def _distances(self) -> tuple[list[RegionConfig], tuple[str, ...]]:
        key, value = REGION_CONFIG
        try:
            found = (await self._garden.list(_CONFIG_MAPS, _GARDEN, labels=f"{key}={value}")).items
        except Forbidden:
            return [], (f"the distances of regions: you may not read ConfigMaps in namespace {_GARDEN}",)
        return msgspec.convert(found, list[RegionConfig]), ()


def _distance(config: RegionConfig | None, here: str, there: str) -> tuple[int | None, int | None]:
    """The distance between two regions and the largest one that is allowed. `forbidden` says what cannot be read."""
    if config is None:
        return None, None
    try:
        return (config.distances_from(here) or {}).get(there), config.limit
    except UnreadableDistances:
        return None, None
