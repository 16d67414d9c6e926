"""Machine deployments of a Worker: one for each pool and zone, named and sized as the provider's extension does it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
import orjson

from hortus.gardener.machineimages.selection import MachineImageChoice

_NOT_IN_LABELS: Final = re.compile(r"[^a-zA-Z0-9\-_:. ]")
_PERCENT: Final = "%"


class MachineLabel(msgspec.Struct, frozen=True, rename="camel"):
    """A label of machines in the cloud."""

    name: str
    value: str = ""
    trigger_rolling_on_update: bool = False


class MachinePool(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A pool of a Worker."""

    name: str
    machine_type: str = ""
    architecture: str = "amd64"
    minimum: int = 0
    maximum: int = 0
    max_surge: int | str = 1
    max_unavailable: int | str = 0
    zones: tuple[str, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    machine_labels: tuple[MachineLabel, ...] = ()
    server_group: str = ""
    """Id of its server group."""
    security_groups: tuple[str, ...] = ()
    """Security groups besides those of all nodes."""
    hash: str = ""
    """The checksum of the pool by Gardener, of which the class's name has the first five characters."""


class MachineDeployment(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The machines of a pool in one zone."""

    name: str
    class_name: str
    zone: str
    minimum: int
    maximum: int
    max_surge: int | str
    max_unavailable: int | str
    image: dict[str, str]
    """`imageID` or `imageName` of the MachineClass."""
    architecture: str
    """The architecture of the node template, which is that of the pool."""
    labels: dict[str, str]
    """Labels of the machines in the cloud."""


def machine_deployments(
    technical_id: str, pools: Sequence[MachinePool], images: Mapping[str, MachineImageChoice]
) -> Iterator[MachineDeployment]:
    """The machine deployments of all pools; `images` has the choice of each pool by its name."""
    for pool in pools:
        zones = pool.zones or ("",)
        checksum = pool_hash(pool)
        for index, zone in enumerate(zones):
            name = f"{technical_id}-{pool.name}-z{index + 1}"
            yield MachineDeployment(
                name=name,
                class_name=f"{name}-{checksum}",
                zone=zone,
                minimum=share(pool.minimum, index, len(zones)),
                maximum=share(pool.maximum, index, len(zones)),
                max_surge=_part(pool.max_surge, index, len(zones)),
                max_unavailable=_part(pool.max_unavailable, index, len(zones)),
                image=images[pool.name].of_class,
                architecture=pool.architecture,
                labels=_cloud_labels(technical_id, pool),
            )


def extra_hash_data(pool: MachinePool) -> list[str]:
    """The parts of a pool, besides Gardener's own, whose change replaces its machines; the image is none of them."""
    labels = sorted(f"{one.name}={one.value}" for one in pool.machine_labels if one.trigger_rolling_on_update)
    server_group = [pool.server_group] if pool.server_group else []
    return [*labels, *server_group, *sorted(pool.security_groups)]


def pool_hash(pool: MachinePool) -> str:
    """Five characters of the checksum of a pool."""
    extra = extra_hash_data(pool)
    return hashlib.sha256(orjson.dumps([pool.hash, *extra])).hexdigest()[:5]


def share(number: int, index: int, zones: int) -> int:
    """The part of a number that a zone gets; the first zones get the rest."""
    return number // zones + (1 if index < number % zones else 0)


def _part(amount: int | str, index: int, zones: int) -> int | str:
    """A percentage holds in every zone, a number is divided."""
    if isinstance(amount, str) and amount.endswith(_PERCENT):
        return amount
    return share(int(amount), index, zones)


def cloud_label_key(key: str) -> str:
    """A key of a label with `-` for each character that OpenStack does not allow there."""
    return _NOT_IN_LABELS.sub("-", key)


def _cloud_labels(technical_id: str, pool: MachinePool) -> dict[str, str]:
    own = {f"kubernetes.io-cluster-{technical_id}": "1", "kubernetes.io-role-node": "1"}
    given = {**pool.labels, **{one.name: one.value for one in pool.machine_labels}}
    return {**{cloud_label_key(key): value for key, value in given.items()}, **own}
