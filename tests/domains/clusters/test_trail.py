"""Every status that is written for a Runtime, exactly and in order, as brokers see them."""

from __future__ import annotations

from tests.domains.clusters.world import World

from hortus.domains.clusters.types import Annotation

INITIALISED = ("Pending", ("Provisioned", "Unknown", "Initialised", "Runtime initialized"))
PENDING = ("Pending", ("Provisioned", "Unknown", "Pending", "Shoot is pending"))
IN_PROGRESS = ("Pending", ("Provisioned", "Unknown", "Pending", "Shoot creation in progress"))
CREATED = ("Pending", ("Provisioned", "True", "ShootCreationCompleted", "Shoot creation completed"))
REQUESTED = (
    "Pending",
    ("KubeconfigReady", "Unknown", "GardenerClusterCRCreated", "Gardener Cluster CR created, waiting for readiness"),
)
CONNECTED = ("Pending", ("KubeconfigReady", "True", "GardenerClusterCRReady", "Gardener Cluster CR is ready."))
EQUIPPED = (
    "Ready",
    ("OidcConfigured", "True", "OidcConfigured", "OIDC configuration completed"),
    ("Configured", "True", "AdministratorsConfigured", "Cluster admin configuration complete"),
)
PATCHED = ("Pending", ("Provisioned", "Unknown", "Processing", "Shoot is pending for update after patch"))
UPDATING = ("Pending", ("Provisioned", "Unknown", "Processing", "Shoot update is in progress"))
UPDATED = ("Pending", ("Provisioned", "True", "ConfigurationCompleted", "Runtime processing completed successfully"))
READY_AGAIN = ("Ready",)
DISCONNECTING = (
    "Terminating",
    ("Deprovisioned", "Unknown", "GardenerClusterCRDeleted", "Runtime shoot deletion started"),
)
DISCONNECTED = (
    "Terminating",
    ("Deprovisioned", "True", "GardenerClusterCRDeleted", "Gardener Cluster CR successfully deleted"),
)
DELETING = ("Terminating", ("Deprovisioned", "Unknown", "GardenerShootDeleted", "Runtime shoot deletion started"))


async def test_creation_update_and_deletion_leave_the_trail_of_the_contract(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        assert here.trail == [INITIALISED, PENDING]
        await here.operate("Create", "Processing")
        await here.until_said("Shoot creation in progress")
        await here.operate("Create", "Processing", progress=80)
        await here.advance(180)
        await here.operate("Create", "Succeeded")
        await here.until_reason("GardenerClusterCRCreated", "KubeconfigReady")
        await here.advance(30)
        await here.connect()
        ready = await here.until_state("Ready")
        assert here.trail == [INITIALISED, PENDING, IN_PROGRESS, CREATED, REQUESTED, CONNECTED, EQUIPPED]
        assert ready["status"]["provisioningCompleted"] is True

        here.trail.clear()
        await here.resize(5)
        await here.until_patched(2)
        await here.rest()
        assert here.trail == [PATCHED]
        await here.operate("Reconcile", "Processing")
        await here.until_said("Shoot update is in progress")
        await here.advance(90)
        await here.operate("Reconcile", "Succeeded")
        ready = await here.until_state("Ready")
        assert here.trail == [PATCHED, UPDATING, UPDATED, READY_AGAIN]
        assert ready["status"]["provisioningCompleted"] is True
        [pool] = (await here.shoot())["spec"]["provider"]["workers"]
        assert pool["maximum"] == 5

        here.trail.clear()
        await here.delete()
        await here.until_trail(4)
        await here.operate("Delete", "Processing")
        await here.advance(200)
        await here.vanish()
        await here.until_gone()
        assert here.trail == [DISCONNECTING, DISCONNECTED, DELETING, DISCONNECTED]


async def test_a_forced_patch_without_a_difference_goes_from_ready_to_ready(here: World) -> None:
    async with here.controlled():
        await here.grow()
        await here.update()
        here.trail.clear()
        await here.annotate(Annotation.FORCE_PATCH)
        await here.until(
            "Runtime", "rt-1", lambda found: list(found["metadata"].get("annotations") or ()) == [Annotation.CLUSTER]
        )
        await here.until_said("Shoot patched without changes")
        await here.rest()
    assert here.trail == [("Ready", ("Provisioned", "True", "Processing", "Shoot patched without changes"))]
