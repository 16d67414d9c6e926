"""Values that a request becomes once its kind is known, and what carrying it out gives back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.store.backend import Key
from hortus.kube.objects import Object


class Scope(NamedTuple):
    """Whose request it is and what it is about. `namespace` empty: cluster scope, or all namespaces."""

    cluster: str
    kind: Kind
    user: UserInfo
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    unnamed: bool = False
    """True when `name` is from the object alone, as in a POST: rights to names are none to such a request."""

    @property
    def bucket(self) -> str:
        return f"{self.cluster}/{self.kind.suffix}"

    @property
    def key(self) -> Key:
        return Key(f"{self.cluster}/{self.kind.suffix}", f"{self.namespace}/{self.name}")


class WriteOptions(NamedTuple):
    dry_run: bool = False
    manager: str = "unknown"
    validation: str = "Ignore"
    """`Strict`, `Warn` or `Ignore`: what becomes of unknown and duplicate fields."""
    force: bool = False
    kind: str = ""
    """CreateOptions, UpdateOptions or PatchOptions as the client sent them; empty for the server's own writes."""
    noticed: Sequence[str] = ()
    """Problems that strict decoding finds in the body's text, such as duplicate fields."""


class Preconditions(NamedTuple):
    uid: str | None = None
    """An empty one holds for no object."""
    resource_version: str = ""


class DeleteOptions(NamedTuple):
    dry_run: bool = False
    preconditions: Preconditions = Preconditions()
    propagation: str = ""
    """`Foreground`, `Background`, `Orphan`, or empty for what the object's finalizers already say."""
    grace_period: int | None = None


class Outcome(NamedTuple):
    """What a write did. `body` is the object as it is now, or a Status; `object` the same decoded where at hand."""

    body: bytes
    code: int = 200
    warnings: Sequence[str] = ()
    object: Object | None = None
