"""The registry cache controllers: caches that a cluster's owner asks for inside the cluster reach its Runtime.

Of a Runtime they own `spec.imageRegistryCache` alone: a switch where the cluster has CustomConfigs, or the list of its
RegistryCacheConfigs. They watch kubeconfig Secrets; the clusters they ask once a minute, since the kinds may not even
exist there, and since they are off unless a flag asks for them. They never write into a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import structlog

from hortus.domains.clusters import service
from hortus.domains.clusters.inside import InsideError, Workloads, asks_for_caches, cache_configs
from hortus.domains.clusters.reading import free_spec, runtime_of
from hortus.domains.clusters.types import MANAGER, RUNTIMES, Label, Runtime
from hortus.engine import Cache, Result, metadata_of
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey

PERIOD: Final = 60.0
SWITCHER: Final = "customconfigcontroller"
LISTER: Final = "registrycacheconfigcontroller"
"""Field managers."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class RegistryCaches:
    """Reconciles by the key of a kubeconfig Secret."""

    def __init__(
        self,
        *,
        client: Client,
        runtimes: Cache,
        secrets: Cache,
        workloads: Workloads,
        switches: bool,
        lists: bool,
    ) -> None:
        """`switches` follows CustomConfigs, `lists` follows RegistryCacheConfigs."""
        self._client = client
        self._runtimes = runtimes
        self._secrets = secrets
        self._workloads = workloads
        self._switches = switches
        self._lists = lists

    async def reconcile(self, key: ObjectKey) -> Result | None:
        runtime = self._runtime(key)
        if runtime is None:
            return None
        try:
            async with self._workloads.open(runtime) as cluster:
                wanted, manager = await self._wanted(cluster, runtime)
        except InsideError as error:
            _log.info("registry caches cannot be read", error=str(error))
            return Result(requeue_after=PERIOD)
        if wanted is not None:
            await self._set(runtime, wanted, manager)
        return Result(requeue_after=PERIOD)

    def _runtime(self, key: ObjectKey) -> Runtime | None:
        secret = self._secrets.get(key)
        labels = {} if secret is None else metadata_of(secret).labels
        if labels.get(Label.MANAGED_BY) != MANAGER or not labels.get(Label.RUNTIME_ID):
            return None
        found = self._runtimes.get(ObjectKey(key.namespace, labels[Label.RUNTIME_ID]))
        runtime = None if found is None else runtime_of(found)
        return None if runtime is None or runtime.spec is None or service.locked(runtime) else runtime

    async def _wanted(self, cluster: Client, runtime: Runtime) -> tuple[Any, str]:
        """The value that `imageRegistryCache` must have, None when it is right, and the field manager for it."""
        present = runtime.wanted.image_registry_cache
        if self._lists:
            listed = entries(await cache_configs(cluster))
            if listed or isinstance(present, list):
                return (None if listed == present else listed), LISTER
        if not self._switches or isinstance(present, list):
            return None, SWITCHER
        exists = await asks_for_caches(cluster)
        enabled = service.switches_cache_on(runtime)
        return (None if exists == enabled else {"enabled": exists}), SWITCHER

    async def _set(self, runtime: Runtime, wanted: Any, manager: str) -> None:
        metadata = runtime.metadata
        body: Object = {
            "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
            "spec": {"imageRegistryCache": wanted},
        }
        try:
            self._runtimes.learn(await self._client.apply(RUNTIMES, body, field_manager=manager))
        except NotFound:
            return
        _log.info("registry cache changed", runtime=str(service.cluster_key(runtime)), manager=manager)


def entries(configs: Iterable[Object]) -> list[Object]:
    """RegistryCacheConfigs as a Runtime lists them."""
    return [
        {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid, "config": free_spec(config)}
        for config in configs
        for metadata in (metadata_of(config),)
    ]
