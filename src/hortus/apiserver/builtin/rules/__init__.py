"""The strategies of built-in kinds, by kind."""

from __future__ import annotations

from hortus.apiserver.builtin.rules import (
    access,
    admission,
    configuration,
    events,
    jobs,
    nodes,
    pods,
    scaling,
    services,
    signing,
    storage,
    traffic,
    workloads,
)
from hortus.apiserver.builtin.strategy import BuiltinStrategy

STRATEGIES: dict[str, type[BuiltinStrategy]] = {
    **access.STRATEGIES,
    **admission.STRATEGIES,
    **configuration.STRATEGIES,
    **events.STRATEGIES,
    **jobs.STRATEGIES,
    **nodes.STRATEGIES,
    **pods.STRATEGIES,
    **scaling.STRATEGIES,
    **services.STRATEGIES,
    **signing.STRATEGIES,
    **storage.STRATEGIES,
    **traffic.STRATEGIES,
    **workloads.STRATEGIES,
}

__all__ = ["STRATEGIES"]
