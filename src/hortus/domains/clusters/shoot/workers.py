"""Worker pools: the Runtime's main pool and its further ones as the pools of a Shoot (section 3.5).

A pool is handed on as it is, with what the operator decides filled in. Against a live Shoot the pools take its order,
and a pool of the same name keeps its zones, its update strategy and an image that Gardener has raised meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.shoot import versions
from hortus.kube import Object

AWS_WORKER_CONFIG: Final = {
    "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
    "kind": "WorkerConfig",
    "instanceMetadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 2},
}
"""Instance metadata only for those who hold a token, and one hop further than the machine itself, for its pods."""

_GARDEN_DEFAULTS: Final[dict[str, Any]] = {
    "cri": {"name": "containerd"},
    "maxSurge": 1,
    "maxUnavailable": 0,
    "systemComponents": {"allow": True},
    "updateStrategy": "AutoRollingUpdate",
}
"""What the garden adds to a pool that does not say so (gardener, section 1.1)."""
_DEFAULT_ARCHITECTURE: Final = "amd64"


def pools_of(runtime: Object) -> list[Object]:
    """The pools as the Runtime has them: the main one, then the further ones."""
    provider = runtime["spec"]["shoot"]["provider"]
    return [*provider["workers"], *(provider.get("additionalWorkers") or ())]


def created_pools(runtime: Object, config: Configuration) -> list[Object]:
    """The pools of a new Shoot."""
    tokens = _requires_tokens(runtime, config)
    return [_filled(pool, config, tokens) for pool in pools_of(runtime)]


def patched_pools(runtime: Object, config: Configuration, live: Sequence[Object]) -> list[Object]:
    """The pools of a live Shoot: those that stay in its order, then the new ones in the Runtime's."""
    place = {pool["name"]: index for index, pool in enumerate(live)}
    pools = sorted(created_pools(runtime, config), key=lambda pool: place.get(pool["name"], len(live)))
    return [_aligned(pool, live[place[pool["name"]]]) if pool["name"] in place else pool for pool in pools]


def zones_of(pools: Iterable[Object]) -> list[str]:
    """All zones of some pools, in order of first appearance."""
    return list(dict.fromkeys(zone for pool in pools for zone in pool.get("zones") or ()))


def removed_zones(runtime: Object, live: Sequence[Object]) -> dict[int, list[str]]:
    """Zones of live pools that the pool of the same name no longer lists, by its index in `pools_of`."""
    present = {pool["name"]: pool.get("zones") or () for pool in live}
    found = {}
    for index, pool in enumerate(pools_of(runtime)):
        wanted = set(pool.get("zones") or ())
        if removed := [zone for zone in present.get(pool["name"], ()) if zone not in wanted]:
            found[index] = removed
    return found


def same_pools(one: Sequence[Object], other: Sequence[Object]) -> bool:
    """Whether two lists of pools are equal, order included, once the garden has filled in what was left out."""
    return [_defaulted(pool) for pool in one] == [_defaulted(pool) for pool in other]


def _requires_tokens(runtime: Object, config: Configuration) -> bool:
    provider = runtime["spec"]["shoot"]["provider"]["type"]
    return bool(provider == "aws" and config.converter.provider.aws.require_tokens)


def _filled(pool: Object, config: Configuration, tokens: bool) -> Object:
    defaults = config.converter.machine_image
    image = pool["machine"].get("image") or {}
    image = {
        **image,
        "name": image.get("name") or defaults.default_name,
        "version": image.get("version") or defaults.default_version,
    }
    filled = {**pool, "machine": {**pool["machine"], "image": image}}
    return {**filled, "providerConfig": AWS_WORKER_CONFIG} if tokens else filled


def _aligned(pool: Object, live: Object) -> Object:
    """Defaults that the garden filled in are not taken over: they come back by themselves, and what an apply holds
    must not depend on whether they are there yet."""
    machine = {**pool["machine"], "image": _image(pool, live)}
    aligned = {**pool, "machine": machine}
    strategy = live.get("updateStrategy")
    if not pool.get("updateStrategy") and strategy not in (None, _GARDEN_DEFAULTS["updateStrategy"]):
        aligned["updateStrategy"] = strategy
    architecture = live["machine"].get("architecture")
    if machine["type"] == live["machine"]["type"] and architecture not in (None, _DEFAULT_ARCHITECTURE):
        machine.setdefault("architecture", architecture)
    if zones := zones_of([live, pool]):
        aligned["zones"] = zones
    return aligned


def _image(pool: Object, live: Object) -> Object:
    image: Object = pool["machine"]["image"]
    running = live["machine"].get("image") or {}
    if running.get("name") != image["name"]:
        return image
    return {**image, "version": versions.kept(image["version"], running.get("version") or "")}


def _defaulted(pool: Object) -> Object:
    machine = {"architecture": _DEFAULT_ARCHITECTURE, **pool["machine"]}
    return {**_GARDEN_DEFAULTS, **pool, "machine": machine}
