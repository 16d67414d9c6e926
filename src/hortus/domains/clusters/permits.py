"""Permits of Runtimes: what the deputy of their namespace may do in the garden.

A Runtime of a trusted namespace may do all that Hortus may (docs/adr/0020). For any other one this asks RBAC of the
management cluster for the verb on the object in the garden, in the namespace of the project. Work inside the cluster
needs the Secret with its kubeconfig; see `inside.workloads`.
"""

from __future__ import annotations

from collections.abc import Iterable

from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.garden import CONFIG_MAPS, CREDENTIALS_BINDINGS, SECRET_BINDINGS
from hortus.domains.clusters.outline import ShootOutline
from hortus.domains.clusters.pauses import PERMIT
from hortus.domains.clusters.shoot import by_credentials_binding
from hortus.domains.clusters.shoots import SHOOTS
from hortus.domains.clusters.types import NOT_PERMITTED, ConditionType, Runtime
from hortus.engine.deputies import Action, Deputies, refusal


class Permits:
    """Raises KubeError where the management cluster does not answer."""

    def __init__(self, deputies: Deputies, configuration: Configuration, garden_namespace: str) -> None:
        self._deputies = deputies
        self._configuration = configuration
        self._garden_namespace = garden_namespace

    def trusts(self, runtime: Runtime) -> bool:
        return self._deputies.trusts(runtime.metadata.namespace)

    async def check(self, runtime: Runtime, shoot: ShootOutline | None) -> None:
        """Raises StepError for a Runtime that may not patch its Shoot or, where there is none, not create it."""
        if shoot is None:
            # A Shoot spends the account of the provider that its binding leads to.
            name = runtime.wanted.shoot.secret_binding_name
            is_new = by_credentials_binding(runtime, self._configuration)
            binding = CREDENTIALS_BINDINGS if is_new else SECRET_BINDINGS
            await self._require(runtime, self._action("create", SHOOTS.plural))
            await self._require(runtime, Action("get", binding.group, binding.plural, self._garden_namespace, name))
        else:
            await self._require(runtime, self._action("patch", SHOOTS.plural, shoot.name))

    async def check_config_map(self, runtime: Runtime, name: str) -> None:
        """Raises StepError for a Runtime that may not write this ConfigMap of the garden."""
        await self._require(runtime, self._of_config_map("patch", name))

    async def may_delete_config_map(self, runtime: Runtime, name: str) -> bool:
        return await self._deputies.may(runtime.metadata.namespace, self._of_config_map("delete", name))

    async def may_delete(self, runtime: Runtime, shoot: ShootOutline) -> bool:
        return not await self.deletion_refusal(runtime, shoot)

    async def deletion_refusal(self, runtime: Runtime, shoot: ShootOutline) -> str:
        """The reason why a Runtime may not delete the Shoot; empty when it may."""
        namespace, action = runtime.metadata.namespace, self._action("delete", SHOOTS.plural, shoot.name)
        return "" if await self._deputies.may(namespace, action) else refusal(namespace, action)

    async def contenders(self, runtimes: Iterable[Runtime], shoot: ShootOutline | None) -> list[Runtime]:
        """Returns the Runtimes that may have the Shoot: a name that anybody writes keeps nobody from theirs."""
        action = self._action("create", SHOOTS.plural)
        if shoot is not None:
            action = self._action("patch", SHOOTS.plural, shoot.name)
        return [one for one in runtimes if await self._deputies.may(one.metadata.namespace, action)]

    async def _require(self, runtime: Runtime, action: Action) -> None:
        await self._deputies.require(
            runtime.metadata.namespace, action, reason=NOT_PERMITTED, condition=ConditionType.PROVISIONED, after=PERMIT
        )

    def _action(self, verb: str, resource: str, name: str = "") -> Action:
        return Action(verb, SHOOTS.group, resource, self._garden_namespace, name)

    def _of_config_map(self, verb: str, name: str) -> Action:
        return Action(verb, CONFIG_MAPS.group, CONFIG_MAPS.plural, self._garden_namespace, name)
