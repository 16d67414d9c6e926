"""An access list tried against one Shoot, as the garden has it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from hortus.domains.garden.acl import report
from hortus.domains.garden.acl.always import always_allowed
from hortus.domains.garden.acl.cidrs import Cidr
from hortus.domains.garden.acl.config import AccessList, read_config
from hortus.domains.garden.acl.lockout import admitted
from hortus.domains.garden.acl.names import ACL
from hortus.domains.garden.acl.review import AclReviewer
from hortus.domains.garden.acl.settings import ADMISSION_LIMIT, AclSettings
from hortus.domains.garden.extension.topic import ConfigReview
from hortus.domains.garden.kinds.seedcluster import GardenSeed, GardenShoot, SeedCluster, SeedClusterSpec
from hortus.kube.objects import Object, Resource
from hortus.schema import ObjectMeta

SHOOTS: Final = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")
SEEDS: Final = Resource("core.gardener.cloud", "v1beta1", "seeds", "Seed", namespaced=False)


class TriedList(msgspec.Struct, frozen=True, kw_only=True):
    """An access list with its judgement."""

    cluster: SeedCluster
    access: AccessList
    always: tuple[Cidr, ...]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]

    def lets_in(self, address: str) -> bool:
        """Reports whether an address gets in. Raises ValueError."""
        return report.lets_in(self.access, self.always, ip_address(address))

    def is_meant(self, found: report.GatewayConnection) -> bool:
        """Reports whether a connection was meant for this Shoot."""
        shoot = self.cluster.shoot
        hosts = {urlsplit(one.url).hostname or "" for one in shoot.status.advertised_addresses or ()} - {""}
        if shoot.spec.dns is not None and shoot.spec.dns.domain:
            hosts.add(f"api.{shoot.spec.dns.domain}")
        return report.of_shoot(
            found, technical_id=self.cluster.technical_id, short_id=self.cluster.short_id, hosts=hosts
        )

    def lines(self) -> Iterator[str]:
        """The judgement for people."""
        yield from (f"error: {one}" for one in self.errors)
        yield from (f"warning: {one}" for one in self.warnings)
        if not self.access.rules:
            yield "There is no rule: everybody gets in."
            return
        yield f"Rules let in ({self.access.mode}): {', '.join(map(str, admitted(self.access))) or 'nobody'}"
        yield f"Always let in: {', '.join(map(str, self.always)) or 'nobody'}"


class _Placed(msgspec.Struct, rename="camel"):
    seed_name: str | None = None


class _Networking(msgspec.Struct):
    egress: tuple[str, ...] | None = msgspec.field(default=None, name="egressCIDRs")


class _Known(msgspec.Struct):
    networking: _Networking = msgspec.field(default_factory=_Networking)


class _Document(msgspec.Struct):
    spec: _Placed = msgspec.field(default_factory=_Placed)
    status: _Known = msgspec.field(default_factory=_Known)


def seed_of(shoot: Object) -> str:
    """Name of the Seed of a Shoot; empty where it has none yet."""
    return msgspec.convert(shoot, _Document).spec.seed_name or ""


def try_list(shoot: Object, seed: Object | None, *, config: Any = None, additional: Iterable[str] = ()) -> TriedList:
    """The judgement of a Shoot's access list, or of `config` in its place. Raises StepError for a wrong network."""
    read = msgspec.convert(shoot, GardenShoot)
    entry = read.extension(ACL)
    index, own = (entry[0], entry[1].provider_config) if entry is not None else (0, None)
    written = own if config is None else _rules_of(config)
    path = f"spec.extensions[{index}].providerConfig"
    found = AclReviewer(AclSettings(max_cidrs=ADMISSION_LIMIT)).review(
        ConfigReview(config=written, shoot=read, path=path)
    )
    spec = SeedClusterSpec(shoot=read, seed=msgspec.convert(seed, GardenSeed) if seed is not None else None)
    cluster = SeedCluster(metadata=ObjectMeta(name=read.status.technical_id), spec=spec)
    egress = msgspec.convert(shoot, _Document).status.networking.egress or ()
    return TriedList(
        cluster=cluster,
        access=read_config(written, path).access,
        always=always_allowed(cluster, seed_egress=(), additional=additional, egress=egress),
        errors=tuple(map(str, found.errors)),
        warnings=found.warnings,
    )


def _rules_of(config: Any) -> Any:
    """The configuration in a file: alone, or as providerConfig."""
    if isinstance(config, Mapping) and "providerConfig" in config:
        return msgspec.convert(config, dict[str, Any]).pop("providerConfig")
    return config
