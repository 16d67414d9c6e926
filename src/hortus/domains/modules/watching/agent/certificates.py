"""The agent's certificate files, which a Secret volume replaces while the program runs.

One certificate serves the webhook and identifies the agent to the control plane. A new one is used from the next
handshake on, if certificate and key fit; until then the one before stays in use.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NamedTuple

import structlog

from hortus.domains.modules.watching.agent.settings import AgentSettings
from hortus.kube.secret import Secret
from hortus.kube.tls import client_context, identify, server_context

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class _Content(NamedTuple):
    ca: bytes
    certificate: bytes
    key: bytes


class CertificateFiles:
    """The contexts of both directions. Raises OSError or ValueError when the files cannot be used at the start."""

    def __init__(self, settings: AgentSettings) -> None:
        self._paths = (settings.ca_cert, settings.tls_cert, settings.tls_key)
        self._content = _read(self._paths)
        self.client: ssl.SSLContext = _client(self._content)
        """For calls to the control plane; another one after a change."""
        self.server = server_context(certificate=self._content.certificate, key=_key(self._content))
        """For the webhook; always the same one."""
        self.problem = ""
        """The reason for which the present files are not in use; empty when they are."""

    def refresh(self) -> bool:
        """Take over files that have changed; returns whether they have."""
        try:
            found = _read(self._paths)
            if found == self._content:
                self.problem = ""
                return False
            client = _client(found)
        except (OSError, ValueError) as error:
            if str(error) != self.problem:
                _log.warning("the certificate files cannot be used, the former stay in use", error=str(error))
            self.problem = str(error)
            return False
        # The pair was tried by the context above: one that does not fit would leave this one without any.
        identify(self.server, found.certificate, _key(found))
        self.client, self._content, self.problem = client, found, ""
        _log.info("the certificate was replaced")
        return True


def _read(paths: tuple[Path, Path, Path]) -> _Content:
    return _Content(*(path.read_bytes() for path in paths))


def _key(content: _Content) -> Secret:
    return Secret(content.key.decode("ascii", "replace"))


def _client(content: _Content) -> ssl.SSLContext:
    if not content.ca.strip():
        raise ValueError("the CA file is empty")
    context = client_context(ca=content.ca, certificate=content.certificate, key=_key(content))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context
