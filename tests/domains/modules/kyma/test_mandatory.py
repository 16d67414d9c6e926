"""Mandatory modules: on every cluster, in no Kyma's status (2.3)."""

from __future__ import annotations

from tests.domains.modules.kyma.world import HOME, NAME, KymaWorld, is_ready, modules

from hortus.domains.modules.names import GROUP, Finalizer
from hortus.domains.modules.types import KYMAS, MANIFESTS, MODULE_RELEASE_METAS


async def test_every_kyma_gets_a_mandatory_module(here: KymaWorld) -> None:
    """2.3: a Manifest with its own label and without a channel, and no entry in the status."""
    await here.cluster()
    await here.mandatory("warden", "1.0.0")
    await here.kyma()
    async with here.controllers():
        manifest = await here.manifest("warden")
        kyma = await here.until(is_ready)
    labels = manifest["metadata"]["labels"]
    assert labels[f"{GROUP}/mandatory-module"] == "true"
    assert f"{GROUP}/channel" not in labels
    assert manifest["spec"]["customResourcePolicy"] == "CreateAndDelete"
    assert manifest["metadata"]["ownerReferences"][0]["name"] == NAME
    assert modules(kyma) == {}


async def test_a_new_version_of_a_mandatory_module_reaches_every_kyma(here: KymaWorld) -> None:
    """2.1.8, 2.3: an update of the release fans out."""
    await here.cluster()
    await here.mandatory("warden", "1.0.0")
    await here.template("warden", "1.1.0", mandatory=True)
    await here.kyma()
    async with here.controllers():
        await here.manifest("warden")
        await here.client.patch(MODULE_RELEASE_METAS, "warden", {"spec": {"mandatory": {"version": "1.1.0"}}}, HOME)
        manifest = await here.manifest("warden", lambda found: found["spec"]["version"] != "1.0.0")
        assert manifest["spec"]["version"] == "1.1.0"


async def test_a_bad_mandatory_module_leaves_the_others_alone(here: KymaWorld) -> None:
    """Limit (h) of the Go system: there, one missing template stops all."""
    await here.cluster()
    await here.mandatory("absent", "1.0.0", template=False)
    await here.mandatory("warden", "1.0.0")
    await here.kyma()
    async with here.controllers():
        warden = await here.manifest("warden")
        assert [one["metadata"]["uid"] for one in await here.manifests()] == [warden["metadata"]["uid"]]


async def test_a_skipped_kyma_gets_no_mandatory_module(here: KymaWorld) -> None:
    """2.3: skipped and deleted Kymas are left alone."""
    await here.cluster()
    await here.mandatory("warden", "1.0.0")
    label = f"{GROUP}/skip-reconciliation"
    await here.kyma(labels={label: "true"})
    await here.kyma("other-id")
    async with here.controllers():
        await here.manifest("warden", lambda found: found["metadata"]["labels"][f"{GROUP}/kyma-name"] == "other-id")
        assert len(await here.manifests()) == 1
        await here.client.patch(KYMAS, NAME, {"metadata": {"labels": {label: None}}}, HOME)
        await here.until(lambda found: found["metadata"]["labels"][f"{GROUP}/kyma-name"] == NAME, MANIFESTS, "", HOME)


async def test_the_manifests_of_a_deleted_mandatory_module_are_deleted_first(here: KymaWorld) -> None:
    """2.3: the release keeps a finalizer until its Manifests are gone."""
    await here.cluster()
    await here.mandatory("warden", "1.0.0")
    await here.kyma()
    async with here.controllers():
        manifest = await here.manifest("warden")
        name = manifest["metadata"]["name"]
        await here.until(
            lambda found: found["metadata"].get("finalizers") == [Finalizer.MANDATORY_MODULE],
            MODULE_RELEASE_METAS,
            "warden",
        )
        await here.client.patch(MANIFESTS, name, {"metadata": {"finalizers": ["test.example.org/held"]}}, HOME)
        await here.client.delete(MODULE_RELEASE_METAS, "warden", HOME)
        await here.manifest("warden", lambda found: found["metadata"].get("deletionTimestamp"))
        assert await here.client.get(MODULE_RELEASE_METAS, "warden", HOME), "the release waits for its Manifests"
        await here.client.patch(MANIFESTS, name, {"metadata": {"finalizers": []}}, HOME)
        await here.until_gone(MODULE_RELEASE_METAS, "warden")
        assert await here.manifests() == []


async def test_a_deleted_manifest_of_a_mandatory_module_is_made_again(here: KymaWorld) -> None:
    """An event, not the next look after 30 s, shows that it is gone."""
    here.flags = ["--mandatory-module-requeue-success-interval=1h"]
    await here.cluster()
    await here.mandatory("warden", "1.0.0")
    await here.kyma()
    async with here.controllers():
        first = await here.manifest("warden")
        await here.until(is_ready)
        await here.client.delete(MANIFESTS, first["metadata"]["name"], HOME)
        again = await here.manifest("warden", lambda found: found["metadata"]["uid"] != first["metadata"]["uid"])
        assert again["spec"] == first["spec"]


async def test_a_listed_module_that_becomes_mandatory_has_one_writer(here: KymaWorld) -> None:
    """The Manifest has the labels of a mandatory module, and the Kyma that shows its state leaves it as it is."""
    await here.cluster()
    await here.module("warden", {"regular": "1.0.0"})
    await here.kyma(modules=[{"name": "warden"}])
    async with here.controllers():
        await here.manifest("warden")
        spec = {"channels": None, "mandatory": {"version": "1.0.0"}}
        await here.client.patch(MODULE_RELEASE_METAS, "warden", {"spec": spec}, HOME)
        label = f"{GROUP}/mandatory-module"
        first = await here.manifest("warden", lambda found: found["metadata"]["labels"].get(label) == "true")
        await here.client.patch(KYMAS, NAME, {"spec": {"channel": "fast"}}, HOME)
        await here.until(
            lambda found: (
                {one["observedGeneration"] for one in found["status"]["conditions"]}
                == {found["metadata"]["generation"]}
                == {2}
            )
        )
        again = await here.manifest("warden")
    assert again["metadata"]["labels"] == first["metadata"]["labels"]
    assert again["metadata"]["generation"] == first["metadata"]["generation"]
