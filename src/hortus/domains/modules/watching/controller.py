"""The controller of Watchers: each gets a route from the gateway to the controller that receives its events.

It owns the VirtualService of the Watcher's name and the condition VirtualService. It watches Gateways. It never touches
Gateways, Services or managed clusters; the webhooks in these follow from the Watchers by the reconciles of Kymas.
"""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar, Final, NoReturn

from hortus.domains.modules.names import MANAGED_BY_LIFECYCLE_MANAGER, FieldOwner, Finalizer, State
from hortus.domains.modules.types import Watcher
from hortus.domains.modules.watching.gateways import GATEWAYS, VIRTUAL_SERVICES, Gateway, selected
from hortus.domains.modules.watching.settings import WatcherSettings
from hortus.domains.modules.watching.webhook import CONTRACT, manager_of
from hortus.engine import (
    FALSE,
    NEVER,
    TRUE,
    WARNING,
    Actor,
    Cache,
    KindController,
    ReconcileContext,
    Result,
    StepError,
    Steps,
    Wiring,
)
from hortus.engine.deputies import Action, Deputies
from hortus.engine.owners import is_owned_by
from hortus.engine.typed import metadata_of
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.kube.selectors import SelectorError

CONDITION: Final = "VirtualService"
REASON: Final = "Ready"
GATEWAY_NOT_FOUND: Final = "WatcherGatewayNotFound"

_Context = ReconcileContext[Watcher]


def virtual_service(watcher: Watcher, gateways: list[Gateway]) -> Object:
    """The route of a Watcher's events. Raises StepError naming the field that cannot be used."""
    spec, metadata = watcher.spec, watcher.metadata
    assert spec is not None, "a Watcher without a spec has no route"
    service, manager = spec.service_info, manager_of(watcher)
    if not manager:
        _refuse(watcher, "spec.manager is empty; set it to the name of the controller that receives the events")
    if not service.name or not service.namespace:
        _refuse(watcher, "spec.serviceInfo needs a name and a namespace")
    if not 0 < service.port <= 65535:
        _refuse(watcher, f"spec.serviceInfo.port is {service.port}; it must be between 1 and 65535")
    for gateway in gateways:
        if not gateway.hosts:
            _refuse(watcher, f"Gateway {gateway.reference} has no host; set one in spec.servers")
    return {
        "metadata": {"name": metadata.name, "namespace": metadata.namespace},
        "spec": {
            "gateways": [gateway.reference for gateway in gateways],
            "hosts": [host for gateway in gateways for host in gateway.hosts],
            "http": [
                {
                    "name": f"{metadata.namespace}/{metadata.name}",
                    "match": [{"uri": {"prefix": f"/{CONTRACT}/{manager}/event"}}],
                    "route": [
                        {
                            "destination": {
                                "host": f"{service.name}.{service.namespace}.svc.cluster.local",
                                "port": {"number": service.port},
                            }
                        }
                    ],
                }
            ],
        },
    }


