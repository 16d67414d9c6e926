"""Failures are reported in the words of the contract, tried again where that helps, and rest where it does not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.clusters.world import World, condition, said, seed

from hortus.domains.clusters.configuration import AuditTenants
from hortus.domains.clusters.garden import SHOOTS
from hortus.domains.clusters.inside import InsideError, NoWayIn
from hortus.domains.clusters.types import RUNTIMES, Annotation
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.kube.errors import Conflict, ConnectionFailed, Forbidden, Invalid, KubeError
from hortus.simulation.garden.kinds import SEEDS

REFUSED = Invalid("spec.region: not here")
AWAY = ConnectionFailed("garden.example.org", "connection refused")


@pytest.mark.parametrize(
    ("failure", "error", "reason", "message", "again"),
    [
        (("create", "shoots"), REFUSED, "GardenerErr", f"Gardener API create error: {REFUSED}", 300),
        (("create", "shoots"), AWAY, "GardenerErr", f"Gardener API create error: {AWAY}", 15),
        (
            ("apply", "configmaps"),
            Forbidden("no"),
            "OidcConfigurationErr",
            "Failed to create structured authentication config map",
            None,
        ),
    ],
)
async def test_a_creation_that_the_garden_refuses(
    here: World, failure: tuple[str, str], error: KubeError, reason: str, message: str, again: float | None
) -> None:
    here.failures[failure] = error
    async with here.controlled():
        await here.create()
        found = await here.until_reason(reason)
        assert said(found) == ("Provisioned", "False", reason, message)
        assert (await here.until_state("Failed"))["status"].get("provisioningCompleted") is None
        await here.rest()
        assert (here.stops() > 0) is (again is None or again > 15)
        here.failures.clear()
        if again is None:
            await here.resize(9)
        else:
            await here.advance(again)
        await here.until_said("Shoot is pending")


async def test_a_runtime_without_a_spec_says_so_and_disturbs_no_other(here: World) -> None:
    """The contract's CRD admits it."""
    empty = here.runtime("rt-0")
    del empty["spec"]
    async with here.controlled():
        await here.create(empty)
        message = "Runtime conversion error spec: Required value"
        assert said(await here.until_reason("ConversionErr", name="rt-0")) == (
            "Provisioned",
            "False",
            "ConversionErr",
            message,
        )
        await here.grow()
        await here.delete("rt-0")
        await here.until_gone(name="rt-0")


async def test_a_spec_that_is_taken_away_must_come_back_before_the_shoot_can_go(here: World) -> None:
    async with here.controlled():
        spec = (await here.grow())["spec"]
        await here.change({"spec": None})
        await here.until_reason("ConversionErr")
        await here.delete()
        await here.until_said("shoot c-1 is this Runtime's", kind="Deprovisioned")
        assert not (await here.shoot())["metadata"].get("deletionTimestamp")
        await here.change({"spec": spec})
        await here.until_gone("GardenerCluster", "rt-1")


async def test_a_conversion_that_fails_changes_nothing_in_the_garden(here: World) -> None:
    runtime = here.runtime()
    del runtime["metadata"]["labels"]["kyma-project.io/region"]
    async with here.controlled():
        await here.create(runtime)
        found = await here.until_reason("ConversionErr")
        assert found["message"].startswith("Runtime conversion error ")
        assert "missing required label kyma-project.io/region" in found["message"]
        await here.rest()
        assert here.stops() >= 1
        assert here.garden_requests.writes == 0
        await here.change({"metadata": {"labels": {"kyma-project.io/region": "eu-central-1"}}})
        await here.until_said("Shoot is pending")


async def test_a_missing_audit_tenant_refuses_the_runtime_only_where_audit_logs_are_mandatory(here: World) -> None:
    here.choices |= {"audit_log_mandatory": True, "tenants": AuditTenants()}
    async with here.controlled():
        await here.create()
        found = await here.until_reason("AuditLogErr")
        assert said(found)[1:] == ("False", "AuditLogErr", "Failed to configure audit logs")
    here.choices["audit_log_mandatory"] = False
    async with here.controlled():
        await here.until_said("Shoot is pending")


async def test_without_a_seed_in_the_region_the_regions_with_one_are_named(here: World) -> None:
    await here.garden.create(SEEDS, seed(f"a-{here.number}", f"region-{here.number}"))
    await here.garden.create(SEEDS, seed(f"b-{here.number}", "hidden", spec={"settings": {"scheduling": {}}}))
    async with here.controlled():
        await here.create(here.runtime(enforceSeedLocation=True))
        found = await here.until_reason("SeedNotFound")
        assert found["message"].startswith(
            "Cannot find available seed for the region eu-central-1. The followig regions"
        )
        assert f"region-{here.number}" in found["message"] and "hidden" not in found["message"]


