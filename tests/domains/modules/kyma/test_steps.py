"""The reconcile of a Kyma, step by step, as the contract numbers them (2.1.2, 2.1.8, 2.1.10 to 2.1.12)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.domains.modules.kyma.test_bad_input import operation
from tests.domains.modules.kyma.test_modules import ready_with
from tests.domains.modules.kyma.world import (
    CRDS,
    HOME,
    INSIDE,
    NAME,
    KymaWorld,
    conditions,
    is_ready,
    labels,
    modules,
    state,
)

from hortus.domains.modules.kyma.context import ModulesInError
from hortus.domains.modules.kyma.status import MESSAGES
from hortus.domains.modules.names import GROUP
from hortus.domains.modules.types import KYMAS
from hortus.engine import StepError
from hortus.engine.events import EVENTS
from hortus.kube.objects import Object, ObjectKey

KEY = ObjectKey(HOME, NAME)


async def test_1_the_certificate_of_a_kyma_that_is_gone_is_deleted(here: KymaWorld) -> None:
    here.agents.enabled = True
    here.agents.certificates.add("former")
    async with here.controllers():
        await here.controller.reconcile(ObjectKey(HOME, "former"))
    assert here.agents.certificates == set()


async def test_3_the_skip_label_does_not_stop_a_deletion(here: KymaWorld) -> None:
    """2.1.11, last lines."""
    await here.cluster()
    await here.kyma()
    async with here.controllers():
        await here.until(is_ready)
        skip = {"metadata": {"labels": {f"{GROUP}/skip-reconciliation": "true"}}}
        skipped = await here.client.patch(KYMAS, NAME, skip, HOME)
        assert skipped["metadata"]["finalizers"]
        await here.delete_kyma()
        await here.until_gone()


async def test_8_a_kyma_that_is_deleted_in_the_foreground_gets_no_finalizer(here: KymaWorld) -> None:
    await here.cluster()
    await here.kyma()
    await here.client.patch(KYMAS, NAME, {"metadata": {"finalizers": ["foregroundDeletion"]}}, HOME)
    async with here.controllers():
        kyma = await here.until(is_ready)
    assert kyma["metadata"]["finalizers"] == ["foregroundDeletion"]


async def test_9_crds_that_cannot_be_copied_are_a_condition_and_an_error(here: KymaWorld) -> None:
    """The operator has removed one of them; the message names it, and the work goes on when it is there again."""
    await here.cluster()
    definition = await here.client.get(CRDS, f"modulereleasemetas.{GROUP}")
    await here.kyma()
    async with here.controllers():
        await here.until(is_ready)
        await here.client.delete(CRDS, f"modulereleasemetas.{GROUP}")
        kyma = await here.until(lambda found: state(found) == "Error")
        assert f"modulereleasemetas.{GROUP}" in operation(kyma)
        assert conditions(kyma)["CRDsSync"] == "False"
        assert conditions(kyma)["Modules"] == "Unknown"
        await here.client.create(CRDS, {**definition, "metadata": {"name": definition["metadata"]["name"]}})
        await here.until(is_ready)


async def test_12_a_new_kyma_is_processing_before_its_modules_are(here: KymaWorld) -> None:
    """The state is written first: the agent's installation, which waits here, comes after it."""
    here.agents.enabled = True
    begun, go_on = asyncio.Event(), asyncio.Event()
    install = here.agents.install

    async def waiting(*given: Any) -> Any:
        begun.set()
        await go_on.wait()
        return await install(*given)

    here.agents.install = waiting  # type: ignore[method-assign]
    await here.cluster()
    await here.kyma()
    async with here.controllers():
        await begun.wait()
        kyma = await here.client.get(KYMAS, NAME, HOME)
        assert (state(kyma), operation(kyma)) == ("Processing", "started processing")
        go_on.set()
        await here.until(is_ready)


