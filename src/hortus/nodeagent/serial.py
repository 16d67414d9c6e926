"""Serial mode: the nodes of a worker pool take a configuration one by one, by a Lease named like its Secret."""

from __future__ import annotations

import msgspec

from hortus.kube import Client, Clock, Object
from hortus.kube.errors import AlreadyExists, Conflict, NotFound
from hortus.kube.objects import format_micro_time, parse_time
from hortus.nodeagent.cluster import LEASES, NAMESPACE, SeenSecret

DURATION = 600
"""Seconds after which a holder that did not come to the end is passed by."""
ANNOTATION = "reconciliation.osc.node-agent.gardener.cloud/serial"


class SerialRecord(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None

    def ends(self) -> float | None:
        """The time from which another may take it; None when it is free."""
        if not self.holder_identity or self.renew_time is None:
            return None
        return parse_time(self.renew_time) + (self.lease_duration_seconds or DURATION)


class _LeaseMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Lease(msgspec.Struct, frozen=True):
    metadata: _LeaseMetadata = _LeaseMetadata()
    spec: SerialRecord = SerialRecord()


RETRY = 5.0
"""Seconds after which a node that lost the race for the lease asks again."""
FREE = {"holderIdentity": None, "leaseDurationSeconds": None, "acquireTime": None, "renewTime": None}


def is_serial(secret: SeenSecret) -> bool:
    return secret.metadata.annotations.get(ANNOTATION) == "true"


def taken(record: SerialRecord, holder: str, now: float) -> Object | None:
    """The record with which `holder` has the lease at `now`; None while another has it."""
    ends = record.ends()
    mine = record.holder_identity == holder
    if ends is not None and not mine and ends > now:
        return None
    stamp = format_micro_time(now)
    acquired = record.acquire_time if mine and record.acquire_time else stamp
    return {
        "holderIdentity": holder,
        "leaseDurationSeconds": DURATION,
        "acquireTime": acquired,
        "renewTime": stamp,
    }


class SerialLease:
    """Takes and releases the lease of one Secret. Owns that Lease."""

    def __init__(self, client: Client, clock: Clock, *, holder: str) -> None:
        self._client = client
        self._clock = clock
        self._holder = holder

    async def take(self, secret: SeenSecret) -> float:
        """Takes the lease and returns 0, or returns the seconds after which to ask again.

        Of two nodes that ask at once the API server refuses one.
        """
        name, now = secret.metadata.name, self._clock.now()
        try:
            found = msgspec.convert(await self._client.get(LEASES, name, NAMESPACE), _Lease)
        except NotFound:
            return await self._create(secret, now)
        record = taken(found.spec, self._holder, now)
        if record is None:
            ends = found.spec.ends()
            return max((ends or now) - now, RETRY)
        patch = {"metadata": {"resourceVersion": found.metadata.resource_version}, "spec": record}
        try:
            await self._client.patch(LEASES, name, patch, NAMESPACE)
        except Conflict:
            return RETRY
        return 0.0

    async def _create(self, secret: SeenSecret, now: float) -> float:
        name = secret.metadata.name
        owner = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": secret.metadata.uid}
        lease: Object = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]},
            "spec": taken(SerialRecord(), self._holder, now),
        }
        try:
            await self._client.create(LEASES, lease)
        except AlreadyExists:
            return RETRY
        return 0.0

    async def release(self, secret: SeenSecret) -> None:
        """Gives the lease to the next node; does nothing when this one does not have it."""
        name = secret.metadata.name
        try:
            found = msgspec.convert(await self._client.get(LEASES, name, NAMESPACE), _Lease)
            if found.spec.holder_identity != self._holder:
                return
            patch = {"metadata": {"resourceVersion": found.metadata.resource_version}, "spec": FREE}
            await self._client.patch(LEASES, name, patch, NAMESPACE)
        except (NotFound, Conflict):
            return
