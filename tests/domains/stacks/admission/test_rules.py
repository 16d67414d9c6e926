"""The rules of admission, with the cases of the Go operator's webhooks and the gaps that they had."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from hortus.domains.stacks.admission import rules
from hortus.domains.stacks.capi import CapiCluster, read_cluster
from hortus.domains.stacks.types import ClusterAddon, ClusterStack, ClusterStackRelease, StackPolicySpec
from hortus.kube.errors import TransportError

SPEC = {"provider": "docker", "name": "ferrol", "kubernetesVersion": "1.27", "noProvider": True}


class FakeLookups:
    """The reads of the rules; `error` stands for a server that does not answer."""

    def __init__(
        self, *clusters: CapiCluster, releases: dict[str, str] | None = None, policies: Sequence[StackPolicySpec] = ()
    ) -> None:
        self._clusters = list(clusters)
        self._releases = releases or {}
        self._policies = list(policies)
        self.error: Exception | None = None

    async def release(self, namespace: str, tag: str) -> ClusterStackRelease | None:
        self._fail()
        version = self._releases.get(f"{namespace}/{tag}")
        return None if version is None else release(tag, version)

    async def clusters(self) -> list[CapiCluster]:
        self._fail()
        return self._clusters

    async def policies(self, namespace: str) -> list[StackPolicySpec]:
        self._fail()
        return self._policies

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


def stack(**changed: Any) -> ClusterStack:
    metadata = {"name": "stack", "namespace": "catalog"}
    return msgspec.convert({"metadata": metadata, "spec": {**SPEC, **changed}}, ClusterStack)


def release(tag: str, version: str = "v1.27.3") -> ClusterStackRelease:
    metadata = {"name": tag, "namespace": "catalog"}
    return msgspec.convert({"metadata": metadata, "status": {"kubernetesVersion": version}}, ClusterStackRelease)


def cluster(
    class_name: str | None, version: str = "v1.27.3", namespace: str = "catalog", **topology: Any
) -> CapiCluster:
    spec = {} if class_name is None else {"topology": {"class": class_name, "version": version, **topology}}
    return read_cluster({"metadata": {"name": "shop", "namespace": namespace}, "spec": spec})


def addon(name: str = "shop", kind: str = "Cluster", namespace: str = "catalog") -> ClusterAddon:
    reference = {"name": name, "kind": kind, "namespace": namespace}
    metadata = {"name": "cluster-addon-shop", "namespace": "catalog"}
    return msgspec.convert({"metadata": metadata, "spec": {"clusterRef": reference}}, ClusterAddon)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({}, ""),
        ({"versions": ["v1", "v1-alpha.1"]}, ""),
        ({"noProvider": False, "providerRef": {"kind": "ATemplate", "name": "a"}}, ""),
        ({"versions": ["v1", "v1-alpha"]}, r"spec\.versions\[1\]: version 'v1-alpha'"),
        ({"provider": "a-b"}, r"spec\.provider: is 'a-b'; give a name without a dash"),
        ({"name": "a-b"}, r"spec\.name: is 'a-b'"),
        ({"noProvider": False}, r"spec\.providerRef: is missing"),
    ],
)
def test_a_cluster_stack_that_cannot_work_is_denied(changed: dict[str, Any], field: str) -> None:
    verdict = rules.check_stack(stack(**changed), None)
    if not field:
        assert verdict.is_allowed
    else:
        assert verdict.code == 422
        assert re.search(f"ClusterStack stack is invalid: {field}", verdict.message)


@pytest.mark.parametrize(
    "changed", [{"provider": "other"}, {"name": "other"}, {"channel": "custom"}, {"kubernetesVersion": "1.28"}]
)
def test_the_series_of_a_cluster_stack_cannot_be_changed(changed: dict[str, Any]) -> None:
    verdict = rules.check_stack(stack(**changed), stack())
    assert verdict.code == 422
    assert f"spec.{next(iter(changed))}: is" in verdict.message


def test_versions_are_checked_on_update_as_well_but_only_when_they_change() -> None:
    bad = stack(versions=["v1-alpha"])
    assert not rules.check_stack(bad, stack()).is_allowed
    assert rules.check_stack(bad, bad).is_allowed


@pytest.mark.parametrize(
    ("class_name", "channel", "denied"),
    [
        ("docker-ferrol-1-27-v6", "stable", True),
        ("test-cluster-class", "stable", False),
        ("docker-ferrol-1-25-v1", "stable", False),
        ("docker-ferrol-1-27-v6", "custom", False),
        ("docker-ferrol-1-27-v0-sha.abc", "custom", True),
        ("docker-ferrol-1-27-v0-sha.abc", "stable", False),
    ],
)
async def test_a_cluster_stack_in_use_cannot_be_deleted(class_name: str, channel: str, denied: bool) -> None:
    verdict = await rules.check_stack_deletion(
        stack(channel=channel), FakeLookups(cluster(None), cluster("odd.class.name"), cluster(class_name))
    )
    assert verdict.code == (400 if denied else 0)
    assert ("used by Clusters catalog/shop" in verdict.message) is denied


@pytest.mark.parametrize(
    ("name", "users", "denied"),
    [
        ("docker-ferrol-1-27-v1", [cluster("docker-ferrol-1-27-v1")], True),
        ("docker-ferrol-1-27-v1", [cluster("test-cluster-class")], False),
        ("docker-ferrol-1-27-v1", [cluster("docker-ferrol-1-26-v5")], False),
        ("docker-ferrol-1-27-v1", [cluster("test-cluster-class"), cluster("docker-ferrol-1-27-v1")], True),
        ("docker-ferrol-1-27-v0-sha-abc", [cluster("docker-ferrol-1-27-v0-sha.abc")], True),
        ("docker-ferrol-1-27-v1", [cluster("docker-ferrol-1-27-v1", namespace="team")], False),
        (
            "docker-ferrol-1-27-v1",
            [cluster("docker-ferrol-1-27-v1", namespace="team", classNamespace="catalog")],
            True,
        ),
    ],
)
async def test_a_release_in_use_cannot_be_deleted(name: str, users: list[CapiCluster], denied: bool) -> None:
    verdict = await rules.check_release_deletion(release(name), FakeLookups(*users))
    assert verdict.code == (400 if denied else 0)


async def test_a_deletion_whose_users_are_not_known_is_allowed_with_a_warning() -> None:
    lookups = FakeLookups()
    lookups.error = TransportError("GET", "catalog", "no route to host")
    for verdict in (
        await rules.check_release_deletion(release("docker-ferrol-1-27-v1"), lookups),
        await rules.check_stack_deletion(stack(), lookups),
    ):
        assert verdict.is_allowed
        assert "no route to host" in verdict.warnings[0]


@pytest.mark.parametrize(
    ("new", "old", "field"),
    [
        (addon(), None, ""),
        (addon(), addon(), ""),
        (addon(kind="Machine"), None, "spec.clusterRef.kind"),
        (addon("other"), addon(), "spec.clusterRef.name"),
        (addon(namespace="other"), addon(), "spec.clusterRef.namespace"),
    ],
)
def test_a_cluster_addon_keeps_its_cluster(new: ClusterAddon, old: ClusterAddon | None, field: str) -> None:
    verdict = rules.check_addon(new, old)
    assert verdict.code == (422 if field else 0)
    assert field in verdict.message


RELEASES = {
    "catalog/docker-ferrol-1-27-v1": "v1.27.3",
    "catalog/docker-ferrol-1-27-v0-sha-abc": "v1.27.3",
    "catalog/docker-ferrol-1-28-v1": "v1.28.1",
    "catalog/docker-ferrol-1-29-v1": "v1.29.1",
    "catalog/docker-other-1-27-v1": "v1.27.3",
    "catalog/docker-new-1-27-v1": "",
}


@pytest.mark.parametrize("old", [None, cluster(None)])
async def test_classic_clusters_are_allowed(old: CapiCluster | None) -> None:
    assert await rules.check_cluster(cluster(None), old, FakeLookups()) == rules.ADMITTED


@pytest.mark.parametrize(
    ("new", "problem"),
    [
        (cluster(""), "spec.topology.class: is empty"),
        (cluster("docker-ferrol-1-27-v1", "v1.27.4"), "spec.topology.version: is 'v1.27.4'; class"),
        (cluster("docker-ferrol-1-27-v1"), ""),
        (cluster("docker-ferrol-1-27-v0-sha.abc"), ""),
        (cluster("docker-ferrol-1-27-v1", namespace="team", classNamespace="catalog"), ""),
    ],
)
async def test_a_cluster_has_the_kubernetes_version_of_its_class(new: CapiCluster, problem: str) -> None:
    verdict = await rules.check_cluster(new, None, FakeLookups(releases=RELEASES))
    assert verdict.code == (422 if problem else 0)
    assert problem in verdict.message
    assert verdict.warnings == ()


@pytest.mark.parametrize(
    ("class_name", "problem"),
    [("quick-start", "does not exist"), ("docker-new-1-27-v1", "reports no Kubernetes version yet")],
)
async def test_a_class_of_no_known_release_is_allowed_with_a_warning(class_name: str, problem: str) -> None:
    verdict = await rules.check_cluster(cluster(class_name), None, FakeLookups(releases=RELEASES))
    assert verdict.is_allowed
    assert problem in verdict.warnings[0]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (cluster("docker-ferrol-1-27-v1"), cluster("docker-ferrol-1-28-v1", "v1.28.1"), ""),
        (cluster("docker-ferrol-1-27-v2"), cluster("docker-ferrol-1-27-v1"), ""),
        (cluster(None), cluster("docker-ferrol-1-27-v1"), ""),
        (cluster("docker-ferrol-1-27-v1"), cluster("docker-ferrol-1-29-v1", "v1.29.1"), "one minor at a time"),
        (cluster("docker-ferrol-1-28-v1"), cluster("docker-ferrol-1-27-v1"), "one minor at a time"),
        (cluster("docker-ferrol-1-27-v1"), cluster("docker-other-1-27-v1"), "of another stack"),
        (cluster("quick-start"), cluster("docker-ferrol-1-27-v1"), "'quick-start' is no name of a release"),
    ],
)
async def test_a_cluster_keeps_its_stack_and_skips_no_minor(old: CapiCluster, new: CapiCluster, problem: str) -> None:
    verdict = await rules.check_cluster(new, old, FakeLookups(releases=RELEASES))
    assert verdict.code == (422 if problem else 0)
    assert problem in verdict.message


@pytest.mark.parametrize(
    ("policy", "namespace", "approved"),
    [
        (StackPolicySpec("docker", versions=("v1",)), "team", True),
        (StackPolicySpec("docker", versions=("v1",), namespaces=("team",)), "team", True),
        (StackPolicySpec("docker", versions=("v1",), namespaces=("team",)), "other", False),
        (StackPolicySpec("docker", versions=("v2",)), "team", False),
        (StackPolicySpec("docker", name="ferrol"), "team", False),
        (StackPolicySpec("docker", name="scs"), "team", True),
        (StackPolicySpec("docker", kubernetes_version="1.28"), "team", True),
        (StackPolicySpec("openstack"), "team", True),
    ],
)
async def test_a_cluster_uses_only_versions_that_are_approved_for_its_namespace(
    policy: StackPolicySpec, namespace: str, approved: bool
) -> None:
    new = cluster("docker-ferrol-1-27-v1", namespace=namespace, classNamespace="catalog")
    lookups = FakeLookups(releases=RELEASES, policies=[policy])
    verdict = await rules.check_cluster(new, None, lookups)
    assert verdict.is_allowed is approved
    assert ("is not approved for namespace" in verdict.message) is not approved
    # One that has the class already keeps it.
    assert (await rules.check_cluster(new, new, lookups)).is_allowed


@pytest.mark.parametrize("class_name", ["docker-ferrol-1-27-v9", "docker-new-1-27-v1", "docker-ferrol-1-27-v0-sha.new"])
async def test_approval_does_not_depend_on_the_installation_of_the_release(class_name: str) -> None:
    new = cluster(class_name, namespace="team", classNamespace="catalog")
    lookups = FakeLookups(releases=RELEASES, policies=[StackPolicySpec("docker", versions=("v2",))])
    for old in (None, cluster(None, namespace="team"), cluster("docker-ferrol-1-27-v2", namespace="team")):
        verdict = await rules.check_cluster(new, old, lookups)
        assert verdict.code == 422
        assert "is not approved for namespace team" in verdict.message


async def test_a_cluster_is_denied_while_the_approvals_of_its_class_cannot_be_read() -> None:
    lookups = FakeLookups(releases=RELEASES)
    lookups.error = TransportError("GET", "catalog", "no route to host")
    new = cluster("docker-ferrol-1-27-v1")
    verdict = await rules.check_cluster(new, None, lookups)
    assert "StackPolicies of namespace catalog cannot be read" in verdict.message
    assert "no route to host" in verdict.message
    assert not verdict.is_allowed
    # One that has the class already keeps it, and one of another kind of class needs no approval.
    assert (await rules.check_cluster(new, new, lookups)).is_allowed
    assert (await rules.check_cluster(cluster("quick-start"), None, lookups)).is_allowed
