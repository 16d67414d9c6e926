"""The shapes and static defaults of Kubernetes' built-in kinds (`hortus.schema.builtin.shapes`)."""

from __future__ import annotations

import functools
from importlib import resources

import orjson

from hortus.kube.errors import BadRequest
from hortus.kube.objects import GroupVersionKind, Object
from hortus.kube.scalars import CANONICAL
from hortus.schema.builtin import ShapeError, Shapes, builtin, static_defaults


def check_body(obj: Object, expected: GroupVersionKind) -> None:
    """Refuses the body of an action, such as a Binding, with a value of the wrong type. Raises BadRequest."""
    name = f"{expected.group.partition('.')[0] or 'core'}.{expected.kind}"
    try:
        plain_shapes().shape_whole(orjson.loads(orjson.dumps(obj)), name)
    except ShapeError as error:
        kind = expected.kind
        text = f'{kind} in version "{expected.version}" cannot be handled as a {kind}: {error}'
        raise BadRequest(text) from None


@functools.cache
def plain_shapes() -> Shapes:
    """Shapes by the package's own description, without defaults."""
    return Shapes(builtin(), {}, CANONICAL)


@functools.cache
def builtin_shapes() -> Shapes:
    """Shapes by the package's own description and defaults."""
    return Shapes(builtin(), builtin_defaults(), CANONICAL)


def builtin_defaults() -> dict[str, Object]:
    """The static defaults of built-in kinds, by the alias.Name of their type."""
    return static_defaults(resources.files(__package__).joinpath("defaults.txt").read_text("utf-8"))
