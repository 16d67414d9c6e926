"""A worker pool of a Runtime or of a Shoot: the plain object as it was written, and the fields that are read of it.

Pools pass through a patch as they are, whatever Gardener adds to them.
"""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar

import msgspec

from hortus.engine.typed import NotReadable
from hortus.kube import Object
from hortus.schema import Fields

S = TypeVar("S", bound=msgspec.Struct)


class PoolImage(Fields, frozen=True):
    name: str = ""
    version: str = ""


class PoolMachine(Fields, frozen=True):
    type: str
    architecture: str | None = None
    image: PoolImage = PoolImage()


class PoolVolume(Fields, frozen=True):
    size: str
    type: str | None = None


class PoolReserved(Fields, frozen=True):
    cpu: str | int | float = 0
    memory: str | int | float = 0


class PoolKubelet(Fields, frozen=True):
    kube_reserved: PoolReserved | None = None


class PoolKubernetes(Fields, frozen=True):
    kubelet: PoolKubelet | None = None
    version: str | None = None


class PoolFields(Fields, frozen=True):
    """The fields that are read of a worker pool, of a Runtime or of a Shoot."""

    name: str
    machine: PoolMachine
    minimum: int = 0
    maximum: int = 0
    kubernetes: PoolKubernetes | None = None
    update_strategy: str | None = None
    volume: PoolVolume | None = None
    zones: tuple[str, ...] = ()


class Pool:
    """A worker pool. Its fields raise NotReadable where one has another type."""

    def __init__(self, raw: Object) -> None:
        self.raw = raw
        """The pool as it was written, to be handed on."""

    @cached_property
    def fields(self) -> PoolFields:
        return converted(self.raw, PoolFields, "worker pool")


def converted(raw: object, shape: type[S], name: str) -> S:
    """The struct of a part of a document. Raises NotReadable, which calls the part `name`."""
    try:
        return msgspec.convert(raw, shape)
    except msgspec.ValidationError as error:
        raise NotReadable(f"{name}: {error}") from error
