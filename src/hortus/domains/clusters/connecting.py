"""Steps that connect the cluster and equip it.

A GardenerCluster asks for the kubeconfig; once that is Ready, the kubeconfig leads into the cluster, where providers,
administrators and facts are put. Failures in there are reported and tried again; the state stays Pending meanwhile.
"""

from __future__ import annotations

from typing import NoReturn

from hortus.domains.clusters import service
from hortus.domains.clusters.context import RuntimeContext
from hortus.domains.clusters.garden import Garden
from hortus.domains.clusters.inside import (
    InsideError,
    NotPermitted,
    NoWayIn,
    Workloads,
    bind_administrators,
    configure_oidc,
    publish_provisioning_info,
)
from hortus.domains.clusters.pauses import KUBECONFIG, PERMIT
from hortus.domains.clusters.shoots import shoot_of
from hortus.domains.clusters.types import NOT_PERMITTED, ConditionType, OidcConfig, Reason, Runtime, State
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.engine import NEVER, TRUE, UNKNOWN, Actor, NotReadable, Result, StepError, TypedCache
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import AlreadyExists, KubeError

_KUBECONFIG = ConditionType.KUBECONFIG_READY
_OIDC = ConditionType.OIDC_CONFIGURED


class Connecting:
    """The steps."""

    def __init__(
        self,
        *,
        client: Client,
        clusters: TypedCache[GardenerCluster],
        garden: Garden,
        workloads: Workloads,
        default_oidc: OidcConfig,
        clock: Clock,
    ) -> None:
        self._client = client
        self._clusters = clusters
        self._garden = garden
        self._workloads = workloads
        self._default_oidc = default_oidc
        self._clock = clock

    async def restore(self, context: RuntimeContext) -> Result | None:
        """Create a GardenerCluster again that somebody deleted, where the Runtime rests. The Go system does not look.

        A Ready Runtime is connected again. One that failed gets its kubeconfig back and stays as it is.
        """
        runtime = context.object
        if context.present_shoot.deleting or self._cluster(runtime) is not None:
            return None
        if service.state_of(runtime) == State.READY:
            return await self.request(context)
        if service.has_been_ready(runtime):
            await self._create(context)
        return None

    async def request(self, context: RuntimeContext) -> Result | None:
        """Ask for the kubeconfig by a GardenerCluster, which ends the reconcile."""
        if self._cluster(context.object) is not None:
            return None
        if await self._create(context):
            text = "Gardener Cluster CR created, waiting for readiness"
            context.pending(_KUBECONFIG, UNKNOWN, Reason.KUBECONFIG_REQUESTED, text)
        return Result(requeue_after=KUBECONFIG)

    async def await_kubeconfig(self, context: RuntimeContext) -> Result | None:
        """End the reconcile while the kubeconfig is not in place."""
        runtime = context.object
        cluster = self._cluster(runtime)
        if cluster is None:
            return Result(requeue_after=KUBECONFIG)
        if cluster.spec.shoot.name != service.shoot_name(runtime):
            raise _refused(_taken(runtime, cluster))
        if cluster.status.state != State.READY:
            return Result(requeue_after=KUBECONFIG)
        await context.reached(_KUBECONFIG, Reason.KUBECONFIG_READY, "Gardener Cluster CR is ready.")
        return None

    async def equip(self, context: RuntimeContext) -> None:
        """Put into the cluster what belongs there, after which the Runtime is Ready."""
        try:
            async with self._workloads.open(context.object) as cluster:
                await self._configure_oidc(context, cluster)
                await self._configure(context, cluster)
        except NotPermitted as error:
            kind = ConditionType.CONFIGURED
            raise StepError(
                str(error), reason=NOT_PERMITTED, condition=kind, actor=Actor.OPERATOR, after=PERMIT
            ) from error
        except NoWayIn as error:
            _hindered("failed to update kubeconfig admin access", error, Actor.OPERATOR)
        except InsideError as error:
            _hindered(f"Cluster configuration error: {error}", error, Actor.PROVIDER)
        context.completed(Reason.ADMINISTRATORS, "Cluster admin configuration complete")

    async def _configure_oidc(self, context: RuntimeContext, cluster: Client) -> None:
        text = "OIDC extension disabled"
        if context.present_shoot.oidc:
            try:
                await configure_oidc(cluster, context.object, self._default_oidc)
            except KubeError as error:
                text = f"OIDC configuration error: {error}"
                raise StepError(text, reason=Reason.OIDC_ERR, condition=_OIDC, actor=Actor.PROVIDER) from error
            text = "OIDC configuration completed"
        context.condition(_OIDC, TRUE, reason=Reason.OIDC_CONFIGURED, message=text)

    async def _configure(self, context: RuntimeContext, cluster: Client) -> None:
        runtime = context.object
        await bind_administrators(cluster, runtime.wanted.security.administrators)
        found = await self._garden.read(service.shoot_name(runtime))
        if found is not None:
            await publish_provisioning_info(cluster, runtime, shoot_of(found), self._clock.now())

    def _cluster(self, runtime: Runtime) -> GardenerCluster | None:
        try:
            return self._clusters.get(service.cluster_key(runtime))
        except NotReadable as error:
            raise _refused(str(error)) from error

    async def _create(self, context: RuntimeContext) -> bool:
        """Create the GardenerCluster. Returns False when there is one."""
        wanted = service.gardener_cluster(context.object, context.present_shoot.domain)
        try:
            self._clusters.raw.learn(await self._client.create(GARDENER_CLUSTERS, wanted))
        except AlreadyExists:
            return False
        except KubeError as error:
            raise _refused(str(error)) from error
        return True


def _refused(text: str) -> StepError:
    return StepError(text, reason=Reason.KUBERNETES_ERR, condition=_KUBECONFIG, actor=Actor.OPERATOR, after=NEVER)


def _hindered(text: str, error: InsideError, actor: Actor) -> NoReturn:
    raise StepError(text, reason=Reason.CONFIGURATION_ERR, condition=ConditionType.CONFIGURED, actor=actor) from error


def _taken(runtime: Runtime, cluster: GardenerCluster) -> str:
    metadata = cluster.metadata
    return (
        f"GardenerCluster {metadata.namespace}/{metadata.name} is for shoot {cluster.spec.shoot.name}, not "
        f"{service.shoot_name(runtime)}: another Runtime has the same label runtime-id. Give each its own"
    )
