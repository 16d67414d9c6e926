"""ClusterAddons of a namespace that is not trusted enter a cluster whose kubeconfig the namespace may read."""

from __future__ import annotations

import base64

from tests.domains.granting import grant, reads_secret
from tests.domains.stacks.addons.releases import config_map
from tests.domains.stacks.addons.world import (
    CONFIG_MAPS,
    HOME,
    V1BETA1,
    AddonWorld,
    condition,
)

from hortus.domains.stacks.types import CLUSTER_ADDONS
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import yaml
from hortus.testing.waiting import wait_gone

PLAIN = "docker-plain-1-33-v1"
ADDON = "cluster-addon-shop"


async def test_addons_are_installed_where_the_namespace_may_read_the_kubeconfig(here: AddonWorld) -> None:
    here.trusted = "kcp-system"
    here.shelf.single(PLAIN, {"templates/a.yaml": yaml.dump(config_map("a"))})
    await here.cluster(PLAIN)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "ClusterReady"))
        found = condition(addon, "ClusterReady")
        assert (found["status"], found["reason"], found["severity"]) == ("False", "NotPermitted", "Error")
        assert "namespace stacks may not get secrets/shop-kubeconfig in namespace stacks" in found["message"]
        assert "remote" not in {host for _, host, _ in here.requests.answers}
        assert await here.inside_object(CONFIG_MAPS, "a") is None
    await grant(here.client, HOME, reads_secret(HOME, "shop-kubeconfig"))
    async with here.controllers():
        await here.installed(PLAIN)
    assert await here.inside_object(CONFIG_MAPS, "a") is not None


async def test_the_deletion_of_an_addon_that_may_not_act_ends(here: AddonWorld) -> None:
    here.shelf.single(PLAIN, {"templates/a.yaml": yaml.dump(config_map("a"))})
    await here.cluster(PLAIN)
    await here.kubeconfig()
    async with here.controllers():
        await here.installed(PLAIN)
    here.trusted = "kcp-system"
    await here.client.delete(CLUSTER_ADDONS, ADDON, HOME)
    await here.client.delete(V1BETA1, "shop", HOME)
    async with here.controllers():
        await wait_gone(here.client, CLUSTER_ADDONS, ADDON, HOME)


async def test_values_of_addons_hold_no_secret(here: AddonWorld) -> None:
    """The author of a Cluster would name one as its infrastructure, and find it in the objects of the addons."""
    data = {"password": base64.b64encode(b"s3cr3t").decode()}
    await here.client.create(SECRETS, {"metadata": {"name": "theirs", "namespace": HOME}, "data": data})
    content = {"templates/a.yaml": yaml.dump(config_map("a"))}
    here.shelf.single(PLAIN, content, values="values: |\n  found: {{ .InfraCluster.data.password }}\n")
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "theirs"}
    await here.cluster(PLAIN, infrastructureRef=reference)
    await here.kubeconfig()
    async with here.controllers():
        addon = await here.until(lambda obj: condition(obj, "HelmChartTemplated"))
    found = condition(addon, "HelmChartTemplated")
    assert found["status"] == "False"
    assert "Secret theirs, which does not exist or is no object of a provider" in found["message"]
