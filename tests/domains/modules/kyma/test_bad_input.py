"""Bad input stays where it came from: one Kyma is in Error, and the others go on (2.1.2 steps 3 to 5, 11 and 17)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.modules.kyma.test_modules import ready_with
from tests.domains.modules.kyma.world import (
    CRDS,
    HOME,
    INSIDE,
    NAME,
    KymaWorld,
    conditions,
    is_ready,
    modules,
    state,
)

from hortus.domains.modules.names import GROUP
from hortus.domains.modules.types import KYMAS
from hortus.engine import StepError
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import Client
from hortus.kube.objects import Object


def operation(kyma: Object) -> str:
    return str(((kyma.get("status") or {}).get("lastOperation") or {}).get("operation", ""))


async def _opened(client: Client) -> None:
    """An admin of the cluster takes the schema off the CRD."""
    name = f"kymas.{GROUP}"
    live = await client.get(CRDS, name)
    for version in live["spec"]["versions"]:
        free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version["schema"]["openAPIV3Schema"] = {"type": "object", "properties": {"spec": free, "status": free}}
    await client.replace(CRDS, live)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"channel": "regular", "modules": [{"name": f"m{n}", "managed": True} for n in range(10_000)]}, "10000"),
        ({"channel": "none", "modules": []}, "none"),
        ({"channel": "regular", "modules": [{"name": "x" * 5000, "managed": True}]}, "5000 characters"),
        ({"channel": "regular", "modules": [{"name": "istio"}, {"name": "istio"}]}, "twice"),
        ({"channel": "regular", "modules": {"name": "istio"}}, "modules"),
        ({"channel": 7}, "channel"),
        ({"channel": "regular", "modules": [None]}, "modules"),
    ],
)
async def test_a_hostile_kyma_in_a_cluster_is_refused_there_alone(here: KymaWorld, spec: Any, problem: str) -> None:
    """The status names the refused part; modules that are installed stay."""
    here.flags = ["--kyma-comparison-interval=24h"]
    await here.cluster()
    await here.cluster("other", kyma="other-id")
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        async with here.inside() as client:
            await _opened(client)
            live = await client.get(KYMAS, "default", INSIDE)
            await client.replace(KYMAS, {**live, "spec": spec})
        kyma = await here.until(lambda found: state(found) == "Error")
        assert problem in operation(kyma)
        assert len(operation(kyma)) <= 500
        assert modules(kyma)["istio"]["state"] == "Ready"
        assert len(await here.manifests()) == 1
        await here.kyma("other-id")
        await here.until(is_ready, name="other-id")


async def test_two_secrets_for_one_kyma_are_an_error_that_names_both(here: KymaWorld) -> None:
    """2.1.2 step 4."""
    await here.cluster()
    await here.access(secret="second")
    await here.kyma()
    async with here.controllers():
        kyma = await here.until(lambda found: state(found) == "Error")
        assert "second" in operation(kyma)
        assert f"kubeconfig-{NAME}" in operation(kyma)
        await here.client.delete(SECRETS, "second", HOME)
        await here.until(is_ready)


async def test_a_kyma_without_access_is_an_error_until_there_is_a_secret(here: KymaWorld) -> None:
    """2.1.2 step 5."""
    await here.kyma()
    async with here.controllers():
        kyma = await here.until(lambda found: state(found) == "Error")
        assert "access secret not found" in operation(kyma)
        assert set(conditions(kyma).values()) == {"Unknown"}
        await here.cluster()
        await here.until(is_ready)


async def test_lost_access_turns_installed_modules_to_error(here: KymaWorld) -> None:
    """2.1.2 step 5: all module statuses become Error, with the message."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        await here.client.delete(SECRETS, f"kubeconfig-{NAME}", HOME)
        kyma = await here.until(lambda found: state(found) == "Error")
        assert "access secret not found" in modules(kyma)["istio"]["message"]
        await here.access()
        await here.until(is_ready)


async def test_a_skipped_kyma_is_left_alone(here: KymaWorld) -> None:
    """2.1.2 step 3: nothing is written until the label is taken off."""
    label = f"{GROUP}/skip-reconciliation"
    await here.cluster()
    await here.kyma(labels={label: "true"})
    await here.cluster("other", kyma="other-id")
    await here.kyma("other-id")
    async with here.controllers():
        await here.until(is_ready, name="other-id")
        assert "status" not in await here.client.get(KYMAS, NAME, HOME)
        await here.client.patch(KYMAS, NAME, {"metadata": {"labels": {label: None}}}, HOME)
        await here.until(is_ready)


async def test_a_failing_reconcile_is_seen_in_the_cluster_too(here: KymaWorld) -> None:
    """Limit (g) of the Go system: there, the cluster keeps the state before. Other branches are tried (step 13)."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    here.agents.enabled = True
    here.agents.error = StepError("the agent does not start", reason="AgentFailed")
    async with here.controllers():
        await here.manifest("istio")
        kyma = await here.until(lambda found: conditions(found).get("ModuleCatalog") == "True")
        assert conditions(kyma)["SKRWebhook"] == "False"
        remote = await here.until(lambda found: state(found) == "Error", KYMAS, "default", INSIDE, cluster="skr")
        assert operation(remote) == "the agent does not start"
        assert "istio" in modules(remote)
