"""Infrastructure: the networks of a Shoot, whose status has the addresses that its nodes call from."""

from __future__ import annotations

from typing import Final

import msgspec

from hortus.domains.garden.kinds.common import EXTENSIONS_GROUP, VERSION
from hortus.kube.objects import Resource
from hortus.schema import Fields, Kind, kind


class ShootInfrastructureStatus(Fields, frozen=True):
    """The networks as they are."""

    egress_cidrs: tuple[str, ...] | None = msgspec.field(default=None, name="egressCIDRs")
    """Addresses from which the nodes reach the internet, where they are stable."""


@kind(group=EXTENSIONS_GROUP, version=VERSION, name="Infrastructure", status=True)
class ShootInfrastructure(Kind, frozen=True):
    """The networks of a Shoot."""

    status: ShootInfrastructureStatus = ShootInfrastructureStatus()
    """The networks as they are."""


INFRASTRUCTURES: Final = Resource(EXTENSIONS_GROUP, VERSION, "infrastructures", "Infrastructure")
