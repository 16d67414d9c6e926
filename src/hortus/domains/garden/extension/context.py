"""The context of one reconcile of an Extension: the Shoot around it, and the operation that is carried out."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from hortus.domains.garden.extension.topic import ExtensionFacts, TopicObjects
from hortus.domains.garden.kinds.extension import GardenExtension, ProviderNotes
from hortus.domains.garden.kinds.seedcluster import GardenShoot, SeedCluster
from hortus.engine import Actor, ReconcileContext, StepError, TypedCache, Wiring
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey


class ExtensionContext(ReconcileContext[GardenExtension]):
    """One reconcile of one Extension."""

    def __init__(
        self,
        wiring: Wiring[GardenExtension],
        raw: Object,
        *,
        facts: ExtensionFacts,
        clusters: TypedCache[SeedCluster],
    ) -> None:
        super().__init__(wiring, raw)
        self.facts = facts
        self._clusters = clusters
        self.operation = ""
        """The operation that is carried out; empty where there is none."""
        self.dependencies = ""
        """The topic's digest, as it was when the operation began."""
        self.rendered: TopicObjects | None = None
        self.left: tuple[str, ...] | None = None
        """Names of the ManagedResources that this operation left; None where there is none."""

    @property
    def seed(self) -> Client:
        """The cluster that the Extension is in."""
        return self.wiring.client

    @property
    def namespace(self) -> str:
        """The Shoot's namespace in the seed."""
        return self.key.namespace

    @property
    def known_cluster(self) -> SeedCluster | None:
        """The copies of the garden's objects; None where gardenlet has removed them."""
        return self._clusters.get(ObjectKey("", self.key.namespace))

    @cached_property
    def cluster(self) -> SeedCluster:
        """The copies of the garden's objects. Raises StepError."""
        found = self.known_cluster
        if found is None:
            raise StepError(
                f"Cluster {self.key.namespace} does not exist: gardenlet creates it with the namespace",
                reason="ClusterMissing",
                actor=Actor.PROVIDER,
            )
        return found

    @property
    def shoot(self) -> GardenShoot:
        """The Shoot. Raises StepError."""
        return self.cluster.shoot

    @property
    def config(self) -> dict[str, Any] | None:
        """The configuration, as the Shoot has it."""
        return self.object.spec.provider_config

    @property
    def notes(self) -> ProviderNotes:
        """The notes of the last operation."""
        return self.object.status.provider_status or ProviderNotes()
