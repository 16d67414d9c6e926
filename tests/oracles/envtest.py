"""Our API server where envtest looks for `kube-apiserver` and `etcd`, so that Go operators' own suites run on it.

`assets` fills a folder for `KUBEBUILDER_ASSETS`. Both programs are this module under another name: the one serves from
memory with the certificates that envtest made, trusting the users whom its client authority names; the other is only
asked for its health. Flags that are not needed here are listed, as envtest looks for some, and have no effect.
"""

from __future__ import annotations

import asyncio
import signal
import ssl
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import urlsplit

_FLAGS = {
    "etcd": ("advertise-client-urls", "data-dir", "listen-client-urls", "listen-peer-urls"),
    "kube-apiserver": (
        "allow-privileged",
        "authorization-mode",
        "bind-address",
        "cert-dir",
        "client-ca-file",
        "disable-admission-plugins",
        "etcd-servers",
        "secure-port",
        "service-account-issuer",
        "service-account-key-file",
        "service-account-signing-key-file",
        "service-cluster-ip-range",
    ),
}


def assets(folder: Path) -> Path:
    """Write both programs into `folder`, which is returned."""
    root = Path(__file__).resolve().parents[2]
    for name in _FLAGS:
        path = folder / name
        path.write_text(f'#!/bin/sh\ncd "{root}" && exec "{sys.executable}" -m tests.oracles.envtest {name} "$@"\n')
        path.chmod(0o755)
    return folder


def main() -> None:
    name, given = sys.argv[1], sys.argv[2:]
    if "--help" in given:
        print("\n".join(f"      --{flag} string" for flag in _FLAGS[name]))
        return
    flags = {key: value for key, _, value in (each.removeprefix("--").partition("=") for each in given)}
    if name == "etcd":
        _answer_health(flags["listen-client-urls"])
    else:
        asyncio.run(_serve(flags))


def _answer_health(url: str) -> None:
    class Healthy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    parts = urlsplit(url)
    HTTPServer((parts.hostname or "127.0.0.1", parts.port or 0), Healthy).serve_forever()


async def _serve(flags: dict[str, str]) -> None:
    # Here and not above: `--help` and etcd are asked often, and wait for nothing of it.
    from cryptography import x509

    from hortus.apiserver import Settings, open_server
    from hortus.apiserver.authn import UserInfo
    from hortus.apiserver.authn.identity import Authenticator, Credentials
    from hortus.apiserver.authn.subjects import subject_of
    from hortus.apiserver.store import MemoryBackend

    class FromEnvtest:
        """A client with a certificate of envtest's authority, which TLS has verified; the others as always."""

        def __init__(self, others: Authenticator) -> None:
            self._others = others

        async def authenticate(self, credentials: Credentials) -> UserInfo | None:
            if not credentials.certificate:
                return await self._others.authenticate(credentials)
            names, groups = subject_of(x509.load_der_x509_certificate(credentials.certificate))
            return UserInfo(names[-1], groups=(*groups, "system:authenticated"))

    settings = Settings(host=flags.get("bind-address", "127.0.0.1"), port=int(flags["secure-port"]))
    server = await open_server(settings, MemoryBackend())
    server._authenticator = FromEnvtest(server._authenticator)
    server._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server._tls.load_cert_chain(f"{flags['cert-dir']}/apiserver.crt", f"{flags['cert-dir']}/apiserver.key")
    if "client-ca-file" in flags:
        server._tls.load_verify_locations(flags["client-ca-file"])
        server._tls.verify_mode = ssl.CERT_OPTIONAL
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    await server.start()
    await stop.wait()
    await server.stop()


if __name__ == "__main__":
    main()