async def test_15_labels_of_the_account_reach_the_kyma_in_the_cluster(here: KymaWorld) -> None:
    accounts = {"kyma-project.io/global-account-id": "global", "kyma-project.io/subaccount-id": "sub"}
    await here.cluster()
    await here.kyma(labels=accounts)
    async with here.controllers():
        remote = await here.until(is_ready, KYMAS, "default", INSIDE, cluster="skr")
        assert labels(remote) == {
            **accounts,
            "kyma-project.io/runtime-id": NAME,
            f"{GROUP}/watched-by": "kyma",
            f"{GROUP}/managed-by": "kyma",
        }
        moved = {"metadata": {"labels": {"kyma-project.io/subaccount-id": "other"}}}
        await here.client.patch(KYMAS, NAME, moved, HOME)
        await here.until(
            lambda found: labels(found)["kyma-project.io/subaccount-id"] == "other",
            KYMAS,
            "default",
            INSIDE,
            cluster="skr",
        )


async def test_17_a_kyma_in_error_is_requeued_by_the_rate_limiter(here: KymaWorld) -> None:
    """The interval for errors has no effect: an unknown module is an Error first, then a Warning."""
    here.flags = ["--kyma-requeue-error-interval=1h", "--failure-base-delay=50ms", "--failure-max-delay=200ms"]
    await here.cluster()
    await here.kyma(modules=[{"name": "unknown", "managed": True}])
    async with here.controllers():
        kyma = await here.until(lambda found: state(found) == "Warning")
    assert modules(kyma)["unknown"]["message"] == "no ModuleReleaseMeta found for module unknown"


async def test_2_1_8_a_new_mandatory_module_reaches_every_kyma_by_an_event(here: KymaWorld) -> None:
    here.flags = ["--mandatory-module-requeue-success-interval=1h"]
    await here.cluster()
    await here.kyma()
    async with here.controllers():
        await here.until(is_ready)
        await here.mandatory("warden", "1.0.0")
        manifest = await here.manifest("warden")
        assert manifest["spec"]["version"] == "1.0.0"


CONDITION_MESSAGES = {
    "CRDsSync": (
        "CRDs are synchronized to the SKR",
        "CRDs are not synchronized to the SKR",
        "CRDs synchronization state is unknown",
    ),
    "Modules": (
        "all modules are in ready state",
        "not all modules are in ready state",
        "modules state is unknown",
    ),
    "ModuleCatalog": (
        "module templates are synchronized",
        "module templates are out of sync and need to be resynchronized",
        "module templates synchronization state is unknown",
    ),
    "SKRWebhook": (
        "skrwebhook is synchronized",
        "skrwebhook is out of sync and needs to be resynchronized",
        "skrwebhook is out of sync and needs to be resynchronized",
    ),
    "SKRImagePullSecretSync": (
        "skr image pull secret is synchronized",
        "skr image pull secret is out of sync and needs to be resynchronized",
        "skr image pull secret is out of sync and needs to be resynchronized",
    ),
}


def test_2_1_10_the_conditions_have_the_messages_of_the_contract() -> None:
    found = {
        kind.value: tuple(texts[status] for status in ("True", "False", "Unknown")) for kind, texts in MESSAGES.items()
    }
    assert found == CONDITION_MESSAGES
    assert list(found) == list(CONDITION_MESSAGES)


async def test_2_1_11_a_step_that_fails_has_a_warning_with_the_end_of_its_message(here: KymaWorld) -> None:
    here.agents.enabled = True
    here.flags = ["--failure-base-delay=50ms", "--failure-max-delay=200ms"]
    problem = "x" * 200 + " the end of the message"

    async def broken(remote: object) -> bool:
        raise StepError(problem, reason="AgentStays")

    await here.cluster()
    await here.kyma()
    async with here.controllers():
        await here.until(is_ready)
        remove, here.agents.remove = here.agents.remove, broken  # type: ignore[method-assign, assignment]
        await here.client.delete(KYMAS, NAME, HOME)

        def is_warning(event: Object) -> bool:
            return event.get("reason") == "DeleteSkrWebhookResources" and event["type"] == "Warning"

        event = await here.until(is_warning, EVENTS, "", HOME)
        assert event["message"] == problem[-100:]
        here.agents.remove = remove  # type: ignore[method-assign]
        await here.until_gone()


