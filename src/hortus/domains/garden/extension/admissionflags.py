"""The operator's choices for the admission webhook. Every command that lists flags loads this module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

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


class AdmissionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The choices."""

    address: str
    """Address to listen on; 0 where no webhook is served."""
    url: str
    """Address of the webhook for API servers; empty for that of the Service."""
    service: str
    namespace: str
    folder: Path
    """Folder with a certificate, where one is made elsewhere."""

    @property
    def is_served(self) -> bool:
        """True where a webhook is served."""
        return self.address != "0"


def admission_settings(values: Mapping[str, Any]) -> AdmissionSettings:
    """The choices that flags make. Raises FlagError."""
    address = values["garden-admission-bind-address"]
    if address != "0" and ":" not in address:
        raise FlagError(f"invalid value {address!r} for flag --garden-admission-bind-address: must be HOST:PORT or 0")
    if address != "0" and not values["gardener-kubeconfig-path"]:
        raise FlagError(
            "--garden-admission-bind-address needs a garden, and --gardener-kubeconfig-path is empty; set it"
        )
    return AdmissionSettings(
        address=address,
        url=values["garden-admission-url"],
        service=values["garden-admission-service"],
        namespace=values["garden-admission-namespace"],
        folder=Path(values["garden-admission-cert-dir"]),
    )
