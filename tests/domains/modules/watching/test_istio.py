"""With Istio and a certificate management: Gateways, VirtualServices, Certificates of both APIs."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.domains.modules.watching.certificates import authority
from tests.domains.modules.watching.world import World, started_world, watcher
from tests.waiting import until

from hortus.domains.modules.types import WATCHERS
from hortus.domains.modules.watching.authorities import IssuedPair, issued_client
from hortus.domains.modules.watching.certificates import CERT_MANAGER_CERTIFICATES, GARDENER_CERTIFICATES
from hortus.domains.modules.watching.gateways import GATEWAYS, VIRTUAL_SERVICES
from hortus.domains.modules.watching.webhook import DEPLOYMENTS
from hortus.engine import StepError
from hortus.engine.remote import SECRETS
from hortus.kube import yaml
from hortus.kube.objects import Object, Resource, format_time
from hortus.testing import wait_for, wait_gone
from hortus.testing.clusters import CRDS

pytestmark = pytest.mark.timeout(300)
NAME = "kyma-1-webhook-tls"
LABELS = {
    "operator.kyma-project.io/purpose": "klm-watcher-cert-manager",
    "operator.kyma-project.io/managed-by": "lifecycle-manager",
}
DNS_NAMES = [
    "c-1.shoot.example.org",
    "more.example.org",
    "skr-webhook.kyma-system.svc.cluster.local",
    "skr-webhook.kyma-system.svc",
]


def definition(resource: Resource) -> Object:
    """A definition of a foreign kind, which keeps all fields."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"plural": resource.plural, "kind": resource.kind},
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def gateway(*servers: tuple[str, int], name: str = "klm-watcher") -> Object:
    return {
        "apiVersion": GATEWAYS.api_version,
        "kind": GATEWAYS.kind,
        "metadata": {
            "name": name,
            "namespace": "kcp-system",
            "labels": {"operator.kyma-project.io/watcher-gateway": "default"},
        },
        "spec": {"servers": [{"hosts": [host], "port": {"number": port}} for host, port in servers]},
    }


def secret(name: str, pair: IssuedPair, ca: bytes, **metadata: Any) -> Object:
    values = {"ca.crt": ca, "tls.crt": pair.certificate, "tls.key": pair.key}
    return {
        "metadata": {"name": name, "namespace": "istio-system", **metadata},
        "data": {key: base64.b64encode(value).decode() for key, value in values.items()},
    }


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with started_world(tmp_path) as made:
        for resource in (GATEWAYS, VIRTUAL_SERVICES, CERT_MANAGER_CERTIFICATES, GARDENER_CERTIFICATES):
            await made.control.create(CRDS, definition(resource))
            await wait_for(
                made.control,
                CRDS,
                f"{resource.plural}.{resource.group}",
                until=lambda found: "Established" in str(found),
            )
        yield made


async def test_a_watcher_becomes_a_route_from_its_gateways(world: World, upstream: Path) -> None:
    """2.5: VirtualService with gateways, hosts, prefix and destination; state and condition."""
    sample = next(iter(yaml.load_all((upstream / "klm/samples/kyma_watcher.yaml").read_text())))
    sample["metadata"]["namespace"] = "kcp-system"
    await world.control.create(GATEWAYS, gateway(("a.example.org", 443), ("b.example.org", 443)))
    await world.control.create(GATEWAYS, gateway(("c.example.org", 443), name="other"))
    async with world.watching():
        await world.control.create(WATCHERS, sample)
        made = await wait_for(world.control, WATCHERS, "watcher", "kcp-system", until=_state("Ready"))
        route = await world.control.get(VIRTUAL_SERVICES, "watcher", "kcp-system")
        assert route["spec"] == {
            "gateways": ["kcp-system/klm-watcher", "kcp-system/other"],
            "hosts": ["a.example.org", "b.example.org", "c.example.org"],
            "http": [
                {
                    "name": "kcp-system/watcher",
                    "match": [{"uri": {"prefix": "/v2/lifecycle-manager/event"}}],
                    "route": [
                        {
                            "destination": {
                                "host": "klm-controller-manager-events.kcp-system.svc.cluster.local",
                                "port": {"number": 8082},
                            }
                        }
                    ],
                }
            ],
        }
        [owner] = route["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Watcher", made["metadata"]["uid"])
        assert made["metadata"]["finalizers"] == ["operator.kyma-project.io/watcher"]
        [condition] = made["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"], condition["message"]) == (
            "VirtualService",
            "True",
            "Ready",
            "VirtualService is configured",
        )
        await world.control.patch(VIRTUAL_SERVICES, "watcher", {"spec": {"hosts": ["evil"]}}, "kcp-system")
        await wait_for(
            world.control, VIRTUAL_SERVICES, "watcher", "kcp-system", until=lambda one: len(one["spec"]["hosts"]) == 3
        )
        await world.control.delete(WATCHERS, "watcher", "kcp-system")
        await wait_gone(world.control, WATCHERS, "watcher", "kcp-system")
        await wait_gone(world.control, VIRTUAL_SERVICES, "watcher", "kcp-system")