async def test_seeds_that_cannot_be_read_are_asked_for_again(here: World) -> None:
    here.failures["list", "seeds"] = AWAY
    async with here.controlled():
        await here.create(here.runtime(enforceSeedLocation=True))
        text = "Failed to verify whether seed is available for the region eu-central-1."
        assert said(await here.until_reason("GardenerErr"))[3] == text
        del here.failures["list", "seeds"]
        await here.advance(15)
        await here.until_reason("SeedNotFound")


@pytest.mark.parametrize(
    ("operation", "codes", "description", "state", "outcome"),
    [
        (
            "Failed",
            ("ERR_INFRA_QUOTA_EXCEEDED",),
            "",
            "Pending",
            ("Unknown", "Pending", "Retryable gardener errors during cluster provisioning"),
        ),
        (
            "Failed",
            ("ERR_X", "ERR_INFRA_UNAUTHORIZED"),
            "",
            "Failed",
            ("False", "CreationErr", "Shoot creation failed"),
        ),
        ("Failed", None, "", "Failed", ("False", "CreationErr", "Shoot creation failed")),
        ("Error", ("ERR_INFRA_UNAUTHORIZED",), "", "Pending", ("Unknown", "Pending", "Shoot creation in progress")),
        (
            "Pending",
            None,
            'Failed to schedule Shoot: none out of the 3 seeds has a matching provider for "aws"',
            "Failed",
            ("False", "CreationErr", "Shoot creation failed, no matching seeds"),
        ),
    ],
)
async def test_how_a_creation_may_go(
    here: World, operation: str, codes: Any, description: str, state: str, outcome: tuple[str, str, str]
) -> None:
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        await here.operate("Create", operation, codes=codes, description=description)
        found = await here.until("Runtime", "rt-1", lambda obj: said(condition(obj))[1:] == outcome)
        assert found["status"]["state"] == state


@pytest.mark.parametrize(
    ("codes", "state", "outcome"),
    [
        (
            ("ERR_INFRA_RATE_LIMITS_EXCEEDED",),
            "Pending",
            ("Unknown", "Pending", "Retryable gardener errors during cluster reconcile"),
        ),
        (
            ("ERR_A", "ERR_INFRA_UNAUTHENTICATED"),
            "Failed",
            ("False", "ProcessingErr", "ERR_A, ERR_INFRA_UNAUTHENTICATED"),
        ),
    ],
)
async def test_how_an_update_may_fail(here: World, codes: Any, state: str, outcome: tuple[str, str, str]) -> None:
    async with here.controlled():
        await here.grow()
        await here.resize(9)
        await here.until_patched(2)
        await here.operate("Reconcile", "Failed", codes=codes)
        found = await here.until("Runtime", "rt-1", lambda obj: said(condition(obj))[1:] == outcome)
        assert found["status"]["state"] == state


@pytest.mark.parametrize(
    ("error", "state", "outcome", "again"),
    [
        (
            Conflict("newer"),
            "Pending",
            ("Unknown", "Processing", "Shoot is pending for update after conflict error"),
            True,
        ),
        (
            Forbidden("now"),
            "Pending",
            ("Unknown", "Processing", "Shoot is pending for update after forbidden error"),
            True,
        ),
        (REFUSED, "Failed", ("False", "ProcessingErr", f"Gardener API shoot patch error: {REFUSED}"), False),
        (AWAY, "Failed", ("False", "ProcessingErr", f"Gardener API shoot patch error: {AWAY}"), True),
    ],
)
async def test_a_patch_that_the_garden_refuses(
    here: World, error: KubeError, state: str, outcome: tuple[str, str, str], again: bool
) -> None:
    async with here.controlled():
        await here.grow()
        here.failures["apply", "shoots"] = error
        await here.resize(9)
        found = await here.until("Runtime", "rt-1", lambda obj: said(condition(obj))[1:] == outcome)
        assert found["status"]["state"] == state
        here.failures.clear()
        if again:
            await here.advance(15)
        else:
            await here.annotate(Annotation.FORCE_PATCH)
        await here.until_patched(2)


