"""The Shoot of a changed Runtime is patched (section 2.4, PatchExistingShoot).

The state says Pending as soon as the change is seen, before the first call to the garden: brokers look at it a moment
after their update. Conflicts of two writers pass by themselves; what the garden refuses rests until somebody acts.
"""

from __future__ import annotations

from hortus.domains.clusters import service
from hortus.domains.clusters.conversion import Conversion
from hortus.domains.clusters.creation import authenticate
from hortus.domains.clusters.garden import Garden
from hortus.domains.clusters.outline import ShootOutline, outline_of
from hortus.domains.clusters.pauses import GARDEN, VERIFICATION
from hortus.domains.clusters.shoot import LiveShoot, Patch, pools_in_place
from hortus.domains.clusters.types import FIELD_MANAGER, RUNTIMES, Annotation, ConditionType, Reason
from hortus.domains.clusters.visit import Setback, Visit
from hortus.engine import TRUE, UNKNOWN, Cache
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import ApiError, Conflict, Forbidden, KubeError, NotFound, TooManyRequests, TransportError
from hortus.kube.objects import Object

_PENDING = "Shoot is pending for update after"


class Superseded(Exception):
    """Somebody else changed the Shoot, or the garden refused for a moment: it is patched again soon."""


class Patching:
    def __init__(
        self, *, client: Client, runtimes: Cache, garden: Garden, conversion: Conversion, clock: Clock
    ) -> None:
        self._client = client
        self._runtimes = runtimes
        self._garden = garden
        self._conversion = conversion
        self._clock = clock

    async def patch(self, visit: Visit) -> bool:
        """Bring the Shoot up to the Runtime and tell whether that changed anything. Raises Setback, Superseded."""
        await self._announce(visit)
        before = await self._read(visit)
        patch = await self._conversion.patch(visit.runtime, before)
        if self._conversion.structured(visit.runtime, before):
            await authenticate(self._garden, visit.runtime, self._conversion)
        after = await self._send(visit, before, patch) if patch.differs else before
        self._conversion.tell_remarks(visit, before)
        await self._settle(visit)
        visit.live = outline_of(after)
        return visit.live.generation != outline_of(before).generation

    async def _announce(self, visit: Visit) -> None:
        """Say Pending for a new generation, unless the status speaks of it already."""
        provisioned = ConditionType.PROVISIONED
        if visit.speaks_of_now(provisioned):
            return
        visit.pending(provisioned, UNKNOWN, Reason.PROCESSING, f"{_PENDING} patch")
        await visit.save()

    async def _read(self, visit: Visit) -> Object:
        try:
            found = await self._garden.read(_of(visit).name)
        except KubeError as error:
            raise _setback("update", error) from error
        if found is None or outline_of(found).uid != _of(visit).uid:
            raise Superseded("conflict error")
        return found

    async def _send(self, visit: Visit, live: Object, patch: Patch) -> Object:
        name = _of(visit).name
        try:
            if patch.drop_oidc is not None:
                live = await self._garden.merge(name, patch.drop_oidc)
                patch = await self._conversion.patch(visit.runtime, live)
            if patch.pools is not None:
                await self._verify(patch, await self._garden.merge(name, patch.pools))
        except KubeError as error:
            raise _setback("update", error) from error
        try:
            return await self._garden.apply(patch.shoot)
        except KubeError as error:
            raise _setback("patch", error) from error

    async def _verify(self, patch: Patch, live: Object | None) -> None:
        """See that the garden has the pools, in their order; an apply would not remove any (section 2.4)."""
        name = patch.shoot["metadata"]["name"]
        for pause in (*VERIFICATION, None):
            if live is not None and pools_in_place(patch.shoot, LiveShoot(live)):
                return
            if pause is not None:
                await self._clock.sleep(pause)
                live = await self._garden.read(name)
        raise Setback(Reason.PROCESSING_ERR, "Workers pool not synchronised")

    async def _settle(self, visit: Visit) -> None:
        """Take the force annotation off, now that what it asked for is done. Raises KubeError."""
        if not service.forced(visit.runtime):
            return
        metadata = visit.runtime["metadata"]
        patch = {"metadata": {"annotations": {Annotation.FORCE_PATCH: None}}}
        try:
            changed = await self._client.patch(
                RUNTIMES, metadata["name"], patch, metadata["namespace"], field_manager=FIELD_MANAGER
            )
        except NotFound:
            return
        self._runtimes.learn(changed)


def superseded(visit: Visit, error: Superseded) -> None:
    """The status for a patch that is to be tried again soon."""
    visit.pending(ConditionType.PROVISIONED, UNKNOWN, Reason.PROCESSING, f"{_PENDING} {error}")


def sent(visit: Visit, *, changed: bool) -> None:
    """The status after a patch."""
    if changed:
        visit.pending(ConditionType.PROVISIONED, UNKNOWN, Reason.PROCESSING, f"{_PENDING} patch")
    else:
        visit.pending(ConditionType.PROVISIONED, TRUE, Reason.PROCESSING, "Shoot patched without changes")


def _of(visit: Visit) -> ShootOutline:
    assert visit.live is not None, "only a Shoot that exists is patched"
    return visit.live


def _setback(what: str, error: KubeError) -> Exception:
    match error:
        case Conflict():
            return Superseded("conflict error")
        case Forbidden():
            # The garden says so now and then for no reason (section 2.4).
            return Superseded("forbidden error")
    passes = isinstance(error, TransportError | TooManyRequests) or (
        isinstance(error, ApiError) and error.http_code >= 500
    )
    return Setback(Reason.PROCESSING_ERR, f"Gardener API shoot {what} error: {error}", after=GARDEN if passes else None)
