"""Settings of the agent, from environment variables with the names of Kyma's runtime-watcher."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec


class AgentSettingsError(Exception):
    """Variables are missing or cannot be used; the message names each."""


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The environment as values."""

    ca_cert: Path
    """CA_CERT: file with the certificates that verify the control plane."""
    tls_cert: Path
    """TLS_CERT: file with the certificate of both the webhook and the calls to the control plane."""
    tls_key: Path
    """TLS_KEY: file with its key."""
    address: str
    """KCP_ADDR: host and port of the control plane."""
    contract: str
    """KCP_CONTRACT: version of the requests, `v2`."""
    webhook_port: int = 8443
    """WEBHOOK_PORT"""
    metrics_port: int = 2112
    """METRICS_PORT: port of /metrics, /healthz and /readyz."""
    bind_host: str = ""
    """BIND_HOST: address to listen on; empty is every interface. Known to Hortus alone, as all that follow."""
    buffer_dir: Path | None = None
    """BUFFER_DIR: folder that keeps events until they are delivered; without it they are kept in memory."""
    buffer_limit: int = 1024
    """BUFFER_LIMIT: events that are kept for one manager."""
    runtime_id: str = ""
    """RUNTIME_ID: the sender that events name; the control plane compares it with the certificate."""


_REQUIRED = ("CA_CERT", "TLS_CERT", "TLS_KEY", "KCP_ADDR", "KCP_CONTRACT")


def from_environment(values: Mapping[str, str]) -> AgentSettings:
    """Raises AgentSettingsError naming every variable that is missing or wrong."""
    problems = [f"{name} is not set" for name in _REQUIRED if not values.get(name)]
    given: dict[str, int] = {}
    for name, default, most in (
        ("WEBHOOK_PORT", 8443, 65535),
        ("METRICS_PORT", 2112, 65535),
        ("BUFFER_LIMIT", 1024, 100_000),
    ):
        text = values.get(name) or str(default)
        if text.isascii() and text.isdigit() and int(text) <= most:
            given[name] = int(text)
        else:
            problems.append(f"{name} is {text!r}: must be a number from 0 to {most}")
    if problems:
        raise AgentSettingsError("; ".join(problems))
    folder = values.get("BUFFER_DIR")
    return AgentSettings(
        ca_cert=Path(values["CA_CERT"]),
        tls_cert=Path(values["TLS_CERT"]),
        tls_key=Path(values["TLS_KEY"]),
        address=values["KCP_ADDR"],
        contract=values["KCP_CONTRACT"],
        webhook_port=given["WEBHOOK_PORT"],
        metrics_port=given["METRICS_PORT"],
        bind_host=values.get("BIND_HOST", ""),
        buffer_dir=Path(folder) if folder else None,
        buffer_limit=max(given["BUFFER_LIMIT"], 1),
        runtime_id=values.get("RUNTIME_ID", ""),
    )
