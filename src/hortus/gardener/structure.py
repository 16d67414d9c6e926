"""The types of Gardener's API, and objects in the form in which Gardener's API server stores them.

`types.txt` holds them, written by tools/builtin_kinds from Gardener's own packages. Schemas, unknown fields and the
texts of decoding errors follow from it, so that they cannot disagree.

    decode(shoot, "garden.Shoot")       in place, `10m` to `10m0s`; raises ShapeError in Go's words
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from typing import Any

from hortus.kube.objects import Object
from hortus.kube.scalars import CANONICAL
from hortus.schema.builtin import Description, Shapes

_MIGRATION = "\nLiveMigration\n"
_MEMBERS = " members - json\n"
"""The members of etcd, which Hortus' coordinator writes into status.liveMigration. Gardener 1.150 has no such field: a
real garden drops it."""


@functools.cache
def types() -> Description:
    """Every type of Gardener's API groups, by alias.Name such as garden.ShootSpec."""
    return Description(types_text())


def types_text() -> str:
    """The same types in the format of `types.txt`."""
    text = resources.files(__package__).joinpath("types.txt").read_text("utf-8")
    return text.replace(_MIGRATION, _MIGRATION + _MEMBERS, 1)


def decode(obj: Object, name: str) -> None:
    """Gives an object of the kind alias.Name the form that it gets by being decoded and encoded again, in place.

    Unknown fields, nulls and empty optional values are dropped, structs that are always there are added. Raises
    ShapeError for a value of the wrong type. Metadata stays as it is.
    """
    _plain().shape(obj, name)


def shapes(defaults: Mapping[str, dict[str, Any]]) -> Shapes:
    """Shapes that fill in static defaults too, by the alias.Name of their type."""
    return Shapes(types(), defaults, CANONICAL, embedded=True)


@functools.cache
def _plain() -> Shapes:
    return shapes({})
