"""The operator's choices for addons and runtime hooks. Every command that lists flags loads this module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from hortus.domains.stacks.names import CONTROL_NAMESPACE
from hortus.engine.flags import Flag, FlagError

FLAGS: Final = (
    Flag("clusteraddon-concurrency", "int", 10, "ClusterAddons reconciled at the same time."),
    Flag(
        "hook-bind-address",
        "string",
        ":9442",
        "Address for the runtime hooks of Cluster API; 0 serves none, so that upgrades are not held for addons.",
    ),
    Flag("hook-port", "int", 0, "Port of the runtime hooks, in place of that of --hook-bind-address."),
    Flag(
        "hook-cert-dir",
        "string",
        "/tmp/k8s-hook-server/serving-certs/",  # noqa: S108 - the Go operator's default
        "Folder with tls.crt and tls.key of the hook server. Without them it makes its own certificate.",
    ),
    Flag("hook-url", "string", "", "URL under which Cluster API reaches the hook server, in place of its Service."),
    Flag("hook-service", "string", "hortus-stacks-hooks", "Name of the hook server's Service."),
    Flag(
        "hook-namespace", "string", CONTROL_NAMESPACE, "Namespace of the hook server's Service and of its certificate."
    ),
    Flag(
        "hook-extension-config",
        "string",
        "cso-hook-server-extensionconfig",
        "ExtensionConfig that leads Cluster API to a hook server with a certificate of its own; empty keeps none.",
    ),
    Flag(
        "hook-client-ca-file",
        "string",
        "",
        "PEM of the authority that certifies Cluster API as a client (its --runtime-extension-client-cert-file); "
        "without it anybody may call the hooks.",
    ),
    Flag(
        "hook-client-names",
        "string",
        "",
        "Common names of clients that may call the hooks, with commas between; without any, each of that authority.",
    ),
    Flag("stacks-inventory", "bool", False, "Make each Cluster of a cluster stack a member of the inventory."),
)


class HookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The choices for addons and runtime hooks."""

    addon_workers: int
    address: str
    """Empty where no hooks are served."""
    folder: Path
    url: str
    service: str
    namespace: str
    extension_config: str
    inventory: bool
    client_ca_file: str
    client_names: str


def from_flags(values: Mapping[str, Any]) -> HookSettings:
    """The choices that flags make. Raises FlagError."""
    from hortus.engine.health import Address, parse_address

    workers, url = values["clusteraddon-concurrency"], values["hook-url"]
    if workers < 1:
        raise FlagError(f"flag --clusteraddon-concurrency is {workers}; it must be 1 or more")
    try:
        address = parse_address(values["hook-bind-address"])
    except ValueError as error:
        raise FlagError(f"flag --hook-bind-address: {error}") from None
    port = values["hook-port"]
    if not 0 <= port <= 65535:
        raise FlagError(f"flag --hook-port is {port}; it must be a port, or 0 for that of --hook-bind-address")
    if port and address is not None:
        address = Address(address.host, port)
    if url and (urlsplit(url).scheme != "https" or not urlsplit(url).hostname):
        raise FlagError(f"flag --hook-url is {url!r}; it must be a URL such as https://hooks.example.org:9442")
    return HookSettings(
        addon_workers=workers,
        address=str(address) if address is not None else "",
        folder=Path(values["hook-cert-dir"]),
        url=url,
        service=values["hook-service"],
        namespace=values["hook-namespace"],
        extension_config=values["hook-extension-config"],
        inventory=values["stacks-inventory"],
        client_ca_file=values["hook-client-ca-file"],
        client_names=values["hook-client-names"],
    )
