"""The deletion of a Kyma: twelve steps, one for each reconcile, that always end (2.1.11)."""

from __future__ import annotations

from tests.domains.modules.kyma.test_modules import ready_with
from tests.domains.modules.kyma.world import CRDS, HOME, INSIDE, NAME, KymaWorld, is_ready, state

from hortus.domains.modules.names import Finalizer
from hortus.domains.modules.types import KYMAS, MANIFESTS
from hortus.engine.events import EVENTS
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.leftovers.types import LEFTOVERS, Leftover
from hortus.kube import Client
from hortus.schema import crd

STEPS = [
    "SetKcpKymaStateDeleting",
    "SetSkrKymaStateDeleting",
    "DeleteManifests",
    "DeleteCertificateSetup",
    "DeleteSkrWebhookResources",
    "DeleteSkrModuleTemplateCrd",
    "DeleteSkrModuleReleaseMetaCrd",
    "DeleteSkrKyma",
    "DeleteSkrKymaCrd",
    "DeleteMetrics",
    "EnsureManifestDeletion",
    "DropKymaFinalizer",
]


async def test_a_deletion_takes_its_steps_in_order_and_leaves_the_cluster_empty(here: KymaWorld) -> None:
    """2.1.11: each step has its event; Manifests end before the finalizer is removed."""
    await here.cluster()
    here.agents.enabled = True
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        manifest = await here.manifest("istio")
        name = manifest["metadata"]["name"]
        await here.client.patch(MANIFESTS, name, {"metadata": {"finalizers": ["test.example.org/held"]}}, HOME)
        await here.client.delete(KYMAS, NAME, HOME)
        await here.until(lambda found: state(found) == "Deleting")
        await here.manifest("istio", lambda found: found["metadata"].get("deletionTimestamp"))
        await here.until(lambda event: event.get("reason") == "EnsureManifestDeletion", EVENTS, "", HOME)
        assert await here.client.get(KYMAS, NAME, HOME), "the Kyma waits for its Manifests"
        await here.client.patch(MANIFESTS, name, {"metadata": {"finalizers": []}}, HOME)
        await here.until_gone()
        for step in STEPS:
            await here.until(lambda event, step=step: event.get("reason") == step, EVENTS, "", HOME)
    async with here.inside() as client:
        assert await _ours(client) == []
    assert not here.agents.installed
    assert not here.agents.certificates


async def _ours(client: Client) -> list[str]:
    return [one["metadata"]["name"] for one in (await client.list(CRDS)).items]


async def test_a_deletion_without_access_ends_at_once_and_is_recorded(here: KymaWorld) -> None:
    """2.1.2 step 4: no Secret, no steps inside the cluster; a Leftover records its objects."""
    await here.client.create(CRDS, crd(Leftover))
    here.leftovers = LeftoverRecorder(here.client, HOME)
    await here.cluster()
    await here.kyma()
    async with here.controllers():
        await here.until(is_ready)
        await here.client.delete(SECRETS, f"kubeconfig-{NAME}", HOME)
        # The watch of Kymas may be faster than that of Secrets.
        await here.until(lambda found: state(found) == "Error")
        await here.client.delete(KYMAS, NAME, HOME)
        await here.until_gone()
    (debt,) = (await here.client.list(LEFTOVERS, HOME)).items
    assert debt["spec"]["reason"] == "ClusterGone"
    names = {item["object"]["name"] for item in debt["spec"]["items"]}
    assert {"kymas.operator.kyma-project.io", "default"} <= names


async def test_a_cluster_that_does_not_answer_is_given_up_at_the_deadline(here: KymaWorld) -> None:
    """A deletion always ends."""
    here.flags = ["--kyma-detach-after=0s"]
    await here.cluster()
    await here.kyma()
    async with here.controllers():
        await here.until(is_ready)
    await here.client.patch(SECRETS, f"kubeconfig-{NAME}", {"stringData": {"config": _nowhere(here)}}, HOME)
    async with here.controllers():
        await here.client.delete(KYMAS, NAME, HOME)
        await here.until_gone()
    assert await here.manifests() == []


def _nowhere(here: KymaWorld) -> str:
    from hortus.kube import yaml

    document = here.server.kubeconfig_dict(here.full("skr"))
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    return yaml.dump(document)


async def test_the_purge_finalizer_of_old_versions_is_removed(here: KymaWorld) -> None:
    """2.9: no purge controller is left that would remove it."""
    await here.cluster()
    await here.kyma()
    await here.client.patch(KYMAS, NAME, {"metadata": {"finalizers": [Finalizer.PURGE]}}, HOME)
    async with here.controllers():
        kyma = await here.until(is_ready)
    assert kyma["metadata"]["finalizers"] == [Finalizer.KYMA]


async def test_a_cluster_that_holds_its_kyma_is_given_up_at_the_deadline(here: KymaWorld) -> None:
    """A finalizer of a user inside the cluster ends no deletion for ever."""
    here.flags = ["--kyma-detach-after=0s"]
    await here.client.create(CRDS, crd(Leftover))
    here.leftovers = LeftoverRecorder(here.client, HOME)
    await here.cluster()
    await here.kyma()
    async with here.controllers():
        await here.until(is_ready)
        async with here.inside() as client:
            held = {"metadata": {"finalizers": ["test.example.org/held"]}}
            await client.patch(KYMAS, "default", held, INSIDE)
        await here.client.delete(KYMAS, NAME, HOME)
        await here.until_gone()
    (debt,) = (await here.client.list(LEFTOVERS, HOME)).items
    assert debt["spec"]["reason"] == "NotPruned"
