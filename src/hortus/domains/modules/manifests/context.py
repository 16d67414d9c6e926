"""The context of one reconcile of a Manifest: states, operations, finalizers, and what earlier steps have found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from hortus.domains.modules.kinds.manifest import EXTERNAL
from hortus.domains.modules.manifests.outline import Edition
from hortus.domains.modules.manifests.synced import SyncedInventory
from hortus.domains.modules.names import Annotation, CustomResourcePolicy, FieldOwner, Label, State
from hortus.domains.modules.types import MANIFESTS, InstallSource, Manifest, ManifestSpec, OperationRecord, SyncedObject
from hortus.engine import Actor, Announcement, ReconcileContext, StepError, Wiring
from hortus.engine.applysets import DiscoveredKinds
from hortus.engine.conditions import find_condition, has_condition
from hortus.engine.outcomes import NEVER
from hortus.engine.remote import KubeconfigRef
from hortus.kube import Client
from hortus.kube.objects import Object, format_time, shaped

RESOURCES: Final = "Resources"
INSTALLATION: Final = "Installation"
MODULE_CR: Final = "ModuleCR"
DELETION: Final = "Deletion"
"""Reports the obstacle to a deletion; an addition to the conditions of the contract."""
CONFIGURATION: Final = "Configuration"
"""Reports the fields that operators enforce on the default resource; an addition to the conditions of the contract."""
REASONS: Final = {RESOURCES: "ResourcesAvailable", INSTALLATION: "Ready", MODULE_CR: "ModuleCRCreated"}
"""The reason of each condition, whatever its status."""


class ManifestError(StepError):
    """A failure that leaves the Manifest in a state of its own."""

    def __init__(self, message: str, *, state: State, operation: str = "", **given: Any) -> None:
        super().__init__(message, **given)
        self.state = state
        self.operation = operation or message


class ManifestContext(ReconcileContext[Manifest]):
    """One reconcile of one Manifest."""

    def __init__(self, wiring: Wiring[Manifest], raw: Object) -> None:
        super().__init__(wiring, raw)
        self.editions: set[Edition] = set()
        """Editions of the Deployments that were observed."""

    place: KubeconfigRef = KubeconfigRef("", "", "")
    """The place of the cluster's kubeconfig. Set by the step that connects, like all that follows by its step."""
    client: Client
    kinds: DiscoveredKinds
    rendered: list[Object]
    """The objects of the module as they are applied."""
    inventory: SyncedInventory | None = None
    """Made by the first step that needs it; the same until the end."""
    phase: str = "manifest_retrieval"
    """The step, by its name in the requeue metric."""
    is_listed: bool = False
    """True when the status of the Kyma lists the Manifest, or need not."""
    settled: bool = False
    """True when the reconcile has found the module as it should be."""
    rest: float = 0.0
    """Seconds until a settled one is compared again."""

    # The object.

    @property
    def spec(self) -> ManifestSpec:
        """Raises StepError for a Manifest without one."""
        spec = self.object.spec
        if spec is None:
            raise StepError(
                f"Manifest {self.key}: spec is missing: the Kyma controller writes it",
                reason="InvalidObject",
                actor=Actor.USER,
                after=NEVER,
            )
        return spec

    @property
    def identity(self) -> str:
        """Namespace and name, as marks of objects hold them."""
        return f"{self.key.namespace}/{self.key.name}"

    @property
    def kyma(self) -> str:
        """Name of the Kyma; empty for a Manifest without the label."""
        return self.label(Label.KYMA_NAME)

    def label(self, name: str) -> str:
        return self.object.metadata.labels.get(name, "")

    def annotation(self, name: str) -> str:
        return self.object.metadata.annotations.get(name, "")

    @property
    def is_unmanaged(self) -> bool:
        return self.annotation(Annotation.IS_UNMANAGED) == "true"

    @property
    def is_mandatory(self) -> bool:
        return self.label(Label.MANDATORY_MODULE).lower() == "true"

    @property
    def is_external(self) -> bool:
        """True where others install the operator of the module."""
        found = shaped(self.spec.install.source, InstallSource)
        return found is not None and found.type == EXTERNAL

    @property
    def resource(self) -> Object | None:
        """The default module CR, where there is one and the policy wants it created and deleted."""
        creates = self.spec.custom_resource_policy == CustomResourcePolicy.CREATE_AND_DELETE
        return self.spec.resource if creates else None

    # The status.

    @property
    def state(self) -> State:
        return State(self.drafted("state") or "")

    @property
    def synced(self) -> tuple[SyncedObject, ...]:
        return self.object.status.synced

    def holds(self, condition: str) -> bool:
        """Reports whether a condition is drafted as True."""
        return has_condition({"status": self.draft.fields}, condition)

    def confirm(self, condition: str, message: str) -> None:
        """Draft a condition as True."""
        self.condition(condition, "True", reason=REASONS[condition], message=message)

    def report(self, state: State, operation: str) -> None:
        """Draft the state and the operation; the time is that of the last difference."""
        last = msgspec.convert(self.drafted("lastOperation") or {"operation": ""}, OperationRecord)
        if self.drafted("state") == state and last.operation == operation:
            return
        self.set_status("state", state.value)
        self.set_status("lastOperation", {"operation": operation, "lastUpdateTime": format_time(self.now)})

    def announcements(self, before: Object) -> Iterator[Announcement]:
        """The conditions of a Manifest that begins are False by definition: they bring no events."""
        return super().announcements(before) if find_condition(before, RESOURCES) is not None else iter(())

    async def store(self, synced: Sequence[SyncedObject]) -> None:
        """Keep the inventory: at once when it has become longer, with the status otherwise."""
        grown = len(set(synced) - set(self.synced)) > 0
        self.set_status("synced", [msgspec.to_builtins(one) for one in synced])
        if grown:
            self.report(State.PROCESSING, "resource syncTarget state diff detected")
            await self.checkpoint()

    # The object's metadata.

    async def apply_finalizers(self, *names: str, manager: str = FieldOwner.MODULE_RESOURCES) -> bool:
        """Add finalizers by server-side apply; returns whether one was missing. Raises KubeError, Superseded."""
        present = self.object.metadata.finalizers
        if set(names) <= set(present):
            return False
        metadata = self.object.metadata
        named = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
        self._take(
            await self.wiring.client.apply(
                MANIFESTS, {"metadata": {**named, "finalizers": list(names)}}, field_manager=manager
            )
        )
        return True

    async def annotate(self, name: str, value: str) -> None:
        await self.patch({"metadata": {"uid": self.object.metadata.uid, "annotations": {name: value}}})
