"""The server's confidential keys: its authorities, its serving key and one seed.

They are one record in a bucket that no request can name (no logical cluster's name begins with `_`). The keys of a
logical cluster, its client authority and its token key, are derived from the seed and the cluster's uid. So an idle
cluster keeps no key, a restart gives the same keys, and a cluster made again under an old name (another uid) accepts
nothing that the old one signed. The trade-off: a reader of the store's file can sign for every cluster, as with any API
server that keeps its keys in a folder.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from hortus.apiserver.authn.certificates import (
    SKEW_SECONDS,
    Authority,
    derived_key,
    key_pem,
    load_key,
    new_key,
    root_authority,
    serving_certificate,
    sub_authority,
)
from hortus.apiserver.settings import ServingFiles
from hortus.apiserver.store.backend import Backend, Mismatch, StoreKey, Value

KEY = StoreKey("_server/keys", "/keys")
"""The key of the record; `_server` cannot be the name of a logical cluster."""

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
AUTHORITY_DAYS = 3650
SERVING_DAYS = 3650
"""As long as its authority: a shorter life gains nothing where the authority's key is stored with it, and peers whose
clock differs by years (simulated time) keep working."""

_NO_CHECK_TIME = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME (openssl/x509_vfy.h), which the ssl module does not name."""


class _Stored(msgspec.Struct, rename="camel"):
    resource_version: str
    seed: bytes
    root_uid: str
    created: float
    server_key: bytes
    server_certificate: bytes
    client_key: bytes
    client_certificate: bytes
    serving_key: bytes
    serving_certificate: bytes


class ServerKeys:
    """The server's keys in use. `root_uid` is the uid of the management cluster, `created` when the store began."""

    def __init__(self, stored: _Stored) -> None:
        self._stored = stored
        self.root_uid = stored.root_uid
        self.created = stored.created
        self.server_authority = _authority(stored.server_key, stored.server_certificate)
        self.client_authority = _authority(stored.client_key, stored.client_certificate)

    @property
    def ca_pem(self) -> bytes:
        """The CA by which clients verify this server."""
        return self._stored.server_certificate

    def cluster_authority(self, uid: str) -> Authority:
        """The client authority of the logical cluster `uid`; about 0.3 ms, so keep it while it is used."""
        key = derived_key(self._stored.seed, f"client-ca/{uid}")
        return sub_authority(self.client_authority, key, f"hortus-cluster:{uid}")

    def front_proxy_authority(self, uid: str) -> Authority:
        """The authority by which aggregated API servers of the logical cluster `uid` know this server.

        Each cluster has its own: the server of one tenant must not believe headers that were sent on behalf of another.
        """
        key = derived_key(self._stored.seed, f"front-proxy-ca/{uid}")
        name, start = f"hortus-front-proxy:{uid}", self.created - 86400
        return root_authority(key, name, start=start, days=AUTHORITY_DAYS, repeatable=True)

    def token_key(self, uid: str) -> ec.EllipticCurvePrivateKey:
        """The key that signs the ServiceAccounts' tokens of the logical cluster `uid`."""
        return derived_key(self._stored.seed, f"tokens/{uid}")

    def tls_context(self, *, serving: ServingFiles | None = None, client_ca: Path | None = None) -> ssl.SSLContext:
        """The one TLS context of the port on which all logical clusters answer.

        `serving` replaces the server's own certificate; clients of the authorities in `client_ca` are let in, too.

        It asks for a client certificate but does not require one. OpenSSL checks the chain up to the one client root (a
        client sends its leaf and its cluster's authority), so this trust store never grows; the user and the validity
        are checked per request, where an expired certificate gets a 401 instead of an alert.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags = ssl.VerifyFlags(context.verify_flags | _NO_CHECK_TIME)
        context.load_verify_locations(cadata=self._stored.client_certificate.decode())
        if client_ca is not None:
            context.load_verify_locations(client_ca)
        context.set_alpn_protocols(["http/1.1"])
        if serving is None:
            self.load_serving_certificate(context)
        else:
            context.load_cert_chain(serving.certificate, serving.key)
        return context

    def load_serving_certificate(self, context: ssl.SSLContext) -> None:
        """Presents the current serving certificate to new connections."""
        # The ssl module reads keys from files only; the folder is the user's own (0700).
        with TemporaryDirectory(prefix="hortus-") as folder:
            path = Path(folder) / "serving.pem"
            path.write_bytes(self._stored.serving_key + self._stored.serving_certificate)
            context.load_cert_chain(path)


async def open_keys(backend: Backend, *, names: Sequence[str] = (), now: float) -> ServerKeys:
    """The store's keys, made when it has none; several servers that open one store concurrently use the first one's.

    The serving certificate covers localhost and `names`, and is renewed when it lacks one of them or when less than a
    third of its life is left. The names that it had are kept: they may be those of other servers on the same store.
    """
    while True:
        record = await backend.get(KEY)
        stored = msgspec.json.decode(record.value, type=_Stored) if record else _created(now)
        wanted = tuple(dict.fromkeys([*LOCAL_NAMES, *names]))
        if record and _serves(stored.serving_certificate, wanted, now):
            return ServerKeys(stored)
        _renew_serving(stored, tuple(dict.fromkeys([*wanted, *_names(stored.serving_certificate)])), now)
        try:
            await backend.put(KEY, _encoded(stored), expected=record.revision if record else 0)
        except Mismatch:
            continue
        return ServerKeys(stored)


def _created(now: float) -> _Stored:
    server = root_authority(new_key(), "hortus-server-ca", start=now - 86400, days=AUTHORITY_DAYS)
    client = root_authority(new_key(), "hortus-client-ca", start=now - 86400, days=AUTHORITY_DAYS)
    return _Stored(
        resource_version="",
        seed=key_pem(new_key()),
        root_uid=str(uuid4()),
        created=now,
        server_key=key_pem(server.key),
        server_certificate=server.pem,
        client_key=key_pem(client.key),
        client_certificate=client.pem,
        serving_key=b"",
        serving_certificate=b"",
    )


def _renew_serving(stored: _Stored, names: Sequence[str], now: float) -> None:
    key = new_key()
    authority = _authority(stored.server_key, stored.server_certificate)
    end = now + SERVING_DAYS * 86400
    leaf = serving_certificate(authority, key.public_key(), names, start=now - SKEW_SECONDS, end=end)
    stored.serving_key, stored.serving_certificate = key_pem(key), leaf.public_bytes(Encoding.PEM)


def _names(pem: bytes) -> Sequence[str]:
    """The names in a serving certificate; none without one."""
    if not pem:
        return ()
    certificate = x509.load_pem_x509_certificate(pem)
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(entry.value) for entry in found]


def _serves(pem: bytes, names: Sequence[str], now: float) -> bool:
    certificate = x509.load_pem_x509_certificate(pem)
    start, end = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
    return set(names) <= set(_names(pem)) and start <= now < start + (end - start) * 2 / 3


def _encoded(stored: _Stored) -> Value:
    stored.resource_version = ""
    head, _, tail = msgspec.json.encode(stored).partition(b'"resourceVersion":"')
    return Value(head + b'"resourceVersion":"', tail)


def _authority(key: bytes, certificate: bytes) -> Authority:
    return Authority(load_key(key), x509.load_pem_x509_certificate(certificate))
