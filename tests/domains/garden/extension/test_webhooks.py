"""Webhooks of the seed: an extension changes the kube-apiserver of its Shoots, and of no others, by HTTPS."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.domains.garden.world import DEPLOYMENTS, NAMESPACES, SeedWorld
from tests.waiting import until

from hortus.cli.flags import FLAGS
from hortus.domains import free_port
from hortus.domains.garden.extension.context import ExtensionContext
from hortus.domains.garden.extension.topic import ExtensionFacts, ExtensionTopic, SeedWebhook, TopicObjects
from hortus.domains.garden.extension.webhookflags import seed_webhook_settings
from hortus.domains.garden.extension.webhooks import (
    MUTATING_CONFIGURATIONS,
    SECRET,
    add_seed_webhooks,
    configuration_name,
    namespace_labels,
    placed,
)
from hortus.engine import Manager
from hortus.engine.flags import FlagError, FlagSet
from hortus.engine.serving import AdmissionVerdict, ReviewRequest
from hortus.kube import Client, Resource
from hortus.kube.errors import ApiError
from hortus.kube.objects import Object

SECRETS = Resource("", "v1", "secrets", "Secret")
APISERVER = {"app": "kubernetes", "role": "apiserver"}


class Marks(ExtensionTopic):
    """Sets the replicas of a kube-apiserver, and refuses one with nine."""

    facts: ClassVar[ExtensionFacts] = ExtensionFacts(type="marks")

    def webhooks(self) -> Sequence[SeedWebhook]:
        return (SeedWebhook(name="kube-apiserver", resource=DEPLOYMENTS, labels=APISERVER, judge=self._judge),)

    async def _judge(self, request: ReviewRequest) -> AdmissionVerdict:
        assert request.object is not None
        if request.object["spec"]["replicas"] == 9:
            return AdmissionVerdict(code=422, reason="Invalid", message="nine is too many")
        return AdmissionVerdict(patch=({"op": "replace", "path": "/spec/replicas", "value": 3},))

    async def render(self, context: ExtensionContext) -> TopicObjects:
        return TopicObjects()


@asynccontextmanager
async def served(seed: SeedWorld, tmp_path: Path, *, place: str = "", known: Sequence[str] = ()) -> AsyncIterator[None]:
    place = place or f"127.0.0.1:{free_port()}"
    values = FlagSet(FLAGS).parse(
        [
            f"--garden-webhook-bind-address={place}",
            f"--garden-webhook-url=https://{place}",
            "--garden-webhook-namespace=default",
            f"--garden-webhook-cert-dir={tmp_path}",
        ]
    )
    async with Client.from_kubeconfig(seed.server.kubeconfig_for(seed.name)) as client:
        manager = Manager(client)
        settings, hooks = seed_webhook_settings(values), placed([Marks()])
        server = add_seed_webhooks(manager, client=client, seed=client, webhooks=hooks, settings=settings, known=known)
        async with manager.running():
            await seed.there(MUTATING_CONFIGURATIONS, configuration_name("marks"))
            await until(lambda: server.port)
            yield


async def _serve(seed: SeedWorld, namespace: str, *, replicas: int = 1) -> Object:
    spec: dict[str, Any] = {
        "replicas": replicas,
        "selector": {"matchLabels": APISERVER},
        "template": {"metadata": {"labels": APISERVER}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }
    metadata = {"name": "kube-apiserver", "namespace": namespace, "labels": APISERVER}
    return await seed.client.apply(DEPLOYMENTS, {"metadata": metadata, "spec": spec}, field_manager="gardenlet")


async def test_a_webhook_changes_the_control_planes_of_its_shoots_alone(seed: SeedWorld, tmp_path: Path) -> None:
    await seed.create(NAMESPACES, "shoot--a--on", metadata={"labels": dict(namespace_labels("marks"))})
    await seed.create(NAMESPACES, "shoot--a--off", metadata={"labels": dict(namespace_labels("other"))})
    async with served(seed, tmp_path):
        assert (await _serve(seed, "shoot--a--on"))["spec"]["replicas"] == 3
        assert (await _serve(seed, "shoot--a--off"))["spec"]["replicas"] == 1
        with pytest.raises(ApiError, match="nine is too many"):
            await _serve(seed, "shoot--a--on", replicas=9)
    with pytest.raises(ApiError, match=r"marks\.garden\.hortus\.dev"):
        await _serve(seed, "shoot--a--on", replicas=2)
    assert (await _serve(seed, "shoot--a--off", replicas=2))["spec"]["replicas"] == 2, "an outage is none of its"


async def test_the_configuration_goes_with_the_namespace_of_its_server(seed: SeedWorld, tmp_path: Path) -> None:
    async with served(seed, tmp_path):
        found = await seed.there(MUTATING_CONFIGURATIONS, "hortus-extension-marks")
        secret = await seed.there(SECRETS, SECRET, "default")
    namespace = await seed.there(NAMESPACES, "default")
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Namespace", namespace["metadata"]["uid"])
    (hook,) = found["webhooks"]
    assert hook["failurePolicy"] == "Fail"
    assert base64.b64decode(secret["data"]["tls.crt"]) in base64.b64decode(hook["clientConfig"]["caBundle"])


async def registered(seed: SeedWorld, type_: str, url: str) -> None:
    """Write the configuration of a type that is served at an address."""
    hook = {
        "name": f"nodes.{type_}.garden.hortus.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": url},
        "namespaceSelector": {"matchLabels": dict(namespace_labels(type_))},
        "sideEffects": "None",
    }
    await seed.create(MUTATING_CONFIGURATIONS, configuration_name(type_), webhooks=[hook])


async def test_a_type_that_is_served_no_more_is_withdrawn_unless_another_process_serves_it(
    seed: SeedWorld, tmp_path: Path
) -> None:
    place = f"127.0.0.1:{free_port()}"
    await registered(seed, "elsewhere", "https://127.0.0.1:1/webhooks/elsewhere/nodes")
    await registered(seed, "former", f"https://{place}/webhooks/former/nodes")
    async with served(seed, tmp_path, place=place, known=["elsewhere", "former", "marks", "never"]):
        await seed.gone(MUTATING_CONFIGURATIONS, configuration_name("former"))
    for type_ in ("elsewhere", "marks"):
        assert await seed.get(MUTATING_CONFIGURATIONS, configuration_name(type_)) is not None


def test_extensions_with_webhooks_are_refused_without_an_address() -> None:
    from hortus.domains.garden import DOMAIN

    message = "garden-webhook-bind-address must be HOST:PORT for the extensions airgap, registry-mirror"
    types = "--garden-extensions=acl,airgap,registry-mirror"
    with pytest.raises(FlagError, match=message):
        DOMAIN.check(FlagSet(FLAGS).parse([types]))
    DOMAIN.check(FlagSet(FLAGS).parse([types, "--garden-webhook-bind-address=:9443"]))
    DOMAIN.check(FlagSet(FLAGS).parse(["--garden-extensions=acl"]))


def test_an_address_without_a_port_is_refused() -> None:
    from hortus.domains.garden import DOMAIN

    with pytest.raises(FlagError, match="garden-webhook-bind-address: must be HOST:PORT or 0"):
        DOMAIN.check(FlagSet(FLAGS).parse(["--garden-webhook-bind-address=9443"]))
