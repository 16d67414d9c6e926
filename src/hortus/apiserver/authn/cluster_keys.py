"""The keys that one logical cluster trusts, and a cache of the credentials it has checked."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from cryptography.hazmat.primitives.asymmetric import ec

from hortus.apiserver.authn.certificates import Authority
from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.authn.keys import ServerKeys
from hortus.apiserver.store.backend import StoreKey

CHECKED_LIMIT = 512
"""Checked credentials kept per cluster and sort; about 2 kB each, and checking one again takes 0.2 ms."""


class Checked(NamedTuple):
    """A credential with a valid signature: its user, and its validity (seconds since the epoch, both inclusive).

    It is valid only as long as the stored `objects` exist.
    """

    user: UserInfo
    not_before: float
    not_after: float
    objects: tuple[StoreKey, ...] = ()
    audiences: tuple[str, ...] = ()


class ClusterKeys:
    """Keys of the logical cluster `uid`, derived at first use, with its checked credentials.

    They are dropped with the cluster, and so are the credentials they accepted: a cluster made again has other
    ClusterKeys.
    """

    __slots__ = (
        "_authority",
        "_front_proxy",
        "_server",
        "_token_key",
        "certificates",
        "name",
        "tokens",
        "trusted",
        "uid",
        "watched",
    )

    def __init__(self, server: ServerKeys, name: str, uid: str) -> None:
        self._server = server
        self._authority: Authority | None = None
        self._front_proxy: Authority | None = None
        self._token_key: ec.EllipticCurvePrivateKey | None = None
        self.name = name
        self.uid = uid
        self.certificates: dict[bytes, Checked] | None = None
        self.tokens: dict[str, Checked] | None = None
        self.trusted: bytes | None = None
        """The authorities as the cluster's aggregated API servers read them, encoded at first use."""
        self.watched: set[StoreKey] | None = None

    @property
    def authority(self) -> Authority:
        if self._authority is None:
            self._authority = self._server.cluster_authority(self.uid)
        return self._authority

    @property
    def front_proxy(self) -> Authority:
        """The authority of this server's certificates towards the cluster's aggregated API servers."""
        if self._front_proxy is None:
            self._front_proxy = self._server.front_proxy_authority(self.uid)
        return self._front_proxy

    @property
    def token_key(self) -> ec.EllipticCurvePrivateKey:
        if self._token_key is None:
            self._token_key = self._server.token_key(self.uid)
        return self._token_key

    @property
    def server_ca(self) -> bytes:
        """PEM of the authority that clients verify the server with."""
        return self._server.ca_pem

    def remember_certificate(self, der: bytes, checked: Checked) -> None:
        if self.certificates is None or len(self.certificates) >= CHECKED_LIMIT:
            self.certificates = {}
        self.certificates[der] = checked

    def remember_token(self, token: str, checked: Checked) -> None:
        if self.tokens is None or self.watched is None or len(self.tokens) >= CHECKED_LIMIT:
            self.tokens, self.watched = {}, set()
        self.tokens[token] = checked
        self.watched.update(checked.objects)

    def written(self, key: StoreKey) -> None:
        """Called after a write of an object of this cluster: tokens that depend on it are checked again."""
        if self.watched and key in self.watched:
            self.tokens, self.watched = None, None


class ClusterKeyLookup(Protocol):
    """Finds living logical clusters; `hortus.apiserver.clusters` implements it."""

    def keys(self, cluster: str) -> ClusterKeys | None: ...
