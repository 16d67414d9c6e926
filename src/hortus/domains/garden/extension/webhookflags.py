"""The operator's choices for the webhooks on the seed. Every command that lists flags loads this module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hortus.domains.garden.extension.webhookplace import WebhookPlace, webhook_place
from hortus.engine.flags import Flag

SEED_WEBHOOK_FLAGS: Final = (
    Flag(
        "garden-webhook-bind-address",
        "string",
        "0",
        "Address of the webhooks on the seed, by which extensions change what gardenlet writes there; 0 for none.",
    ),
    Flag(
        "garden-webhook-url",
        "string",
        "",
        "Address at which the seed's API server reaches these webhooks; their Service without one.",
    ),
    Flag("garden-webhook-service", "string", "hortus-garden-webhooks", "Service of the webhooks on the seed."),
    Flag("garden-webhook-namespace", "string", "garden", "Namespace of this Service, and of its certificate."),
    Flag(
        "garden-webhook-cert-dir",
        "string",
        "/tmp/hortus-garden-webhooks",  # noqa: S108 - nothing is written there
        "Folder with tls.crt and tls.key of these webhooks; without them a certificate is made.",
    ),
)


def seed_webhook_settings(values: Mapping[str, Any]) -> WebhookPlace:
    """The choices that flags make. Raises FlagError."""
    return webhook_place(values, "garden-webhook")
