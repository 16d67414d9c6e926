"""The controllers of a garden that act by the clock: hibernation by schedules, and maintenance in its window.

They own: `spec.hibernation.enabled` at the times of schedules, and versions, ended fields and the operation annotation
in the window of a Shoot; status.lastHibernationTriggerTime and status.lastMaintenance. They watch Shoots.
They never: touch a Shoot in deletion. A Shoot that is made within its window waits for the next one. Decisions:
`hortus.gardener.shoots`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final

import structlog

from hortus.engine import Cache, Result
from hortus.gardener.shoots import hibernating, maintaining
from hortus.gardener.shoots.maintaining import MaintenanceChanges, maintenance_of, until_next_window, window_start
from hortus.gardener.shoots.preparing import OPERATION, operations_in
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import Forbidden, Invalid, NotFound
from hortus.kube.objects import Object, ObjectKey, format_time, parse_time
from hortus.kube.patches import merge_patch_between
from hortus.simulation.garden.kinds import CREDENTIALS_BINDINGS, SECRET_BINDINGS, SHOOTS

FIELD_MANAGER: Final = "gardener-controller-manager"
_SPREAD: Final = 900
"""Seconds after the begin of a window within which the Shoots of one window begin."""
_MIGRATED: Final = "force-migrated-"
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class HibernationSchedules:
    """Puts Shoots to sleep and wakes them by `spec.hibernation.schedules`."""

    def __init__(self, *, client: Client, shoots: Cache, clock: Clock) -> None:
        self._client = client
        self._shoots = shoots
        self._clock = clock

    async def reconcile(self, key: ObjectKey) -> Result | None:
        shoot = self._shoots.get(key)
        if shoot is None or shoot["metadata"].get("deletionTimestamp"):
            return None
        now = self._clock.now()
        if not _is_failed(shoot) and (sleeps := hibernating.due(shoot, now)) is not None:
            try:
                await self._set(key, sleeps, now)
            except NotFound:
                return None
        after = hibernating.following(shoot, now)
        return None if after is None else Result(requeue_after=after)

    async def _set(self, key: ObjectKey, sleeps: bool, now: float) -> None:
        _log.info("hibernation by schedule", shoot=str(key), sleeps=sleeps)
        patch: Object = {"spec": {"hibernation": {"enabled": sleeps}}}
        await self._client.patch(SHOOTS, key.name, patch, key.namespace, field_manager=FIELD_MANAGER)
        patch = {"status": {"lastHibernationTriggerTime": format_time(now)}}
        found = await self._client.patch(
            SHOOTS, key.name, patch, key.namespace, subresource="status", field_manager=FIELD_MANAGER
        )
        self._shoots.learn(found)


class MaintenanceWindows:
    """Maintains Shoots once in each of their windows, or at once where the annotation asks for it."""

    def __init__(
        self, *, client: Client, shoots: Cache, profile: Callable[[Object], Object | None], clock: Clock
    ) -> None:
        self._client = client
        self._shoots = shoots
        self._profile = profile
        self._clock = clock
        self._maintained: dict[ObjectKey, int] = {}
        """The begin of the window in which a Shoot was maintained last."""

    async def reconcile(self, key: ObjectKey) -> Result | None:
        shoot = self._shoots.get(key)
        if shoot is None or shoot["metadata"].get("deletionTimestamp"):
            self._maintained.pop(key, None)
            return None
        now = self._clock.now()
        begin = window_start(shoot, now)
        asked = maintaining.NOW in operations_in((shoot["metadata"].get("annotations") or {}).get(OPERATION, ""))
        if asked or self._is_due(key, shoot, begin):
            if begin is not None:
                self._maintained[key] = round(begin)
            try:
                await self._maintain(key, shoot, now)
            except NotFound:
                return None
        return Result(requeue_after=until_next_window(shoot, now) + zlib.crc32(str(key).encode()) % _SPREAD)

    def _is_due(self, key: ObjectKey, shoot: Object, begin: float | None) -> bool:
        if begin is None or parse_time(shoot["metadata"]["creationTimestamp"]) > begin:
            return False
        return self._maintained.get(key) != round(begin)

    async def _maintain(self, key: ObjectKey, shoot: Object, now: float) -> None:
        profile = self._profile(shoot)
        if profile is None:
            return
        done = maintenance_of(shoot, profile["spec"], now)
        if done.leaves_secret_binding:
            await self._take_credentials_binding(key, done.spec)
        patch = _patch(shoot, done)
        last: dict[str, Any] = {"description": done.description, "triggeredTime": format_time(now)}
        try:
            await self._client.patch(SHOOTS, key.name, patch, key.namespace, field_manager=FIELD_MANAGER, dry_run=True)
        except (Invalid, Forbidden) as error:
            why = f"Updates to the Shoot failed to be applied: {error.message}"
            await self._report(
                key, {**last, "description": "Maintenance failed", "state": "Failed", "failureReason": why}
            )
            return
        if done.steps:
            failed = {"state": "Failed", "failureReason": done.failure} if done.failure else {"state": "Processing"}
            await self._report(key, {"failureReason": None, **last, **failed})
        self._shoots.learn(
            await self._client.patch(SHOOTS, key.name, patch, key.namespace, field_manager=FIELD_MANAGER)
        )
        if done.steps and not done.failure:
            await self._report(key, {"state": "Succeeded"})
        _log.info("shoot maintained", shoot=str(key), changes=len(done.steps))

    async def _report(self, key: ObjectKey, last: dict[str, Any]) -> None:
        patch = {"status": {"lastMaintenance": last}}
        await self._client.patch(
            SHOOTS, key.name, patch, key.namespace, subresource="status", field_manager=FIELD_MANAGER
        )

    async def _take_credentials_binding(self, key: ObjectKey, spec: Object) -> None:
        """Names the CredentialsBinding of the same Secret in place of the SecretBinding, and makes it where needed."""
        old = await self._client.get(SECRET_BINDINGS, spec["secretBindingName"], key.namespace)
        secret = old["secretRef"]
        reference = {
            "apiVersion": "v1",
            "kind": "Secret",
            **secret,
            "namespace": secret.get("namespace", key.namespace),
        }
        present = (await self._client.list(CREDENTIALS_BINDINGS, key.namespace)).items
        quotas, migrated = old.get("quotas", []), f"{_MIGRATED}{spec['secretBindingName']}"
        fitting = [one for one in present if one["credentialsRef"] == reference and one.get("quotas", []) == quotas]
        fitting.sort(key=lambda one: (one["metadata"]["name"] != migrated, one["metadata"]["name"]))
        if not fitting:
            labels = {"credentialsbinding.gardener.cloud/status": "force-migrated"}
            made = {
                "metadata": {"name": migrated, "namespace": key.namespace, "labels": labels},
                "provider": old["provider"],
                "credentialsRef": reference,
                "quotas": quotas,
            }
            fitting = [await self._client.create(CREDENTIALS_BINDINGS, made)]
        del spec["secretBindingName"]
        spec["credentialsBindingName"] = fitting[0]["metadata"]["name"]


def _is_failed(shoot: Object) -> bool:
    """Reports whether the last operation failed for good, for the spec that the Shoot has now."""
    status = shoot.get("status") or {}
    failed = (status.get("lastOperation") or {}).get("state") == "Failed"
    return failed and status.get("observedGeneration") == shoot["metadata"].get("generation")


def _patch(shoot: Object, done: MaintenanceChanges) -> Object:
    before = {"spec": shoot["spec"], "metadata": {"annotations": shoot["metadata"].get("annotations") or {}}}
    after = {"spec": done.spec, "metadata": {"annotations": done.annotations}}
    return {"metadata": {}, **merge_patch_between(before, after)}
