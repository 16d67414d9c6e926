"""The Kyma in the cluster: the truth for modules and channel, and the mirror of the status.

One watch for each cluster follows it, so a user's change is seen without polling. The cluster's users write it, so what
it holds is untrusted: its size is bounded, and a spec without the shape of the kind is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from hortus.domains.modules.clusters import KymaClusters
from hortus.domains.modules.kyma.resolution import NO_CHANNEL
from hortus.domains.modules.names import (
    REMOTE_KYMA,
    FieldOwner,
)
from hortus.domains.modules.types import KYMAS, MODULE_RELEASE_METAS, MODULE_TEMPLATES, Kyma
from hortus.engine import Actor, Backoff, Cache, NotReadable, Selection, StepError, read
from hortus.engine.indexes import managed_fields_of
from hortus.engine.remote import KubeconfigRef, RemoteWatch
from hortus.kube import Client
from hortus.kube.errors import NotFound, NotServed
from hortus.kube.objects import Object, ObjectKey, key_of
from hortus.schema import Fields

COPIED_CRDS: Final = tuple(
    f"{resource.plural}.{resource.group}" for resource in (KYMAS, MODULE_TEMPLATES, MODULE_RELEASE_METAS)
)
"""Names of the CRDs that each cluster gets, in the order in which they are applied."""
MOST_MODULES: Final = 200
"""Modules that a user may list: a status of so many fits one object with room to spare."""
LONGEST_NAME: Final = 64
"""Characters of a module's name, as in the names of ModuleReleaseMetas."""
UNSERVED: Final = Backoff(first=2.0, cap=300.0, jitter=0.5)
"""A cluster serves Kymas once their CRD is copied; then the watch lists again at once."""


class RemoteKymas:
    """The Kymas in the clusters of Kymas, followed by watches."""

    def __init__(self, clusters: KymaClusters, *, namespace: str) -> None:
        """`namespace` is that of the Kyma in the clusters."""
        self._clusters = clusters
        self.key = ObjectKey(namespace, REMOTE_KYMA)
        self._members = Cache("clusters of Kymas")
        self._members.replace((), 0)
        self._places: dict[ObjectKey, KubeconfigRef] = {}
        self.watch = RemoteWatch(
            clusters.pool,
            self._members,
            place=lambda member: self._places.get(key_of(member)),
            selection=Selection(KYMAS, namespace=namespace, fields=f"metadata.name={REMOTE_KYMA}"),
            transform=managed_fields_of(FieldOwner.SYNC_CONTEXT, FieldOwner.UNMANAGED),
            optional=UNSERVED,
        )

    def enter(self, kyma: ObjectKey, place: KubeconfigRef) -> None:
        """Follow the Kyma in the cluster whose kubeconfig lies at `place`, from now on."""
        if self._places.get(kyma) == place:
            return
        self.leave(kyma)
        self._places[kyma] = place
        self._members.put(
            {"metadata": {"namespace": kyma.namespace, "name": kyma.name, "resourceVersion": "/".join(place)}}
        )

    def leave(self, kyma: ObjectKey) -> None:
        """Follow it no more: the Kyma is gone, or without a cluster."""
        if self._places.pop(kyma, None) is not None:
            self._members.drop(kyma)

    def restart(self, kyma: ObjectKey) -> None:
        """List again at once: the cluster serves Kymas now."""
        place = self._places.get(kyma)
        if place is not None and self._current(kyma) is None:
            self.leave(kyma)
            self.enter(kyma, place)

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Follow no more those that have become another replica's."""
        for kyma in [kyma for kyma in self._places if not holds(kyma)]:
            self.leave(kyma)

    def kymas_at(self, place: KubeconfigRef) -> Iterable[ObjectKey]:
        """The Kymas whose cluster is reached from there."""
        return [kyma for kyma in self._clusters.kymas_at(place) if kyma in self._places]

    def is_current(self, kyma: ObjectKey) -> bool:
        """Reports whether the watch shows the Kyma in the cluster as it is."""
        return self._current(kyma) is not None

    async def get(self, kyma: ObjectKey, client: Client) -> Object | None:
        """The Kyma in the cluster: from the watch, from the server where that is not current. Raises KubeError."""
        cache = self._current(kyma)
        if cache is not None:
            return cache.get(self.key)
        try:
            return await client.get(KYMAS, self.key.name, self.key.namespace)
        except NotServed:
            raise
        except NotFound:
            return None

    def learn(self, kyma: ObjectKey, written: Object) -> None:
        """Take the answer to a write of it as its latest state."""
        cache = self.watch.cache(kyma)
        if cache is not None:
            cache.learn(written)

    def _current(self, kyma: ObjectKey) -> Cache | None:
        cache = self.watch.cache(kyma)
        return cache if cache is not None and cache.has_synced and self.watch.problem(kyma) is None else None


def effective(kyma: Kyma, remote: Object, *, windows_from_remote: bool) -> Kyma:
    """The Kyma with modules and channel of the one in its cluster. Raises StepError for a spec that is refused.

    `windows_from_remote` takes skipMaintenanceWindows from there, too.
    """
    number = len(_listed(remote))
    if number > MOST_MODULES:
        raise _refused(f"spec.modules has {number} modules; at most {MOST_MODULES} are allowed, remove some")
    try:
        spec = read(Kyma, {**remote, "status": {}}).spec
    except NotReadable as error:
        raise _refused(f"{error}; correct that field") from error
    for at, module in enumerate(spec.modules):
        if not module.name or len(module.name) > LONGEST_NAME:
            problem = f"has {len(module.name)} characters; 1 to {LONGEST_NAME} are allowed"
            raise _refused(f"spec.modules[{at}].name {problem}")
    names = [module.name for module in spec.modules]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise _refused(f"spec.modules lists {twice[0]} twice; remove one of the entries")
    if spec.channel.lower() == NO_CHANNEL:
        raise _refused(f'spec.channel "{spec.channel}" is not allowed; name a channel of the catalog')
    taken: dict[str, Any] = {"modules": spec.modules, "channel": spec.channel}
    if windows_from_remote:
        taken["skip_maintenance_windows"] = spec.skip_maintenance_windows
    return msgspec.structs.replace(kyma, spec=msgspec.structs.replace(kyma.spec, **taken))


class _RemoteSpec(Fields, frozen=True):
    modules: tuple[Any, ...] | None = None


class _RemoteStatus(Fields, frozen=True):
    state: str = ""


class _Remote(Fields, frozen=True):
    """The fields that are read before the whole is known to have the shape of its kind."""

    spec: _RemoteSpec = _RemoteSpec()
    status: _RemoteStatus = _RemoteStatus()


def _listed(remote: Object) -> tuple[Any, ...]:
    try:
        return msgspec.convert(remote, _Remote).spec.modules or ()
    except msgspec.ValidationError as error:
        raise _refused(f"{error}; correct that field") from error


def remote_state(remote: Object) -> str:
    """The state of the Kyma in a cluster; empty where it has none that can be read."""
    try:
        return msgspec.convert(remote, _Remote).status.state
    except msgspec.ValidationError:
        return ""


def _refused(problem: str) -> StepError:
    text = f"the Kyma in the cluster is refused: {problem}"
    return StepError(text, reason="RemoteSpecRefused", actor=Actor.USER)
