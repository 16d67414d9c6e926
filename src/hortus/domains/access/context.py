"""One reconcile of a request: the facts that its steps hand on, and the inventory in its status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hortus.domains.access.coverage import RbacRule
from hortus.domains.access.manifests import ACCOUNT_NAMESPACE, identity_of
from hortus.domains.access.types import ClusterAccess, Reason
from hortus.engine import NEVER, WARNING, Actor, ReconcileContext, StepError, find_condition
from hortus.engine.applysets import Inventory
from hortus.engine.applysets.inventory import decode, encode
from hortus.engine.conditions import READY
from hortus.engine.context import Announcement
from hortus.engine.kubeconfigs import KubeconfigSecret
from hortus.engine.remote import KubeconfigRef
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey, shaped
from hortus.schema import Condition


class AccessContext(ReconcileContext[ClusterAccess]):
    """The facts that the steps of one reconcile share."""

    cluster: ObjectKey
    """The GardenerCluster that the request is for."""
    shoot = ""
    """Its Shoot; empty in a deletion."""
    place: KubeconfigRef
    """The place of its admin kubeconfig."""
    remote: Client
    """The client of that cluster."""
    account_uid: str
    """The uid of the request's account there."""
    rules: Sequence[RbacRule] = ()
    """The permissions to grant."""
    secret: KubeconfigSecret | None = None
    """The request's Secret."""
    failure: StepError | None = None
    """The failure that is reported."""
    released = False
    """True once the finalizer is removed."""

    @property
    def inventory(self) -> Sequence[str]:
        """The lines of the inventory, as drafted."""
        return self.drafted("inventory") or ()

    def announcements(self, before: Object) -> Iterator[Announcement]:
        """A warning where the request fails for another reason than before, unless waiting is enough."""
        failure = self.failure
        if failure is None or failure.actor is Actor.NOBODY:
            return
        known = shaped(find_condition(before, READY), Condition)
        if known is None or known.reason != failure.reason:
            yield Announcement(WARNING, failure.reason, failure.message)


class Obstacle(NamedTuple):
    """The obstacle to the removal of a request's objects."""

    message: str
    reason: str
    """One of `LeftoverReason`."""


class StatusInventory:
    """The parent of a request's objects in `cluster`: it remembers them in the status of the request."""

    shared_kinds: tuple[str, ...] = ()
    namespace = ACCOUNT_NAMESPACE

    def __init__(self, context: AccessContext, cluster: ObjectKey) -> None:
        self._context = context
        self._cluster = cluster
        self.identity = identity_of(context.object)

    async def load(self) -> Inventory:
        return decode("".join(f"{line}\n" for line in self._context.inventory))

    async def store(self, inventory: Inventory) -> None:
        """Remember `inventory`. Raises StepError when the request is gone: nothing may be made for it any more."""
        context, lines = self._context, encode(inventory).splitlines()
        if lines == list(context.inventory):
            return
        context.set_status("inventory", lines or None)
        context.set_status("cluster", str(self._cluster))
        if context.shoot:
            context.set_status("shoot", context.shoot)
        if not await context.checkpoint() and lines:
            raise StepError("the request is gone", reason=Reason.REMOVING, after=NEVER)

    async def remove(self) -> None:
        await self.store({})


def ready_reason(access: ClusterAccess) -> str:
    """The reason of the condition Ready; "" before the first report."""
    return next((known.reason for known in access.status.conditions if known.type == "Ready"), "")
