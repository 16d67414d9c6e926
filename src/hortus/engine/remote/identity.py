"""The identity of a member: one definition, for every domain that asks which cluster answers at a place.

A member is known by the uid of its namespace kube-system together with the way that leads to it: the address, and the
authorities that vouch for the server there. A uid alone is a claim: any API server can answer with that of another
cluster. Two ways that are equal lead to one server, which TLS proves. Two different ways that show one uid are proven
to lead to one cluster by its *mark*, a Secret in its kube-system:

- It is written once and never renewed, so a fleet at rest stays free of writes. It holds 32 random bytes; only their
  digest is kept outside of the cluster, so a reader of our objects cannot make a copy.
- A mark that is read through a new way, and has the digest on record, shows that a cluster has moved.
- While both ways answer, a fresh word is written into the mark through the first and looked for through the second.
  A copy does not have it: neither a cluster that was restored from a backup of the other, nor a server whose owner has
  read the mark.

`docs/adr/0021-identity-of-a-member.md` has the reasons.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit

import msgspec

from hortus.engine.kubeconfigs.secrets import SECRETS
from hortus.kube import Access, Client
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import Object, ObjectKey, shaped
from hortus.schema import Fields

MARK: Final = ObjectKey("kube-system", "hortus-mark")
"""The Secret in a member. Who reads Secrets of kube-system is an administrator of that cluster."""
_TYPE: Final = "fleet.hortus.dev/mark"
_NONCE: Final = "mark"
_WORD: Final = "fleet.hortus.dev/word"
"""Annotation of the mark: the word that was last looked for through another way."""
_BYTES: Final = 32
_MANAGER: Final = "hortus-identity"
_PORTS: Final = {"https": 443, "http": 80}
_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_SYSTEM, _UNCHECKED = "system", "unchecked"


class MemberIdentity(NamedTuple):
    """A cluster as it was reached. All empty: it was not reached yet."""

    uid: str = ""
    """The uid of its namespace kube-system; empty where the credential may not read it."""
    address: str = ""
    """URL of the API server, with the name that its certificate must hold where that is another one."""
    authority: str = ""
    """Digest of the certificates that the server's is checked with; `system` for the system's own."""

    @classmethod
    def reached(cls, access: Access, uid: str = "") -> Self:
        """The identity of a cluster that has answered with `uid` there."""
        return cls(uid, _address(access), _authority(access))

    def same_way(self, other: MemberIdentity) -> bool:
        """Reports whether both were reached by the same address and authorities, and so are one server."""
        return bool(self.address) and self[1:] == other[1:]


class _Metadata(Fields, frozen=True):
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class _Mark(Fields, frozen=True):
    metadata: _Metadata = _Metadata()
    data: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def digest(self) -> str:
        nonce = self.data.get(_NONCE, "")
        return hashlib.sha256(nonce.encode()).hexdigest() if len(nonce) >= _BYTES else ""


async def digest_of_mark(client: Client) -> str:
    """The digest of a cluster's mark, which is written where there is none. Raises KubeError.

    Empty for a Secret of that name that is no mark.
    """
    try:
        return (await _mark(client)).digest
    except NotFound:
        pass
    try:
        return _read(await client.create(SECRETS, _new_mark(), field_manager=_MANAGER)).digest
    except AlreadyExists:
        return (await _mark(client)).digest  # another replica was first


async def are_one(first: Client, second: Client) -> bool:
    """Reports whether two clients reach one cluster, while both answer. Raises KubeError.

    It writes through `first` unless the marks differ anyway, and reads alone through `second`.
    """
    mark = await digest_of_mark(first)
    try:
        if not mark or mark != (await _mark(second)).digest:
            return False
        word = secrets.token_hex(_BYTES)
        change = {"metadata": {"annotations": {_WORD: word}}}
        await first.patch(SECRETS, MARK.name, change, MARK.namespace, field_manager=_MANAGER)
        return (await _mark(second)).metadata.annotations.get(_WORD) == word
    except NotFound:
        return False


async def _mark(client: Client) -> _Mark:
    return _read(await client.get(SECRETS, MARK.name, MARK.namespace))


def _read(found: Object) -> _Mark:
    return shaped(found, _Mark) or _Mark()  # a server may answer anything


def _new_mark() -> Object:
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {"name": MARK.name, "namespace": MARK.namespace},
        "type": _TYPE,
        "immutable": True,
        "data": {_NONCE: base64.b64encode(secrets.token_bytes(_BYTES)).decode()},
    }


def _address(access: Access) -> str:
    url = urlsplit(access.server)
    port = url.port or _PORTS.get(url.scheme, 0)
    address = f"{url.scheme}://{url.hostname}:{port}{url.path.rstrip('/')}"
    return f"{address} as {access.tls_server_name}" if access.tls_server_name else address


def _authority(access: Access) -> str:
    if access.insecure or urlsplit(access.server).scheme != "https":
        return _UNCHECKED
    if not access.ca:
        return _SYSTEM
    # Comments, line ends and the order of certificates mean nothing.
    found = sorted(b"".join(one.split()) for one in set(_CERTIFICATE.findall(access.ca)))
    return hashlib.sha256(b"\n".join(found)).hexdigest()
