"""Clusters of both versions of Cluster API are read as one struct."""

from __future__ import annotations

from typing import Any

import pytest

from hortus.domains.stacks.capi import CapiRef, read_cluster
from hortus.domains.stacks.clusters import use_ended
from hortus.engine import Change
from hortus.engine.typed import NotReadable
from hortus.kube.objects import ObjectKey


def cluster(version: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    named = {"name": "shop", "namespace": "team", **metadata}
    return {"apiVersion": f"cluster.x-k8s.io/{version}", "kind": "Cluster", "metadata": named, "spec": spec}


FORMER = cluster(
    "v1beta1",
    {
        "topology": {
            "class": "docker-ferrol-1-27-v1",
            "classNamespace": "catalog",
            "version": "v1.27.3",
            "variables": [{"name": "imageRepository", "value": "registry"}],
        },
        "controlPlaneRef": {
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1",
            "kind": "KubeadmControlPlane",
            "name": "shop-1",
            "namespace": "team",
        },
        "controlPlaneEndpoint": {"host": "shop.example.org", "port": 6443},
    },
)
PRESENT = cluster(
    "v1beta2",
    {
        "topology": {
            "classRef": {"name": "docker-ferrol-1-27-v1", "namespace": "catalog"},
            "version": "v1.27.3",
            "variables": [{"name": "imageRepository", "value": "registry"}],
        },
        "controlPlaneRef": {
            "apiGroup": "controlplane.cluster.x-k8s.io",
            "kind": "KubeadmControlPlane",
            "name": "shop-1",
        },
        "controlPlaneEndpoint": {"host": "shop.example.org", "port": 6443},
    },
)


@pytest.mark.parametrize("obj", [FORMER, PRESENT])
def test_the_topology_is_read_from_either_form(obj: dict[str, Any]) -> None:
    found = read_cluster(obj)
    assert (found.class_name, found.class_namespace, found.version) == ("docker-ferrol-1-27-v1", "catalog", "v1.27.3")
    assert found.variables == ({"name": "imageRepository", "value": "registry"},)
    assert (found.host, found.port) == ("shop.example.org", 6443)
    assert found.has_topology


@pytest.mark.parametrize(("obj", "version"), [(FORMER, "v1beta1"), (PRESENT, "")])
def test_a_reference_has_its_group_and_a_version_where_it_names_one(obj: dict[str, Any], version: str) -> None:
    assert read_cluster(obj).control_plane == CapiRef(
        "controlplane.cluster.x-k8s.io", version, "KubeadmControlPlane", "shop-1"
    )
    assert read_cluster(obj).infrastructure is None


@pytest.mark.parametrize("topology", [{"class": "a"}, {"classRef": {"name": "a"}}])
def test_a_class_without_a_namespace_is_in_that_of_the_cluster(topology: dict[str, Any]) -> None:
    assert read_cluster(cluster("v1beta2", {"topology": topology})).class_namespace == "team"


@pytest.mark.parametrize("spec", [{}, {"topology": None}, {"controlPlaneRef": {}}])
def test_a_classic_cluster_uses_no_class(spec: dict[str, Any]) -> None:
    found = read_cluster(cluster("v1beta1", spec))
    assert not found.has_topology
    assert found.class_name == ""
    assert found.control_plane is None


@pytest.mark.parametrize(
    ("obj", "paused"),
    [
        (cluster("v1beta1", {}), False),
        (cluster("v1beta1", {"paused": True}), True),
        (cluster("v1beta1", {}, annotations={"cluster.x-k8s.io/paused": ""}), True),
    ],
)
def test_a_cluster_is_paused_by_field_or_annotation(obj: dict[str, Any], paused: bool) -> None:
    assert read_cluster(obj).paused is paused


def test_a_cluster_of_another_shape_is_named_in_the_error() -> None:
    with pytest.raises(NotReadable, match=r"Cluster team/shop: .*topology"):
        read_cluster(cluster("v1beta1", {"topology": "docker"}))


def test_only_a_cluster_that_leaves_a_release_concerns_the_catalogue() -> None:
    key = ObjectKey("team", "shop")
    one, two = (cluster("v1beta1", {"topology": {"class": f"docker-ferrol-1-27-v{number}"}}) for number in (1, 2))
    same = cluster("v1beta1", {"topology": {"class": "docker-ferrol-1-27-v1"}, "paused": True})
    classic = cluster("v1beta1", {})
    assert not use_ended(Change(key, None, one)), "a new user changes nothing that is wanted"
    assert not use_ended(Change(key, one, same))
    assert use_ended(Change(key, one, two))
    assert use_ended(Change(key, one, classic))
    assert use_ended(Change(key, one, None))
    assert use_ended(Change(key, None, one, initial=True)), "until then nothing may be deleted"
