"""Modules of a Kyma: resolution to Manifests, their status, removal (2.1.3 to 2.1.6, 2.1.9)."""

from __future__ import annotations

from tests.domains.modules.kyma.world import (
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
from hortus.domains.modules.types import KYMAS, MANIFESTS, MODULE_TEMPLATES
from hortus.kube.objects import Object


async def ready_with(here: KymaWorld, module: str = "istio") -> Object:
    """The Kyma once its module's Manifest is Ready."""
    manifest = await here.manifest(module)
    await here.set_manifest_state(manifest["metadata"]["name"], "Ready")
    return await here.until(lambda kyma: is_ready(kyma) and module in modules(kyma))


async def test_a_listed_module_gets_a_manifest_and_its_state_is_the_module_s(here: KymaWorld) -> None:
    """2.1.4, 2.1.6: labels, annotations, owner, and the three tracking objects."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0", "fast": "1.3.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        manifest = await here.manifest("istio")
        waiting = await here.until(lambda kyma: "istio" in modules(kyma))
        assert state(waiting) == "Processing"
        kyma = await ready_with(here)
    labels = manifest["metadata"]["labels"]
    assert labels[f"{GROUP}/kyma-name"] == NAME
    assert labels[f"{GROUP}/channel"] == "regular"
    assert labels[f"{GROUP}/managed-by"] == "lifecycle-manager"
    assert manifest["metadata"]["ownerReferences"][0]["controller"] is True
    assert manifest["spec"]["version"] == "1.2.0"
    assert manifest["spec"]["resource"]["metadata"] == {"name": "istio-cr", "namespace": INSIDE}
    module = modules(kyma)["istio"]
    assert module["state"] == "Ready"
    assert module["version"] == "1.2.0"
    assert module["channel"] == "regular"
    assert module["fqdn"] == module["ocmComponentName"] == "kyma-project.io/module/istio"
    assert module["manifest"]["metadata"]["name"] == manifest["metadata"]["name"]
    assert module["template"]["metadata"]["name"] == "istio-1.2.0"
    assert module["resource"]["metadata"]["name"] == "istio-cr"
    assert conditions(kyma)["Modules"] == "True"


async def test_the_cluster_s_kyma_is_the_truth_for_modules_and_channel(here: KymaWorld) -> None:
    """2.1.2 step 11: the control plane's spec is not rewritten."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0", "fast": "1.3.0"})
    await here.kyma(modules=[])
    async with here.controllers():
        await here.until(is_ready)
        await here.user_edits({"channel": "fast", "modules": [{"name": "istio", "managed": True}]})
        manifest = await here.manifest("istio")
        kyma = await ready_with(here)
    assert manifest["spec"]["version"] == "1.3.0"
    assert kyma["spec"] == {"channel": "regular", "modules": []}
    assert kyma["status"]["activeChannel"] == "fast"


async def test_a_cluster_gets_the_whole_spec_once(here: KymaWorld) -> None:
    """2.1.2 step 11: created with the control plane's spec, also skipMaintenanceWindows."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}], skipMaintenanceWindows=True)
    async with here.controllers():
        await ready_with(here)
        async with here.inside() as client:
            remote = await client.get(KYMAS, "default", INSIDE)
            assert remote["spec"]["skipMaintenanceWindows"] is True
            assert [module["name"] for module in remote["spec"]["modules"]] == ["istio"]
            await client.delete(KYMAS, "default", INSIDE)
        again = await here.until(
            lambda found: found["metadata"]["uid"] != remote["metadata"]["uid"],
            KYMAS,
            "default",
            INSIDE,
            cluster="skr",
        )
    assert again["spec"] == remote["spec"]


async def test_the_status_is_mirrored_without_manifests(here: KymaWorld) -> None:
    """2.1.2 step 16."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        remote = await here.until(is_ready, KYMAS, "default", INSIDE, cluster="skr")
    module = modules(remote)["istio"]
    assert "manifest" not in module
    assert module["template"]["metadata"]["namespace"] == INSIDE


async def test_a_module_taken_off_the_list_is_removed(here: KymaWorld) -> None:
    """2.1.6: its status stays until the Manifest is gone."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        kyma = await ready_with(here)
        name = modules(kyma)["istio"]["manifest"]["metadata"]["name"]
        # The controller of Manifests holds it by a finalizer.
        await here.client.patch(MANIFESTS, name, {"metadata": {"finalizers": ["test.example.org/held"]}}, HOME)
        await here.user_edits({"modules": []})
        await here.manifest("istio", lambda found: found["metadata"].get("deletionTimestamp"))
        await here.set_manifest_state(name, "Deleting")
        kyma = await here.until(lambda found: modules(found).get("istio", {}).get("state") == "Deleting")
        assert state(kyma) == "Processing"
        await here.client.patch(MANIFESTS, name, {"metadata": {"finalizers": []}}, HOME)
        await here.until(lambda found: is_ready(found) and not modules(found))


async def test_an_unmanaged_module_is_marked_and_reported_so(here: KymaWorld) -> None:
    """2.2.7, the Kyma's part: the annotation on the Manifest, and the state Unmanaged."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        await here.user_edits({"modules": [{"name": "istio", "managed": False}]})
        manifest = await here.manifest(
            "istio",
            lambda found: (found["metadata"].get("annotations") or {}).get(f"{GROUP}/is-unmanaged") == "true",
        )
        kyma = await here.until(lambda found: modules(found)["istio"]["state"] == "Unmanaged")
        assert "manifest" not in modules(kyma)["istio"]
        # The controller of Manifests deletes it; nothing makes it again until it is managed.
        await here.client.delete(MANIFESTS, manifest["metadata"]["name"], HOME)
        await here.until_no_manifest("istio")
        await here.until(is_ready)
        await here.user_edits({"modules": [{"name": "istio", "managed": True}]})
        await here.manifest("istio")


async def test_a_downgrade_by_channel_is_refused(here: KymaWorld) -> None:
    """2.1.3 step 8: the module stays, with a warning."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0", "slow": "1.1.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        await here.user_edits({"channel": "slow"})
        kyma = await here.until(lambda found: state(found) == "Warning")
        manifest = await here.manifest("istio")
    assert modules(kyma)["istio"]["version"] == "1.2.0"
    assert "module template update not allowed" in modules(kyma)["istio"]["message"]
    assert manifest["spec"]["version"] == "1.2.0"


async def test_an_unknown_module_is_an_error_first_and_a_warning_then(here: KymaWorld) -> None:
    """2.1.6: the second reconcile keeps the status and warns."""
    await here.cluster()
    await here.kyma(modules=[{"name": "nonsense", "managed": True}])
    async with here.controllers():
        kyma = await here.until(lambda found: state(found) == "Warning")
    assert "no ModuleReleaseMeta found" in modules(kyma)["nonsense"]["message"]


async def test_a_beta_module_leaves_a_kyma_that_is_beta_no_more(here: KymaWorld) -> None:
    """2.1.5: a module that is not allowed any more loses its Manifest."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"}, labels={f"{GROUP}/beta": "true"})
    await here.kyma(modules=[{"name": "istio", "managed": True}], labels={f"{GROUP}/beta": "true"})
    async with here.controllers():
        await ready_with(here)
        await here.client.patch(KYMAS, NAME, {"metadata": {"labels": {f"{GROUP}/beta": None}}}, HOME)
        await here.until_no_manifest("istio")
        kyma = await here.until(lambda found: state(found) == "Error")
    assert "not allowed: beta module" in modules(kyma)["istio"]["message"]


