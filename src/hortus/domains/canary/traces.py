"""What a run has left, in the garden and on the management cluster."""

from __future__ import annotations

from hortus.domains.canary.book import CONFIG_MAPS
from hortus.domains.clusters.types import ShootAnnotation
from hortus.domains.credentials.types import GARDENER_CLUSTERS, Label
from hortus.engine import Cache
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, Resource

SHOOTS = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")


class Traces:
    """Looks for what a run with a certain name has made, and removes what may be removed from outside."""

    def __init__(
        self,
        *,
        client: Client,
        garden: Client,
        garden_namespace: str,
        clusters: Cache,
        secrets: Cache,
        namespace: str,
    ) -> None:
        """`clusters` holds the GardenerClusters, `secrets` the kubeconfig Secrets, of `namespace`."""
        self._client = client
        self._garden = garden
        self._garden_namespace = garden_namespace
        self._clusters = clusters
        self._secrets = secrets
        self._namespace = namespace

    async def of(self, run: str) -> tuple[str, ...]:
        """As `kind/name`; empty when nothing is left. Raises KubeError when the garden cannot be asked."""
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
        """The GardenerCluster, with which its Secret goes. A Shoot goes with its Runtime and in no other way."""
        cluster = self._cluster(run)
        if cluster is None or cluster["metadata"].get("deletionTimestamp"):
            return
        try:
            await self._client.delete(GARDENER_CLUSTERS, run, self._namespace, uid=cluster["metadata"]["uid"])
        except NotFound:
            return

    def _cluster(self, run: str) -> Object | None:
        found = self._clusters.get(ObjectKey(self._namespace, run))
        if found is None or (found["metadata"].get("labels") or {}).get(Label.RUNTIME_ID) != run:
            return None
        return found

    async def _has_shoot(self, run: str) -> bool:
        try:
            shoot = await self._garden.get(SHOOTS, run, self._garden_namespace)
        except NotFound:
            return False
        return (shoot["metadata"].get("annotations") or {}).get(ShootAnnotation.RUNTIME_ID) == run

    async def _has_config_map(self, name: str) -> bool:
        """Asked with a deletion that is a dry run: the account may delete ConfigMaps there and may not read them."""
        try:
            await self._garden.delete(CONFIG_MAPS, name, self._garden_namespace, dry_run=True)
        except NotFound:
            return False
        return True
