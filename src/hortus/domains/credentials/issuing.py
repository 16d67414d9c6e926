"""One kubeconfig from the garden, proven at its cluster. Failures are StepErrors with reasons of the contract."""

from __future__ import annotations

from typing import Final

from hortus.domains.credentials.garden import Garden, GardenFailure, Grant
from hortus.domains.credentials.types import GardenerCluster, Reason
from hortus.engine import Actor, StepError
from hortus.engine.kubeconfigs import Advice, IssuedKubeconfig, KubeconfigProof, ProofFailed
from hortus.kube.clock import Clock

MISSING_SHOOT_PAUSE: Final = 300.0
"""Seconds until a shoot that does not exist is asked for again; its appearing is watched, this is for gardens that do
not let us watch."""

ADVICE: Final = Advice(
    unusable="garden operator: see what issues kubeconfigs",
    refused="garden operator: its credential or the cluster's client CA is wrong",
    unreachable="cluster owner: see the shoot's conditions; tried again",
)
"""The owner of the next step when a kubeconfig from the garden does not work."""


class KubeconfigIssuer:
    """Issues kubeconfigs and proves them. Raises StepError."""

    def __init__(self, garden: Garden, proof: KubeconfigProof, clock: Clock) -> None:
        self._garden = garden
        self._proof = proof
        self._clock = clock

    async def issue(self, cluster: GardenerCluster, *, seconds: int, home: str) -> IssuedKubeconfig:
        """A kubeconfig that lives `seconds`, or as long as the garden allows; `home` is that of `ShootFacts`."""
        grant = await self._fetch(cluster, seconds)
        await self._prove(cluster, grant)
        return IssuedKubeconfig(grant.kubeconfig, self._clock.now(), grant.expires, home)

    async def _fetch(self, cluster: GardenerCluster, seconds: int) -> Grant:
        try:
            return await self._garden.admin_kubeconfig(cluster.shoot, seconds)
        except GardenFailure as error:
            after = MISSING_SHOOT_PAUSE if error.missing else error.retry_after
            raise StepError(str(error), reason=Reason.KUBECONFIG_FAILED, actor=error.actor, after=after) from error

    async def _prove(self, cluster: GardenerCluster, grant: Grant) -> None:
        try:
            await self._proof.prove(grant.kubeconfig, origin=f"kubeconfig of shoot {cluster.shoot}")
        except ProofFailed as error:
            if not (error.unreachable and await self._sleeps(cluster)):
                raise StepError(str(error), reason=Reason.KUBECONFIG_FAILED, actor=Actor.PROVIDER) from error

    async def _sleeps(self, cluster: GardenerCluster) -> bool:
        """True when the cluster is hibernated: its kubeconfig cannot be proven, and must be there when it wakes."""
        try:
            return await self._garden.hibernated(cluster.shoot)
        except GardenFailure:
            return False
