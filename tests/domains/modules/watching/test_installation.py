"""The whole way: watcher installed in a cluster, its events in the queue, its certificates rotated, its removal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.domains.modules.watching.world import DIRECT, KEY, World, started_world, watcher

from hortus.domains.modules.types import KYMAS, WATCHERS
from hortus.domains.modules.watching.health import AFTER_FAILURE, PATIENCE, Hearing
from hortus.domains.modules.watching.installation import APPLY_EVERY
from hortus.domains.modules.watching.webhook import NETWORK_POLICIES, PODS, WEBHOOK_CONFIGURATIONS, identities
from hortus.engine import StepError
from hortus.engine.remote import SECRETS
from hortus.kube.errors import NotFound
from hortus.kube.objects import parse_time

pytestmark = pytest.mark.timeout(300)
HOUR = 3600.0


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with started_world(tmp_path) as made:
        await made.control.create(WATCHERS, watcher())
        yield made


async def test_the_watcher_is_installed_step_by_step(world: World) -> None:
    """2.4: no certificate yet, no ready replica yet: not ready, no error; then ready."""
    async with world.watching(*DIRECT):
        states = {(await world.install()).reason}
        await world.until(lambda state: states.add(state.reason) or state.reason == "AgentNotReady")
        assert states <= {"CertificatePending", "AgentNotReady"}
        for resource, namespace, name in identities("kyma-system"):
            found = await world.remote.get(resource, name, namespace)
            assert found["metadata"]["labels"]["operator.kyma-project.io/managed-by"] == "kyma"
        await world.run_deployment()
        state = await world.install()
    assert (state.ready, state.reason, state.hearing) == (True, "Installed", Hearing.UNPROVEN)


async def test_a_users_change_reaches_the_queue_within_a_second(world: World) -> None:
    """Through the managed cluster's API server, the webhook, the agent and the listener, each with TLS."""
    async with world.watching(*DIRECT):
        await world.installed()
        async with world.agent():
            began = time.monotonic()
            await world.edit_remote("fast")
            assert await asyncio.wait_for(world.recorder.keys.get(), 60) == KEY
            took = time.monotonic() - began
            assert (await world.install()).hearing is Hearing.HEARD
    print(f"event to queue: {took * 1000:.0f} ms")


async def test_a_change_while_the_listener_is_away_is_reported_when_it_is_back(world: World) -> None:
    async with world.watching(*DIRECT):
        await world.installed()
        async with world.agent():
            await world.edit_remote("fast")
            await world.reconciled()
        port = await world.listener_port()
    async with world.agent(listener=port) as agent:
        await world.edit_remote("regular")
        assert len(agent.buffer) == 1
    async with world.watching(*DIRECT), world.agent():
        assert await world.reconciled() == KEY


async def test_a_reconcile_at_rest_reads_two_objects_and_writes_none(world: World) -> None:
    async with world.watching(*DIRECT):
        await world.installed()
        world.requests.methods.clear()
        for _ in range(3):
            await world.install()
    assert dict(world.requests.methods) == {"GET": 6}


async def test_what_a_user_deletes_or_edits_is_put_back(world: World) -> None:
    async with world.watching(*DIRECT):
        await world.installed()
        await world.remote.patch(WEBHOOK_CONFIGURATIONS, "skr-webhook", {"webhooks": []})
        await world.install()
        assert len((await world.remote.get(WEBHOOK_CONFIGURATIONS, "skr-webhook"))["webhooks"]) == 1
        await world.remote.delete(WEBHOOK_CONFIGURATIONS, "skr-webhook")
        await world.install()
        await world.remote.get(WEBHOOK_CONFIGURATIONS, "skr-webhook")
        # An object that is not looked at each time comes back within the hour.
        name = "kyma-project.io--watcher-to-dns"
        await world.remote.delete(NETWORK_POLICIES, name, "kyma-system")
        await world.clock.advance(APPLY_EVERY)
        await world.install()
        await world.remote.get(NETWORK_POLICIES, name, "kyma-system")


async def test_another_watcher_adds_a_webhook_and_a_deleted_one_removes_it(world: World) -> None:
    """2.4: one webhook per Watcher."""
    async with world.watching(*DIRECT):
        await world.installed()
        second = watcher(manager="telemetry", field="status")
        second["metadata"]["name"] = "second"
        await world.control.create(WATCHERS, second)
        paths = ["/validate/telemetry", "/validate/lifecycle-manager"]
        while await _paths(world) != paths:
            await world.install()
        await world.control.patch(WATCHERS, "second", {"metadata": {"finalizers": None}}, "kcp-system")
        await world.control.delete(WATCHERS, "second", "kcp-system")
        while len(await _paths(world)) == len(paths):
            await world.install()
        assert await _paths(world) == paths[1:]


async def _paths(world: World) -> list[str]:
    found = await world.remote.get(WEBHOOK_CONFIGURATIONS, "skr-webhook")
    return [one["clientConfig"]["service"]["path"] for one in found["webhooks"]]


@pytest.mark.parametrize("reason", ["CrashLoopBackOff", "ImagePullBackOff"])
async def test_a_pod_that_will_not_start_is_an_error(world: World, reason: str) -> None:
    """2.4: a pod in CrashLoopBackOff or ImagePullBackOff is an error."""
    async with world.watching(*DIRECT):
        await world.until(lambda state: state.reason == "AgentNotReady")
        pod = {
            "metadata": {"name": "skr-webhook-1", "namespace": "kyma-system", "labels": {"app": "skr-webhook"}},
            "spec": {"containers": [{"name": "server", "image": "x"}]},
        }
        await world.remote.create(PODS, pod)
        status = {"containerStatuses": [_waiting(reason)]}
        await world.remote.patch(PODS, "skr-webhook-1", {"status": status}, "kyma-system", subresource="status")
        with pytest.raises(StepError, match=f"pod skr-webhook-1: container server: {reason}"):
            await world.install()


