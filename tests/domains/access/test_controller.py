"""The life of a request, against real API servers: asked, served, edited, narrowed, rotated, deleted."""

from __future__ import annotations

from tests.domains.access.world import CONFIGMAPS, NAMESPACES, READ_CONFIG, World, content, name_of

from hortus.domains.access.manifests import ACCOUNT_NAMESPACE, BINDINGS, CLUSTER_ROLES, ROLES
from hortus.engine.remote import SECRETS
from hortus.kube.objects import Object


async def test_the_kubeconfig_may_do_what_was_asked_for_and_nothing_else(here: World) -> None:
    await here.cluster()
    async with here.controlled():
        access = await here.ask(namespaces=["default"])
        await here.until_reason("Issued")
        secret = await here.until_secret()
        assert await here.rules_held(secret) == [READ_CONFIG | {"verbs": ["get", "list"]}]
        assert await here.rules_held(secret, "kube-system") == []
        assert await here.as_client(secret, lambda client: client.list(CONFIGMAPS, "default"))
        assert not await here.as_client(secret, lambda client: client.list(CONFIGMAPS, "kube-system"))
        assert not await here.as_client(secret, lambda client: client.list(SECRETS, "default"))
        name = name_of(access)
        assert await here.objects_inside() == [
            f"Role default/{name}",
            f"RoleBinding default/{name}",
            f"ServiceAccount {ACCOUNT_NAMESPACE}/{name}",
        ]


async def test_deleting_the_request_removes_everything(here: World) -> None:
    await here.cluster()
    async with here.controlled():
        await here.ask()
        await here.until_reason("Issued")
        assert len(await here.objects_inside()) == 3
        await here.delete()
        await here.until_gone()
        await here.until_gone("Secret", "access-reader")
        assert await here.objects_inside() == []


async def test_a_reconcile_that_drains_after_a_handover_leaves_no_watch_behind(here: World) -> None:
    await here.cluster()
    async with here.controlled():
        reconciler = here.controller._reconciler
        holds, reconciler.wiring.holds = reconciler.wiring.holds, lambda key: False
        await here.ask()
        await here.until_reason("Issued")
        await here.rest()
        assert [len(watch) for watch in reconciler._clusters.watches.values() if len(watch)] == []
        reconciler.wiring.holds = holds
        await here.rest()
        assert {len(watch) for watch in reconciler._clusters.watches.values()} == {1}


async def test_what_is_edited_in_the_cluster_is_mended(here: World) -> None:
    await here.cluster()
    async with here.controlled():
        access = await here.ask(namespaces=["default"])
        await here.until_reason("Issued")
        name = name_of(access)
        async with here.inside() as inside:
            everything: Object = {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
            await inside.patch(ROLES, name, everything, "default")
            await here.until_inside(ROLES, name, "default", lambda obj: obj["rules"][0]["verbs"] == ["get", "list"])
            gone = (await inside.get(BINDINGS, name, "default"))["metadata"]["uid"]
            await inside.delete(BINDINGS, name, "default")
            await here.until_inside(BINDINGS, name, "default", lambda obj: obj and obj["metadata"]["uid"] != gone)
        secret = await here.until_secret()
        assert await here.as_client(secret, lambda client: client.list(CONFIGMAPS, "default"))


async def test_a_secret_that_somebody_edits_gets_a_new_kubeconfig(here: World) -> None:
    await here.cluster()
    async with here.controlled():
        await here.ask()
        await here.until_reason("Issued")
        first = content(await here.until_secret())
        await here.clock.advance(11)
        await here.change(SECRETS, "access-reader", {"data": {"config": "AAAA"}})
        second = await here.until_secret(lambda obj: len(content(obj)) > 100 and content(obj) != first)
        assert await here.as_client(second, lambda client: client.list(CONFIGMAPS, "default"))


async def test_a_kubeconfig_is_replaced_when_its_share_of_time_is_over(here: World) -> None:
    await here.cluster()
    async with here.controlled():
        await here.ask(rotateAtPercent=50)
        await here.until_reason("Issued")
        first = content(await here.until_secret())
        await here.rest()
        await here.clock.advance(await here.time_left() + 1)
        second = await here.until_secret(lambda obj: content(obj) != first)
        assert await here.as_client(second, lambda client: client.list(CONFIGMAPS, "default"))


async def test_a_restart_writes_nothing(here: World) -> None:
    await here.cluster()
    async with here.controlled():
        await here.ask()
        await here.until_reason("Issued")
        await here.rest()
    here.requests.answers.clear()
    async with here.controlled():
        await here.rest()
        await here.rest()
    assert here.requests.writes == 0
    assert here.requests.answers, "the controller looked"


async def test_a_role_by_reference_is_copied_and_followed(here: World) -> None:
    await here.cluster()
    async with here.inside() as inside:
        role: Object = {"metadata": {"name": "reader"}, "rules": [READ_CONFIG]}
        await inside.create(CLUSTER_ROLES, role)
        async with here.controlled():
            await here.ask(roleRef={"name": "reader"}, namespaces=["default"])
            await here.until_reason("Issued")
            secret = await here.until_secret()
            assert await here.rules_held(secret) == [READ_CONFIG]
            assert await here.rules_held(secret, "kube-system") == []
            await here.rest()
            everything = {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
            await inside.patch(CLUSTER_ROLES, "reader", everything)
            await here.clock.advance(601)
            condition = await here.until_reason("NotAllowed")
            assert "ClusterRole reader: rules[0].verbs: wildcard *" in condition["message"]
            await here.until_gone("Secret", "access-reader")
            assert await here.objects_inside() == []


async def test_a_small_role_of_a_million_permissions_is_refused_without_taking_it_apart(here: World) -> None:
    await here.cluster()
    async with here.inside() as inside:
        words = {field: [f"{field}{number}" for number in range(100)] for field in ("verbs", "apiGroups", "resources")}
        await inside.create(CLUSTER_ROLES, {"metadata": {"name": "wide"}, "rules": [words]})
        async with here.controlled():
            await here.ask(roleRef={"name": "wide"}, namespaces=["default"])
            condition = await here.until_reason("NotAllowed")
            assert "ClusterRole wide: rules: more than 100000 permissions" in condition["message"]
            assert len(condition["message"]) < 500


async def test_a_namespace_that_is_not_there_is_named(here: World) -> None:
    await here.cluster()
    async with here.controlled():
        await here.ask(namespaces=["default", "shop"])
        condition = await here.until_reason("NamespaceMissing")
        assert "namespace shop is not there" in condition["message"]
        async with here.inside() as inside:
            await inside.create(NAMESPACES, {"metadata": {"name": "shop"}})
        await here.rest()
        await here.clock.advance(61)
        await here.until_reason("Issued")
