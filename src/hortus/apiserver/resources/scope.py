"""The values of a request whose kind is known, and the result of its execution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.store.backend import StoreKey
from hortus.kube.objects import Object


class RequestScope(NamedTuple):
    """The user and the target of a request. `namespace` empty: cluster scope, or all namespaces."""

    cluster: str
    kind: Kind
    user: UserInfo
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    unnamed: bool = False
    """True if `name` comes from the object, as in a POST: rules with resourceNames do not apply to such a request."""

    @property
    def bucket(self) -> str:
        return f"{self.cluster}/{self.kind.suffix}"

    @property
    def key(self) -> StoreKey:
        return StoreKey(f"{self.cluster}/{self.kind.suffix}", f"{self.namespace}/{self.name}")


class WriteOptions(NamedTuple):
    dry_run: bool = False
    manager: str = "unknown"
    validation: str = "Ignore"
    """`Strict`, `Warn` or `Ignore`: the treatment of unknown and duplicate fields."""
    force: bool = False
    kind: str = ""
    """CreateOptions, UpdateOptions or PatchOptions as the client sent them; empty for the server's own writes."""
    noticed: Sequence[str] = ()
    """Problems that strict decoding finds in the body's text, such as duplicate fields."""


class Preconditions(NamedTuple):
    uid: str | None = None
    """An empty one matches no object."""
    resource_version: str = ""


class DeleteOptions(NamedTuple):
    dry_run: bool = False
    preconditions: Preconditions = Preconditions()
    propagation: str = ""
    """`Foreground`, `Background`, `Orphan`, or empty for the policy in the object's finalizers."""
    grace_period: int | None = None


class WriteResult(NamedTuple):
    """The result of a write. `body` is the present object, or a Status; `object` the same decoded, where available."""

    body: bytes
    code: int = 200
    warnings: Sequence[str] = ()
    object: Object | None = None
