"""Changes that a Runtime may not make in its live Shoot."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.shoot import subnets
from hortus.domains.clusters.shoot.bindings import binding_problems
from hortus.domains.clusters.shoot.context import Context
from hortus.domains.clusters.shoot.live import LiveShoot
from hortus.domains.clusters.shoot.networks import network_problems, size_problems
from hortus.domains.clusters.shoot.pools import path_of
from hortus.domains.clusters.shoot.providers import ZONED, new_zones
from hortus.domains.clusters.shoot.workers import pools_of, removed_zones, zones_of
from hortus.domains.clusters.shoots import ShootNetworking, ShootProvider
from hortus.domains.clusters.types import Label, Networking, Runtime
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid, required, too_many


def change_problems(runtime: Runtime, live: LiveShoot, config: Configuration, context: Context) -> list[FieldError]:
    """Problems of patching `live` for a Runtime."""
    shoot, spec = runtime.wanted.shoot, live.spec
    problems = [*_owner_problems(runtime, live), *_missing_parts(spec.provider)]
    if shoot.provider.type != spec.provider.type:
        problems.append(_immutable("provider.type", shoot.provider.type, spec.provider.type))
    if spec.region and shoot.region != spec.region:
        problems.append(_immutable("region", shoot.region, spec.region))
    problems += binding_problems(runtime, config, live)
    if not all(spec.networking.ranges.values()):
        problems += network_problems(runtime)
    problems += _network_changes(shoot.networking, spec.networking)
    if problems:
        return problems
    return [*_zone_changes(runtime, spec.provider, context), *_zone_room(runtime, spec.provider)]


def _owner_problems(runtime: Runtime, live: LiveShoot) -> Iterator[FieldError]:
    owner, runtime_id = live.owner, runtime.metadata.labels[Label.RUNTIME_ID]
    if owner and owner != runtime_id:
        text = f"the shoot of this name belongs to the Runtime with id {owner}, not {runtime_id}"
        yield invalid("spec.shoot.name", runtime.wanted.shoot.name, text)


def _missing_parts(provider: ShootProvider) -> Iterator[FieldError]:
    if not provider.infrastructure_config:
        yield required("spec.shoot.provider", "existing infrastructure config is required")
    if not provider.workers:
        yield required("spec.shoot.provider", "shoot workers are required")


def _network_changes(wanted: Networking, live: ShootNetworking) -> Iterator[FieldError]:
    asked = wanted.ranges
    for name, present in live.ranges.items():
        if present and not _same_range(asked[name], present):
            yield _immutable(f"networking.{name}", asked[name], present)
    dual, is_dual = wanted.dual_stack, len(live.ip_families) > 1
    if dual is not None and dual != is_dual:
        yield _immutable("networking.dualStack", dual, is_dual)


def _same_range(one: str, other: str) -> bool:
    try:
        return ip_network(one, strict=False) == ip_network(other, strict=False)
    except ValueError:
        return one == other


def _zone_changes(runtime: Runtime, provider: ShootProvider, context: Context) -> Iterator[FieldError]:
    if context.ignore_removed_zones:
        return
    pools = pools_of(runtime)
    for index, removed in removed_zones(runtime, provider.pools).items():
        name = pools[index].fields.name
        text = f"the pool {name} runs in zone {', '.join(removed)} too, and zones cannot be taken away; "
        text += "list them again, or add a pool without them and remove this one"
        yield forbidden(f"{path_of(index)}.zones", text)


def _zone_room(runtime: Runtime, provider: ShootProvider) -> Iterator[FieldError]:
    """Problems of subnets for new zones. Without new zones, networks that could not be cut are left as they are."""
    present = provider.networks.zones
    if provider.type not in ZONED or not present:
        return
    new = new_zones(present, zones_of(pools_of(runtime)))
    if new:
        yield from size_problems(runtime)
    if len(present) + len(new) > subnets.MOST_ZONES:
        yield too_many("spec.shoot.provider.workers", len(present) + len(new), subnets.MOST_ZONES)


def _immutable(field: str, wanted: object, present: object) -> FieldError:
    return invalid(f"spec.shoot.{field}", wanted, f"cannot be changed; the shoot has {present}")
