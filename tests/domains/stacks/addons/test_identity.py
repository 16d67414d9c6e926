"""Workload clusters that say that they are another one, and workload clusters that have moved."""

from __future__ import annotations

import base64

from tests.engine.remote.world import NAMESPACE, World, world_of
from tests.fronts import front

from hortus.domains.stacks.addons.workload import StackWorkloads
from hortus.engine import Cache
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.remote import KubeconfigRef
from hortus.kube import Client, yaml
from hortus.kube.objects import Object, ObjectKey
from hortus.testing.apiserver import TestServer

SHOP = ObjectKey(NAMESPACE, "shop")
PLACE = KubeconfigRef(NAMESPACE, "shop-kubeconfig", "value")


async def lead(world: World, kubeconfig: Object) -> None:
    data = {"value": base64.b64encode(yaml.dump(kubeconfig).encode()).decode()}
    secret = {"metadata": {"name": PLACE.name, "namespace": NAMESPACE}, "data": data}
    await world.client.apply(SECRETS, secret, field_manager="test")


async def test_the_kinds_of_a_cluster_are_not_those_of_another_one_with_its_uid(server: TestServer) -> None:
    for name in ("ids-real", "ids-fake"):
        server.create_cluster(name)
    async with Client.from_kubeconfig(server.kubeconfig_for("ids-real")) as real:
        uid = (await real.get_raw("/api/v1/namespaces/kube-system"))["metadata"]["uid"]
    async with (
        world_of(server) as world,
        front(server, "ids-real") as moved,
        front(server, "ids-fake", uid=uid) as lying,
    ):
        workloads = StackWorkloads(world.pool, Cache("kubeconfigs"))
        await lead(world, server.kubeconfig_dict("ids-real"))
        kinds = workloads.kinds(SHOP, await workloads.connect(SHOP))
        await lead(world, moved.kubeconfig)
        await world.until(lambda: world.pool.identity(PLACE).address == moved.address)
        assert workloads.kinds(SHOP, await workloads.connect(SHOP)) is kinds, "proven to be the same cluster"
        await lead(world, lying.kubeconfig)
        await world.until(lambda: world.pool.identity(PLACE).address == lying.address)
        assert workloads.kinds(SHOP, await workloads.connect(SHOP)) is not kinds