def _waiting(reason: str) -> dict[str, object]:
    return {
        "name": "server",
        "image": "x",
        "imageID": "",
        "ready": False,
        "restartCount": 1,
        "state": {"waiting": {"reason": reason}},
    }


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        ({"annotations": {"skr-domain": ""}}, "SkrDomainMissing"),
        ({"annotations": None}, "SkrDomainMissing"),
        ({"labels": {"kyma-project.io/runtime-id": None}}, "RuntimeIdMissing"),
    ],
)
async def test_a_kyma_without_domain_or_runtime_is_an_error(
    world: World, patch: dict[str, object], reason: str
) -> None:
    """2.4: missing or empty skr-domain is an error."""
    await world.control.patch(KYMAS, KEY.name, {"metadata": patch}, KEY.namespace)
    async with world.watching(*DIRECT):
        with pytest.raises(StepError) as raised:
            await world.install()
    assert raised.value.reason == reason


async def test_the_watcher_is_removed_and_the_certificate_with_it(world: World) -> None:
    """2.1.11, steps 4 and 5: each says whether there was something to delete."""
    async with world.watching(*DIRECT):
        await world.installed()
        installer = world.parts.installer
        assert [await installer.delete_certificate(KEY), await installer.delete_certificate(KEY)] == [
            True,
            False,
        ]
        assert [await installer.remove(world.remote), await installer.remove(world.remote)] == [True, False]
    with pytest.raises(NotFound):
        await world.control.get(SECRETS, "kyma-1-webhook-tls", "istio-system")


async def test_a_new_authority_reaches_agent_and_listener_without_a_lost_event(world: World) -> None:
    """2.5: bundle first, clients second, server last; events arrive in each of these states."""
    async with world.watching(*DIRECT):
        await world.installed()
        async with world.agent() as agent:
            before = await world.control.get(SECRETS, "kyma-1-webhook-tls", "istio-system")
            await world.clock.advance(2.0)
            await world.control.delete(SECRETS, "klm-watcher", "istio-system")
            while (await world.gateway()).value("ca.crt").count(b"BEGIN") < 2:
                await world.clock.advance(1.0)
            await world.edit_remote("fast")
            await world.reconciled()
            # The agent's turn.
            while await _version(world) == before["metadata"]["resourceVersion"]:
                await world.install()
            await world.until(lambda state: state.ready)
            await world.write_certificate()
            assert agent.certificates.refresh()
            await world.edit_remote("regular")
            await world.reconciled()
            # The listener's turn.
            old = (await world.gateway()).value("tls.crt")
            await world.clock.advance(4 * 24 * HOUR + 600)
            while (await world.gateway()).value("tls.crt") == old:
                await world.clock.advance(300.0)
            await world.edit_remote("fast")
            await world.reconciled()


async def _version(world: World) -> str:
    found = await world.control.get(SECRETS, "kyma-1-webhook-tls", "istio-system")
    return str(found["metadata"]["resourceVersion"])


async def test_a_silent_watcher_is_noticed_and_one_that_speaks_again_too(world: World) -> None:
    """A watcher whose objects are all in place, and whose events do not arrive, is Silent after two checks."""
    async with world.watching(*DIRECT):
        await world.installed()
        async with world.agent():
            await world.clock.advance(HOUR)
            await world.install()
            await world.until(lambda state: state.hearing is Hearing.HEARD)
            assert world.recorder.keys.empty()  # the answer to a check reconciles nothing
        await world.clock.advance(HOUR)
        for _ in range(2):
            await world.install()
            await world.clock.advance(PATIENCE)
        assert (await world.install()).hearing is Hearing.SILENT
        assert world.metric("hortus_watcher_clusters", state="Silent") == 1
        assert (await world.reported("WatcherSilent"))["type"] == "Warning"
        assert [one["metadata"]["name"] for one in (await world.remote.list(KYMAS, "kyma-system")).items] == ["default"]
        async with world.agent():
            await world.clock.advance(AFTER_FAILURE)
            await world.until(lambda state: state.hearing is Hearing.HEARD)
        assert world.metric("hortus_watcher_clusters", state="Silent") == 0


async def test_objects_as_the_go_system_left_them_are_not_written_again(world: World) -> None:
    """A cluster that is taken over: another process with the same field manager has applied the same objects."""
    async with world.watching(*DIRECT):
        await world.installed()
        versions = await _versions(world)
    async with world.watching(*DIRECT):
        await world.until(lambda state: state.ready)
        assert await _versions(world) == versions


async def _versions(world: World) -> list[str]:
    return [
        (await world.remote.get(resource, name, namespace))["metadata"]["resourceVersion"]
        for resource, namespace, name in identities("kyma-system")
    ]


async def test_an_overdue_certificate_is_reported(world: World) -> None:
    """5.2: lifecycle_mgr_self_signed_cert_not_renew."""
    async with world.watching(*DIRECT, "--self-signed-cert-renew-before=24h", "--self-signed-cert-renew-buffer=0s"):
        await world.installed()
        assert world.metric("lifecycle_mgr_self_signed_cert_not_renew", kyma_name="kyma-1") == 0
    found = await world.control.get(SECRETS, "klm-istio-gateway", "istio-system")
    assert parse_time(found["metadata"]["annotations"]["caAddedToBundleAt"]) <= world.clock.now()
