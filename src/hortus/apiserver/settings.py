"""The settings of an API server, and its version."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hortus.apiserver.limits import ServerLimits

KUBERNETES_MINOR = 32
"""The Kubernetes minor version whose API semantics are served; kubectl of one minor above and below works with it."""


class AuditSettings(msgspec.Struct, frozen=True):
    policy: Path
    """A file with an audit.k8s.io/v1 Policy."""
    log: Path
    """The file that events are appended to, a line each."""
    largest: int = 100 * 1024 * 1024
    """Bytes at which the file is rotated."""
    kept: int = 10
    """The number of rotated files that are kept."""


class ServingFiles(msgspec.Struct, frozen=True):
    """A serving certificate from outside, as kube-apiserver's --tls-cert-file and --tls-private-key-file; PEM."""

    certificate: Path
    key: Path


class ApiServerSettings(msgspec.Struct, frozen=True):
    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free port, which `ApiServer.port` returns."""
    names: tuple[str, ...] = ()
    """Further DNS names and addresses for the serving certificate."""
    anonymous: bool = True
    """True if requests without credentials are authenticated as system:anonymous."""
    compress: bool = True
    """True if large bodies are compressed for clients that accept it; no gain when all clients are on this machine."""
    drain: float = 0.0
    """Seconds before a stop in which the server goes on to answer, and each answer ends its connection, so that clients
    behind a load balancer find another server; as kube-apiserver's --shutdown-delay-duration."""
    grace: float = 5.0
    """Seconds that requests in progress have to finish at a stop."""
    event_ttl: float = 3600.0
    """Seconds after its last write at which an Event is deleted (kube-apiserver's --event-ttl); 0 keeps Events."""
    audit: AuditSettings | None = None
    """The audit policy and log; None records nothing."""
    limits: ServerLimits = ServerLimits()
    in_process: bool = False
    """True opens no port: `ApiServer.accept` makes connections within this process, whose requests take no turns. Such
    a server reaches no server behind it."""
    serving: ServingFiles | None = None
    """The certificate to present; None presents one of the server's own authority."""
    client_ca: Path | None = None
    """PEM file of authorities whose client certificates name users of the root cluster, as --client-ca-file."""
    local_webhooks: frozenset[str] = frozenset()
    """Logical clusters, besides root, whose webhooks may have URLs on this machine, and whose APIServices may lead to
    it; `*` is all of them."""


def version_info() -> dict[str, str]:
    """The body of /version."""
    return {
        "major": "1",
        "minor": str(KUBERNETES_MINOR),
        "gitVersion": f"v1.{KUBERNETES_MINOR}.0+hortus",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    }