@pytest.mark.parametrize(
    ("wanted", "agent", "seconds"),
    [("Ready", True, 71), ("Processing", True, 71), ("Processing", False, 72), ("Warning", True, 73)],
)
async def test_2_1_12_each_state_has_its_interval(here: KymaWorld, wanted: str, agent: bool, seconds: int) -> None:
    """A Kyma that waits for Manifests alone hears of them; the rest is asked for after the busy interval."""
    here.agents.enabled, here.agents.ready = True, agent
    here.flags = [
        "--kyma-requeue-success-interval=71s",
        "--kyma-requeue-busy-interval=72s",
        "--kyma-requeue-warning-interval=73s",
    ]
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        manifest = await here.manifest("istio")
        await here.set_manifest_state(manifest["metadata"]["name"], wanted)
        await here.until(
            lambda found: state(found) == wanted and modules(found).get("istio", {}).get("state") == wanted
        )
        result = await here.controller.reconcile(KEY)
    assert result is not None
    assert result.requeue_after == seconds


async def test_2_1_12_a_ready_kyma_that_watches_show_is_due_with_the_comparison_of_its_copies(here: KymaWorld) -> None:
    here.flags = ["--kyma-requeue-success-interval=71s", "--kyma-comparison-interval=1h"]
    await here.cluster()
    await here.kyma()
    async with here.controllers():
        await here.until(lambda found: state(found) == "Ready")
        assert await here.requests_of_a_reconcile(until=0) == 0
        result = await here.controller.reconcile(KEY)
    assert result is not None
    assert 2600 < result.requeue_after < 4500


async def test_2_7_a_kyma_that_waits_for_its_window_is_looked_at_again_soon(here: KymaWorld, tmp_path: Path) -> None:
    """It is Ready with the version that it has, and a window opens by time alone."""
    policy = tmp_path / "policy.json"
    policy.write_text('{"default": {"begin": "2126-01-01T10:00:00Z", "end": "2126-01-01T12:00:00Z"}}')
    here.flags = ["--kyma-requeue-success-interval=71s", f"--maintenance-policy-path={policy}"]
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        await here.template("istio", "1.3.0", requiresDowntime=True)
        await here.move("istio", {"regular": "1.3.0"})
        await here.until(lambda found: modules(found).get("istio", {}).get("maintenance") is True)
        assert await here.requests_of_a_reconcile(until=0) == 0
        result = await here.controller.reconcile(KEY)
    assert result is not None
    assert result.requeue_after == 71


async def test_2_1_12_modules_in_error_are_an_error_of_the_reconcile(here: KymaWorld) -> None:
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        manifest = await here.manifest("istio")
        await here.set_manifest_state(manifest["metadata"]["name"], "Error")
        await here.until(lambda found: state(found) == "Error")
        with pytest.raises(ModulesInError):
            await here.controller.reconcile(KEY)


async def test_2_6_events_have_the_reasons_of_the_contract(here: KymaWorld) -> None:
    """A Kyma that reached its cluster, and one without the names that its metrics need."""
    await here.cluster()
    await here.kyma(annotations={"skr-domain": ""})
    async with here.controllers():
        await here.until(is_ready)
        for reason, kind in (("RemoteInstallation", "Normal"), ("MetricsError", "Warning")):

            def is_it(event: Object, reason: str = reason, kind: str = kind) -> bool:
                return (event.get("reason"), event.get("type")) == (reason, kind)

            event = await here.until(is_it, EVENTS, "", HOME)
            assert event["involvedObject"]["name"] == NAME
