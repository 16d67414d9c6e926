"""The program `etcd` of an envtest folder, which reports that it is healthy; needs the standard library alone."""

from __future__ import annotations

import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

FLAGS = ("advertise-client-urls", "data-dir", "listen-client-urls", "listen-peer-urls", "unsafe-no-fsync")


class _Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"health":"true"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def main(words: list[str]) -> int:
    """Serve /health at --listen-client-urls until SIGTERM."""
    if "--help" in words or "-h" in words:
        sys.stdout.write("".join(f"      --{flag} string\n" for flag in FLAGS))
        return 0
    flags = dict(word.removeprefix("--").partition("=")[::2] for word in words)
    if "listen-client-urls" not in flags:
        sys.stderr.write("etcd: --listen-client-urls is needed: this program stands in for etcd in envtest alone\n")
        return 2
    parts = urlsplit(flags["listen-client-urls"].split(",")[0])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ThreadingHTTPServer((parts.hostname or "127.0.0.1", parts.port or 0), _Healthy) as server:
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