async def test_a_route_of_somebody_else_is_neither_taken_over_nor_deleted(
    world: World,
) -> None:
    await world.control.create(GATEWAYS, gateway(("a.example.org", 443)))
    theirs = {
        "apiVersion": VIRTUAL_SERVICES.api_version,
        "kind": VIRTUAL_SERVICES.kind,
        "metadata": {"name": "watcher", "namespace": "kcp-system"},
        "spec": {"hosts": ["shop.example.org"]},
    }
    before = await world.control.create(VIRTUAL_SERVICES, theirs)
    async with world.watching():
        await world.control.create(WATCHERS, watcher())
        found = await wait_for(world.control, WATCHERS, "watcher", "kcp-system", until=_state("Error"))
        assert found["status"]["conditions"][0]["status"] == "False"
        assert (await world.reported("ObjectTaken"))["type"] == "Warning"
        await world.control.delete(WATCHERS, "watcher", "kcp-system")
        await wait_gone(world.control, WATCHERS, "watcher", "kcp-system")
    assert await world.control.get(VIRTUAL_SERVICES, "watcher", "kcp-system") == before


def _state(state: str) -> Any:
    return lambda found: (found.get("status") or {}).get("state") == state


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({}, "WatcherGatewayNotFound"),
        ({"serviceInfo": {"name": "x", "namespace": "y", "port": 65536}}, "WatcherInvalid"),
        ({"serviceInfo": {"name": "x", "namespace": "y", "port": 0}}, "WatcherInvalid"),
        ({"serviceInfo": {"name": "", "namespace": "y", "port": 1}}, "WatcherInvalid"),
        ({"manager": ""}, "WatcherInvalid"),
    ],
)
async def test_a_watcher_that_cannot_be_routed_is_in_error(world: World, spec: dict[str, Any], reason: str) -> None:
    """2.5, 2.6: no Gateway: Error, event WatcherGatewayNotFound; port 1..65535."""
    if spec:
        await world.control.create(GATEWAYS, gateway(("a.example.org", 443)))
    async with world.watching():
        await world.control.create(WATCHERS, watcher(**spec))
        found = await wait_for(world.control, WATCHERS, "watcher", "kcp-system", until=_state("Error"))
        assert found["status"]["conditions"][0]["message"] == "VirtualService is not configured"
        assert (await world.reported(reason))["type"] == "Warning"
        if not spec:
            await world.control.create(GATEWAYS, gateway(("a.example.org", 443)))
            await wait_for(world.control, WATCHERS, "watcher", "kcp-system", until=_state("Ready"))


