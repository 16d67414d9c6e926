"""Releases of a namespace that is not trusted: its own objects are ours, all others are written as its deputy."""

from __future__ import annotations

from tests.domains.granting import grant
from tests.domains.stacks.catalog.world import CLASSES, HOME, PROVIDERS, TEAM, CatalogWorld, condition
from tests.domains.stacks.releasing import CLUSTER_CLASS, CLUSTER_TEMPLATE

from hortus.domains.stacks.types import CLUSTER_STACK_RELEASES, CLUSTER_STACKS
from hortus.engine import metadata_of
from hortus.engine.deputies import Action, deputy_of
from hortus.engine.leftovers.types import LEFTOVERS, Leftover
from hortus.kube import Resource
from hortus.kube.objects import Object
from hortus.schema import decode

TAG = "docker-ferrol-1-27-v1"
CLASS = "docker-ferrol-1-27-v1"
RBAC = "rbac.authorization.k8s.io"
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
CLUSTER_ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
ROLES = Resource(RBAC, "v1", "roles", "Role")
OWN = {"class.yaml": CLUSTER_CLASS, "cluster.yaml": CLUSTER_TEMPLATE}
ELSEWHERE = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: elsewhere\n  namespace: {TEAM}\n"
GLOBAL = f"apiVersion: {RBAC}/v1\nkind: ClusterRole\nmetadata:\n  name: wide\nrules: []\n"
GRANTING = f"apiVersion: {RBAC}/v1\nkind: Role\nmetadata:\n  name: power\nrules: []\n"
WIDE = {**OWN, "elsewhere.yaml": ELSEWHERE, "global.yaml": GLOBAL, "granting.yaml": GRANTING}
WRITES = tuple(
    Action(verb, group, resource, namespace, name)
    for verb in ("patch", "create", "get")
    for group, resource, namespace, name in (
        ("", "configmaps", TEAM, ""),
        (RBAC, "clusterroles", "", ""),
        (RBAC, "roles", HOME, ""),
    )
)


async def test_a_release_within_its_namespace_needs_no_permission(here: CatalogWorld) -> None:
    here.trusted = "kcp-system"
    here.release(TAG)
    async with here.controllers():
        await here.stack("v1")
        await here.ready(TAG)
    assert await here.names(CLASSES) == [CLASS]


async def test_objects_outside_the_namespace_are_written_with_the_permissions_of_the_deputy(
    here: CatalogWorld,
) -> None:
    here.trusted = "kcp-system"
    here.release(TAG, templates=WIDE)
    async with here.controllers():
        await here.stack("v1")
        found = await here.until(CLUSTER_STACK_RELEASES, TAG, _is_refused)
        message = condition(found, "HelmChartApplied")["message"]
        for kind in ("configmaps", "clusterroles", "roles"):
            assert f'User "{deputy_of(HOME)}" cannot patch resource "{kind}"' in message
        assert await here.names(CLASSES) == []
    await grant(here.client, HOME, *WRITES)
    async with here.controllers():
        await here.ready(TAG)
        assert (await here.client.get(CONFIG_MAPS, "elsewhere", TEAM))["metadata"]["name"] == "elsewhere"
        assert (await here.client.get(CLUSTER_ROLES, "wide"))["metadata"]["name"] == "wide"


async def test_a_deletion_leaves_what_the_deputy_may_not_delete_and_records_it(here: CatalogWorld) -> None:
    here.release(TAG, templates=WIDE)
    async with here.controllers():
        await here.stack("v1")
        await here.ready(TAG)
    here.trusted = "kcp-system"
    async with here.controllers():
        await here.client.delete(CLUSTER_STACKS, "stack", HOME)
        await here.client.delete(CLUSTER_STACK_RELEASES, TAG, HOME)
        await here.until_gone(CLUSTER_STACK_RELEASES, TAG)
    assert await here.names(CLASSES) == []
    (made,) = (await here.client.list(LEFTOVERS, HOME)).items
    left = decode(Leftover, made).spec
    assert sorted(item.what for item in left.items) == [
        "ClusterRole wide", f"ConfigMap {TEAM}/elsewhere", f"Role {HOME}/power"
    ]  # fmt: skip
    assert {item.where for item in left.items} == {"Management"}
    assert deputy_of(HOME) in left.message


async def test_a_release_takes_no_object_of_a_provider_that_has_another_name(here: CatalogWorld) -> None:
    """The author of a ClusterStackRelease would have it deleted with the release."""
    here.release(TAG)
    await here.create(PROVIDERS, "theirs", spec={})
    await here.client.patch(PROVIDERS, "theirs", {"status": {"ready": True}}, HOME, subresource="status")
    reference = {"apiVersion": PROVIDERS.api_version, "kind": PROVIDERS.kind, "name": "theirs"}
    async with here.controllers():
        await here.create(CLUSTER_STACK_RELEASES, TAG, spec={"providerRef": reference})
        await here.ready(TAG)
    assert metadata_of(await here.client.get(PROVIDERS, "theirs", HOME)).owner_references == ()


async def test_a_release_reads_no_secret_as_the_object_of_its_provider(here: CatalogWorld) -> None:
    """All Secrets of the management cluster would be kept in memory."""
    here.release(TAG)
    await here.client.create(SECRETS, {"metadata": {"name": "theirs", "namespace": HOME}})
    async with here.controllers() as manager:
        await here.create(
            CLUSTER_STACK_RELEASES, TAG, spec={"providerRef": {"apiVersion": "v1", "kind": "Secret", "name": "theirs"}}
        )
        found = await here.until(
            CLUSTER_STACK_RELEASES, TAG, lambda one: condition(one, "ProviderClusterStackReleaseReady")
        )
        assert not [cache.name for cache in manager.caches if "secrets" in cache.name]
    message = condition(found, "ProviderClusterStackReleaseReady")["message"]
    assert message == "Secret catalog/theirs: Secret theirs: kind Secret of v1 is no provider's"


def _is_refused(release: Object) -> bool:
    return condition(release, "HelmChartApplied").get("reason") == "NotPermitted"
