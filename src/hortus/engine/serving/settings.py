"""The operator's choices for admission webhooks. Every command that lists flags loads this module, so it loads little.

The address and the folder are controller-runtime's defaults, which Go operators share.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from hortus.engine.flags import Flag, FlagError

if TYPE_CHECKING:
    from hortus.engine.health import Address

WEBHOOK_FLAGS: Final = (
    Flag("webhook-bind-address", "string", ":9443", "Address of the admission webhooks; 0 for none."),
    Flag(
        "webhook-cert-dir",
        "string",
        "/tmp/k8s-webhook-server/serving-certs/",  # noqa: S108 - controller-runtime's default, which is a mounted Secret
        "Folder with tls.crt and tls.key of the admission webhooks.",
    ),
    Flag(
        "webhook-configuration",
        "string",
        "",
        "ValidatingWebhookConfiguration that is to trust a certificate made here; without it and without files in "
        "--webhook-cert-dir the admission webhooks are not served.",
    ),
    Flag("webhook-service", "string", "hortus-webhooks", "Name of the webhooks' Service, and of their Secret."),
    Flag("webhook-namespace", "string", "hortus-system", "Namespace of both."),
    Flag("webhook-url", "string", "", "URL under which the API server reaches the webhooks, in place of the Service."),
    Flag(
        "webhook-client-ca-file",
        "string",
        "",
        "PEM of the authority that certifies API servers as clients; without it anybody may call the webhooks.",
    ),
    Flag(
        "webhook-client-names",
        "string",
        "",
        "Common names of clients that may call the webhooks, with commas between; without any, each of that authority.",
    ),
)


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The choices for admission webhooks."""

    address: Address | None
    folder: Path
    configuration: str
    url: str
    service: str
    namespace: str
    client_ca_file: str
    client_names: str


def webhook_settings(values: Mapping[str, Any]) -> WebhookSettings:
    """The choices that flags make. Raises FlagError."""
    from hortus.engine.health import parse_address

    try:
        address = parse_address(values["webhook-bind-address"])
    except ValueError as error:
        raise FlagError(f"flag --webhook-bind-address: {error}") from None
    url = values["webhook-url"]
    if url and (urlsplit(url).scheme != "https" or not urlsplit(url).hostname):
        raise FlagError(f"flag --webhook-url is {url!r}; it must be a URL such as https://hortus.example.org:9443")
    return WebhookSettings(
        address=address,
        folder=Path(values["webhook-cert-dir"]),
        configuration=values["webhook-configuration"],
        url=url,
        service=values["webhook-service"],
        namespace=values["webhook-namespace"],
        client_ca_file=values["webhook-client-ca-file"],
        client_names=values["webhook-client-names"],
    )
