"""The catalog in clusters, restricted modules, and the copies that are kept there (2.1.7, 2.1.2 steps 7 to 10)."""

from __future__ import annotations

import pytest
from tests.domains.modules.kyma.world import (
    CRDS,
    HOME,
    INSIDE,
    NAME,
    NAMESPACES,
    KymaWorld,
    conditions,
    is_ready,
    labels,
    modules,
)

from hortus.domains.modules.names import GROUP
from hortus.domains.modules.types import KYMAS, MODULE_RELEASE_METAS, MODULE_TEMPLATES
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import Client


async def _catalog(client: Client) -> tuple[dict[str, list[str]], set[str]]:
    """The channels of each release and the templates in a cluster."""
    releases = (await client.list(MODULE_RELEASE_METAS, INSIDE)).items
    templates = (await client.list(MODULE_TEMPLATES, INSIDE)).items
    channels = {
        one["metadata"]["name"]: [channel["channel"] for channel in one["spec"]["channels"]] for one in releases
    }
    return channels, {one["metadata"]["name"] for one in templates}


async def test_a_cluster_gets_the_part_of_the_catalog_that_it_may_use(here: KymaWorld) -> None:
    """2.1.7: no beta, internal or mandatory modules; of a release only the channels with a template."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0", "fast": "1.3.0"})
    await here.module("beta", {"regular": "0.1.0"}, labels={f"{GROUP}/beta": "true"})
    await here.module("secret", {"regular": "0.1.0"}, labels={f"{GROUP}/internal": "true"})
    await here.mandatory("base", "1.0.0")
    await here.client.delete(MODULE_TEMPLATES, "istio-1.3.0", HOME)
    await here.kyma()
    async with here.controllers():
        await here.until(is_ready)
        async with here.inside() as client:
            assert await _catalog(client) == ({"istio": ["regular"]}, {"istio-1.2.0"})
            copied = await client.get(MODULE_TEMPLATES, "istio-1.2.0", INSIDE)
    assert copied["metadata"]["labels"][f"{GROUP}/managed-by"] == "kyma"
    assert {entry["manager"] for entry in copied["metadata"]["managedFields"]} == {"catalog-sync"}


async def test_what_is_offered_no_more_is_deleted_and_what_users_made_stays(here: KymaWorld) -> None:
    """2.1.7: the manager of its fields says whose an object is."""
    here.flags = ["--kyma-requeue-success-interval=1s"]
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma()
    async with here.controllers():
        await here.until(is_ready)
        async with here.inside() as client:
            own = {
                "metadata": {"name": "community-1.0.0", "namespace": INSIDE},
                "spec": {"moduleName": "community", "version": "1.0.0", "descriptor": {}},
            }
            await client.create(
                MODULE_TEMPLATES, {"apiVersion": MODULE_TEMPLATES.api_version, "kind": "ModuleTemplate", **own}
            )
        await here.client.delete(MODULE_RELEASE_METAS, "istio", HOME)
        await here.until_gone(MODULE_TEMPLATES, "istio-1.2.0", INSIDE, cluster="skr")
        async with here.inside() as client:
            assert await _catalog(client) == ({}, {"community-1.0.0"})


async def test_a_new_module_reaches_the_catalog_of_a_kyma_that_does_not_list_it(here: KymaWorld) -> None:
    """A Kyma at rest is due with the comparison of its copies, and with a change of the catalog before."""
    here.flags = ["--kyma-requeue-success-interval=1s", "--kyma-comparison-interval=10h"]
    await here.cluster()
    await here.kyma()
    async with here.controllers():
        await here.until(is_ready)
        assert await here.requests_of_a_reconcile(until=0) == 0
        await here.module("istio", {"regular": "1.2.0"})
        template = await here.until(bool, MODULE_TEMPLATES, "istio-1.2.0", INSIDE, cluster="skr")
        assert template["spec"]["version"] == "1.2.0"


@pytest.mark.parametrize(("given", "offered"), [({"tier": "gold"}, True), ({}, False)])
async def test_a_restricted_module_is_for_selected_kymas(here: KymaWorld, given: dict[str, str], offered: bool) -> None:
    """2.1.7: catalog and installation follow the selector."""
    here.flags = ["--restricted-default-modules=deployer"]
    await here.cluster()
    await here.module("deployer", {"regular": "1.0.0"}, selector={"matchLabels": {"tier": "gold"}})
    await here.kyma(labels=given, modules=[{"name": "deployer", "managed": True}])
    async with here.controllers():
        kyma = await here.until(
            lambda found: "deployer" in modules(found) and conditions(found).get("ModuleCatalog") == "True"
        )
        async with here.inside() as client:
            assert (await _catalog(client))[0] == ({"deployer": ["regular"]} if offered else {})
    assert bool(await here.manifests()) is offered
    if not offered:
        assert "not allowed: restricted module" in modules(kyma)["deployer"]["message"]


async def test_copies_that_somebody_changed_are_restored(here: KymaWorld) -> None:
    """The comparison finds any change by any client."""
    here.flags = ["--kyma-comparison-interval=0s"]
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma()
    async with here.controllers():
        await here.until(is_ready)
        async with here.inside() as client:
            await client.delete(MODULE_TEMPLATES, "istio-1.2.0", INSIDE)
            await client.patch(NAMESPACES, INSIDE, {"metadata": {"labels": {"istio-injection": "disabled"}}})
            name = "moduletemplates.operator.kyma-project.io"
            await client.patch(CRDS, name, {"metadata": {"labels": {f"{GROUP}/managed-by": None}}})
        await here.client.patch(KYMAS, NAME, {"metadata": {"labels": {"example.org/touched": "1"}}}, HOME)
        template = await here.until(bool, MODULE_TEMPLATES, "istio-1.2.0", INSIDE, cluster="skr")
        assert template["spec"]["version"] == "1.2.0"
        await here.until(
            lambda found: labels(found).get("istio-injection") == "enabled", NAMESPACES, INSIDE, cluster="skr"
        )
        await here.until(lambda found: labels(found).get(f"{GROUP}/managed-by") == "kyma", CRDS, name, cluster="skr")


async def test_the_pull_secret_is_copied(here: KymaWorld) -> None:
    """2.1.2 step 10, with its condition."""
    here.flags = ["--skr-image-pull-secret=pull"]
    await here.cluster()
    await here.client.create(
        SECRETS, {"metadata": {"name": "pull", "namespace": HOME}, "data": {"a": "Yg=="}, "type": "Opaque"}
    )
    await here.kyma()
    async with here.controllers():
        kyma = await here.until(is_ready)
        async with here.inside() as client:
            copied = await client.get(SECRETS, "pull", INSIDE)
    assert copied["data"] == {"a": "Yg=="}
    assert conditions(kyma)["SKRImagePullSecretSync"] == "True"


async def test_at_rest_nothing_is_sent(here: KymaWorld) -> None:
    """A reconcile that finds nothing changed makes no request at all, to nobody."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma()
    async with here.controllers():
        await here.until(is_ready)
        await here.until(is_ready, KYMAS, "default", INSIDE, cluster="skr")
        await here.requests_of_a_reconcile(until=0)
        for _ in range(5):
            assert await here.requests_of_a_reconcile() == 0
