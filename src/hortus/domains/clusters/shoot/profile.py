"""A Runtime against the garden's CloudProfile: what the garden does not offer is refused before anything is sent.

What a live pool uses already stays allowed though it left the profile, as in Gardener: a cluster must remain
changeable after its image was withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.shoot import versions
from hortus.domains.clusters.shoot.kubernetes import version
from hortus.domains.clusters.shoot.pools import path_of
from hortus.domains.clusters.shoot.workers import created_pools, patched_pools
from hortus.kube import Object
from hortus.schema import FieldError
from hortus.schema.problems import invalid, not_supported

_PARTS: Final = ("type", "kubernetes", "machineImages", "machineTypes", "volumeTypes", "regions")
_SHOWN: Final = 20
"""Most alternatives that a message lists."""


def profile_outline(profile: Object) -> Object:
    """What is asked of a CloudProfile; the rest, which is most of it in a real garden, need not be kept."""
    metadata, spec = profile["metadata"], profile.get("spec") or {}
    kept = {name: metadata[name] for name in ("name", "uid", "resourceVersion") if name in metadata}
    return {"metadata": kept, "spec": {name: spec[name] for name in _PARTS if name in spec}}


def profile_problems(
    runtime: Object, config: Configuration, profile: Object, live: Object | None = None
) -> list[FieldError]:
    """What a valid Runtime asks for and `profile`, a CloudProfile, does not have."""
    shoot, spec = runtime["spec"]["shoot"], profile["spec"]
    if spec.get("type") and spec["type"] != shoot["provider"]["type"]:
        return [not_supported("spec.shoot.provider.type", shoot["provider"]["type"], [spec["type"]])]
    problems = list(_version_problems(runtime, config, spec, live))
    regions = {region["name"]: region for region in spec.get("regions") or ()}
    if shoot["region"] not in regions:
        return [*problems, _unsupported("spec.shoot.region", shoot["region"], regions)]
    return problems + list(_pools(runtime, config, spec, regions[shoot["region"]], live))


def _version_problems(
    runtime: Object, config: Configuration, spec: Object, live: Object | None
) -> Iterator[FieldError]:
    offered = [entry["version"] for entry in (spec.get("kubernetes") or {}).get("versions") or ()]
    wanted = version(runtime, config, live)
    running = ((live or {}).get("spec") or {}).get("kubernetes", {}).get("version")
    if wanted != running and not any(versions.covers(wanted, one) for one in offered):
        yield _unsupported("spec.shoot.kubernetes.version", wanted, versions.ordered(offered))


def _pools(
    runtime: Object, config: Configuration, spec: Object, region: Object, live: Object | None
) -> Iterator[FieldError]:
    present = {pool["name"]: pool for pool in (live["spec"]["provider"]["workers"] if live else ())}
    pools = patched_pools(runtime, config, list(present.values())) if live else created_pools(runtime, config)
    place = {pool["name"]: index for index, pool in enumerate(created_pools(runtime, config))}
    for pool in pools:
        path, before = path_of(place[pool["name"]]), present.get(pool["name"]) or {}
        yield from _zone_problems(path, pool, before, region)
        yield from _machine_problems(path, pool, before, spec, region)
        yield from _image_problems(path, pool, before, spec)
        yield from _volume_problems(path, pool, before, spec)


def _zone_problems(path: str, pool: Object, before: Object, region: Object) -> Iterator[FieldError]:
    offered = [zone["name"] for zone in region.get("zones") or ()]
    known = {*offered, *(before.get("zones") or ())}
    for index, zone in enumerate(pool.get("zones") or ()):
        if offered and zone not in known:
            yield _unsupported(f"{path}.zones[{index}]", zone, offered)


def _machine_problems(path: str, pool: Object, before: Object, spec: Object, region: Object) -> Iterator[FieldError]:
    types = {one["name"]: one for one in spec.get("machineTypes") or () if one.get("usable", True)}
    wanted = pool["machine"]["type"]
    if wanted == (before.get("machine") or {}).get("type"):
        return
    if wanted not in types:
        yield _unsupported(f"{path}.machine.type", wanted, types)
        return
    lacking = {
        zone["name"] for zone in region.get("zones") or () if wanted in (zone.get("unavailableMachineTypes") or ())
    }
    without = [zone for zone in pool.get("zones") or () if zone in lacking]
    if without:
        yield invalid(f"{path}.machine.type", wanted, f"not available in zone {', '.join(without)}")
    made_for = types[wanted].get("architecture") or "amd64"
    architecture = pool["machine"].get("architecture")
    if architecture and architecture != made_for:
        yield not_supported(f"{path}.machine.architecture", architecture, [made_for])


def _image_problems(path: str, pool: Object, before: Object, spec: Object) -> Iterator[FieldError]:
    images = {image["name"]: image for image in spec.get("machineImages") or ()}
    wanted = pool["machine"]["image"]
    running = (before.get("machine") or {}).get("image") or {}
    if (wanted["name"], wanted["version"]) == (running.get("name"), running.get("version")):
        return
    if wanted["name"] not in images:
        yield _unsupported(f"{path}.machine.image.name", wanted["name"], images)
        return
    offered = [entry["version"] for entry in images[wanted["name"]].get("versions") or ()]
    if wanted["version"] not in offered:
        yield _unsupported(f"{path}.machine.image.version", wanted["version"], versions.ordered(offered))


def _volume_problems(path: str, pool: Object, before: Object, spec: Object) -> Iterator[FieldError]:
    offered = [one["name"] for one in spec.get("volumeTypes") or () if one.get("usable", True)]
    wanted: Mapping[str, Any] = pool.get("volume") or {}
    if wanted.get("type") == (before.get("volume") or {}).get("type"):
        return
    if offered and wanted.get("type") and wanted["type"] not in offered:
        yield _unsupported(f"{path}.volume.type", wanted["type"], offered)


def _unsupported(path: str, value: str, offered: Iterable[str]) -> FieldError:
    """Lists the alternatives; of many only the last, which of versions are the newest."""
    names = list(offered)
    return not_supported(path, value, names[-_SHOWN:])
