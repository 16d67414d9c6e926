"""The cluster is connected and equipped (section 2.2, HandleKubeconfig to ApplyClusterRoleBindings).

A GardenerCluster asks for the kubeconfig; once that is Ready, the kubeconfig leads into the cluster, where providers,
administrators and facts are put. Failures in there are shown and tried again; the state stays Pending meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from hortus.domains.clusters import service
from hortus.domains.clusters.garden import Garden
from hortus.domains.clusters.inside import (
    InsideError,
    NoWayIn,
    Workloads,
    bind_administrators,
    configure_oidc,
    publish_provisioning_info,
)
from hortus.domains.clusters.outline import ShootOutline
from hortus.domains.clusters.pauses import AT_ONCE, KUBECONFIG
from hortus.domains.clusters.types import ConditionType, Reason, State
from hortus.domains.clusters.visit import Setback, Visit
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import FALSE, TRUE, UNKNOWN, Actor, Cache, Result, StepError
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import AlreadyExists, KubeError
from hortus.kube.objects import Object

_KUBECONFIG = ConditionType.KUBECONFIG_READY
_OIDC = ConditionType.OIDC_CONFIGURED


class Connecting:
    def __init__(
        self,
        *,
        client: Client,
        clusters: Cache,
        garden: Garden,
        workloads: Workloads,
        default_oidc: Object,
        clock: Clock,
        unexpected: Callable[[], None],
    ) -> None:
        """`unexpected` counts a stop by an error."""
        self._client = client
        self._clusters = clusters
        self._garden = garden
        self._workloads = workloads
        self._default_oidc = default_oidc
        self._clock = clock
        self._unexpected = unexpected

    async def connect(self, visit: Visit, live: ShootOutline) -> Result | None:
        """None once the Runtime is Ready. Raises Setback, StepError."""
        cluster = self._clusters.get(service.cluster_key(visit.runtime))
        if cluster is None:
            return await self._ask_for_kubeconfig(visit, live)
        if service.shoot_of(cluster) != service.shoot_name(visit.runtime):
            raise _refused(_taken(visit.runtime, cluster))
        if (cluster.get("status") or {}).get("state") != State.READY:
            return Result(requeue_after=KUBECONFIG)
        known = visit.says(_KUBECONFIG, TRUE, Reason.KUBECONFIG_READY)
        visit.pending(_KUBECONFIG, TRUE, Reason.KUBECONFIG_READY, "Gardener Cluster CR is ready.")
        if not known:
            await visit.save()
            return Result(requeue_after=AT_ONCE)
        await self._equip(visit, live)
        return None

    async def restore(self, visit: Visit, live: ShootOutline) -> Result | None:
        """Have a GardenerCluster again that somebody deleted, where the Runtime rests. The Go system does not look.

        A Ready Runtime is connected again. One that failed gets its kubeconfig back and stays as it is.
        """
        if live.deleting or self._clusters.get(service.cluster_key(visit.runtime)) is not None:
            return None
        if service.state_of(visit.runtime) == State.READY:
            return await self._ask_for_kubeconfig(visit, live)
        if service.has_been_ready(visit.runtime):
            await self._request(visit, live)
        return None

    async def _ask_for_kubeconfig(self, visit: Visit, live: ShootOutline) -> Result:
        if not await self._request(visit, live):
            return Result(requeue_after=KUBECONFIG)
        text = "Gardener Cluster CR created, waiting for readiness"
        visit.pending(_KUBECONFIG, UNKNOWN, Reason.KUBECONFIG_REQUESTED, text)
        await visit.save()
        return Result(requeue_after=KUBECONFIG)

    async def _request(self, visit: Visit, live: ShootOutline) -> bool:
        """Create the GardenerCluster. Returns whether there was none. Raises Setback."""
        wanted = service.gardener_cluster(visit.runtime, live.domain)
        try:
            self._clusters.learn(await self._client.create(GARDENER_CLUSTERS, wanted))
        except AlreadyExists:
            return False
        except KubeError as error:
            raise _refused(str(error)) from error
        return True

    async def _equip(self, visit: Visit, live: ShootOutline) -> None:
        try:
            async with self._workloads.open(visit.runtime) as cluster:
                await self._oidc(visit, live, cluster)
                await self._inside(visit, cluster)
        except NoWayIn as error:
            visit.pending(
                ConditionType.CONFIGURED, FALSE, Reason.CONFIGURATION_ERR, "failed to update kubeconfig admin access"
            )
            await visit.save()
            self._unexpected()
            raise StepError(str(error), reason=Reason.CONFIGURATION_ERR, actor=Actor.OPERATOR) from error
        except InsideError as error:
            visit.hindered(ConditionType.CONFIGURED, Reason.CONFIGURATION_ERR, f"Cluster configuration error: {error}")
            await visit.save()
            raise StepError(str(error), reason=Reason.CONFIGURATION_ERR, actor=Actor.PROVIDER) from error
        visit.ready(Reason.ADMINISTRATORS, "Cluster admin configuration complete")
        await visit.save()

    async def _oidc(self, visit: Visit, live: ShootOutline, cluster: Client) -> None:
        if not live.oidc:
            visit.note(_OIDC, Reason.OIDC_CONFIGURED, "OIDC extension disabled")
            return
        try:
            await configure_oidc(cluster, visit.runtime, self._default_oidc)
        except KubeError as error:
            visit.hindered(_OIDC, Reason.OIDC_ERR, f"OIDC configuration error: {error}")
            await visit.save()
            raise StepError(str(error), reason=Reason.OIDC_ERR, actor=Actor.PROVIDER) from error
        visit.note(_OIDC, Reason.OIDC_CONFIGURED, "OIDC configuration completed")

    async def _inside(self, visit: Visit, cluster: Client) -> None:
        await bind_administrators(cluster, visit.runtime)
        shoot = await self._garden.read(service.shoot_name(visit.runtime))
        if shoot is not None:
            await publish_provisioning_info(cluster, visit.runtime, shoot, self._clock.now())


def _refused(text: str) -> Setback:
    return Setback(Reason.KUBERNETES_ERR, text, kind=_KUBECONFIG)


def _taken(runtime: Object, cluster: Object) -> str:
    metadata = cluster["metadata"]
    return (
        f"GardenerCluster {metadata['namespace']}/{metadata['name']} is for shoot {service.shoot_of(cluster)}, not "
        f"{service.shoot_name(runtime)}: another Runtime has the same label runtime-id. Give each its own"
    )
