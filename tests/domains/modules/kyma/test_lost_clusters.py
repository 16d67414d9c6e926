"""Clusters that vanish, or take the credential no more: the control plane goes on, and says what may be left."""

from __future__ import annotations

import pytest
from tests.domains.clocks import MovedClock
from tests.domains.modules.kyma.roads import HOUR, road_to
from tests.domains.modules.kyma.test_bad_input import operation
from tests.domains.modules.kyma.test_deletion import STEPS
from tests.domains.modules.kyma.test_modules import ready_with
from tests.domains.modules.kyma.world import CRDS, HOME, NAME, KymaWorld, is_ready, modules, state

from hortus.domains.modules.kyma.context import KymaContext
from hortus.domains.modules.kyma.deletion import DeletionStep, KymaDeletion
from hortus.domains.modules.types import KYMAS, MANIFESTS
from hortus.engine.events import EVENTS
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.leftovers.types import LEFTOVERS, Leftover
from hortus.kube.objects import Object
from hortus.schema import crd

INSIDE_STEPS = {step for step in STEPS if "Skr" in step}


@pytest.fixture(autouse=True)
def _quick(here: KymaWorld) -> None:
    here.flags = ["--failure-base-delay=50ms", "--failure-max-delay=200ms"]


@pytest.mark.parametrize("last", STEPS)
async def test_a_cluster_that_is_gone_during_any_step_holds_no_deletion(
    here: KymaWorld, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2.1.11: the network is cut when the step has been chosen, and the deadline is over an hour later."""
    await here.client.create(CRDS, crd(Leftover))
    here.leftovers = LeftoverRecorder(here.client, HOME)
    here.agents.enabled = True
    clock = here.clock = MovedClock()
    await here.cluster()
    kubeconfig = here.server.kubeconfig_dict(here.full("skr"))
    await here.module("istio", {"regular": "1.2.0"})
    choose = KymaDeletion._next
    async with road_to(kubeconfig) as road:

        async def cut_when_chosen(self: KymaDeletion, context: KymaContext) -> DeletionStep | None:
            step = await choose(self, context)
            if (step.name if step is not None else STEPS[-1]) == last:
                road.cut()
                clock.offset = 2 * HOUR
            return step

        await here.lead_to(kubeconfig)
        await here.kyma(modules=[{"name": "istio", "managed": True}])
        async with here.controllers():
            await ready_with(here)
            name = (await here.manifest("istio"))["metadata"]["name"]
            await here.client.patch(MANIFESTS, name, {"metadata": {"finalizers": ["test.example.org/held"]}}, HOME)
            monkeypatch.setattr(KymaDeletion, "_next", cut_when_chosen)
            await here.client.delete(KYMAS, NAME, HOME)
            await here.until(lambda event: event.get("reason") == "EnsureManifestDeletion", EVENTS, "", HOME)
            await here.client.patch(MANIFESTS, name, {"metadata": {"finalizers": []}}, HOME)
            await here.until_gone()
    assert clock.offset, "the step was never chosen"
    assert await here.manifests() == []
    assert not here.agents.certificates
    left = (await here.client.list(LEFTOVERS, HOME)).items
    assert len(left) == 1 if last in INSIDE_STEPS else len(left) <= 1
    assert all(one["spec"]["reason"] == "ClusterUnreachable" for one in left)


def _expired(here: KymaWorld) -> Object:
    """A kubeconfig whose token the cluster does not take."""
    kubeconfig = here.server.kubeconfig_dict(here.full("skr"))
    kubeconfig["users"][0]["user"] = {"token": "expired"}
    return kubeconfig


async def test_expired_credentials_are_an_error_until_they_are_renewed(here: KymaWorld) -> None:
    """2.1.2 step 7: Unauthorized is an Error of the Kyma; installed modules keep their states; nothing is lost."""
    await here.cluster()
    await here.cluster("other", kyma="other-id")
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        (manifest,) = await here.manifests()
    await here.lead_to(_expired(here))
    async with here.controllers():
        kyma = await here.until(lambda found: state(found) == "Error")
        assert "expired" not in operation(kyma)
        assert modules(kyma)["istio"]["state"] == "Ready"
        await here.kyma("other-id")
        await here.until(is_ready, name="other-id")
        await here.lead_to(here.server.kubeconfig_dict(here.full("skr")))
        await here.until(is_ready)
    assert [one["metadata"]["uid"] for one in await here.manifests()] == [manifest["metadata"]["uid"]]


async def test_a_deletion_with_expired_credentials_ends_at_the_deadline(here: KymaWorld) -> None:
    """2.1.11: it waits for a renewed Secret until then."""
    clock = here.clock = MovedClock()
    await here.client.create(CRDS, crd(Leftover))
    here.leftovers = LeftoverRecorder(here.client, HOME)
    await here.cluster()
    await here.kyma()
    async with here.controllers():
        await here.until(is_ready)
    await here.lead_to(_expired(here))
    await here.client.delete(KYMAS, NAME, HOME)
    async with here.controllers():
        await here.until(lambda found: state(found) == "Deleting")
        clock.offset = 2 * HOUR
        await here.until_gone()
    (debt,) = (await here.client.list(LEFTOVERS, HOME)).items
    assert debt["spec"]["reason"] == "ClusterUnreachable"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"modules": [{"name": "guarded", "managed": True}]}, "restricted module"),
        (
            {"modules": [{"name": "istio", "managed": True, "channel": "foreign"}]},
            "no versions found for channel foreign",
        ),
        ({"modules": [{"name": "hidden", "managed": True}]}, "internal module"),
        ({"modules": [{"name": "warden", "managed": True}]}, "no templates were found"),
        ({"modules": [{"name": "nobodys", "managed": True}]}, "no ModuleReleaseMeta found"),
    ],
    ids=["restricted", "foreign-channel", "internal", "mandatory", "unknown"],
)
async def test_a_cluster_gets_nothing_that_is_not_offered_to_it(here: KymaWorld, spec: Object, problem: str) -> None:
    """Section 2.1.3: the owner of a cluster lists it there; no Manifest is made, and other clusters go on."""
    here.flags += ["--restricted-default-modules=guarded"]
    await here.cluster()
    await here.cluster("other", kyma="other-id")
    selector = {"matchLabels": {"kyma-project.io/global-account-id": "chosen"}}
    await here.module("guarded", {"regular": "1.0.0"}, selector=selector)
    await here.module("hidden", {"regular": "1.0.0"}, labels={"operator.kyma-project.io/internal": "true"})
    await here.module("istio", {"regular": "1.2.0"})
    await here.mandatory("warden", "1.0.0")
    await here.kyma()
    async with here.controllers():
        await here.manifest("warden")
        await here.until(is_ready)
        await here.user_edits(spec)
        name = spec["modules"][0]["name"]
        kyma = await here.until(lambda found: name in modules(found))
        assert problem in modules(kyma)[name]["message"]
        assert modules(kyma)[name]["state"] in ("Error", "Warning")
        made = [one["metadata"]["labels"]["operator.kyma-project.io/module-name"] for one in await here.manifests()]
        assert made == ["warden"]
        await here.kyma("other-id")
        await here.until(is_ready, name="other-id")
