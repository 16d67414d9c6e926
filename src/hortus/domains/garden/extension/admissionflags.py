"""The operator's choices for the admission webhook. Every command that lists flags loads this module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hortus.domains.garden.extension.webhookplace import WebhookPlace, webhook_place
from hortus.engine.flags import Flag, FlagError

ADMISSION_FLAGS: Final = (
    Flag("garden-admission-bind-address", "string", "0", "Address of the admission webhook for Shoots; 0 for none."),
    Flag(
        "garden-admission-url",
        "string",
        "",
        "Address at which the garden's API server reaches the webhook; its Service without one.",
    ),
    Flag("garden-admission-service", "string", "hortus-garden-admission", "Service of the webhook."),
    Flag("garden-admission-namespace", "string", "garden", "Namespace of the Service, and of its certificate."),
    Flag(
        "garden-admission-cert-dir",
        "string",
        "/tmp/hortus-garden-admission",  # noqa: S108 - nothing is written there
        "Folder with tls.crt and tls.key; without them a certificate is made.",
    ),
)


def admission_settings(values: Mapping[str, Any]) -> WebhookPlace:
    """The choices that flags make. Raises FlagError."""
    place = webhook_place(values, "garden-admission")
    if place.is_served and not values["gardener-kubeconfig-path"]:
        raise FlagError(
            "--garden-admission-bind-address needs a garden, and --gardener-kubeconfig-path is empty; set it"
        )
    return place
