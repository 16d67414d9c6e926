"""Decommissioning: the steps of a Gardenlet that is deleted, where the operator of Hortus asked for them.

The Seed is deleted first, while its gardenlet can still clean up; then the gardenlet's objects in the seed, then the
bootstrap token. Shoots on the Seed hold all of it up: they move or are deleted first. The deadline of the Seed counts
from its own deletion, and that of the gardenlet from the first attempt to remove it. What is not gone by then is
recorded as Leftovers, and the deletion ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import msgspec

from hortus.domains.garden.gardenlets import bootstrap, config
from hortus.domains.garden.gardenlets.checks import CONFIG_MAPS, DEPLOYMENTS, NAME, SeedChecks
from hortus.domains.garden.gardenlets.context import FALSE, PROGRESSING, GardenletContext
from hortus.domains.garden.gardenlets.deploying import SET, seed_set
from hortus.domains.garden.gardenlets.reading import OpenSeed, delete_kubeconfig, secret_of
from hortus.domains.garden.kinds.gardenlet import GARDEN_NAMESPACE, GARDENLETS, GardenletCondition
from hortus.domains.garden.kinds.seed import SEEDS, RegisteredSeed
from hortus.engine import Actor, Cache, Result, StepError, read, without_managed_fields
from hortus.engine.leftovers import Debt, LeftoverRecorder, object_item, safe_text, source_of
from hortus.engine.leftovers.types import LeftoverCluster, LeftoverItem, LeftoverReason
from hortus.kube import Client
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey, format_time, parse_time

FINALIZER: Final = "gardenlets.fleet.hortus.dev/decommission"
_RETRY: Final = 5.0
"""Seconds between two looks at a seed whose objects go slowly."""
_NAMED: Final = 5
"""Shoots that a message names."""


class Decommission:
    """Takes a seed out of service."""

    def __init__(
        self,
        garden: Client,
        *,
        seeds: Cache,
        shoots: Cache,
        open_seed: OpenSeed,
        leftovers: LeftoverRecorder,
        deadline: float,
    ) -> None:
        """`shoots` are outlines of all Shoots of the garden, by `seeds_of`; `deadline` is in seconds."""
        self._garden = garden
        self._seeds = seeds
        self._shoots = shoots
        self._open_seed = open_seed
        self._leftovers = leftovers
        self._deadline = deadline
        shoots.add_index(_BY_SEED, seeds_of)

    async def wait_for_shoots(self, context: GardenletContext) -> Result | None:
        """Holds the deletion up while Shoots are on the Seed."""
        found = sorted(map(str, self._shoots.keys_by(_BY_SEED, context.key.name)))
        if not found:
            return None
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        _report(
            context,
            "SeedInUse",
            f"The Seed is kept: {', '.join(found[:_NAMED])}{more} on it; move or delete these Shoots.",
        )
        return Result()

    async def delete_seed(self, context: GardenletContext) -> Result | None:
        """Deletes the Seed, and waits until it is gone, or the deadline has come."""
        key = ObjectKey("", context.key.name)
        seed = self._seeds.get(key)
        if seed is None:
            return None
        with suppress(NotFound):
            await self._garden.delete(SEEDS, key.name)
        if context.found(GardenletCondition.REMOVED) is not None:
            return None  # the deadline of the Seed was before
        left = self._left(context, read(RegisteredSeed, seed).metadata.deletion_timestamp)
        if left > 0:
            _report(context, "SeedIsDeleted", "The Seed is being deleted.")
            return Result(requeue_after=left)
        item = object_item(SEEDS, "", key.name, where="Garden")
        await self._record(context, [item], LeftoverReason.NOT_PRUNED, "the Seed was not gone at the deadline")
        return None

    async def remove_objects(self, context: GardenletContext) -> Result | None:
        """Removes the gardenlet from its cluster, or records what may be left there."""
        begun = context.found(GardenletCondition.REMOVED)
        left = self._left(context, begun.last_transition_time if begun is not None else None)
        obstacle: str = LeftoverReason.CLUSTER_UNREACHABLE
        try:
            async with self._open_seed(context.key.name) as seed:
                if seed is None:
                    await self._record(context, _items(context), LeftoverReason.CLUSTER_GONE, _NO_WAY)
                    return None
                await _check_owner(seed, context.key.name)
                report = await seed_set(seed, context.wiring.clock).delete()
                place = config.kubeconfig_secret(context.object.spec.config or {})
                await delete_kubeconfig(seed, place.namespace, place.name)
                if report.complete:
                    return None
                problem = report.message()
        except (KubeError, StepError) as error:
            if left > 0:
                _report_removal(context)
                raise
            problem = str(error)
            if isinstance(error, StepError):
                obstacle = LeftoverReason.CLUSTER_GONE
        if left > 0:
            _report_removal(context)
            _report(context, "GardenletIsDeleted", f"The gardenlet is being deleted: {problem}")
            return Result(requeue_after=min(_RETRY, left))
        await self._record(context, _items(context), obstacle, problem)
        return None

    async def release(self, context: GardenletContext) -> None:
        """Deletes the bootstrap token, and removes the finalizer."""
        namespace, name = context.key
        token = bootstrap.token_name(bootstrap.token_id(namespace, name))
        found = await secret_of(self._garden, bootstrap.TOKEN_NAMESPACE, token)
        if found is not None and bootstrap.is_token_of(namespace, name, found.data):
            with suppress(NotFound):
                uid = found.metadata.uid
                await self._garden.delete(bootstrap.SECRETS, token, bootstrap.TOKEN_NAMESPACE, uid=uid)
        await context.remove_finalizer(FINALIZER)

    def _left(self, context: GardenletContext, start: str | None) -> float:
        """Seconds until the deadline of a step that began at `start`, or begins now."""
        return (parse_time(start) if start else context.now) + self._deadline - context.now

    async def _record(self, context: GardenletContext, items: Iterable[LeftoverItem], reason: str, why: str) -> None:
        source = source_of(GARDENLETS.kind, context.object.metadata)
        cluster = LeftoverCluster(name=context.key.name, namespace=context.key.namespace)
        await self._leftovers.record(
            Debt(source, reason, safe_text(why), list(items), cluster=cluster, since=_began(context))
        )


_BY_SEED: Final = "gardenlet-seed"
_SEEDS: Final = "seeds"
_NO_WAY: Final = "there is no kubeconfig of the seed: give --gardenlet-seed-kubeconfigs, or remove these by hand"


def _began(context: GardenletContext) -> str:
    return context.object.metadata.deletion_timestamp or format_time(context.now)


async def _check_owner(seed: Client, name: str) -> None:
    """Raises StepError for a cluster with the gardenlet of another Seed; KubeError."""
    running = await SeedChecks(seed).seed_name()
    if running not in ("", name):
        raise StepError(
            f"the kubeconfig of Seed {name} leads to the cluster of Seed {running}, where nothing is removed",
            reason="OtherSeed",
            actor=Actor.OPERATOR,
        )


def _report(context: GardenletContext, reason: str, message: str) -> None:
    context.report_as(GardenletCondition.SEED_REGISTERED, FALSE, reason, message)


def _report_removal(context: GardenletContext) -> None:
    """Drafts the condition whose transition is the time of the first attempt."""
    context.report_as(GardenletCondition.REMOVED, PROGRESSING, "Removing", "The gardenlet is being removed.")


def _items(context: GardenletContext) -> list[LeftoverItem]:
    place = config.kubeconfig_secret(context.object.spec.config or {})
    return [
        object_item(DEPLOYMENTS, GARDEN_NAMESPACE, NAME, where="Cluster"),
        object_item(CONFIG_MAPS, GARDEN_NAMESPACE, SET, where="Cluster"),
        object_item(bootstrap.SECRETS, place.namespace, place.name, where="Cluster"),
    ]


class _Placed(msgspec.Struct, rename="camel"):
    seed_name: str = ""


class _Shoot(msgspec.Struct):
    spec: _Placed | None = None
    status: _Placed | None = None


def outline(shoot: Object) -> Object:
    """The part of a Shoot that is kept: its metadata, and the Seeds that it has or is to have."""
    found = msgspec.convert(shoot, _Shoot)
    seeds = [one.seed_name for one in (found.spec, found.status) if one is not None and one.seed_name]
    kept = {name: part for name, part in without_managed_fields(shoot).items() if name == "metadata"}
    return {**kept, _SEEDS: list(dict.fromkeys(seeds))}


def seeds_of(shoot: Object) -> Iterable[str]:
    """The Seeds of an outline."""
    return tuple(shoot[_SEEDS])