async def test_cert_manager_gets_the_certificate_of_the_contract(world: World) -> None:
    """2.4: the certificate's fields; 2.5: re-issue by the condition Issuing."""
    await world.control.create(GATEWAYS, gateway(("listener.example.org", 443)))
    async with world.watching("--additional-dns-names=more.example.org"):
        assert (await world.install()).reason == "CertificatePending"
        made = await world.control.get(CERT_MANAGER_CERTIFICATES, NAME, "istio-system")
        assert made["spec"] == {
            "commonName": "runtime-1",
            "dnsNames": DNS_NAMES,
            "duration": "1440h0m0s",
            "renewBefore": "720h0m0s",
            "secretName": NAME,
            "secretTemplate": {"labels": LABELS},
            "issuerRef": {"name": "klm-watcher-selfsigned", "kind": "Issuer"},
            "isCA": False,
            "usages": ["digital signature", "key encipherment"],
            "privateKey": {"rotationPolicy": "Always", "encoding": "PKCS1", "algorithm": "RSA", "size": 4096},
            "subject": {
                "organizationalUnits": ["BTP Kyma Runtime"],
                "organizations": ["SAP SE"],
                "localities": ["Walldorf"],
                "provinces": ["Baden-Württemberg"],
                "countries": ["DE"],
            },
        }
        await _issue(world)
        await world.until(lambda state: state.reason == "AgentNotReady")
        found = await world.control.get(CERT_MANAGER_CERTIFICATES, NAME, "istio-system")
        [condition] = found["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == ("Issuing", "True", "ManuallyTriggered")
        version = found["metadata"]["resourceVersion"]
        await world.install()
        found = await world.control.get(CERT_MANAGER_CERTIFICATES, NAME, "istio-system")
        assert found["metadata"]["resourceVersion"] == version


async def test_gardener_gets_the_same_without_subject_and_usages(world: World) -> None:
    """2.4: Gardener variant; 2.5: re-issue by spec.renew."""
    await world.control.create(GATEWAYS, gateway(("listener.example.org", 443)))
    flags = (
        "--cert-management=cert.gardener.cloud/v1alpha1",
        "--additional-dns-names=more.example.org",
        "--self-signed-cert-issuer-namespace=default",
    )
    async with world.watching(*flags):
        await world.install()
        made = await world.control.get(GARDENER_CERTIFICATES, NAME, "istio-system")
        assert made["spec"] == {
            "commonName": "runtime-1",
            "dnsNames": DNS_NAMES,
            "duration": "1440h0m0s",
            "renewBefore": "720h0m0s",
            "secretName": NAME,
            "secretLabels": LABELS,
            "issuerRef": {"name": "klm-watcher-selfsigned", "namespace": "default"},
            "privateKey": {"algorithm": "RSA", "size": 4096},
        }
        await _issue(world)
        await world.until(lambda state: state.reason == "AgentNotReady")
        await wait_for(
            world.control, GARDENER_CERTIFICATES, NAME, "istio-system", until=lambda one: one["spec"].get("renew")
        )


async def _issue(world: World) -> None:
    """The certificate management at work: the root, and the Secret of the agent."""
    root, now = authority(), world.clock.now()
    pair = issued_client(root, "runtime-1", DNS_NAMES, now=now - 3600, seconds=86400)
    await world.control.create(SECRETS, secret("klm-watcher", root, root.certificate))
    await world.control.create(SECRETS, secret(NAME, pair, root.certificate, labels=LABELS))
    await wait_for(world.control, SECRETS, "klm-istio-gateway", "istio-system")


async def test_the_agent_reports_to_the_gateways_host_and_port_or_the_overwritten_one(world: World) -> None:
    """2.4: KCP_ADDR is host and port of the single server and host; --listener-port-overwrite replaces the port."""
    await world.control.create(GATEWAYS, gateway(("listener.example.org", 443)))
    async with world.watching():
        await world.install()
        await _issue(world)
        await world.until(lambda state: state.reason == "AgentNotReady")
        assert await _address(world) == "listener.example.org:443"
    async with world.watching("--listener-port-overwrite=9443"):
        await world.until(lambda state: state.reason == "AgentNotReady")
        assert await _address(world) == "listener.example.org:9443"
        servers = gateway(("a", 1), ("b", 2))["spec"]
        await world.control.patch(GATEWAYS, "klm-watcher", {"spec": servers}, "kcp-system")
        with pytest.raises(StepError, match="exactly one server with exactly one host"):
            while True:
                await world.install()


async def _address(world: World) -> str:
    found = await world.remote.get(DEPLOYMENTS, "skr-webhook", "kyma-system")
    [container] = found["spec"]["template"]["spec"]["containers"]
    return str(next(one["value"] for one in container["env"] if one["name"] == "KCP_ADDR"))


async def test_a_gateway_that_was_set_up_by_the_go_system_is_continued(world: World) -> None:
    """2.5: an existing gateway Secret keeps its certificate and the time of its bundle."""
    root = authority()
    since = format_time(world.clock.now() - 86400 * 30)
    await world.control.create(SECRETS, secret("klm-watcher", root, root.certificate))
    made = await world.control.create(
        SECRETS, secret("klm-istio-gateway", root, root.certificate, annotations={"caAddedToBundleAt": since})
    )
    async with world.watching():
        # The certificate of the test ends within the hour.
        await until(lambda: world.metric("lifecycle_mgr_gateway_secret_server_cert_close_to_expiry") == 1)
    found = await world.control.get(SECRETS, "klm-istio-gateway", "istio-system")
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
