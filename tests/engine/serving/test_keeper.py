"""The certificate of webhooks over its life: trusted before it is shown, renewed, and restored."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.waiting import until

from hortus.engine import Manager
from hortus.engine.flags import FlagError, FlagSet
from hortus.engine.health import Address
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.serving import (
    WEBHOOK_CONFIGURATIONS,
    WEBHOOK_FLAGS,
    CertificateKeeper,
    HttpsServer,
    ServingEndpoint,
    ServingPair,
    add_kept,
    is_due,
    read_pair,
    self_signed,
    webhook_settings,
)
from hortus.engine.serving.certificates import secret_of
from hortus.engine.serving.configurations import configuration_trust
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey
from hortus.testing import FakeClock
from hortus.testing.apiserver import TestServer

KEY = ObjectKey("default", "hooks")
OURS = ServingEndpoint(service="hooks", namespace="default")
MONTH = 30 * 86400.0


def webhook(name: str, service: str, bundle: str = "") -> Object:
    client: Object = {"service": {"name": service, "namespace": "default", "path": f"/{name}"}}
    rule = {"apiGroups": ["a"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["b"]}
    return {
        "name": f"{name}.example.org",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {**client, **({"caBundle": bundle} if bundle else {})},
        "sideEffects": "None",
        "rules": [rule],
    }


class World:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.clock = FakeClock()
        self.keeper = CertificateKeeper(
            client,
            key=KEY,
            names=OURS.names(),
            trust=configuration_trust(client, name="hooks", endpoint=OURS),
            field_manager="test",
            clock=self.clock,
        )

    async def register(self, *webhooks: Object) -> None:
        kind = {"apiVersion": WEBHOOK_CONFIGURATIONS.api_version, "kind": WEBHOOK_CONFIGURATIONS.kind}
        made = {**kind, "metadata": {"name": "hooks"}, "webhooks": [*webhooks]}
        await self.client.create(WEBHOOK_CONFIGURATIONS, made)

    async def bundles(self) -> dict[str, bytes]:
        found = await self.client.get(WEBHOOK_CONFIGURATIONS, "hooks")
        configs = {one["name"].partition(".")[0]: one["clientConfig"] for one in found["webhooks"]}
        return {name: base64.b64decode(config.get("caBundle", "")) for name, config in configs.items()}

    async def pair(self) -> ServingPair:
        found = read_pair(await self.client.get(SECRETS, KEY.name, KEY.namespace))
        assert found is not None
        return found

    async def version(self) -> str:
        found = await self.client.get(WEBHOOK_CONFIGURATIONS, "hooks")
        return str(found["metadata"]["resourceVersion"])


@pytest.fixture
async def world(server: TestServer) -> AsyncIterator[World]:
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        yield World(client)
        for resource, namespace in ((WEBHOOK_CONFIGURATIONS, ""), (SECRETS, KEY.namespace)):
            with contextlib.suppress(NotFound):
                await client.delete(resource, KEY.name, namespace)


async def test_a_certificate_is_renewed_with_trust_in_the_one_before(world: World) -> None:
    await world.register(webhook("one", "hooks"), webhook("two", "hooks"))
    result = await world.keeper.reconcile(KEY)
    first = await world.pair()
    assert await world.bundles() == {"one": first.bundle, "two": first.bundle}
    assert result is not None
    assert result.requeue_after == pytest.approx(2 * MONTH, abs=1.0)
    assert first.names == {"hooks.default.svc", "hooks.default.svc.cluster.local"}

    world.clock.skip(2 * MONTH + 1)
    renewing = asyncio.create_task(world.keeper.reconcile(KEY))
    await until(lambda: world.clock.sleepers)
    both = (await world.bundles())["one"]
    assert both.endswith(first.certificate)
    assert both != first.bundle
    assert await world.pair() == first, "not shown before API servers can have learnt of it"
    await world.clock.advance(5.0)
    await renewing
    assert (await world.pair()).bundle == both


async def test_a_secret_that_is_deleted_is_made_again_with_trust_in_what_servers_still_show(world: World) -> None:
    await world.register(webhook("one", "hooks"))
    await world.keeper.reconcile(KEY)
    first = await world.pair()
    await world.client.delete(SECRETS, KEY.name, KEY.namespace)
    making = asyncio.create_task(world.keeper.reconcile(KEY))
    await until(lambda: world.clock.sleepers)
    both = (await world.bundles())["one"]
    assert both.endswith(first.certificate)
    assert both != first.bundle
    await world.clock.advance(5.0)
    await making
    assert (await world.pair()).bundle == both


async def test_a_secret_with_the_key_of_another_certificate_is_repaired(world: World) -> None:
    await world.register(webhook("one", "hooks"))
    await world.keeper.reconcile(KEY)
    first = await world.pair()
    other = self_signed(OURS.names(), now=world.clock.now())
    await world.client.apply(SECRETS, secret_of(first._replace(key=other.key), KEY), field_manager="other")
    repairing = asyncio.create_task(world.keeper.reconcile(KEY))
    await until(lambda: world.clock.sleepers)
    await world.clock.advance(5.0)
    await repairing
    found = await world.pair()
    assert not is_due(found, OURS.names(), now=world.clock.now())
    assert found.bundle == found.certificate + first.certificate


class StandingBy:
    """The election of a replica while another leads."""

    name, leading = "hooks", False

    async def acquire(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def lost(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def release(self) -> None:
        self.leading = False


async def test_a_replica_that_stands_by_is_ready_with_the_first_certificate_and_not_before(world: World) -> None:
    manager = Manager(world.client, election=StandingBy(), grace=0.0)
    server = HttpsServer("hooks", Address("127.0.0.1", 0), {})
    add_kept(manager, server, world.keeper, name="hooks")
    assert "there is no certificate" in str((await manager.readiness.run())["hooks"])
    running = asyncio.create_task(manager.run())
    await until(lambda: server.port)
    assert not any((await manager.readiness.run()).values())
    assert world.keeper.shown == await world.pair()
    manager.stop()
    await running


async def test_replicas_that_begin_together_agree_on_one_certificate(world: World) -> None:
    begun = await asyncio.gather(world.keeper.begin(), world.keeper.begin())
    assert begun == [await world.pair()] * 2


async def test_clients_are_led_to_a_server_whose_first_certificate_is_there(world: World) -> None:
    led: list[bytes] = []

    async def trust(bundle: bytes) -> None:
        assert bundle == (await world.pair()).bundle
        led.append(bundle)

    keeper = CertificateKeeper(
        world.client, key=KEY, names=OURS.names(), trust=trust, field_manager="test", clock=world.clock
    )
    await keeper.reconcile(KEY)
    assert led == [(await world.pair()).bundle]


async def test_a_reconcile_without_a_change_writes_nothing(world: World) -> None:
    await world.register(webhook("one", "hooks"))
    await world.keeper.reconcile(KEY)
    version, pair = await world.version(), await world.pair()
    await world.keeper.reconcile(KEY)
    assert (await world.version(), await world.pair()) == (version, pair)


async def test_webhooks_of_another_server_keep_their_authority(world: World) -> None:
    theirs = base64.b64encode(self_signed(["others.default.svc"], now=world.clock.now()).certificate).decode()
    await world.register(webhook("one", "hooks"), webhook("other", "others", theirs))
    await world.keeper.reconcile(KEY)
    found = await world.bundles()
    assert found == {"one": (await world.pair()).bundle, "other": base64.b64decode(theirs)}


async def test_a_configuration_that_comes_later_is_trusted_with_the_same_certificate(world: World) -> None:
    await world.keeper.reconcile(KEY)
    pair = await world.pair()
    await world.register(webhook("one", "hooks"))
    await world.keeper.reconcile(KEY)
    assert await world.bundles() == {"one": pair.bundle}
    assert await world.pair() == pair


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("--webhook-bind-address=9443", "--webhook-bind-address: "),
        ("--webhook-url=http://hooks.example.org", "--webhook-url is 'http://hooks.example.org'; it must be a URL"),
        ("--webhook-url=https:///path", "--webhook-url is 'https:///path'"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(argument: str, problem: str) -> None:
    with pytest.raises(FlagError, match=problem):
        webhook_settings(FlagSet(WEBHOOK_FLAGS).parse([argument]))
