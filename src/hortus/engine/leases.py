"""Leader election by a `coordination.k8s.io/v1` Lease, as client-go does it, so that both can stand in one election.

A candidate takes a lease that nobody holds, or whose record has not changed for its duration as this process saw it.
Only the passing of time here counts, never a timestamp of another machine, so clocks may disagree by any amount. The
leader renews every retry period; a renewal counts from before its request was sent. When none has succeeded for the
renew deadline it is no leader any more, whether or not a timer has said so: `leading` asks the clock. That is the
fence for a process that was stopped and comes back: it finds out before it begins another reconcile. The time between
renew deadline and lease duration is what its last request has to come to an end.

The clock is the monotonic one, which goes on while a process is stopped and, on Linux, while the machine is suspended.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
import uuid
from collections.abc import Mapping
from random import Random
from typing import Protocol

import msgspec
import structlog

from hortus.engine.backoff import spread
from hortus.engine.shards.records import LEASES
from hortus.engine.within import within
from hortus.kube.clock import Clock
from hortus.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from hortus.kube.objects import Object, Resource, format_micro_time

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


_JITTER = 0.1
"""The jitter of the retry period, so that candidates do not ask in step."""


class LeaseClient(Protocol):
    """The part of `hortus.kube.Client` that an election uses."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...

    async def create(self, resource: Resource, obj: Object) -> Object: ...

    async def replace(self, resource: Resource, obj: Object) -> Object: ...


class LeaseTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds; the defaults are client-go's. `duration` > `renew_deadline` > `retry_period`."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not math.inf > self.duration > self.renew_deadline > self.retry_period > 0:
            raise ValueError(f"{self} needs a finite duration > renew_deadline > retry_period > 0")

    @property
    def seconds(self) -> int:
        """The duration as a Lease says it, in whole seconds: never less than what the holder counts with."""
        return math.ceil(self.duration)


