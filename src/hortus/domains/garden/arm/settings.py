"""The operator's choices for the admission of CloudProfiles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hortus.engine.flags import Flag, FlagError

if TYPE_CHECKING:
    from hortus.engine.health import Address

_ADDRESS: Final = "cloudprofile-webhook-bind-address"
_FOLDER: Final = "cloudprofile-webhook-cert-dir"
FLAGS: Final = (
    Flag(_ADDRESS, "string", "0", "Address of the admission webhook of OpenStack's CloudProfiles; 0 for none."),
    Flag(
        _FOLDER,
        "string",
        "/etc/hortus/cloudprofile-webhook",
        "Folder with tls.crt and tls.key of that webhook, such as a mounted Secret.",
    ),
)


class ProfileWebhook(msgspec.Struct, frozen=True, kw_only=True):
    """The place of the webhook."""

    address: Address
    folder: Path
    """Has its certificate."""


def profile_webhook(values: Mapping[str, Any]) -> ProfileWebhook | None:
    """The webhook that flags ask for; None for none. Raises FlagError."""
    from hortus.engine.health import parse_address  # with it comes structlog, which the list of flags does not need

    try:
        address = parse_address(values[_ADDRESS])
    except ValueError as error:
        raise FlagError(f"flag --{_ADDRESS}: {error}") from None
    if address is None:
        return None
    return ProfileWebhook(address=address, folder=Path(values[_FOLDER]))
