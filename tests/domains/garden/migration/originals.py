"""Original kube-apiservers for a control plane that moves, with their keys in files."""

from __future__ import annotations

import json
import secrets
import ssl
import time
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

import aiohttp
from tests.domains.garden.migration.router import HOST
from tests.domains.garden.migration.sites import ServerEnded, ServerProcess, write_key
from tests.oracles.controlplane import apiserver_command, find_assets, service_account_key
from tests.waiting import until

from hortus.apiserver.authn.certificates import Authority, key_pem, new_key, root_authority, serving_certificate

_DAY = 86400.0
_NAMES = (HOST, "127.0.0.1")


class OriginalServer(ServerProcess):
    """One kube-apiserver, which encrypts Secrets at rest."""

    @staticmethod
    def write_keys(keys: Path, token: str) -> None:
        now, key = time.time(), new_key()
        authority = root_authority(new_key(), "shoot", start=now - _DAY, days=3)
        certificate = serving_certificate(authority, key.public_key(), _NAMES, start=now - _DAY, end=now + _DAY)
        write_key(keys / "ca.crt", authority.pem)
        write_key(keys / "tls.crt", Authority(key, certificate).pem)
        write_key(keys / "tls.key", key_pem(key))
        write_key(keys / "service-accounts.key", service_account_key())
        write_key(keys / "encryption.json", _encryption())
        write_key(keys / "tokens.csv", f'{token},kubernetes-admin,admin,"system:masters"\n'.encode())

    def command(self, endpoints: Sequence[str]) -> list[str]:
        assets = find_assets()
        assert assets is not None
        return [
            *apiserver_command(
                assets,
                etcd=",".join(endpoints),
                port=self.port,
                certificates=self.keys.parent / f"certs-{self.port}",
                signing=self.keys / "service-accounts.key",
                tokens=self.keys / "tokens.csv",
            ),
            f"--tls-cert-file={self.keys / 'tls.crt'}",
            f"--tls-private-key-file={self.keys / 'tls.key'}",
            f"--encryption-provider-config={self.keys / 'encryption.json'}",
            # While it stops, each answer ends its connection and says when to ask again; watches end in an orderly way.
            "--shutdown-send-retry-after=true",
            "--shutdown-watch-termination-grace-period=10s",
        ]

    def secret(self) -> bytes:
        return b""

    async def ready(self) -> None:
        self.ca = (self.keys / "ca.crt").read_text()
        trust = ssl.create_default_context(cadata=self.ca)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
            await until(lambda: self._is_ready(session))

    async def _is_ready(self, session: aiohttp.ClientSession) -> bool:
        if not self.is_running:
            raise ServerEnded
        try:
            async with session.get(f"https://127.0.0.1:{self.port}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False


def _encryption() -> bytes:
    key = {"name": "first", "secret": b64encode(secrets.token_bytes(32)).decode()}
    providers = [{"secretbox": {"keys": [key]}}, {"identity": {}}]
    made = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": providers}],
    }
    return json.dumps(made).encode()
