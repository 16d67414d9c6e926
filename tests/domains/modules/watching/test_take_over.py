"""The watcher of a cluster, as lifecycle-manager and cert-manager left it: continued without a restart or a rotation.

The Certificate, the Secrets, the agent's objects, the Watcher and its VirtualService are written here as the Go system
writes them: by its field managers, in its order, in parts where it was stopped in the middle.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.domains.modules.watching.contract import of_contract
from tests.domains.modules.watching.test_istio import DNS_NAMES, LABELS, NAME, definition, gateway, secret
from tests.domains.modules.watching.world import World, started_world, watcher

from hortus.domains.modules.types import WATCHERS
from hortus.domains.modules.watching.authorities import IssuedPair, issued_client, new_authority
from hortus.domains.modules.watching.certificates import CERT_MANAGER_CERTIFICATES, SUBJECT
from hortus.domains.modules.watching.controller import GATEWAYS, VIRTUAL_SERVICES
from hortus.domains.modules.watching.installation import APPLY_EVERY
from hortus.domains.modules.watching.webhook import WEBHOOK_CONFIGURATIONS, identities
from hortus.engine.applysets import DiscoveredKinds
from hortus.engine.applysets.resources import gvk_of
from hortus.engine.remote import SECRETS
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource, format_time
from hortus.testing import wait_for, wait_gone
from hortus.testing.clusters import CRDS

pytestmark = pytest.mark.timeout(300)
GO = "lifecycle-manager"
DAY = 86400.0
IMAGE = "example.org/watcher/runtime-watcher:1.0.0"
FLAGS = ("--additional-dns-names=more.example.org", "--skr-watcher-image-registry=example.org/watcher")
CONTROL: list[tuple[Resource, str, str]] = [
    (CERT_MANAGER_CERTIFICATES, "istio-system", NAME),
    (SECRETS, "istio-system", NAME),
    (SECRETS, "istio-system", "klm-watcher"),
    (SECRETS, "istio-system", "klm-istio-gateway"),
    (WATCHERS, "kcp-system", "watcher"),
    (VIRTUAL_SERVICES, "kcp-system", "watcher"),
]
ROUTE = {
    "name": "kcp-system/watcher",
    "match": [{"uri": {"prefix": "/v2/lifecycle-manager/event"}}],
    "route": [{"destination": {"host": "events.kcp-system.svc.cluster.local", "port": {"number": 8082}}}],
}
CONFIGURED = {
    "type": "VirtualService",
    "status": "True",
    "reason": "Ready",
    "message": "VirtualService is configured",
    "observedGeneration": 1,
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
Versions = dict[str, tuple[str, str]]


class GoWatcher:
    """The Go system's part of the work, in its order."""

    def __init__(self, world: World, upstream: Path) -> None:
        self._world = world
        self._upstream = upstream
        now = world.clock.now()
        self._root: IssuedPair = new_authority(["listener.example.org"], now=now - 30 * DAY, seconds=365 * DAY)

    async def certificates(self) -> None:
        """After a month: the authority is in the bundle since then, and the certificate is ten days old."""
        world, root, now = self._world, self._root, self._world.clock.now()
        certificate = {
            "metadata": {"name": NAME, "namespace": "istio-system"},
            "spec": {
                "commonName": "runtime-1",
                "dnsNames": DNS_NAMES,
                "subject": SUBJECT,
                "duration": "1440h0m0s",
                "renewBefore": "720h0m0s",
                "secretName": NAME,
                "secretTemplate": {"labels": LABELS},
                "issuerRef": {"name": "klm-watcher-selfsigned", "kind": "Issuer"},
                "isCA": False,
                "usages": ["digital signature", "key encipherment"],
                "privateKey": {"rotationPolicy": "Always", "encoding": "PKCS1", "algorithm": "RSA", "size": 4096},
            },
        }
        await world.control.apply(
            CERT_MANAGER_CERTIFICATES,
            {"apiVersion": CERT_MANAGER_CERTIFICATES.api_version, "kind": "Certificate", **certificate},
            field_manager="operator.kyma-project.io/lifecycle-manager",
        )
        pair = issued_client(root, "runtime-1", DNS_NAMES, now=now - 10 * DAY, seconds=60 * DAY)
        since = {"caAddedToBundleAt": format_time(now - 30 * DAY)}
        await world.control.create(SECRETS, secret("klm-watcher", root, root.certificate))
        await world.control.create(SECRETS, secret("klm-istio-gateway", root, root.certificate, annotations=since))
        await world.control.create(SECRETS, secret(NAME, pair, root.certificate, labels=LABELS))

    async def objects(self) -> list[Object]:
        """The objects of the agent, as they are applied to the cluster."""
        issued = await self._world.control.get(SECRETS, NAME, "istio-system")
        marked = {"operator.kyma-project.io/managed-by": "kyma"}
        found = of_contract(
            self._upstream,
            image=IMAGE,
            address="listener.example.org:443",
            trigger=issued["metadata"]["resourceVersion"],
        )
        bundle = base64.b64encode(self._root.certificate).decode()
        tls = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "skr-webhook-tls", "namespace": "kyma-system", "labels": marked},
            "data": {**issued["data"], "ca.crt": bundle},
        }
        return [*found.values(), tls, self._configuration(bundle, marked)]

    def _configuration(self, bundle: str, labels: dict[str, str]) -> Object:
        service = {"name": "skr-webhook", "namespace": "kyma-system", "path": "/validate/lifecycle-manager"}
        rule = {
            "apiGroups": ["operator.kyma-project.io"],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": ["kymas"],
        }
        return {
            "apiVersion": WEBHOOK_CONFIGURATIONS.api_version,
            "kind": WEBHOOK_CONFIGURATIONS.kind,
            "metadata": {"name": "skr-webhook", "labels": labels},
            "webhooks": [
                {
                    "name": "kcp-system.watcher.operator.kyma-project.io",
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": {"caBundle": bundle, "service": service},
                    "failurePolicy": "Ignore",
                    "objectSelector": {"matchLabels": {"operator.kyma-project.io/watched-by": "kyma"}},
                    "rules": [rule],
                    "sideEffects": "NoneOnDryRun",
                    "timeoutSeconds": 15,
                }
            ],
        }

    async def apply(self, objects: list[Object]) -> None:
        kinds = DiscoveredKinds(self._world.remote)
        for obj in objects:
            await self._world.remote.apply(await kinds.resource(gvk_of(obj)), obj, field_manager=GO)

    async def route(self) -> None:
        """The Watcher with its finalizer and status, and its VirtualService."""
        control = self._world.control
        finalizers = ["operator.kyma-project.io/watcher"]
        made = watcher()
        made["metadata"]["finalizers"] = finalizers
        found = await control.create(WATCHERS, made, field_manager="manager")
        owner = {
            "apiVersion": made["apiVersion"],
            "kind": "Watcher",
            "name": "watcher",
            "uid": found["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        await control.create(
            VIRTUAL_SERVICES,
            {
                "apiVersion": VIRTUAL_SERVICES.api_version,
                "kind": VIRTUAL_SERVICES.kind,
                "metadata": {"name": "watcher", "namespace": "kcp-system", "ownerReferences": [owner]},
                "spec": {"gateways": ["kcp-system/klm-watcher"], "hosts": ["listener.example.org"], "http": [ROUTE]},
            },
            field_manager="manager",
        )
        named = {"name": "watcher", "namespace": "kcp-system"}
        status = {"metadata": named, "status": {"state": "Ready", "conditions": [CONFIGURED]}}
        await control.apply(WATCHERS, status, field_manager=GO, subresource="status")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with started_world(tmp_path) as made:
        for resource in (GATEWAYS, VIRTUAL_SERVICES, CERT_MANAGER_CERTIFICATES):
            await made.control.create(CRDS, definition(resource))
            name = f"{resource.plural}.{resource.group}"
            await wait_for(made.control, CRDS, name, until=lambda found: "Established" in str(found))
        await made.control.create(GATEWAYS, gateway(("listener.example.org", 443)))
        yield made


async def versions(world: World) -> Versions:
    """Uid and version of each object that is there, in the control plane and in the cluster."""
    found: Versions = {}
    for client, places in ((world.control, CONTROL), (world.remote, identities("kyma-system"))):
        for resource, namespace, name in places:
            try:
                metadata = (await client.get(resource, name, namespace))["metadata"]
            except NotFound:
                continue
            found[f"{resource.kind} {namespace}/{name}"] = (metadata["uid"], metadata["resourceVersion"])
    return found


async def test_a_watcher_at_rest_is_taken_over_without_a_change(world: World, upstream: Path) -> None:
    """No object has another version: no certificate is issued again, and no pod of the agent restarts."""
    go = GoWatcher(world, upstream)
    await go.certificates()
    await go.route()
    await go.apply(await go.objects())
    await world.run_deployment()
    before = await versions(world)
    assert len(before) == len(CONTROL) + len(identities("kyma-system"))
    route = await world.control.get(VIRTUAL_SERVICES, "watcher", "kcp-system")
    async with world.watching(*FLAGS):
        await world.until(lambda state: state.ready)
        await world.clock.advance(APPLY_EVERY)
        await world.until(lambda state: state.ready)
    after = await versions(world)
    # The route has a manager more: it was written by an update, and is applied now. Its spec is the same.
    assert route["spec"] == (await world.control.get(VIRTUAL_SERVICES, "watcher", "kcp-system"))["spec"]
    assert after.pop("VirtualService kcp-system/watcher")[0] == before.pop("VirtualService kcp-system/watcher")[0]
    assert after == before


@pytest.mark.parametrize("applied", range(11))
async def test_an_installation_is_continued_after_any_object(world: World, upstream: Path, applied: int) -> None:
    go = GoWatcher(world, upstream)
    await go.certificates()
    await go.route()
    objects = await go.objects()
    assert len(objects) == 10
    await go.apply(objects[:applied])
    before = await versions(world)
    async with world.watching(*FLAGS):
        await world.until(lambda state: state.reason == "AgentNotReady")
        after = await versions(world)
        # The Go system finds its own objects: to apply them all changes none.
        await go.apply(objects)
        again = await versions(world)
        assert [key for key in again if "kyma-system" in key or "skr" in key if again[key] != after[key]] == []
    before.pop("VirtualService kcp-system/watcher")
    assert {key: after[key] for key in before} == before


async def test_a_watcher_that_the_go_system_was_deleting_ends(world: World, upstream: Path) -> None:
    go = GoWatcher(world, upstream)
    await go.certificates()
    await go.route()
    deleted = await world.control.delete(WATCHERS, "watcher", "kcp-system")
    assert deleted["metadata"]["finalizers"]
    async with world.watching(*FLAGS):
        await wait_gone(world.control, WATCHERS, "watcher", "kcp-system")
        await wait_gone(world.control, VIRTUAL_SERVICES, "watcher", "kcp-system")
