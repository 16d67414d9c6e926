"""The admission of CloudProfiles over HTTP: defaults, rules with the paths of fields, warnings about regions.

A CloudProfile that is being deleted is let through, since its finalizers must be removable, and so is an update that
changes nothing of its spec.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from aiohttp import web

from hortus.domains.garden.arm.settings import ProfileWebhook
from hortus.engine import Manager, metadata_of
from hortus.engine.serving import ADMITTED, AdmissionVerdict, HttpsServer, ReviewRequest, add_mounted, review_handler
from hortus.gardener.machineimages import (
    UnreadableProfile,
    cloud_profile_problems,
    defaulted_profile,
    profile_of,
    warnings_of,
)
from hortus.kube.objects import Object

MUTATE_PATH: Final = "/webhooks/mutate-cloudprofiles"
VALIDATE_PATH: Final = "/webhooks/validate-cloudprofiles"
_INVALID: Final = 422
_LONGEST_WARNINGS: Final = 4096
"""Characters of all warnings together that kube-apiserver hands on (k8s.io/apiserver, pkg/warning)."""


class _Images(msgspec.Struct, rename="camel"):
    machine_images: list[Object] = []


class _Completed(msgspec.Struct):
    spec: _Images


def routes() -> Mapping[str, Callable[[web.Request], Awaitable[web.Response]]]:
    """The handlers by path."""
    return {MUTATE_PATH: review_handler(mutate), VALIDATE_PATH: review_handler(validate)}


def add_webhook(manager: Manager, settings: ProfileWebhook) -> None:
    """Serve the webhook. Raises OSError, ValueError for a certificate that cannot be used."""
    server = HttpsServer("cloudprofiles", settings.address, routes())
    add_mounted(manager, server, settings.folder)


async def mutate(request: ReviewRequest) -> AdmissionVerdict:
    """The patch that gives a CloudProfile its defaults. An unreadable one is left to the rules."""
    profile = _judged(request)
    if profile is None:
        return ADMITTED
    try:
        found = defaulted_profile(profile)
    except UnreadableProfile:
        return ADMITTED
    if found is profile:
        return ADMITTED
    images = msgspec.convert(found, _Completed).spec.machine_images
    return AdmissionVerdict(patch=({"op": "replace", "path": "/spec/machineImages", "value": images},))


async def validate(request: ReviewRequest) -> AdmissionVerdict:
    """The judgement of a CloudProfile, with warnings where it is accepted."""
    profile = _judged(request)
    if profile is None:
        return ADMITTED
    try:
        found = profile_of(profile)
    except UnreadableProfile as error:
        return _refused(str(error))
    if problems := [str(one) for one in cloud_profile_problems(found)]:
        return _refused(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return AdmissionVerdict(warnings=tuple(_bounded(warnings_of(found))))


def _judged(request: ReviewRequest) -> Object | None:
    """The CloudProfile that is judged; None where it is being deleted or keeps its spec."""
    profile, before = request.object, request.old_object
    if profile is None or metadata_of(profile).deletion_timestamp is not None:
        return None
    return profile if before is None or _spec(before) != _spec(profile) else None


def _spec(profile: Object) -> Any:
    return msgspec.convert(profile, _Whole).spec


class _Whole(msgspec.Struct):
    spec: Any = None


def _refused(message: str) -> AdmissionVerdict:
    return AdmissionVerdict(code=_INVALID, reason="Invalid", message=message)


def _bounded(warnings: list[str]) -> list[str]:
    """The warnings that fit, and the number of the others."""
    kept: list[str] = []
    for number, one in enumerate(warnings):
        if sum(map(len, kept)) + len(one) > _LONGEST_WARNINGS - 64:
            return [*kept, f"and {len(warnings) - number} more: hortus garden images lists them"]
        kept.append(one)
    return kept
