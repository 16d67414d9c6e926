"""The operator's choices for the watcher, as values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.domains.modules.names import CONTROL_NAMESPACE
from hortus.engine.flags import FlagError
from hortus.engine.health import parse_address

CERT_MANAGER: Final = "cert-manager.io/v1"
GARDENER_CERTIFICATES: Final = "cert.gardener.cloud/v1alpha1"
SELF: Final = "self"


class AgentImage(msgspec.Struct, frozen=True):
    """The agent's container."""

    reference: str
    """Registry, name and tag; empty where no agents are installed."""
    memory: str
    cpu: str
    pull_secret: str
    """Name of a Secret in the managed cluster; empty for none."""
    is_hortus: bool
    """True where the image is that of Hortus: its agent keeps events on disk and has health checks."""
    replicas: int = 1
    godebug: str = ""
    """Value of GODEBUG, which is handed on."""


class CertificateSettings(msgspec.Struct, frozen=True):
    """Agents' certificates and their authority. Times are in seconds."""

    api: str
    namespace: str
    """Namespace of certificates, their Secrets and the two of the authority."""
    issuer: str
    issuer_namespace: str
    duration: float
    renew_before: float
    renew_buffer: float
    key_size: int
    names: tuple[str, ...]
    """Further DNS names."""
    switch_after: float
    """Time after which the gateway's certificate follows that of a new authority."""
    expiry_window: float
    look_every: float
    look_again: float
    """Times between two looks at the authority: after a success, and after an error."""


class WatcherSettings(msgspec.Struct, frozen=True):
    """All choices for the watcher."""

    namespace: str
    """Namespace of the agent in managed clusters."""
    control_namespace: str
    """Namespace of Kymas and Watchers."""
    agent: AgentImage
    certificates: CertificateSettings
    bind_address: str
    """Address of the listener."""
    direct_address: str
    """Host and port that agents report to without Istio; empty with it."""
    gateway_name: str
    gateway_namespace: str
    port_overwrite: str
    workers: int
    requeue: float
    """Time between two reconciles of a Watcher."""
    probe_every: float
    """Time without an event after which one is provoked; 0 for never."""

    @property
    def enabled(self) -> bool:
        """True where agents are installed."""
        return bool(self.agent.reference)


def from_flags(values: Mapping[str, Any], given: Mapping[str, str] = os.environ) -> WatcherSettings:
    """Returns the choices; `given` is the environment. Raises FlagError naming the flag whose value cannot be used."""
    _check(values)
    tag, direct = values["skr-watcher-image-tag"], values["watcher-listener-address"]
    return WatcherSettings(
        namespace=values["sync-namespace"],
        control_namespace=CONTROL_NAMESPACE,
        agent=AgentImage(
            reference=f"{values['skr-watcher-image-registry']}/{values['skr-watcher-image-name']}:{tag}" if tag else "",
            memory=values["skr-webhook-memory-limits"],
            cpu=values["skr-webhook-cpu-limits"],
            pull_secret=values["skr-image-pull-secret"],
            is_hortus=values["watcher-hortus-agent"],
            replicas=values["watcher-agent-replicas"],
            godebug=given.get("GODEBUG", ""),
        ),
        certificates=_certificates(values),
        bind_address=values["kyma-skr-listener-bind-address"],
        direct_address=direct,
        gateway_name=values["istio-gateway-name"],
        gateway_namespace=values["istio-gateway-namespace"],
        port_overwrite=values["listener-port-overwrite"],
        workers=values["max-concurrent-watcher-reconciles"],
        requeue=values["watcher-requeue-success-interval"],
        probe_every=values["watcher-probe-interval"],
    )


def _check(values: Mapping[str, Any]) -> None:
    tag = values["skr-watcher-image-tag"]
    if values["watcher-agent-replicas"] <= 0:
        raise FlagError(
            f"invalid value {values['watcher-agent-replicas']} for flag --watcher-agent-replicas: must be more than 0"
        )
    if tag and not values["skr-watcher-image-registry"]:
        raise FlagError("flag --skr-watcher-image-tag needs --skr-watcher-image-registry")
    try:
        parse_address(values["kyma-skr-listener-bind-address"])
    except ValueError as error:
        raise FlagError(f"invalid value for flag --kyma-skr-listener-bind-address: {error}") from None
    direct = values["watcher-listener-address"]
    if direct and not _is_address(direct):
        raise FlagError(f"invalid value {direct!r} for flag --watcher-listener-address: must be host:port")
    if direct and values["cert-management"] != SELF:
        raise FlagError("flag --watcher-listener-address needs --cert-management=self")
    overwrite = values["listener-port-overwrite"]
    if overwrite and not _is_address(f"host:{overwrite}"):
        raise FlagError(f"invalid value {overwrite!r} for flag --listener-port-overwrite: must be a port")
    if tag and values["cert-management"] == SELF and not direct:
        raise FlagError("flag --cert-management=self needs --watcher-listener-address")


def _certificates(values: Mapping[str, Any]) -> CertificateSettings:
    return CertificateSettings(
        api=values["cert-management"],
        namespace=values["istio-namespace"],
        issuer=values["self-signed-cert-issuer-name"],
        issuer_namespace=values["self-signed-cert-issuer-namespace"],
        duration=values["self-signed-cert-duration"],
        renew_before=values["self-signed-cert-renew-before"],
        renew_buffer=values["self-signed-cert-renew-buffer"],
        key_size=values["self-signed-cert-key-size"],
        names=tuple(name.strip() for name in values["additional-dns-names"].split(",") if name.strip()),
        switch_after=values["istio-gateway-server-cert-switch-grace-period"],
        expiry_window=values["istio-gateway-server-cert-expiry-window"],
        look_every=values["istio-gateway-secret-requeue-success-interval"],
        look_again=values["istio-gateway-secret-requeue-error-interval"],
    )


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and port.isascii() and port.isdigit() and 0 < int(port) <= 65535
