"""The admission webhook for Shoots: has the topics judge configurations, in the garden's API server.

Owns: the ValidatingWebhookConfiguration in the garden, and the Secret of its certificate in the management cluster. The
webhook is asked about Shoots alone that name a type which is served, so that an outage concerns no others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import msgspec

from hortus.domains.garden.extension.admission import read_shoot, review_shoot
from hortus.domains.garden.extension.topic import ConfigReviewer
from hortus.domains.garden.extension.webhookplace import WebhookPlace
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.engine import Manager, is_deleting
from hortus.engine.flags import FlagError
from hortus.engine.health import parse_address
from hortus.engine.serving import (
    ADMITTED,
    AdmissionVerdict,
    CertificateKeeper,
    HttpsServer,
    ReviewRequest,
    ServerTrust,
    ServingEndpoint,
    add_served,
    review_handler,
)
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey, Resource

NAME: Final = "garden-admission"
"""The names of server and controller in logs and metrics."""
SECRET: Final = "hortus-garden-admission"  # noqa: S105 - the name of an object
CONFIGURATION: Final = "hortus-garden-extensions"
PATH: Final = "/webhooks/validate"
WEBHOOK_CONFIGURATIONS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
MANAGER: Final = "hortus-garden-admission"
_INVALID: Final = 422
_PORT: Final = 443
_SECONDS: Final = 10
"""The API server's patience."""


def add_admission(
    manager: Manager,
    *,
    client: Client,
    garden: Client,
    topics: Sequence[ConfigReviewer],
    settings: WebhookPlace,
) -> HttpsServer:
    """Add the webhook. `client` is the management cluster, which keeps the certificate. Raises FlagError."""
    try:
        address = parse_address(settings.address)
    except ValueError as error:
        raise FlagError(f"invalid value for flag --garden-admission-bind-address: {error}") from None
    assert address is not None, "a webhook that is served has an address"
    endpoint = ServingEndpoint(settings.url, settings.service, settings.namespace)
    server = HttpsServer(NAME, address, {PATH: review_handler(ShootReviews(topics).judge)})
    keeper = CertificateKeeper(
        client,
        key=ObjectKey(settings.namespace, SECRET),
        names=endpoint.names(),
        trust=_trust(garden, endpoint, [topic.facts.type for topic in topics]),
        field_manager=MANAGER,
        clock=manager.clock,
    )
    add_served(manager, server, name=NAME, folder=settings.folder, keeper=keeper)
    return server


class ShootReviews:
    """Answers reviews of Shoots."""

    def __init__(self, topics: Sequence[ConfigReviewer]) -> None:
        self._topics = topics

    async def judge(self, request: ReviewRequest) -> AdmissionVerdict:
        if request.operation not in ("CREATE", "UPDATE") or request.object is None:
            return ADMITTED
        if is_deleting(request.object):
            return ADMITTED  # before it is read: finalizers must be removable from any Shoot
        shoot = _read(request.object)
        if isinstance(shoot, AdmissionVerdict):
            return shoot
        former = _read(request.old_object) if request.old_object is not None else None
        found = review_shoot(self._topics, shoot, former if isinstance(former, GardenShoot) else None)
        if not found.errors:
            return AdmissionVerdict(warnings=found.warnings)
        return AdmissionVerdict(
            warnings=found.warnings,
            code=_INVALID,
            reason="Invalid",
            message=f"Shoot {shoot.metadata.name} is invalid: {'; '.join(map(str, found.errors))}",
            causes=tuple({"reason": one.reason, "message": one.message, "field": one.path} for one in found.errors),
        )


def _read(document: Object) -> GardenShoot | AdmissionVerdict:
    try:
        return read_shoot(document)
    except msgspec.ValidationError as error:
        return AdmissionVerdict(code=_INVALID, reason="Invalid", message=f"the Shoot cannot be read: {error}")


def _trust(garden: Client, endpoint: ServingEndpoint, types: Sequence[str]) -> ServerTrust:
    async def trust(bundle: bytes) -> None:
        await garden.apply(
            WEBHOOK_CONFIGURATIONS,
            {
                "metadata": {"name": CONFIGURATION},
                "webhooks": [webhook(_client_config(endpoint, bundle), types)],
            },
            field_manager=MANAGER,
        )

    return trust


def _client_config(endpoint: ServingEndpoint, bundle: bytes) -> Object:
    config = endpoint.client_config(bundle)
    if endpoint.url:
        return {**config, "url": f"{endpoint.url.rstrip('/')}{PATH}"}
    reached = {"name": endpoint.service, "namespace": endpoint.namespace, "port": _PORT, "path": PATH}
    return {**config, "service": reached}


def webhook(client_config: Object, types: Sequence[str]) -> Object:
    """The webhook for Shoots that name one of `types`."""
    names = json.dumps(sorted(types))
    asked = f"has(object.spec.extensions) && object.spec.extensions.exists(one, one.type in {names})"
    return {
        "name": "extensions.garden.hortus.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": client_config,
        "failurePolicy": "Fail",
        "matchConditions": [{"name": "names-a-type", "expression": asked}],
        "matchPolicy": "Equivalent",
        "rules": [
            {
                "apiGroups": ["core.gardener.cloud"],
                "apiVersions": ["v1beta1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["shoots"],
                "scope": "Namespaced",
            }
        ],
        "sideEffects": "None",
        "timeoutSeconds": _SECONDS,
    }
