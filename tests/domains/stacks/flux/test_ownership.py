"""Fields that helm-controller wrote, and their owner after the way back."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.domains.stacks.addons.test_stages import AFTER, ONE, applied, chart
from tests.domains.stacks.addons.world import CONFIG_MAPS
from tests.domains.stacks.flux.test_handover import by_flux, by_hortus
from tests.domains.stacks.flux.world import FluxWorld

from hortus.domains.stacks.flux.objects import read_flux
from hortus.domains.stacks.flux.ownership import take_fields, taken
from hortus.domains.stacks.graph import NodeId, NodeState, graph_of
from hortus.domains.stacks.live import StacksView, _handed
from hortus.domains.stacks.types import ManagedResource
from hortus.engine.applysets import KnownKinds
from hortus.kube import Client
from hortus.kube.errors import Conflict
from hortus.kube.objects import Object, Resource

HELM: Object = {"f:metadata": {"f:labels": {".": {}, "f:helm": {}}}, "f:data": {"f:both": {}, "f:theirs": {}}}
OURS: Object = {"f:data": {".": {}, "f:both": {}, "f:ours": {}}}


def entry(manager: str, fields: Object, **more: Any) -> Object:
    return {"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields, **more}


def test_fields_of_helm_controller_are_joined_to_ours() -> None:
    people = entry("kubectl-edit", {"f:data": {"f:people": {}}}, operation="Update")
    found = taken(
        [entry("kubectl", OURS), entry("helm-controller", HELM, operation="Update"), people], manager="kubectl"
    )
    united = {
        "f:metadata": {"f:labels": {".": {}, "f:helm": {}}},
        "f:data": {".": {}, "f:both": {}, "f:ours": {}, "f:theirs": {}},
    }
    assert found == [entry("kubectl", united), people]


def test_fields_of_an_object_that_helm_controller_made_become_ours() -> None:
    assert taken([entry("helm-controller", HELM, operation="Update")], manager="kubectl") == [entry("kubectl", HELM)]


def test_an_update_by_hand_is_not_joined_to_what_is_applied() -> None:
    by_hand = entry("kubectl", OURS, operation="Update")
    assert taken([by_hand, entry("helm-controller", HELM)], manager="kubectl") == [by_hand, entry("kubectl", HELM)]


def test_without_fields_of_helm_controller_nothing_changes() -> None:
    status = entry("helm-controller", HELM, subresource="status")
    assert taken([entry("kubectl", OURS), status], manager="kubectl") is None


class Busy:
    """A client between whose reads and patches somebody else writes, a number of times."""

    def __init__(self, client: Client, times: int) -> None:
        self.client, self.times = client, times
        self.patch = client.patch

    async def get(self, resource: Resource, name: str, namespace: str) -> Object:
        live = await self.client.get(resource, name, namespace)
        if self.times:
            labels = {"metadata": {"labels": {"write": str(self.times)}}}
            self.times -= 1
            await self.client.patch(resource, name, labels, namespace)
        return live


async def test_an_object_that_changes_meanwhile_is_read_again(there: FluxWorld) -> None:
    inside = there.here.inside
    for name in ("one", "two"):
        body: Object = {"metadata": {"name": name, "namespace": "default"}, "data": {"a": "b"}}
        await inside.apply(CONFIG_MAPS, body, field_manager="helm-controller")
    listed = [ManagedResource(name=name, kind="ConfigMap", version="v1") for name in ("one", "two")]

    async def take(times: int) -> None:
        client = cast("Client", Busy(inside, times))
        await take_fields(client, KnownKinds([CONFIG_MAPS]), listed, namespace="default", manager="kubectl")

    with pytest.raises(Conflict):
        await take(100)
    await take(2)
    for name in ("one", "two"):
        fields = (await inside.get(CONFIG_MAPS, name, "default"))["metadata"]["managedFields"]
        assert "kubectl" in {one["manager"] for one in fields}
        assert "helm-controller" not in {one["manager"] for one in fields}


async def test_what_flux_added_is_removed_on_the_way_back(there: FluxWorld) -> None:
    here = there.here
    here.shelf.staged(ONE, {"cni": chart("cni", of="chart")}, {AFTER: applied("cni")})
    await here.cluster(ONE)
    await here.kubeconfig()
    await there.choose("flux")
    async with here.controllers():
        await here.until(lambda obj: by_flux(obj, ONE))
        live = await here.inside.get(CONFIG_MAPS, "cni", "kube-system")
        labels = {**live["metadata"]["labels"], "helm.toolkit.fluxcd.io/name": "x"}
        body: Object = {"metadata": {"name": "cni", "namespace": "kube-system", "labels": labels}, "data": live["data"]}
        await here.inside.apply(
            CONFIG_MAPS, {**body, "data": {**live["data"], "flux": "x"}}, field_manager="helm-controller"
        )
        graph = graph_of(StacksView((), (), (), (), [read_flux(one) for one in await _handed(here.client)]))
        (release,) = [node for node in graph.nodes if node.id.kind == "HelmRelease"]
        assert release.state is NodeState.WELL
        assert [edge.source for edge in graph.edges if edge.target == release.id] == [
            NodeId("ClusterAddon", release.id.namespace, "cluster-addon-shop")
        ]
        await there.choose("hortus")
        await here.until(lambda obj: by_hortus(obj, ONE))
    back = await here.inside.get(CONFIG_MAPS, "cni", "kube-system")
    assert back["metadata"]["uid"] == live["metadata"]["uid"]
    assert back["metadata"]["labels"] == {"clusterstack.x-k8s.io/instance": "owned"}
    assert back["data"] == {"of": "chart"}
    assert {one["manager"] for one in back["metadata"]["managedFields"]} == {"kubectl"}
