"""The rows of Kymas in `hortus top` and `hortus problems`: one for each, with the first module that holds it up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from hortus.domains.modules.names import Label, State
from hortus.domains.modules.types import KYMAS, Kyma, ModuleStatus
from hortus.engine import Actor
from hortus.engine.fleet import FleetKind, FleetObjects, FleetRow, FleetView, RowStanding, reading, seconds_of

_KYMAS: Final = FleetKind(KYMAS, reading(Kyma))
_FAILED: Final = (State.ERROR, State.WARNING)
_WELL: Final = (State.READY, State.UNMANAGED)


class KymaSubject(NamedTuple):
    """A Kyma."""

    kyma: Kyma


class KymaRows(FleetView[KymaSubject]):
    """One row for each Kyma."""

    kinds = (_KYMAS,)
    page = "modules"
    order = 3

    def subjects(self, objects: FleetObjects) -> Iterable[KymaSubject]:
        return map(KymaSubject, objects.all(_KYMAS, Kyma))

    def row(self, subject: KymaSubject) -> FleetRow:
        kyma, status = subject.kyma, subject.kyma.status
        failed = status.state in _FAILED
        module = _worst(status.modules)
        operation = status.last_operation
        message = f"{module.name}: {module.message or module.state}" if module is not None else ""
        standing = RowStanding.WAITING
        if failed or status.state in _WELL:
            standing = RowStanding.FAILED if failed else RowStanding.WELL
        return FleetRow(
            kind=KYMAS.kind,
            namespace=kyma.metadata.namespace,
            name=kyma.metadata.name,
            standing=standing,
            state=status.state or "New",
            reason=module.state if module is not None else "",
            message=message or (operation.operation if operation is not None else ""),
            owner=Actor.OPERATOR if failed else Actor.NOBODY,
            step="see the modules in the status; it is tried again" if failed else "",
            since=seconds_of(operation.last_update_time) if operation is not None else None,
            region=kyma.metadata.labels.get(Label.REGION, ""),
        )


def _worst(modules: Iterable[ModuleStatus]) -> ModuleStatus | None:
    """The first module that is not well, failures first."""
    ill = [module for module in modules if module.state not in _WELL]
    return min(ill, key=lambda module: (module.state not in _FAILED, module.name), default=None)
