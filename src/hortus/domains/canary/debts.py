"""The debt of a run of the canary: the objects that are left of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hortus.domains.canary.book import CONFIG_MAPS
from hortus.domains.canary.traces import SHOOTS
from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.leftovers import Debt, object_item
from hortus.engine.leftovers.types import LeftoverCluster, LeftoverItem, LeftoverReason, LeftoverSource

_MANAGEMENT = {"runtime": RUNTIMES, "gardenercluster": GARDENER_CLUSTERS, "secret": SECRETS}
_GARDEN = {"shoot": SHOOTS, "configmap": CONFIG_MAPS}


def debt_of(run: str, left: Iterable[str], namespace: str, garden_namespace: str) -> Debt:
    """The debt of one run; `left` is that of all runs, as `Traces.left` names objects."""
    return Debt(
        source=LeftoverSource(kind=RUNTIMES.kind, name=run, namespace=namespace),
        reason=LeftoverReason.CANARY_FAILED,
        message=f"run {run} of the canary ended without removing its objects",
        items=tuple(_items(run, left, namespace, garden_namespace)),
        cluster=LeftoverCluster(name=run, namespace=namespace, shoot=run),
    )


def _items(run: str, left: Iterable[str], namespace: str, garden_namespace: str) -> Iterator[LeftoverItem]:
    for line in left:
        kind, _, rest = line.partition("/")
        name = rest.partition(" ")[0]
        if run not in (name, name.removeprefix("kubeconfig-"), name.removeprefix("structured-auth-config-")):
            continue
        if kind in _MANAGEMENT:
            yield object_item(_MANAGEMENT[kind], namespace, name, where="Management")
        elif kind in _GARDEN:
            yield object_item(_GARDEN[kind], garden_namespace, name, where="Garden")
