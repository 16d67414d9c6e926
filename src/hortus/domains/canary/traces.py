"""The traces of a run, in the garden and on the management cluster."""

from __future__ import annotations

from collections.abc import Iterable

from hortus.domains.canary import service
from hortus.domains.canary.book import CONFIG_MAPS
from hortus.domains.clusters.types import RUNTIMES, ShootAnnotation
from hortus.domains.credentials.types import GARDENER_CLUSTERS, Label
from hortus.engine import Cache, by_label, metadata_of
from hortus.kube import Client
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import ObjectKey, Resource
from hortus.schema import ObjectMeta

_RUNS = "canary run"
"""The index of Runtimes by the run that made them."""
SHOOTS = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")


class Traces:
    """Finds the objects of runs by their names, and removes those that may be removed from outside."""

    def __init__(
        self,
        *,
        client: Client,
        garden: Client,
        garden_namespace: str,
        runtimes: Cache,
        clusters: Cache,
        secrets: Cache,
        namespace: str,
    ) -> None:
        """`clusters` holds the GardenerClusters, `secrets` the kubeconfig Secrets, of `namespace`."""
        runtimes.add_index(_RUNS, by_label(service.RUN))
        self._runtimes = runtimes
        self._client = client
        self._garden = garden
        self._garden_namespace = self.garden_namespace = garden_namespace
        self._clusters = clusters
        self._secrets = secrets
        self._namespace = namespace

    def runs(self) -> set[str]:
        """The names of all runs whose Runtime is there."""
        return {run for run in self._runtimes.values_of(_RUNS) if self.runtime(run) is not None}

    def runtime(self, run: str) -> ObjectMeta | None:
        """The Runtime of a run; None when there is none, or one of its name that no canary made."""
        found = self._runtimes.get(ObjectKey(self._namespace, run))
        runtime = metadata_of(found) if found is not None else None
        return runtime if runtime is not None and service.run_of(runtime) == run else None

    async def left(self, runs: Iterable[str]) -> tuple[str, ...]:
        """All that is left of these runs, as `kind/name`, as far as it can be known now."""
        found: list[str] = []
        for run in sorted(runs):
            if self.runtime(run) is not None:
                found.append(f"runtime/{run}")
            try:
                found.extend(await self.of(run))
            except KubeError as error:
                found.append(f"shoot/{run} (the garden cannot be asked: {error})")
        return tuple(found)

    async def of(self, run: str) -> tuple[str, ...]:
        """The objects of a run besides its Runtime, as `kind/name`. Raises KubeError, as of a garden that is away."""
        found = []
        if self._cluster(run) is not None:
            found.append(f"gardenercluster/{run}")
        if self._secrets.get(ObjectKey(self._namespace, f"kubeconfig-{run}")) is not None:
            found.append(f"secret/kubeconfig-{run}")
        if await self._has_shoot(run):
            found.append(f"shoot/{run}")
        if await self._has_config_map(f"structured-auth-config-{run}"):
            found.append(f"configmap/structured-auth-config-{run} (garden)")
        return tuple(found)

    async def remove(self, run: str) -> None:
        """Delete the Runtime, then the GardenerCluster, and with it its Secret.

        A Shoot is deleted by its Runtime and in no other way.
        """
        await self.remove_runtime(run)
        if self.runtime(run) is None:
            await self._delete(GARDENER_CLUSTERS, self._cluster(run))

    async def remove_runtime(self, run: str) -> None:
        await self._delete(RUNTIMES, self.runtime(run))

    async def _delete(self, resource: Resource, found: ObjectMeta | None) -> None:
        """Delete this very object, unless it is gone or being deleted."""
        if found is None or found.deletion_timestamp:
            return
        try:
            await self._client.delete(resource, found.name, found.namespace, uid=found.uid)
        except NotFound:
            return  # the watch will show it

    def _cluster(self, run: str) -> ObjectMeta | None:
        found = self._clusters.get(ObjectKey(self._namespace, run))
        cluster = metadata_of(found) if found is not None else None
        return cluster if cluster is not None and cluster.labels.get(Label.RUNTIME_ID) == run else None

    async def _has_shoot(self, run: str) -> bool:
        try:
            shoot = await self._garden.get(SHOOTS, run, self._garden_namespace)
        except NotFound:
            return False
        return metadata_of(shoot).annotations.get(ShootAnnotation.RUNTIME_ID) == run

    async def _has_config_map(self, name: str) -> bool:
        """Asked with a deletion that is a dry run: the account may delete ConfigMaps there and may not read them."""
        try:
            await self._garden.delete(CONFIG_MAPS, name, self._garden_namespace, dry_run=True)
        except NotFound:
            return False
        return True