def default_identity() -> str:
    """Host, process and chance: no two candidates share it, and people can tell whose it is."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:12]}"


class Elector:
    """One candidate for one lease. `acquire`, then `leading` until `lost` or `release`; can be used again."""

    def __init__(
        self,
        client: LeaseClient,
        *,
        name: str,
        namespace: str,
        identity: str = "",
        clock: Clock,
        times: LeaseTimes | None = None,
        random: Random | None = None,
        labels: Mapping[str, str] | None = None,
        creates: bool = True,
        longest: float = math.inf,
    ) -> None:
        """`labels` are those of a lease that is created; without `creates` one that does not exist is nobody's.

        No other candidate's lease counts for more than `longest` seconds, whatever duration it says.
        """
        self.name = name
        self.identity = identity or default_identity()
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._times = times or LeaseTimes()
        self._random = random or Random()  # noqa: S311 - jitter, not secrecy
        self._labels = dict(labels or {})
        self._creates = creates
        self._longest = longest
        self._seen: Object | None = None
        """The lease as last read or written."""
        self._seen_at = 0.0
        """Monotonic time at which its record was first seen so."""
        self._valid_until = float("-inf")
        self._renewing: asyncio.Task[None] | None = None

    @property
    def leading(self) -> bool:
        """True when this process leads now."""
        return self._clock.monotonic() < self._valid_until

    @property
    def leader(self) -> str:
        """The identity that held the lease when it was last seen; empty when nobody did."""
        return _holder(self._seen) if self._seen is not None else ""

    async def acquire(self) -> None:
        """Return once this process leads. Failures of the API are waited out."""
        while not await self._try():
            await self._clock.sleep(spread(self._times.retry_period, _JITTER, random=self._random))
        _log.info("became leader", lease=self.name, identity=self.identity)
        self._renewing = asyncio.create_task(self._renew(), name=f"lease {self.name}")

    async def lost(self) -> None:
        """Return when this process leads no more."""
        if self._renewing is not None:
            await asyncio.wait([self._renewing])

    async def rest(self) -> None:
        """End the renewals and leave the lease as it is: it runs out unless another with this identity takes it."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
            self._renewing = None

    async def release(self) -> None:
        """End the renewals and, when leading, empty the lease so that another takes over at once."""
        await self.rest()
        if not self.leading or self._seen is None:
            return
        self._valid_until = float("-inf")
        now = format_micro_time(self._clock.now())
        spec = {**self._seen["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now}
        try:
            await within(self._clock, self._times.retry_period, self._put({**self._seen, "spec": spec}))
            _log.info("gave the lease back", lease=self.name)
        except Conflict:
            _log.info("the lease is another's by now", lease=self.name)
        except (KubeError, OSError) as error:
            _log.warning("the lease could not be given back and has to run out", lease=self.name, error=str(error))

    async def _renew(self) -> None:
        while self.leading:
            await self._clock.sleep(self._times.retry_period)
            await self._try_while_leading()
        _log.error("leadership lost", lease=self.name, identity=self.identity, leader=self.leader)

    async def _try_while_leading(self) -> None:
        if self.leading:
            await self._try()

    async def _try(self) -> bool:
        """Take or renew the lease once; False when that failed, took too long, or another holds it."""
        began = self._clock.monotonic()
        limit = self._valid_until - began if self.leading else self._times.renew_deadline
        try:
            held = await within(self._clock, limit, self._take())
        except (Conflict, AlreadyExists, NotFound):
            # Another was quicker, or deleted it. Who leads has to know at once whether that was a take-over.
            held = await self._look_again() if self.leading else False
        except (KubeError, OSError) as error:
            _log.warning("the lease could not be read or written", lease=self.name, error=str(error))
            held = False
        if held:
            self._valid_until = began + self._times.renew_deadline
        return held and self.leading

    async def _take(self) -> bool:
        if not self.leading or self._seen is None:
            try:
                self._see(await self._client.get(LEASES, self.name, self._namespace))
            except NotFound:
                if not self._creates:
                    return False
                self._see(await self._client.create(LEASES, self._record(None)))
                return True
        assert self._seen is not None, "the lease was just read"
        if not self._may_take(self._seen):
            return False
        await self._put(self._record(self._seen))
        return True

    def _may_take(self, lease: Object) -> bool:
        holder = _holder(lease)
        if not holder or holder == self.identity:
            return True
        duration = lease["spec"].get("leaseDurationSeconds")
        seconds = float(duration) if isinstance(duration, int) and duration > 0 else self._times.duration
        return self._clock.monotonic() >= self._seen_at + min(seconds, self._longest)

    def _record(self, lease: Object | None) -> Object:
        """The lease as it is when we hold it from now on."""
        now = format_micro_time(self._clock.now())
        before = (lease or {}).get("spec") or {}
        mine = before.get("holderIdentity") == self.identity
        transitions = before.get("leaseTransitions") or 0
        spec = {
            **before,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._times.seconds,
            "acquireTime": before.get("acquireTime", now) if mine else now,
            "renewTime": now,
            "leaseTransitions": transitions if mine or lease is None else transitions + 1,
        }
        metadata = lease["metadata"] if lease is not None else self._metadata()
        return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}

    def _metadata(self) -> Object:
        metadata: Object = {"name": self.name, "namespace": self._namespace}
        return {**metadata, "labels": self._labels} if self._labels else metadata

    async def _put(self, lease: Object) -> None:
        self._see(await self._client.replace(LEASES, lease))

    async def _look_again(self) -> bool:
        """After a conflict as leader: somebody edited, deleted or took the lease. True when it is renewed after all."""
        try:
            self._see(await self._client.get(LEASES, self.name, self._namespace))
            if self.leader == self.identity and self._seen is not None:
                await self._put(self._record(self._seen))
                return True
            self._valid_until = float("-inf")
        except NotFound:
            return await self._create_again() if self._creates else False
        except (KubeError, OSError) as error:
            _log.warning("the lease could not be read", lease=self.name, error=str(error))
        return False

    async def _create_again(self) -> bool:
        """Create the lease that somebody deleted; False when another candidate was quicker, which the next renewal
        finds."""
        try:
            self._see(await self._client.create(LEASES, self._record(None)))
        except (KubeError, OSError) as error:
            _log.warning("the lease was deleted and could not be created again", lease=self.name, error=str(error))
            return False
        _log.warning("the lease was deleted and is created again", lease=self.name)
        return True

    def _see(self, lease: Object) -> None:
        """Note the lease; the time of its holder starts again whenever its record differs from what was seen."""
        if self._seen is None or self._seen.get("spec") != lease.get("spec"):
            self._seen_at = self._clock.monotonic()
        self._seen = lease


def _holder(lease: Object) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")
