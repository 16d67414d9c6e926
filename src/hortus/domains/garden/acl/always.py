"""Networks that every access list lets in, in the order of the Go extension. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hortus.domains.garden.acl.cidrs import Cidr, parse_cidr
from hortus.domains.garden.kinds.seedcluster import SeedCluster
from hortus.engine import Actor, StepError


def always_allowed(
    cluster: SeedCluster, *, seed_egress: Iterable[str], additional: Iterable[str], egress: Iterable[str]
) -> tuple[Cidr, ...]:
    """The networks of a Shoot's own parts.

    `seed_egress` are the seed's own addresses where a proxy stands before the gateway, `additional` those of the
    operator, `egress` those of the Shoot's nodes. Raises StepError for one that is no CIDR.
    """
    found: dict[Cidr, None] = {}
    for place, text in _places(cluster, seed_egress, additional, egress):
        try:
            found[parse_cidr(text)[0]] = None
        except ValueError as error:
            raise StepError(
                f"{place} has {text!r}, which is no CIDR: {error}", reason="BadNetwork", actor=Actor.PROVIDER
            ) from error
    return tuple(found)


def _places(
    cluster: SeedCluster, seed_egress: Iterable[str], additional: Iterable[str], egress: Iterable[str]
) -> Iterator[tuple[str, str]]:
    seed, shoot = cluster.seed, cluster.shoot
    if seed.spec.networks.nodes:
        yield f"spec.networks.nodes of Seed {seed.metadata.name}", seed.spec.networks.nodes
    if seed.spec.networks.pods:
        yield f"spec.networks.pods of Seed {seed.metadata.name}", seed.spec.networks.pods
    for one in seed_egress:
        yield "key egressCIDRs of ConfigMap kube-system/shoot-info", one
    for one in additional:
        yield "flag --acl-additional-allowed-cidrs", one
    if shoot.is_workerless:
        return
    networking = shoot.spec.networking
    if networking is not None and networking.nodes:
        yield f"spec.networking.nodes of Shoot {shoot.metadata.name}", networking.nodes
    for one in egress:
        yield f"status.egressCIDRs of Infrastructure {shoot.metadata.name}", one
