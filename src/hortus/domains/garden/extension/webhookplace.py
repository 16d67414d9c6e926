"""The place of a webhook server, by flags with one prefix. Every command that lists flags loads this module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from hortus.engine.flags import FlagError


class WebhookPlace(msgspec.Struct, frozen=True, kw_only=True):
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


def webhook_place(values: Mapping[str, Any], prefix: str) -> WebhookPlace:
    """The choices of the flags that begin with `prefix`. Raises FlagError."""
    address = values[f"{prefix}-bind-address"]
    if address != "0" and ":" not in address:
        raise FlagError(f"invalid value {address!r} for flag --{prefix}-bind-address: must be HOST:PORT or 0")
    return WebhookPlace(
        address=address,
        url=values[f"{prefix}-url"],
        service=values[f"{prefix}-service"],
        namespace=values[f"{prefix}-namespace"],
        folder=Path(values[f"{prefix}-cert-dir"]),
    )
