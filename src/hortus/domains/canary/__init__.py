"""Canary: a real small cluster, grown, used and deleted every hour, so that operators know before their users do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hortus.domains import Domain, ProcessContext, RbacRules

if TYPE_CHECKING:
    from hortus.engine.flags import Flag
    from hortus.terminal import CommandGroup, Connections


class _Canary(Domain):
    needs_garden = True

    def flags(self) -> Sequence[Flag]:
        from hortus.domains.canary.settings import FLAGS

        return FLAGS

    def rules(self) -> RbacRules:
        from hortus.domains.canary import rbac

        return RbacRules(management=rbac.MANAGEMENT, flag="canary-template")

    def unserved_reason(self, values: Mapping[str, Any]) -> str:
        return "" if values["canary-template"] else "--canary-template is not set"

    def add_controllers(self, process: ProcessContext) -> None:
        values = process.values
        if not self.served(values):
            return
        from hortus.domains.canary import composition, settings
        from hortus.domains.clusters.types import RUNTIMES
        from hortus.engine.flags import FlagError

        if RUNTIMES not in process.served:
            path = values["converter-config-filepath"]
            raise FlagError(f"flag --canary-template needs Runtimes, and there is no converter configuration at {path}")
        composition.add_controller(
            process.manager,
            client=process.client,
            garden=process.garden,
            garden_namespace=process.garden_namespace,
            shoots=process.shoots,
            secrets=process.kubeconfigs,
            clusters=process.pool.at,
            deputies=process.deputies,
            leftovers=process.leftovers,
            watched=process.namespace,
            settings=settings.from_flags(values),
        )

    def add_commands(self, app: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.canary import commands

        commands.register(app, connect)


DOMAIN = _Canary(__name__)
