"""Conversions ask the garden's CloudProfile, as far as its watch shows one, and tell what is done otherwise."""

from __future__ import annotations

from typing import cast

import pytest
from tests.domains.clusters.shoot.documents import shoot_for
from tests.domains.clusters.shoot.samples import CONFIG, lived, pool, runtime

from hortus.domains.clusters.bindings import GardenBindings
from hortus.domains.clusters.configuration import AuditTenants
from hortus.domains.clusters.context import RuntimeContext
from hortus.domains.clusters.conversion import Conversion
from hortus.domains.clusters.garden import Garden
from hortus.domains.clusters.inside import Workloads
from hortus.domains.clusters.operatoraccess import OperatorAccess
from hortus.domains.clusters.reading import runtime_of
from hortus.domains.clusters.shoot import profile_outline
from hortus.domains.clusters.types import Reason
from hortus.engine import NEVER, Cache, StepError
from hortus.kube import Client
from hortus.kube.access import Access
from hortus.kube.objects import Object
from hortus.simulation.garden.content import cloud_profiles
from hortus.testing import FakeClock

HUGE = runtime(pool=pool(zones=["eu-central-1a"], machine={"type": "huge"}))


def _conversion(profiles: Cache | None) -> Conversion:
    """A conversion that uses no network: there are neither caches nor ACLs to look up."""
    client = Client(Access(server="https://127.0.0.1:1"))
    return Conversion(
        configuration=CONFIG,
        tenants=AuditTenants(),
        workloads=cast(Workloads, None),
        access=OperatorAccess(client, "", enabled=False),
        audit_log_mandatory=False,
        structured_authentication=False,
        ignore_removed_zones=False,
        bindings=GardenBindings(Garden(client, "garden-demo", Cache("shoots"))),
        clock=FakeClock(),
        profiles=profiles,
    )


def _profiles(objects: list[Object]) -> Cache:
    cache = Cache("cloudprofiles", transform=profile_outline)
    cache.replace([cache.shrink(profile) for profile in objects], 1)
    return cache


async def test_what_the_profile_lacks_is_refused_for_new_and_for_living_shoots() -> None:
    conversion = _conversion(_profiles(cloud_profiles()))
    words = 'workers\\[0\\].machine.type: Unsupported value: "huge": supported values: "m6i.large"'
    with pytest.raises(StepError, match=words) as raised:
        await conversion.shoot(runtime_of(HUGE))
    assert (raised.value.reason, raised.value.after) == (Reason.CONVERSION_ERR, NEVER)
    with pytest.raises(StepError, match=words):
        await conversion.patch(runtime_of(HUGE), lived(shoot_for(runtime(pool=pool(zones=["eu-central-1a"])), CONFIG)))


@pytest.mark.parametrize("profiles", [None, _profiles([])], ids=["not asked", "not seen"])
async def test_without_a_profile_the_garden_has_the_word(profiles: Cache | None) -> None:
    made = await _conversion(profiles).shoot(runtime_of(HUGE))
    assert made["spec"]["provider"]["workers"][0]["machine"]["type"] == "huge"


class _Context:
    """The part of a context that remarks need."""

    def __init__(self, raw: Object) -> None:
        self.object = runtime_of(raw)
        self.events: list[tuple[str, str, str]] = []

    def event(self, kind: str, reason: str, message: str) -> None:
        self.events.append((kind, reason, message))


def test_a_version_that_is_not_taken_back_is_reported() -> None:
    live = lived(shoot_for(runtime(), CONFIG))
    context = _Context(runtime(kubernetes={"version": "1.30"}))
    _conversion(None).report_remarks(cast(RuntimeContext, context), context.object, live)
    assert context.events == [
        (
            "Warning",
            "NotApplied",
            'spec.shoot.kubernetes.version: Invalid value: "1.30": the cluster has 1.31 and is never taken back',
        )
    ]
