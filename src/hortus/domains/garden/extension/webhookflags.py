"""The operator's choices for the webhooks on the seed. Every command that lists flags loads this module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from hortus.engine.flags import Flag, FlagError

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


class SeedWebhookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The choices."""

    address: str
    """Address to listen on; 0 where no webhook is served."""
    url: str
    """Address of the webhooks for API servers; empty for that of the Service."""
    service: str
    namespace: str
    folder: Path
    """Folder with a certificate, where one is made elsewhere."""

    @property
    def is_served(self) -> bool:
        """True where webhooks are served."""
        return self.address != "0"


def seed_webhook_settings(values: Mapping[str, Any]) -> SeedWebhookSettings:
    """The choices that flags make. Raises FlagError."""
    address = values["garden-webhook-bind-address"]
    if address != "0" and ":" not in address:
        raise FlagError(f"invalid value {address!r} for flag --garden-webhook-bind-address: must be HOST:PORT or 0")
    return SeedWebhookSettings(
        address=address,
        url=values["garden-webhook-url"],
        service=values["garden-webhook-service"],
        namespace=values["garden-webhook-namespace"],
        folder=Path(values["garden-webhook-cert-dir"]),
    )
