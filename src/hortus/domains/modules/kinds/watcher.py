"""Watcher: objects of all clusters whose changes are reported to one controller."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from hortus.domains.modules.kinds.shared import Selector, StateField, former_kind
from hortus.domains.modules.names import GROUP, VERSION, State
from hortus.kube.objects import Resource
from hortus.schema import Column, Condition, Fields, Format, Kind, ListMap, Values, kind

_COLUMNS = (Column("Age", ".metadata.creationTimestamp", "date"),)


class WatcherService(Fields, frozen=True):
    """The Service of the controller that receives the events."""

    name: str
    """Name of the Service."""
    namespace: str
    """Namespace of the Service."""
    port: Annotated[int, Format("int64")]
    """Port of the Service."""


class WatchedResource(Fields, frozen=True):
    """The kind of the watched objects."""

    group: str
    """The API group."""
    version: str
    """The version; * for all."""
    resource: str
    """The plural name, such as kymas."""


class WatcherGateway(Fields, frozen=True):
    """The Istio Gateway through which events arrive."""

    selector: Selector
    """Labels of the Gateway."""


class FormerWatcherSpec(Fields, frozen=True):
    """The watched objects and the receiver."""

    service_info: WatcherService
    """The Service of the controller that receives the events."""
    resource_to_watch: WatchedResource
    """The kind of the watched objects."""
    field: Annotated[str, Values("spec", "status")]
    """The part of the objects whose changes are reported."""
    gateway: WatcherGateway
    """The Istio Gateway through which events arrive."""
    labels_to_watch: dict[str, str] = {}
    """Labels of the watched objects."""


class WatcherSpec(FormerWatcherSpec, frozen=True):
    """The watched objects and the receiver."""

    manager: str = ""
    """Name of the controller that receives the events; the label managed-by stands in for it."""


class WatcherStatus(Fields, frozen=True):
    """The Watcher as observed."""

    __schema__: ClassVar[dict[str, Any]] = {"required": ["state"]}

    state: StateField = State.NONE.value
    """Ready, Processing, Error or Deleting."""
    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """VirtualService."""
    observed_generation: Annotated[int, Format("int64")] = 0
    """Is not written."""


@former_kind("Watcher", columns=_COLUMNS)
class FormerWatcher(Kind, frozen=True):
    """Objects of all clusters whose changes are reported to one controller."""

    spec: FormerWatcherSpec | None = None
    """The watched objects and the receiver."""
    status: WatcherStatus = WatcherStatus()
    """The Watcher as observed."""


@kind(group=GROUP, version=VERSION, status=True, former=(FormerWatcher,), columns=_COLUMNS)
class Watcher(Kind, frozen=True):
    """Objects of all clusters whose changes are reported to one controller."""

    spec: WatcherSpec | None = None
    """The watched objects and the receiver."""
    status: WatcherStatus = WatcherStatus()
    """The Watcher as observed."""


WATCHERS: Final = Resource(GROUP, VERSION, "watchers", "Watcher")
