"""The common parts of clients of registries and of GitHub: errors, redirect rules, downloads, and a cache on disk.

    async with Transfer(TransferSettings()) as transfer:   # HTTP to hosts that an untrusted object may name
        ...
    cache = ArtifactCache(Path("~/.cache/hortus/artifacts").expanduser())
    data = await cache.fetch(digest, fill)                 # from disk, or filled, verified, then kept

Everything fetched is addressed by its digest, and nothing unverified is handed on. Errors are `ArtifactError`s: each
says where, what, and what to do, with `retry_after` where the server wants a pause. No error holds a credential, nor
the query of an address, where storage services put signatures.
"""

from hortus.render.artifacts.cache import ArtifactCache, CacheLimits
from hortus.render.artifacts.digests import BadDigest, Digest, digest_of, parse_digest
from hortus.render.artifacts.download import MemorySink, Sink
from hortus.render.artifacts.errors import (
    AccessDenied,
    ArtifactError,
    BadAnswer,
    CacheFailed,
    DigestMismatch,
    NotFound,
    PolicyRefused,
    RateLimited,
    TooLarge,
    Unavailable,
)
from hortus.render.artifacts.transfer import RateLimit, Transfer, TransferSettings

__all__ = [
    "AccessDenied",
    "ArtifactCache",
    "ArtifactError",
    "BadAnswer",
    "BadDigest",
    "CacheFailed",
    "CacheLimits",
    "Digest",
    "DigestMismatch",
    "MemorySink",
    "NotFound",
    "PolicyRefused",
    "RateLimit",
    "RateLimited",
    "Sink",
    "TooLarge",
    "Transfer",
    "TransferSettings",
    "Unavailable",
    "digest_of",
    "parse_digest",
]
