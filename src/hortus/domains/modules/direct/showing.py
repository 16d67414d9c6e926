"""Installed modules and their objects as tables and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from hortus.domains.modules.direct.cluster import DirectCluster
from hortus.domains.modules.direct.records import ModuleRecord
from hortus.domains.modules.names import State
from hortus.engine.applysets import ApplyReport, readiness
from hortus.engine.applysets.parallel import each
from hortus.engine.applysets.readiness import NOT_FOUND, ObjectStatus, Readiness
from hortus.kube.errors import NotFound

HEADS: Final = ("Name", "Version", "State", "Objects", "Source")
OBJECT_HEADS: Final = ("Kind", "Namespace", "Name", "State", "Message")
_AT_ONCE: Final = 8


class ObjectRow(NamedTuple):
    """One object of a module."""

    kind: str
    namespace: str
    name: str
    state: str
    message: str

    def summary(self) -> dict[str, str]:
        """The row as JSON."""
        return {name: value for name, value in self._asdict().items() if value}


class ModuleRow(NamedTuple):
    """One installed module."""

    stored: ModuleRecord
    objects: Sequence[ObjectRow]

    @property
    def state(self) -> str:
        """The state that the record and the objects have together."""
        if self.stored.record.state != State.READY:
            return self.stored.record.state
        states = {one.state for one in self.objects}
        if ObjectStatus.FAILED in states or ObjectStatus.NOT_FOUND in states:
            return State.ERROR.value
        return State.READY.value if states <= {ObjectStatus.CURRENT} else State.PROCESSING.value

    @property
    def row(self) -> tuple[str, ...]:
        record = self.stored.record
        version = record.version
        if record.installed not in ("", record.version):
            version = f"{record.version} (before: {record.installed})"
        return (record.module, version, self.state, str(len(self.objects)), record.origin)

    def summary(self) -> dict[str, object]:
        """The module as JSON."""
        record = self.stored.record
        return {
            "module": record.module,
            "version": record.version,
            "installed": record.installed,
            "state": self.state,
            "source": record.origin,
            "digest": record.digest,
            "objects": [one.summary() for one in self.objects],
        }


async def module_row(cluster: DirectCluster, stored: ModuleRecord) -> ModuleRow:
    """A module with the present state of its objects. Raises KubeError."""

    async def one(index: int) -> ObjectRow:
        entry = stored.synced[index]
        found = await _readiness(cluster, stored, index)
        return ObjectRow(entry.kind, entry.namespace, entry.name, found.status.value, found.message)

    return ModuleRow(stored, await each(list(range(len(stored.synced))), one, limit=_AT_ONCE))


async def _readiness(cluster: DirectCluster, stored: ModuleRecord, index: int) -> Readiness:
    entry = stored.synced[index]
    kind = await cluster.kind_of_entry(entry)
    if kind is None:
        return NOT_FOUND
    try:
        return readiness(await cluster.client.get(kind, entry.name, entry.namespace))
    except NotFound:
        return NOT_FOUND


def outcomes(report: ApplyReport) -> list[dict[str, object]]:
    """The objects of a run as JSON."""
    found: list[dict[str, object]] = []
    for one in report.outcomes:
        fields: dict[str, object] = {
            "group": one.member.group,
            "kind": one.member.kind,
            "namespace": one.member.namespace,
            "name": one.member.name,
            "action": one.action.value,
            "message": one.message,
            "drift": [str(field) for field in one.drift],
        }
        found.append({name: value for name, value in fields.items() if value})
    return found
