"""Mutating webhooks of the seed, by which extensions change what gardenlet writes into the namespace of a Shoot.

Owns: a MutatingWebhookConfiguration in the seed for each type that the process serves, and the Secret of its
certificate in the management cluster. The API server asks about objects alone that have a webhook's labels, in
namespaces that gardenlet has labelled with the type: an outage concerns Shoots with the extension and no others.

An object that cannot be judged is refused: gardenlet would take the extension's part out of it otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from hortus.domains.garden.extension.topic import ExtensionTopic, SeedWebhook
from hortus.domains.garden.extension.webhookplace import WebhookPlace
from hortus.engine import Manager, metadata_of
from hortus.engine.flags import FlagError
from hortus.engine.health import parse_address
from hortus.engine.serving import (
    CertificateKeeper,
    HttpsServer,
    ServerTrust,
    ServingEndpoint,
    add_served,
    review_handler,
)
from hortus.kube import Client
from hortus.kube.errors import Forbidden, NotFound
from hortus.kube.objects import Object, ObjectKey, Resource

SERVER: Final = "garden-webhooks"
"""The names of server and controller in logs and metrics."""
SECRET: Final = "hortus-garden-webhooks"  # noqa: S105 - the name of an object
MUTATING_CONFIGURATIONS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
MANAGER: Final = "hortus-garden-webhooks"
ROLE_LABEL: Final = "gardener.cloud/role"
TYPE_LABEL: Final = "extensions.gardener.cloud/"
"""Begin of the labels by which gardenlet says which extensions a Shoot's namespace has; the type follows."""
_PORT: Final = 443
_SECONDS: Final = 10
"""The API server's patience."""


class PlacedWebhook(NamedTuple):
    """A webhook with the type that it belongs to."""

    type: str
    webhook: SeedWebhook

    @property
    def path(self) -> str:
        """The path on the server."""
        return f"/webhooks/{self.type}/{self.webhook.name}"


def placed(topics: Sequence[ExtensionTopic]) -> list[PlacedWebhook]:
    """The webhooks of all topics."""
    return [PlacedWebhook(topic.facts.type, one) for topic in topics for one in topic.webhooks()]


def add_seed_webhooks(
    manager: Manager,
    *,
    client: Client,
    seed: Client,
    webhooks: Sequence[PlacedWebhook],
    settings: WebhookPlace,
    known: Collection[str] = (),
) -> HttpsServer:
    """Add the server. `client` is the management cluster, which keeps the certificate. Raises FlagError.

    `known` are types which the process may have served before.
    """
    try:
        address = parse_address(settings.address)
    except ValueError as error:
        raise FlagError(f"invalid value for flag --garden-webhook-bind-address: {error}") from None
    assert address is not None, "webhooks that are served have an address"
    endpoint = ServingEndpoint(settings.url, settings.service, settings.namespace)
    server = HttpsServer(SERVER, address, {one.path: review_handler(one.webhook.judge) for one in webhooks})
    keeper = CertificateKeeper(
        client,
        key=ObjectKey(settings.namespace, SECRET),
        names=endpoint.names(),
        trust=_trust(seed, endpoint, webhooks, namespace=settings.namespace, known=known),
        field_manager=MANAGER,
        clock=manager.clock,
    )
    add_served(manager, server, name=SERVER, folder=settings.folder, keeper=keeper)
    return server


def configuration_name(type_: str) -> str:
    """The name of the configuration of a type: each type may be served by another process."""
    return f"hortus-extension-{type_}"


def _trust(
    seed: Client,
    endpoint: ServingEndpoint,
    webhooks: Sequence[PlacedWebhook],
    *,
    namespace: str,
    known: Collection[str],
) -> ServerTrust:
    served = sorted({one.type for one in webhooks})

    async def trust(bundle: bytes) -> None:
        owner = await _owner(seed, namespace)
        for type_ in served:
            metadata: Object = {"name": configuration_name(type_), **owner}
            hooks = [registered(one, endpoint, bundle) for one in webhooks if one.type == type_]
            await seed.apply(MUTATING_CONFIGURATIONS, {"metadata": metadata, "webhooks": hooks}, field_manager=MANAGER)
        for type_ in sorted(set(known).difference(served)):
            await _withdraw(seed, configuration_name(type_), endpoint)

    return trust


async def _owner(seed: Client, namespace: str) -> Object:
    """The owner of a configuration, with whose namespace it is deleted: without a server it would refuse changes."""
    with suppress(NotFound, Forbidden):
        owner = metadata_of(await seed.get(NAMESPACES, namespace))
        return {
            "ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": owner.name, "uid": owner.uid}],
        }
    return {}


class _Service(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _ClientConfig(msgspec.Struct):
    url: str = ""
    service: _Service | None = None

    def is_at(self, endpoint: ServingEndpoint) -> bool:
        if endpoint.url:
            return self.url.startswith(f"{endpoint.url.rstrip('/')}/")
        return self.service == _Service(endpoint.service, endpoint.namespace)


class _Hook(msgspec.Struct, rename="camel"):
    client_config: _ClientConfig = msgspec.field(default_factory=_ClientConfig)


class _Configuration(msgspec.Struct):
    webhooks: list[_Hook] = []


async def _withdraw(seed: Client, name: str, endpoint: ServingEndpoint) -> None:
    """Delete a configuration by which this server is still called; one of another process stays."""
    with suppress(NotFound):
        found = await seed.get(MUTATING_CONFIGURATIONS, name)
        hooks = msgspec.convert(found, _Configuration).webhooks
        if hooks and all(one.client_config.is_at(endpoint) for one in hooks):
            await seed.delete(MUTATING_CONFIGURATIONS, name, uid=metadata_of(found).uid)


def registered(one: PlacedWebhook, endpoint: ServingEndpoint, bundle: bytes) -> Object:
    """One webhook of the configuration."""
    resource = one.webhook.resource
    return {
        "name": f"{one.webhook.name}.{one.type}.garden.hortus.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": _client_config(one, endpoint, bundle),
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchLabels": namespace_labels(one.type)},
        "objectSelector": {"matchLabels": one.webhook.labels},
        "reinvocationPolicy": "Never",
        "rules": [
            {
                "apiGroups": [resource.group],
                "apiVersions": [resource.version],
                "operations": ["CREATE", "UPDATE"],
                "resources": [resource.plural],
                "scope": "Namespaced",
            }
        ],
        "sideEffects": "None",
        "timeoutSeconds": _SECONDS,
    }


def namespace_labels(type_: str) -> Mapping[str, str]:
    """Labels of the namespaces of Shoots that have an extension."""
    return {ROLE_LABEL: "shoot", f"{TYPE_LABEL}{type_}": "true"}


def _client_config(one: PlacedWebhook, endpoint: ServingEndpoint, bundle: bytes) -> Object:
    config = endpoint.client_config(bundle)
    if endpoint.url:
        return {**config, "url": f"{endpoint.url.rstrip('/')}{one.path}"}
    reached = {"name": endpoint.service, "namespace": endpoint.namespace, "port": _PORT, "path": one.path}
    return {**config, "service": reached}


__all__ = ["PlacedWebhook", "add_seed_webhooks", "namespace_labels", "placed"]
