"""Parts that several kinds of the group have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, TypeVar

from hortus.domains.modules.names import FORMER_VERSION, GROUP, VERSION, CustomResourcePolicy, State
from hortus.kube.objects import Object
from hortus.schema import (
    Atomic,
    Column,
    EmbeddedResource,
    Fields,
    Format,
    Kind,
    PreserveUnknown,
    Shape,
    Values,
    kind,
)

K = TypeVar("K", bound=Kind)
StateField = Annotated[str, Values(*(state.value for state in State))]
PolicyField = Annotated[str, Values(*(policy.value for policy in CustomResourcePolicy))]
MODULE_NAME_PATTERN: Final = r"^([a-z]{3,}(-[a-z]{3,})*)?$"
VERSION_PATTERN: Final = r"^((0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[a-zA-Z-][0-9a-zA-Z-]*)?)?$"
CHANNEL_PATTERN: Final = "^[a-z]+$"


def former_kind(
    name: str, *, columns: tuple[Column, ...], status: bool = True, short_names: tuple[str, ...] = ()
) -> Callable[[type[K]], type[K]]:
    """Declare a struct as the version of a kind that is in its CRD and not served any more."""
    return kind(
        group=GROUP,
        version=FORMER_VERSION,
        name=name,
        short_names=short_names,
        status=status,
        served=False,
        deprecation=f"kyma-project.io/{FORMER_VERSION} {name} is deprecated. Use {VERSION} instead.",
        columns=columns,
    )


class SelectorRequirement(Fields, frozen=True):
    """A condition on a label."""

    key: str
    """The key of the label."""
    operator: str
    """In, NotIn, Exists or DoesNotExist."""
    values: Annotated[tuple[str, ...], Atomic()] = ()
    """The values for In and NotIn."""


class SelectorFields(Fields, frozen=True):
    """A selection by labels. Everything in it must hold."""

    match_labels: dict[str, str] = {}
    """Labels, each with its value."""
    match_expressions: Annotated[tuple[SelectorRequirement, ...], Atomic()] = ()
    """Conditions on labels."""


Selector = Annotated[Object, Shape(SelectorFields), Atomic()]
"""A metav1.LabelSelector as it was written; `hortus.kube.selectors` reads it."""
EmbeddedObject = Annotated[Object, EmbeddedResource(), PreserveUnknown()]


class AssociatedKind(Fields, frozen=True):
    """A kind of objects."""

    group: str
    """The API group; empty for the core group."""
    version: str
    """The version of the group."""
    kind: str
    """The kind."""


class ModuleManager(Fields, frozen=True):
    """The workload of a module whose state shows that the module is installed."""

    group: str
    """API group of the workload."""
    version: str
    """Version of the group."""
    kind: str
    """Kind of the workload."""
    name: str
    """Name of the workload."""
    namespace: str = ""
    """Namespace of the workload."""


class OperationRecord(Fields, frozen=True):
    """The last step of the controller."""

    operation: str
    """The step, in words."""
    last_update_time: Annotated[str, Format("date-time")] | None = None
    """When it was done."""
