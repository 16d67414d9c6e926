"""Limits of the Go system, and what its users asked for: rows of docs/modules/wishes.md (sections 3 and 6)."""

from __future__ import annotations

from tests.domains.modules.kyma.test_modules import ready_with
from tests.domains.modules.kyma.world import (
    HOME,
    NAME,
    KymaWorld,
    is_ready,
    modules,
    state,
)

from hortus.domains.modules.names import Label
from hortus.domains.modules.types import MODULE_RELEASE_METAS, MODULE_TEMPLATES
from hortus.kube import Client, Resource
from hortus.testing import FakeClock

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
NAMESPACED_ROLES = Resource(RBAC, "v1", "roles", "Role")
NAMESPACED_BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding")


async def _permissions(client: Client) -> set[tuple[str, str]]:
    """Accounts other than those of every namespace, roles and their bindings."""
    return {
        (kind.kind, obj["metadata"]["name"])
        for kind in (ACCOUNTS, ROLES, BINDINGS, NAMESPACED_ROLES, NAMESPACED_BINDINGS)
        for obj in (await client.list(kind)).items
        if obj["metadata"]["name"] != "default"
    }


async def test_a_cluster_gets_no_account_and_no_role(here: KymaWorld) -> None:
    """Section 3: nothing in a cluster has permissions that its modules do not bring themselves."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.inside() as client:
        before = await _permissions(client)
        async with here.controllers():
            await ready_with(here)
        assert await _permissions(client) == before


async def test_a_deleted_template_takes_no_installed_module(here: KymaWorld) -> None:
    """Issue 1599: the module stays, its status names the template, and it goes on at once when that is there again."""
    here.clock = FakeClock()
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        (before,) = await here.manifests()
        await here.client.delete(MODULE_TEMPLATES, "istio-1.2.0", HOME)
        kyma = await here.until(lambda found: state(found) == "Error")
        assert "ModuleTemplate istio-1.2.0 does not exist" in modules(kyma)["istio"]["message"]
        (after,) = await here.manifests()
        assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])
        await here.template("istio", "1.2.0")
        await here.until(is_ready)


async def test_a_channel_is_followed_back_where_the_operator_allows_it(here: KymaWorld) -> None:
    """Limit (c): a release that turned out to be bad is taken back for the whole channel."""
    here.flags = ["--module-downgrades"]
    await here.cluster()
    await here.module("istio", {"regular": "1.3.0"})
    await here.template("istio", "1.2.0")
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        await here.move("istio", {"regular": "1.2.0"})
        manifest = await here.manifest("istio", lambda found: found["spec"]["version"] == "1.2.0")
        await here.set_manifest_state(manifest["metadata"]["name"], "Ready")
        kyma = await here.until(lambda found: is_ready(found) and modules(found)["istio"]["version"] == "1.2.0")
        assert modules(kyma)["istio"]["channel"] == "regular"


async def test_beta_and_internal_of_a_release_have_no_effect(here: KymaWorld) -> None:
    """Limit (n): the labels of the ModuleTemplate decide, as in the Go system."""
    await here.cluster()
    await here.module("open", {"regular": "1.0.0"})
    await here.client.patch(MODULE_RELEASE_METAS, "open", {"spec": {"beta": True, "internal": True}}, HOME)
    await here.module("closed", {"regular": "1.0.0"}, labels={Label.BETA: "true"})
    await here.kyma(modules=[{"name": "open", "managed": True}, {"name": "closed", "managed": True}])
    async with here.controllers():
        await here.manifest("open")
        kyma = await here.until(lambda found: "closed" in modules(found), name=NAME)
        assert modules(kyma)["closed"]["message"] == "module template not allowed: beta module"
        assert len(await here.manifests()) == 1