class WatcherController(KindController[_Context]):
    """Reconciles one Watcher; see the module's head."""

    kind = Watcher
    owns: ClassVar[tuple[Resource, ...]] = (VIRTUAL_SERVICES,)
    field_manager = FieldOwner.LIFECYCLE

    def __init__(
        self, wiring: Wiring[Watcher], *, gateways: Cache | None, deputies: Deputies, settings: WatcherSettings
    ) -> None:
        """`gateways` is None where agents report to the listener without Istio."""
        super().__init__(wiring)
        self._gateways = gateways
        self._deputies = deputies
        self._settings = settings

    def keys(self, gateway: Object) -> list[ObjectKey]:
        """The Watchers that a Gateway may concern: all of them, which are few."""
        return list(self.wiring.cache.raw)

    def steps(self, context: _Context) -> Steps:
        return (self._begin, self._route, self._finish)

    def finalize_steps(self, context: _Context) -> Steps:
        return (self._remove,)

    def report(self, context: _Context, error: StepError) -> None:
        self._state(context, State.ERROR)
        context.condition(CONDITION, FALSE, reason=REASON, message="VirtualService is not configured")
        context.event(WARNING, error.reason, error.message[-100:])

    async def on_error(self, context: _Context, error: StepError | KubeError) -> StepError | None:
        if isinstance(error, StepError):
            return error
        return StepError(f"VirtualService of Watcher {context.key}: {error}", reason="WatcherFailed")

    async def _begin(self, context: _Context) -> None:
        await context.ensure_finalizer(Finalizer.WATCHER)
        if context.object.status.state == State.NONE:
            self._state(context, State.PROCESSING)
            context.condition(CONDITION, FALSE, reason=REASON, message="VirtualService is not configured")
            await context.checkpoint()

    async def _route(self, context: _Context) -> None:
        watcher = context.object
        if watcher.spec is None:
            _refuse(watcher, "spec is missing")
        if self._gateways is None:
            self._check_direct(watcher)
            return
        try:
            found = selected(self._gateways.values(), watcher.spec.gateway.selector, self._settings.gateway_namespace)
        except SelectorError as error:
            _refuse(watcher, f"spec.gateway.selector: {error}")
        if not found:
            raise StepError(
                f"Watcher {watcher.metadata.name}: no Gateway in namespace {self._settings.gateway_namespace} has the "
                "labels of spec.gateway.selector",
                reason=GATEWAY_NOT_FOUND,
                actor=Actor.OPERATOR,
                after=self._settings.requeue,
            )
        # A Gateway and a Service of other namespaces obey it.
        namespace = context.key.namespace
        action = Action("create", VIRTUAL_SERVICES.group, VIRTUAL_SERVICES.plural, namespace)
        await self._deputies.require(namespace, action)
        await context.apply(VIRTUAL_SERVICES, virtual_service(watcher, found))

    async def _finish(self, context: _Context) -> Result:
        self._state(context, State.READY)
        context.condition(CONDITION, TRUE, reason=REASON, message="VirtualService is configured")
        return Result(requeue_after=self._settings.requeue)

    async def _remove(self, context: _Context) -> None:
        if context.object.status.state != State.DELETING:
            self._state(context, State.DELETING)
            await context.checkpoint()
        if self._gateways is not None:
            await self._delete_route(context)
        await context.remove_finalizer(Finalizer.WATCHER)

    async def _delete_route(self, context: _Context) -> None:
        """Delete the VirtualService, unless one of that name is not the Watcher's."""
        key = context.key
        live = self.wiring.owned[VIRTUAL_SERVICES].get(key)
        if live is not None and is_owned_by(live, context.raw):
            with suppress(NotFound):
                uid = metadata_of(live).uid
                await self.wiring.client.delete(VIRTUAL_SERVICES, key.name, key.namespace, uid=uid)

    def _check_direct(self, watcher: Watcher) -> None:
        """Raises StepError for a Watcher whose events a listener without Istio cannot hand on."""
        if manager_of(watcher) != MANAGED_BY_LIFECYCLE_MANAGER:
            _refuse(
                watcher,
                f"its events are for {manager_of(watcher)!r}, which needs Istio: leave out --watcher-listener-address",
            )

    def _state(self, context: _Context, state: State) -> None:
        context.set_status("state", state.value)


class DirectWatcherController(WatcherController):
    """The same where agents report to the listener without Istio: there are no VirtualServices."""

    owns = ()


def _refuse(watcher: Watcher, problem: str) -> NoReturn:
    raise StepError(
        f"Watcher {watcher.metadata.name}: {problem}", reason="WatcherInvalid", actor=Actor.USER, after=NEVER
    )


__all__ = ["GATEWAYS", "VIRTUAL_SERVICES", "DirectWatcherController", "WatcherController", "virtual_service"]
