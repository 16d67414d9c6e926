"""Worker pools: the Runtime's main pool and its further ones as the pools of a Shoot.

A pool is handed on as it is, with what the operator decides filled in. Against a live Shoot the pools take its order,
and a pool of the same name keeps its zones, its update strategy and an image that Gardener has raised meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.pools import Pool, PoolFields
from hortus.domains.clusters.shoot import versions
from hortus.domains.clusters.types import Runtime
from hortus.gardener.shoots.equality import ROLLING, completed, has_pool, spelled_as
from hortus.kube import Object
from hortus.kube.patches import apply_merge_patch

AWS_WORKER_CONFIG: Final = {
    "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
    "kind": "WorkerConfig",
    "instanceMetadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 2},
}
"""Instance metadata only for those who hold a token, and one hop further than the machine itself, for its pods."""

_DEFAULT_ARCHITECTURE: Final = "amd64"
_DEFAULT_STRATEGY: Final = ROLLING


def pools_of(runtime: Runtime) -> list[Pool]:
    """The pools as the Runtime has them: the main one, then the further ones. Raises NotReadable."""
    provider = runtime.wanted.shoot.provider
    return [Pool(pool) for pool in (*provider.workers, *provider.additional_workers)]


def created_pools(runtime: Runtime, config: Configuration) -> list[Pool]:
    """The pools of a new Shoot."""
    tokens = _requires_tokens(runtime, config)
    return [_filled(pool, config, tokens) for pool in pools_of(runtime)]


def patched_pools(runtime: Runtime, config: Configuration, live: Sequence[Pool]) -> list[Pool]:
    """The pools of a live Shoot: those that stay in its order, then the new ones in the Runtime's."""
    place = {pool.fields.name: index for index, pool in enumerate(live)}
    pools = sorted(created_pools(runtime, config), key=lambda pool: place.get(pool.fields.name, len(live)))
    return [_aligned(pool, live[place[pool.fields.name]]) if pool.fields.name in place else pool for pool in pools]


def zones_of(pools: Iterable[Pool]) -> list[str]:
    """All zones of some pools, in order of first appearance."""
    return list(dict.fromkeys(zone for pool in pools for zone in pool.fields.zones))


def removed_zones(runtime: Runtime, live: Iterable[Pool]) -> dict[int, list[str]]:
    """Zones of live pools that the pool of the same name no longer lists, by its index in `pools_of`."""
    present = {pool.fields.name: pool.fields.zones for pool in live}
    found = {}
    for index, pool in enumerate(pools_of(runtime)):
        if removed := [zone for zone in present.get(pool.fields.name, ()) if zone not in pool.fields.zones]:
            found[index] = removed
    return found


def same_pools(wanted: Sequence[Object], live: Sequence[Object]) -> bool:
    """True when a list of pools means what the live one does, order included, once the garden has filled in what was
    left out."""
    pairs = zip(wanted, live, strict=False)
    return len(wanted) == len(live) and all(
        completed(spelled_as(pool, present)) == completed(present) for pool, present in pairs
    )


def has_pools(live: Sequence[Object], wanted: Sequence[Object]) -> bool:
    """True when the live pools have all that the wanted ones say, in their order. After a replacement of the whole list
    every other field is the garden's own doing."""
    return len(wanted) == len(live) and all(
        has_pool(present, pool) for pool, present in zip(wanted, live, strict=False)
    )


def _requires_tokens(runtime: Runtime, config: Configuration) -> bool:
    return runtime.wanted.shoot.provider.type == "aws" and config.converter.provider.aws.require_tokens


def _filled(pool: Pool, config: Configuration, tokens: bool) -> Pool:
    defaults, given = config.converter.machine_image, pool.fields.machine.image
    image = {"name": given.name or defaults.default_name, "version": given.version or defaults.default_version}
    filled: Object = apply_merge_patch(pool.raw, {"machine": {"image": image}})
    return Pool({**filled, "providerConfig": AWS_WORKER_CONFIG} if tokens else filled)


def _aligned(pool: Pool, present: Pool) -> Pool:
    """The pool as the live one has it where the Runtime leaves it open or means the same. Defaults that the garden
    filled in are not taken over: they come back by themselves, and an apply must not depend on whether they are there
    yet."""
    wanted, live = pool.fields, present.fields
    machine: Object = {"image": {"version": _image_version(wanted, live)}}
    same_machine = (wanted.machine.type, wanted.machine.architecture) == (live.machine.type, None)
    if same_machine and live.machine.architecture not in (None, _DEFAULT_ARCHITECTURE):
        machine["architecture"] = live.machine.architecture
    changes: Object = {"machine": machine}
    if not wanted.update_strategy and live.update_strategy not in (None, _DEFAULT_STRATEGY):
        changes["updateStrategy"] = live.update_strategy
    if zones := list(dict.fromkeys([*live.zones, *wanted.zones])):
        changes["zones"] = zones
    if wanted.kubernetes is not None and wanted.kubernetes.version and live.kubernetes is not None:
        changes["kubernetes"] = {"version": versions.kept(wanted.kubernetes.version, live.kubernetes.version or "")}
    return Pool(spelled_as(apply_merge_patch(pool.raw, changes), present.raw))


def _image_version(pool: PoolFields, live: PoolFields) -> str:
    image, running = pool.machine.image, live.machine.image
    return versions.kept(image.version, running.version) if running.name == image.name else image.version