async def test_pools_that_the_garden_does_not_take_over_are_an_error(here: World) -> None:
    async with here.controlled():
        await here.grow()
        here.failures["patch", "shoots"] = Invalid("no such machine")
        await here.resize(9)
        found = await here.until_reason("ProcessingErr")
        assert found["message"] == "Gardener API shoot update error: no such machine"


async def test_a_kubeconfig_that_does_not_come_is_waited_for_without_a_write(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        await here.operate("Create", "Succeeded")
        await here.until_reason("GardenerClusterCRCreated", "KubeconfigReady")
        await here.connect(state="Error")
        await here.rest()
        before = await here.revision()
        await here.advance(120)
        await here.rest()
        assert await here.revision() == before
        await here.connect()
        await here.until_state("Ready")


async def test_a_cluster_that_cannot_be_entered_is_shown_and_tried_again(here: World) -> None:
    here.inside.failure = NoWayIn("secret x/kubeconfig-rt-1 does not exist")
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        await here.operate("Create", "Succeeded")
        await here.until("GardenerCluster", "rt-1", lambda found: found)
        await here.connect()
        found = await here.until_state("Failed")
        text = "failed to update kubeconfig admin access"
        assert said(condition(found, "Configured")) == ("Configured", "False", "ConfigurationError", text)
        here.inside.failure = None
        await here.advance(60)
        await here.until_state("Ready")


async def test_what_fails_inside_a_cluster_is_shown_while_it_is_tried_again(here: World) -> None:
    here.inside.failure = InsideError("the server is busy", transient=True)
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        await here.operate("Create", "Succeeded")
        await here.until("GardenerCluster", "rt-1", lambda found: found)
        await here.connect()
        found = await here.until_reason("ConfigurationError", "Configured")
        assert found["message"] == "Cluster configuration error: the server is busy"
        await here.until_state("Pending")
        here.inside.failure = None
        await here.advance(60)
        await here.until_state("Ready")


async def test_a_shoot_that_no_seed_takes_is_reported_though_no_gardenlet_has_seen_it(here: World) -> None:
    text = 'Failed to schedule Shoot: none out of the 3 seeds has a matching provider for "aws"'
    operation = {"type": "Create", "state": "Pending", "progress": 0, "description": text}
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        body = {"status": {"lastOperation": operation}}
        await here.garden.patch(SHOOTS, "c-1", body, here.garden_namespace, subresource="status")
        said = await here.until_said("Shoot creation failed, no matching seeds")
        assert said["status"] == "False"
        await here.until_state("Failed")


async def test_a_failed_creation_is_not_taken_up_again_by_a_restart(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        await here.operate("Create", "Failed", codes=("ERR_INFRA_UNAUTHORIZED",))
        await here.until_state("Failed")
    before = await here.revision()
    async with here.controlled():
        await here.rest()
        assert await here.revision() == before


async def test_a_gardener_cluster_of_another_shoot_is_not_taken_for_ours(here: World) -> None:
    secret = {"name": "kubeconfig-rt-1", "namespace": here.namespace, "key": "config"}
    other = {"metadata": {"name": "rt-1", "namespace": here.namespace}}
    other["spec"] = {"shoot": {"name": "c-9"}, "kubeconfig": {"secret": secret}}  # type: ignore[assignment]
    await here.client.create(
        GARDENER_CLUSTERS, {"apiVersion": GARDENER_CLUSTERS.api_version, "kind": "GardenerCluster", **other}
    )
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        await here.operate("Create", "Succeeded")
        found = await here.until_reason("KubernetesErr", "KubeconfigReady")
        assert "is for shoot c-9, not c-1" in found["message"]
        await here.delete()
        await here.until("Shoot", "c-1", lambda found: found["metadata"].get("deletionTimestamp"))
        await here.vanish()
        await here.until_gone()
        assert (await here.client.get(GARDENER_CLUSTERS, "rt-1", here.namespace))["spec"]["shoot"]["name"] == "c-9"


async def test_a_garden_that_cannot_be_watched_is_asked_from_time_to_time(here: World) -> None:
    here.watching = False
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        await here.operate("Create", "Processing")
        await here.advance(16)
        await here.until_said("Shoot creation in progress")
        await here.operate("Create", "Succeeded")
        await here.advance(61)
        await here.until("GardenerCluster", "rt-1", lambda found: found)
        await here.connect()
        await here.until_state("Ready")
        await here.delete()
        await here.until("Shoot", "c-1", lambda found: found["metadata"].get("deletionTimestamp"))
        await here.vanish()
        await here.advance(100)
        await here.until_gone()
    assert (await here.client.list(RUNTIMES, here.namespace)).items == []
