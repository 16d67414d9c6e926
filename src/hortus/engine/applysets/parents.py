"""The place of a set's inventory: the parent of KEP-3659, or another object of a domain.

`ConfigMapParent` is the parent that kubectl knows. A domain whose contract keeps an inventory elsewhere (in a status,
say) implements `Parent` in a few lines.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from hortus.engine.applysets.identity import GROUP_KINDS, ID, NAMESPACES, TOOLING, set_id
from hortus.engine.applysets.inventory import Inventory, decode, encode, group_kinds, other_namespaces
from hortus.engine.owners import own
from hortus.kube import PatchKind
from hortus.kube.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound
from hortus.kube.objects import Object, Resource

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
OUR_TOOLING = "hortus/v1"
_KEY = "inventory"
_KUBECTL = "kubectl"
"""A set with this tool's name is kubectl's as well, which knows members by their label alone."""


class Parent(Protocol):
    """Remembers one set. What `store` was given, `load` returns, also in another process."""

    @property
    def identity(self) -> str:
        """The value of the members' label `applyset.kubernetes.io/part-of`: 63 characters at most, nobody else's."""

    @property
    def namespace(self) -> str:
        """The namespace of members that name none."""

    async def load(self) -> Inventory:
        """The inventory as it was stored last; empty for a new set. Raises KubeError; ForeignParent."""

    @property
    def shared_kinds(self) -> tuple[str, ...]:
        """Kinds (`Deployment.apps`) whose members another tool may have added: they are found by label. Mostly none."""

    async def store(self, inventory: Inventory) -> None:
        """Remember `inventory`. Returns when it is durable; writes nothing when it is what is stored."""

    async def remove(self) -> None:
        """Forget the set."""


class ForeignParent(ValueError):
    """The parent belongs to somebody else or to another tool, or holds what we did not write."""


class ParentClient(Protocol):
    """The part of `hortus.kube.Client` that a parent uses."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...

    async def create(self, resource: Resource, obj: Object, *, field_manager: str = "") -> Object: ...

    async def apply(self, resource: Resource, obj: Object, *, field_manager: str, force: bool = True) -> Object: ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Object,
        namespace: str = "",
        kind: PatchKind = PatchKind.MERGE,
    ) -> Object: ...

    async def delete(self, resource: Resource, name: str, namespace: str = "", *, uid: str = "") -> Object: ...


class ConfigMapParent:
    """A ConfigMap with the labels and annotations of KEP-3659, and the inventory with uids in its data.

    Its size allows for some 6,000 members. With `tooling` "kubectl/v1.32.0", say, `kubectl apply --prune --applyset`
    takes the set over as its own, and the other way round.
    """

    def __init__(
        self,
        client: ParentClient,
        name: str,
        namespace: str,
        *,
        field_manager: str = "hortus-applyset",
        tooling: str = OUR_TOOLING,
        owner: Object | None = None,
    ) -> None:
        """`owner` becomes the ConfigMap's controller: an object of the same cluster, there or cluster-scoped."""
        self._client = client
        self._name = name
        self._namespace = namespace
        self._field_manager = field_manager
        self._tooling = tooling
        self._owner = owner
        self._uid = ""
        self._stored: Object | None = None
        self._shared: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        return set_id(name=self._name, namespace=self._namespace, kind="ConfigMap", group="")

    @property
    def namespace(self) -> str:
        return self._namespace

    @property
    def shared_kinds(self) -> tuple[str, ...]:
        return self._shared

    async def load(self) -> Inventory:
        self._stored, self._shared, self._uid = None, (), ""
        try:
            found = await self._client.get(CONFIGMAPS, self._name, self._namespace)
        except NotFound:
            return {}
        title, metadata = self._title, found["metadata"]
        annotations = metadata.get("annotations") or {}
        if (metadata.get("labels") or {}).get(ID) != self.identity:
            raise ForeignParent(f"{title}: it is not the parent of this set ({ID}): choose a name that is not taken")
        tooling = annotations.get(TOOLING, "")
        if tooling.partition("/")[0] != self._tooling.partition("/")[0]:
            raise ForeignParent(f"{title}: annotation {TOOLING} is {tooling!r}: the set is managed by another tool")
        try:
            inventory = decode((found.get("data") or {}).get(_KEY, ""))
        except ValueError as error:
            raise ForeignParent(f"{title}: data.{_KEY}: {error}") from None
        self._uid = metadata.get("uid", "")
        if self._tooling.partition("/")[0] == _KUBECTL:
            self._shared = tuple(filter(None, annotations.get(GROUP_KINDS, "").split(",")))
        wanted = self._content(inventory)
        if _holds(found, wanted):
            self._stored = wanted
        return inventory

    async def store(self, inventory: Inventory) -> None:
        wanted = self._content(inventory)
        if wanted == self._stored:
            return
        if self._uid:
            # With the uid, so that it is refused when somebody has put another in its place since it was loaded.
            named = {**wanted, "metadata": {**wanted["metadata"], "uid": self._uid}}
            try:
                written = await self._client.apply(CONFIGMAPS, named, field_manager=self._field_manager)
            except (Conflict, Invalid) as error:
                if not _is_another(error):
                    raise
                raise ForeignParent(f"{self._title}: it has been replaced since it was read: look again") from error
        else:
            try:
                written = await self._client.create(CONFIGMAPS, wanted, field_manager=self._field_manager)
            except AlreadyExists:
                raise ForeignParent(f"{self._title}: somebody has made it just now: look again") from None
        self._uid, self._stored = written["metadata"].get("uid", ""), wanted

    async def remove(self) -> None:
        if self._uid:
            with suppress(NotFound):
                await self._client.delete(CONFIGMAPS, self._name, self._namespace, uid=self._uid)
        self._stored, self._uid = None, ""

    @property
    def _title(self) -> str:
        return f"ConfigMap {self._namespace}/{self._name}"

    def _content(self, inventory: Inventory) -> Object:
        content: Object = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self._name,
                "namespace": self._namespace,
                "labels": {ID: self.identity},
                "annotations": {
                    TOOLING: self._tooling,
                    GROUP_KINDS: group_kinds(inventory),
                    NAMESPACES: other_namespaces(inventory, self._namespace),
                },
            },
            "data": {_KEY: encode(inventory)},
        }
        if self._owner is not None:
            own(content, self._owner)
        return content


def _is_another(error: ApiError) -> bool:
    """True when the server refuses the uid: kube-apiserver answers Invalid, or Conflict when nothing is there."""
    causes = error.details.get("causes") or ()
    return isinstance(error, Conflict) or any(cause.get("field") == "metadata.uid" for cause in causes)


def _holds(found: Object, wanted: Object) -> bool:
    metadata, want = found["metadata"], wanted["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return (
        found.get("data") == wanted["data"]
        and all(labels.get(key) == value for key, value in want["labels"].items())
        and all(annotations.get(key) == value for key, value in want["annotations"].items())
        and (want.get("ownerReferences") or []) == (metadata.get("ownerReferences") or [])
    )
