"""The authority of admission webhooks in the ValidatingWebhookConfiguration that registers them.

The configuration itself is installed with the program and removed with it: one that outlived its server would have the
API server refuse everything. Only `caBundle` of the webhooks that lead here is written, by server-side apply.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

import msgspec

from hortus.engine.serving.endpoints import ServingEndpoint
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource

if TYPE_CHECKING:
    from hortus.engine.serving.keeper import ServerTrust

WEBHOOK_CONFIGURATIONS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
MANAGER: Final = "hortus-webhooks"


class _Service(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _ClientConfig(msgspec.Struct, frozen=True, rename="camel"):
    url: str = ""
    service: _Service | None = None
    ca_bundle: str = ""


class _Webhook(msgspec.Struct, rename="camel"):
    name: str
    client_config: _ClientConfig = _ClientConfig()


class _Configuration(msgspec.Struct):
    webhooks: list[_Webhook] = []


def configuration_trust(client: Client, *, name: str, endpoint: ServingEndpoint) -> ServerTrust:
    """The function that keeps `caBundle` in a configuration. One that is missing is left to who installs it."""

    async def trust(bundle: bytes) -> None:
        try:
            found = await client.get(WEBHOOK_CONFIGURATIONS, name)
        except NotFound:
            return
        encoded = base64.b64encode(bundle).decode()
        ours = [one for one in msgspec.convert(found, _Configuration).webhooks if _leads_to(one, endpoint)]
        if all(one.client_config.ca_bundle == encoded for one in ours):
            return
        webhooks = [{"name": one.name, "clientConfig": {"caBundle": encoded}} for one in ours]
        wanted = {"metadata": {"name": name}, "webhooks": webhooks}
        await client.apply(WEBHOOK_CONFIGURATIONS, wanted, field_manager=MANAGER, force=True)

    return trust


def is_trusted(configuration: Object) -> bool:
    """Reports whether every webhook of a configuration has an authority."""
    return all(one.client_config.ca_bundle for one in msgspec.convert(configuration, _Configuration).webhooks)


def _leads_to(webhook: _Webhook, endpoint: ServingEndpoint) -> bool:
    config = webhook.client_config
    if endpoint.url:
        return config.url.startswith(f"{endpoint.url.rstrip('/')}/")
    return config.service == _Service(endpoint.service, endpoint.namespace)
