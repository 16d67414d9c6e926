"""The errors of gardener-apiserver about a Shoot that it compares with its CloudProfile.

Pure: Shoot, the Shoot before (None at a create), CloudProfile and the time, to the sentences of field errors. What a
Shoot has already stays allowed although the profile lost it: a cluster must remain changeable. Contract: gardener,
docs/concepts/apiserver-admission-plugins.md.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hortus.kube.objects import Object, parse_time

Worker = Mapping[str, Any]
_SINGULAR = {"pods": "pod", "services": "service", "nodes": "node"}


def problems(shoot: Object, old: Object | None, profile: Object, now: float) -> Iterator[str]:
    """Every sentence, path first."""
    spec, offer = shoot["spec"], profile["spec"]
    before = (old or {}).get("spec") or {}
    if offer["type"] != spec["provider"]["type"]:
        yield (
            f'spec.provider.type: Invalid value: "{spec["provider"]["type"]}": cloud profile type "{offer["type"]}" '
            f'does not match provider type "{spec["provider"]["type"]}"'
        )
        return
    yield from _network_problems(spec.get("networking") or {})
    yield from _version_problems(spec, before, offer, now)
    regions = {region["name"]: region for region in offer.get("regions") or ()}
    region = regions.get(spec["region"])
    if region is None:
        if spec["region"] != before.get("region"):
            yield _unsupported("spec.region", spec["region"], regions)
        return
    pools = {worker["name"]: worker for worker in (before.get("provider") or {}).get("workers") or ()}
    for index, worker in enumerate((spec.get("provider") or {}).get("workers") or ()):
        known = pools.get(worker["name"]) or {}
        yield from _worker_problems(f"spec.provider.workers[{index}]", worker, known, offer, region, now)


def _network_problems(networking: Mapping[str, Any]) -> Iterator[str]:
    """Networks of a Shoot that overlap."""
    if "IPv4" not in networking.get("ipFamilies", ()):
        return
    for one, other, at in (
        ("pods", "services", "services"),
        ("pods", "nodes", "pods"),
        ("services", "nodes", "services"),
    ):
        first, second = (
            ipaddress.ip_network(text, strict=False) if (text := networking.get(name)) else None
            for name in (one, other)
        )
        if first and second and first.version == second.version and first.overlaps(second):
            names = f"shoot {_SINGULAR[one]} network intersects with shoot {_SINGULAR[other]} network"
            yield f'spec.networking.{at}: Invalid value: "{networking[at]}": {names}'


def _version_problems(spec: Object, before: Object, offer: Object, now: float) -> Iterator[str]:
    wanted = (spec.get("kubernetes") or {}).get("version") or ""
    if wanted == (before.get("kubernetes") or {}).get("version"):
        return
    offered = [one["version"] for one in _versions(offer, now)]
    if wanted not in offered:
        yield _unsupported("spec.kubernetes.version", wanted, offered)


def _worker_problems(
    path: str, worker: Worker, before: Worker, offer: Object, region: Object, now: float
) -> Iterator[str]:
    machine, had = worker["machine"], before.get("machine") or {}
    zones = [zone["name"] for zone in region.get("zones") or ()]
    for index, zone in enumerate(worker.get("zones") or ()):
        if zone not in zones and zone not in (before.get("zones") or ()):
            yield _unsupported(f"{path}.zones[{index}]", zone, zones)
    if machine["type"] != had.get("type"):
        yield from _machine_problems(path, worker, offer, region)
    if machine.get("image") != had.get("image"):
        yield from _image_problems(path, machine, offer, now)
    volume = (worker.get("volume") or {}).get("type")
    types = [one["name"] for one in offer.get("volumeTypes") or () if one.get("usable", True)]
    if volume and types and volume not in types and volume != (before.get("volume") or {}).get("type"):
        yield _unsupported(f"{path}.volume.type", volume, types)


def _machine_problems(path: str, worker: Worker, offer: Object, region: Object) -> Iterator[str]:
    machine = worker["machine"]
    usable = {one["name"]: one for one in offer.get("machineTypes") or () if one.get("usable", True)}
    if machine["type"] not in usable:
        yield _unsupported(f"{path}.machine.type", machine["type"], usable)
        return
    made_for = usable[machine["type"]].get("architecture") or "amd64"
    if machine.get("architecture", "amd64") != made_for:
        yield _unsupported(f"{path}.machine.architecture", machine["architecture"], [made_for])
    for zone in region.get("zones") or ():
        if zone["name"] in (worker.get("zones") or ()) and machine["type"] in zone.get("unavailableMachineTypes", ()):
            yield (
                f'{path}.machine.type: Invalid value: "{machine["type"]}": machine type is unavailable in zone '
                f'"{zone["name"]}"'
            )


def _image_problems(path: str, machine: Mapping[str, Any], offer: Object, now: float) -> Iterator[str]:
    image = machine.get("image") or {}
    images = {one["name"]: one for one in offer.get("machineImages") or ()}
    if image.get("name") not in images:
        yield _unsupported(f"{path}.machine.image.name", str(image.get("name", "")), images)
        return
    living = list(_living(images[image["name"]]["versions"], now))
    fitting = {one["version"]: one.get("architectures") or ["amd64"] for one in living}
    if image.get("version") not in fitting:
        yield _unsupported(f"{path}.machine.image.version", str(image.get("version", "")), fitting)
    elif machine.get("architecture", "amd64") not in fitting[image["version"]]:
        value, made_for = f"{image['name']}:{image['version']}", ", ".join(fitting[image["version"]])
        text = f'machine image version does not support CPU architecture "{machine["architecture"]}", only {made_for}'
        yield f'{path}.machine.image: Invalid value: "{value}": {text}'


def _versions(offer: Object, now: float) -> Iterable[Mapping[str, Any]]:
    return _living((offer.get("kubernetes") or {}).get("versions") or (), now)


def _living(versions: Iterable[Mapping[str, Any]], now: float) -> Iterator[Mapping[str, Any]]:
    """The versions that have not expired."""
    for version in versions:
        until = version.get("expirationDate")
        if until is None or parse_time(until) > now:
            yield version


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("-")[0].split(".") if part.isdecimal())


def _unsupported(path: str, value: str, offered: Iterable[str]) -> str:
    names = ", ".join(f'"{name}"' for name in offered)
    return f'{path}: Unsupported value: "{value}": supported values: {names}'
