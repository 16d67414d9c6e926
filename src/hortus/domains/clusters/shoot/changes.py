"""What a Runtime may not change of the Shoot that lives already."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from typing import Final

from hortus.domains.clusters.shoot import subnets
from hortus.domains.clusters.shoot.context import Context
from hortus.domains.clusters.shoot.networks import RANGES, network_problems, size_problems
from hortus.domains.clusters.shoot.pools import path_of
from hortus.domains.clusters.shoot.providers import ZONED, new_zones
from hortus.domains.clusters.shoot.workers import pools_of, removed_zones, zones_of
from hortus.domains.clusters.types import Label, ShootAnnotation
from hortus.kube import Object
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid, required, too_many

_IMMUTABLE: Final = ("region", "secretBindingName")


def change_problems(runtime: Object, live: Object, context: Context) -> list[FieldError]:
    """Problems of patching `live` for a Runtime."""
    shoot, spec = runtime["spec"]["shoot"], live["spec"]
    problems = [*_owner_problems(runtime, live), *_missing_parts(spec["provider"])]
    if shoot["provider"]["type"] != spec["provider"]["type"]:
        problems.append(_immutable("provider.type", shoot["provider"]["type"], spec["provider"]["type"]))
    problems += [
        _immutable(name, shoot[name], spec[name]) for name in _IMMUTABLE if spec.get(name) and shoot[name] != spec[name]
    ]
    networking = spec.get("networking") or {}
    if not all(networking.get(name) for name in RANGES):
        problems += network_problems(shoot)
    problems += _network_changes(shoot["networking"], networking)
    problems += _availability_changes(shoot, spec)
    if problems:
        return problems
    return [*_zone_changes(runtime, spec["provider"], context), *_zone_room(runtime, spec["provider"])]


def owner_of(live: Object) -> str:
    """The runtime id that a Shoot says it belongs to; empty when it says nothing."""
    return str((live["metadata"].get("annotations") or {}).get(ShootAnnotation.RUNTIME_ID) or "")


def _owner_problems(runtime: Object, live: Object) -> Iterator[FieldError]:
    owner, runtime_id = owner_of(live), runtime["metadata"]["labels"][Label.RUNTIME_ID]
    if owner and owner != runtime_id:
        text = f"the shoot of this name belongs to the Runtime with id {owner}, not {runtime_id}"
        yield invalid("spec.shoot.name", runtime["spec"]["shoot"]["name"], text)


def _missing_parts(provider: Object) -> Iterator[FieldError]:
    if not provider.get("infrastructureConfig"):
        yield required("spec.shoot.provider", "existing infrastructure config is required")
    if not provider.get("workers"):
        yield required("spec.shoot.provider", "shoot workers are required")


def _network_changes(wanted: Object, live: Object) -> Iterator[FieldError]:
    for name in RANGES:
        if live.get(name) and not _same_range(wanted[name], live[name]):
            yield _immutable(f"networking.{name}", wanted[name], live[name])
    families = live.get("ipFamilies") or ["IPv4"]
    dual = wanted.get("dualStack")
    if dual is not None and dual != (len(families) > 1):
        yield _immutable("networking.dualStack", dual, len(families) > 1)


def _same_range(one: str, other: str) -> bool:
    try:
        return ip_network(one, strict=False) == ip_network(other, strict=False)
    except ValueError:
        return one == other


def _availability_changes(shoot: Object, spec: Object) -> Iterator[FieldError]:
    """Gardener takes a control plane to more safety once, and never back (gardener, section 1.1)."""
    present = _tolerance(spec)
    if present and _tolerance(shoot) != present:
        yield _immutable("controlPlane.highAvailability.failureTolerance.type", _tolerance(shoot), present)


def _tolerance(holder: Object) -> str:
    availability = (holder.get("controlPlane") or {}).get("highAvailability") or {}
    return str((availability.get("failureTolerance") or {}).get("type") or "")


def _zone_changes(runtime: Object, provider: Object, context: Context) -> Iterator[FieldError]:
    if context.ignore_removed_zones:
        return
    pools = pools_of(runtime)
    for index, removed in removed_zones(runtime, provider["workers"]).items():
        pool = pools[index]
        text = f"the pool {pool['name']} runs in zone {', '.join(removed)} too, and zones cannot be taken away; "
        text += "list them again, or add a pool without them and remove this one"
        yield forbidden(f"{path_of(index)}.zones", text)


def _zone_room(runtime: Object, provider: Object) -> Iterator[FieldError]:
    """Whether zones that are new can have subnets; networks of old that cannot are nobody's business until then."""
    networks = provider["infrastructureConfig"].get("networks") or {}
    present = networks.get("zones") or ()
    if provider["type"] not in ZONED or not present:
        return
    new = new_zones(provider, zones_of(pools_of(runtime)))
    if new:
        yield from size_problems(runtime["spec"]["shoot"])
    if len(present) + len(new) > subnets.MOST_ZONES:
        yield too_many("spec.shoot.provider.workers", len(present) + len(new), subnets.MOST_ZONES)


def _immutable(field: str, wanted: object, present: object) -> FieldError:
    return invalid(f"spec.shoot.{field}", wanted, f"cannot be changed; the shoot has {present}")