async def test_a_changed_template_reaches_the_manifest(here: KymaWorld) -> None:
    """2.1.1, 2.1.5: by the generation of the ModuleTemplate in the status."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        patch = {"spec": {"data": {"spec": {"size": 3}}}}
        await here.client.patch(MODULE_TEMPLATES, "istio-1.2.0", patch, HOME)
        manifest = await here.manifest("istio", lambda found: found["spec"]["resource"].get("spec"))
        assert manifest["spec"]["resource"]["spec"] == {"size": 3}


async def test_a_registry_that_is_down_takes_nothing_from_installed_modules(here: KymaWorld) -> None:
    """Descriptors are not in memory after a restart; the Manifests say enough."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
    here.registry.down = True
    async with here.controllers():
        await here.user_edits({"modules": [{"name": "istio", "managed": True}, {"name": "other", "managed": True}]})
        kyma = await here.until(lambda found: "other" in modules(found))
    assert modules(kyma)["istio"]["state"] == "Ready"


async def test_two_modules_of_one_manifest_name_the_second_is_refused(here: KymaWorld) -> None:
    """Bad input: the first one stays as it is."""
    await here.cluster()
    long = "a" * 60
    await here.module(long + "b", {"regular": "1.0.0"})
    await here.module(long + "c", {"regular": "1.0.0"})
    await here.kyma(modules=[{"name": long + "b", "managed": True}])
    async with here.controllers():
        first = await here.manifest(long + "b")
        await here.user_edits({"modules": [{"name": long + end, "managed": True} for end in "bc"]})
        kyma = await here.until(lambda found: modules(found).get(long + "c", {}).get("state") == "Error")
        assert first["metadata"]["name"] in modules(kyma)[long + "c"]["message"]
        assert len(await here.manifests()) == 1
