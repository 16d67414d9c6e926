"""Puts the controllers of this domain together for a process."""

from __future__ import annotations

from hortus.domains import ProcessContext
from hortus.domains.modules import settings as chosen
from hortus.domains.modules.clusters import SECRET_SELECTOR, KymaClusters
from hortus.domains.modules.manifests.composition import add_controller as add_manifests
from hortus.domains.modules.metrics import RequeueMetrics
from hortus.domains.modules.names import CONTROL_NAMESPACE
from hortus.domains.modules.registry import open_registry
from hortus.engine.kubeconfigs import SECRETS, sealed


def add_to(process: ProcessContext) -> None:
    """Add the controllers to a process. Raises FlagError."""
    settings = chosen.from_flags(process.values)
    manager, client = process.manager, process.client
    namespace = process.namespace or CONTROL_NAMESPACE
    secrets = manager.cache(SECRETS, namespace=namespace, labels=SECRET_SELECTOR, transform=sealed)
    add_manifests(
        manager,
        client=client,
        namespace=namespace,
        clusters=KymaClusters(process.pool, secrets),
        layers=open_registry(manager, settings.registry, client=client, namespace=namespace),
        leftovers=process.leftovers,
        requeues=RequeueMetrics(manager.registry),
        settings=settings,
    )
