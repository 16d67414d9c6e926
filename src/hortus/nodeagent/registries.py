"""The registries of containerd: one folder for each upstream, with the hosts that serve it (containerd's hosts.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import structlog

from hortus.kube.clock import Clock
from hortus.nodeagent.osc import OscRegistryHost, RegistryUpstream
from hortus.nodeagent.seams import Files

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

CERTS_FOLDER = "/etc/containerd/certs.d"
HOSTS_MODE = 0o644
PROBE_EVERY = 2.0
"""Seconds between two attempts to reach the hosts of a registry."""
_MANAGED = "# managed by the node agent: changes are overwritten\n"

Probe = Callable[[OscRegistryHost], Awaitable[bool]]
"""Returns True for a host that answers, with whatever HTTP status."""


def hosts_path(upstream: str) -> str:
    return f"{CERTS_FOLDER}/{upstream}/hosts.toml"


def hosts_toml(registry: RegistryUpstream) -> str:
    """The file hosts.toml of a registry."""
    parts = [_MANAGED]
    if registry.server:
        parts.append(f"server = {_quoted(registry.server)}\n")
    parts += [_host_table(host) for host in registry.hosts]
    return "\n".join(parts)


def _host_table(host: OscRegistryHost) -> str:
    lines = [f"[host.{_quoted(host.url)}]", f"  capabilities = {_list(host.capabilities or ('pull', 'resolve'))}"]
    if host.ca_certs:
        lines.append(f"  ca = {_list(host.ca_certs)}")
    if host.override_path:
        lines.append("  override_path = true")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A basic string of TOML."""
    escaped = "".join(
        f"\\u{ord(each):04X}" if ord(each) < 0x20 or each in '"\\' or each == "\x7f" else each for each in text
    )
    return f'"{escaped}"'


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_quoted, texts))}]"


def write_registry(files: Files, registry: RegistryUpstream) -> bool:
    """Writes the file; containerd reads it at the next pull, without a restart."""
    return files.write(hosts_path(registry.upstream), hosts_toml(registry).encode(), mode=HOSTS_MODE)


def remove_registry(files: Files, upstream: str) -> None:
    files.remove_tree(f"{CERTS_FOLDER}/{upstream}")


def _probed(registry: RegistryUpstream, host: OscRegistryHost) -> OscRegistryHost:
    """The host with absolute paths of its authorities; containerd reads relative ones from the folder of hosts.toml."""
    folder = f"{CERTS_FOLDER}/{registry.upstream}"
    found = tuple(path if path.startswith("/") else f"{folder}/{path}" for path in host.ca_certs)
    return msgspec.structs.replace(host, ca_certs=found)


async def until_ready(registry: RegistryUpstream, probe: Probe, clock: Clock) -> None:
    """Returns once all hosts of the registry answer."""
    waiting = [_probed(registry, host) for host in registry.hosts]
    while True:
        answers = await asyncio.gather(*(probe(host) for host in waiting))
        waiting = [host for host, answered in zip(waiting, answers, strict=True) if not answered]
        if not waiting:
            return
        _log.debug("hosts of a registry do not answer yet", registry=registry.upstream, hosts=len(waiting))
        await clock.sleep(PROBE_EVERY)
