"""The program `kube-apiserver` of an envtest folder: the embedded API server, in memory, with kube-apiserver's flags.

Nothing of the server is imported before it is needed: envtest asks for `--help` before every start. Flags that decide
something here are read; those that concern etcd, storage or admission plug-ins are accepted, because
envtest looks for them in `--help` and passes them; any other is refused, so that no suite relies on what is not there.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hortus.apiserver import ApiServerSettings

USED: Mapping[str, str] = {
    "bind-address": "address to listen on",
    "secure-port": "port to listen on",
    "cert-dir": "folder with apiserver.crt and apiserver.key",
    "tls-cert-file": "serving certificate, in place of --cert-dir's",
    "tls-private-key-file": "its key",
    "client-ca-file": "authorities of client certificates",
    "anonymous-auth": "let requests without credentials in as system:anonymous",
    "event-ttl": "how long Events are kept",
}
ACCEPTED = (
    "advertise-address",
    "allow-privileged",
    "api-audiences",
    "authorization-mode",
    "disable-admission-plugins",
    "enable-admission-plugins",
    "etcd-cafile",
    "etcd-certfile",
    "etcd-keyfile",
    "etcd-servers",
    "external-hostname",
    "feature-gates",
    "insecure-port",
    "max-mutating-requests-inflight",
    "max-requests-inflight",
    "requestheader-client-ca-file",
    "runtime-config",
    "service-account-issuer",
    "service-account-key-file",
    "service-account-signing-key-file",
    "service-cluster-ip-range",
    "storage-backend",
    "v",
    "watch-cache",
)


def main(words: Sequence[str]) -> int:
    """Serve until SIGTERM; returns the exit code."""
    if "--help" in words or "-h" in words:
        lines = [f"      --{name} string   {text}" for name, text in USED.items()]
        lines += [f"      --{name} string   accepted, without effect" for name in ACCEPTED]
        sys.stdout.write("\n".join(sorted(lines)) + "\n")
        return 0
    flags = dict(word.removeprefix("--").partition("=")[::2] for word in words)
    if unknown := [name for name in flags if name not in USED and name not in ACCEPTED]:
        sys.stderr.write(f"kube-apiserver: unknown flag: --{unknown[0]}; see --help for those that Hortus takes\n")
        return 2
    try:
        asyncio.run(_serve(_settings(flags)))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"kube-apiserver: {error}\n")
        return 1
    return 0


def _settings(flags: Mapping[str, str]) -> ApiServerSettings:
    """The embedded server's settings. Raises ValueError."""
    from hortus.apiserver import ApiServerSettings
    from hortus.apiserver.settings import ServingFiles
    from hortus.kube.durations import seconds

    folder = Path(flags.get("cert-dir", "."))
    certificate = Path(flags.get("tls-cert-file") or folder / "apiserver.crt")
    key = Path(flags.get("tls-private-key-file") or folder / "apiserver.key")
    return ApiServerSettings(
        host=flags.get("bind-address", "127.0.0.1"),
        port=int(flags.get("secure-port", "6443")),
        anonymous=flags.get("anonymous-auth", "true") != "false",
        compress=False,
        event_ttl=seconds(flags.get("event-ttl", "1h")),
        serving=ServingFiles(certificate, key) if certificate.exists() else None,
        client_ca=Path(flags["client-ca-file"]) if flags.get("client-ca-file") else None,
    )


async def _serve(settings: ApiServerSettings) -> None:
    from hortus.apiserver import open_server
    from hortus.apiserver.store import MemoryBackend

    server = await open_server(settings, MemoryBackend())
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    await server.start()
    await stop.wait()
    await server.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
