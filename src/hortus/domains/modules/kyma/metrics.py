"""Metrics of Kymas, under the names and labels of Kyma's lifecycle-manager (kyma-project/lifecycle-manager,
`internal/pkg/metrics`).

The contract wants a series for each state of each Kyma and module. They are made when they are read: in memory there is
one state for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Gauge, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from hortus.domains.modules.names import Annotation, Label, State
from hortus.domains.modules.types import Kyma
from hortus.engine.exposition import LazySeries
from hortus.kube.objects import ObjectKey

KYMA_STATE: Final = "lifecycle_mgr_kyma_state"
MODULE_STATE: Final = "lifecycle_mgr_module_state"
_KYMA_STATES: Final = (State.READY, State.PROCESSING, State.ERROR, State.DELETING, State.WARNING)
_MODULE_STATES: Final = (*_KYMA_STATES, State.UNMANAGED)
_DOMAIN_PARTS: Final = 3
"""A shoot's domain has at least so many labels; the first one names it."""


class _Seen(NamedTuple):
    shoot: str
    instance: str
    state: str
    modules: Mapping[str, str]
    """State by module."""


class KymaMetrics(Collector):
    """The states of Kymas and modules."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seen: dict[ObjectKey, _Seen] = {}
        self._mandatory = Gauge("lifecycle_mgr_mandatory_modules", "Mandatory modules.", registry=registry)
        registry.register(self)

    def mandatory(self, number: int) -> None:
        """Set the number of mandatory modules."""
        self._mandatory.set(number)

    def see(self, key: ObjectKey, kyma: Kyma) -> bool:
        """Set the states of a Kyma; returns False where it lacks the label or annotation that names its series."""
        domain = kyma.metadata.annotations.get(Annotation.SKR_DOMAIN, "").split(".")
        instance = kyma.metadata.labels.get(Label.INSTANCE_ID, "")
        if len(domain) < _DOMAIN_PARTS or not instance:
            self.clear(key)
            return False
        modules = {module.name: module.state for module in kyma.status.modules}
        self._seen[key] = _Seen(domain[0], instance, kyma.status.state, modules)
        return True

    def has(self, key: ObjectKey) -> bool:
        """Returns whether there are series of this Kyma."""
        return key in self._seen

    def clear(self, key: ObjectKey) -> None:
        """Remove the series of a Kyma that is gone."""
        self._seen.pop(key, None)

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Remove the series of Kymas that have become another replica's."""
        for key in [key for key in self._seen if not holds(key)]:
            self.clear(key)

    def describe(self) -> Iterable[Metric]:
        return self._families(())

    def collect(self) -> Iterable[Metric]:
        return self._families(tuple(self._seen.items()))

    def _families(self, seen: Sequence[tuple[ObjectKey, _Seen]]) -> Iterable[Metric]:
        own = ("kyma_name", "state", "shoot", "instance_id")
        return (
            LazySeries(KYMA_STATE, "1 for the state of each Kyma, 0 for the others.", lambda: _kymas(seen), labels=own),
            LazySeries(
                MODULE_STATE,
                "1 for the state of each module, 0 for the others.",
                lambda: _modules(seen),
                labels=("module_name", *own),
            ),
        )


def _kymas(seen: Iterable[tuple[ObjectKey, _Seen]]) -> Iterator[Sample]:
    for key, one in seen:
        for state in _KYMA_STATES:
            labels = {"instance_id": one.instance, "kyma_name": key.name, "shoot": one.shoot, "state": state}
            yield Sample(KYMA_STATE, labels, float(state == one.state))


def _modules(seen: Iterable[tuple[ObjectKey, _Seen]]) -> Iterator[Sample]:
    for key, one in seen:
        own = {"instance_id": one.instance, "kyma_name": key.name}
        for name, found in one.modules.items():
            for state in _MODULE_STATES:
                labels = {**own, "module_name": name, "shoot": one.shoot, "state": state}
                yield Sample(MODULE_STATE, labels, float(state == found))
