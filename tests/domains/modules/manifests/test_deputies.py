"""Manifests of a namespace that is not trusted need a kubeconfig, and Secrets, that the namespace may read."""

from __future__ import annotations

import base64

import pytest
from tests.domains.granting import grant, grant_verbs, reads_secret, take_back
from tests.domains.modules.manifests.world import CONFIG_MAPS, HOME, MODULES, ModuleWorld, config_map, is_ready, state

from hortus.domains.modules.names import Label
from hortus.domains.modules.types import MANIFESTS
from hortus.engine import deputies
from hortus.engine.deputies import Action
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.leftovers.types import LEFTOVERS
from hortus.kube.objects import Object

ACCESS = reads_secret(HOME, "kubeconfig-one")
REFUSED = f"namespace {HOME} may not get secrets/kubeconfig-one in namespace {HOME}"
DEPLOYER = {"labels": {Label.MODULE_NAME: "deployer"}}
ASKING: Object = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "token",
        "namespace": MODULES,
        "annotations": {"operator.kyma-project.io/inject-data-from-kcp": "true"},
    },
}


async def test_a_module_is_installed_where_the_namespace_may_read_the_kubeconfig(here: ModuleWorld) -> None:
    here.trusted = "none"
    await here.manifest(here.layers.push(config_map("one")))
    async with here.controllers():
        found = await here.until(lambda obj: state(obj) == "Error")
        assert REFUSED in found["status"]["lastOperation"]["operation"]
    assert "one" not in [one["metadata"]["name"] for one in (await here.inside.list(CONFIG_MAPS, MODULES)).items]
    await grant(here.client, HOME, ACCESS)
    async with here.controllers():
        await here.until(is_ready)


async def test_a_deletion_without_permission_ends_and_records_what_is_left(
    here: ModuleWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deputies, "_ALLOWED_FOR", 0.0)
    here.trusted = "none"
    permission = await grant_verbs(here.client, HOME, "", "secrets", "get", where=HOME, names=["kubeconfig-one"])
    await here.manifest(here.layers.push(config_map("one")))
    async with here.controllers():
        await here.until(is_ready)
        await take_back(here.client, permission, where=HOME)
        await here.client.delete(MANIFESTS, "one-module", HOME)
        await here.until_gone()
    await here.inside.get(CONFIG_MAPS, "one", MODULES)
    (left,) = (await here.client.list(LEFTOVERS, HOME)).items
    assert left["spec"]["reason"] == "NotPruned"
    assert REFUSED in left["spec"]["message"]
    assert f"ConfigMap {MODULES}/one" in [item["what"] for item in left["spec"]["items"]]
    # Otherwise the objects would be taken to be gone as soon as another cluster has none of these names.
    assert left["spec"]["cluster"]["identity"] == await here.uid_inside()


async def test_secrets_are_given_to_a_module_where_the_namespace_may_list_them(here: ModuleWorld) -> None:
    """The author of a Manifest finds them in the cluster, whose Secrets may be his."""
    here.trusted, here.flags = "none", ["--restricted-default-modules=deployer"]
    await grant(here.client, HOME, ACCESS)
    data = {"key": base64.b64encode(b"s3cr3t").decode()}
    metadata = {"name": "token", "namespace": HOME, "labels": {Label.MODULE_NAME: "deployer"}}
    await here.client.create(SECRETS, {"metadata": metadata, "data": data})
    await here.manifest(here.layers.push(ASKING), **DEPLOYER)
    async with here.controllers():
        found = await here.until(lambda obj: state(obj) == "Error")
        refused = f"namespace {HOME} may not list secrets in namespace {HOME}"
        assert refused in found["status"]["lastOperation"]["operation"]
    await grant(here.client, HOME, Action("list", "", "secrets", HOME))
    async with here.controllers():
        await here.until(is_ready)
    assert (await here.inside.get(SECRETS, "token", MODULES))["data"] == data
