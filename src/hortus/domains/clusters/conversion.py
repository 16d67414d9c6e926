"""Conversions with all that they need besides the Runtime: audit tenant, maintenance windows, registry caches, ranges.

Looked up here, so that `shoot` stays pure. A StepError names what is missing, in words for the status.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from hortus.domains.clusters import service
from hortus.domains.clusters.bindings import GardenBindings
from hortus.domains.clusters.configuration import (
    AuditTenant,
    AuditTenants,
    Configuration,
    ConfigurationError,
    MaintenanceWindow,
    TenantMissing,
    read_windows,
)
from hortus.domains.clusters.context import RuntimeContext
from hortus.domains.clusters.inside import InsideError, NotPermitted, Workloads, registry_caches
from hortus.domains.clusters.operatoraccess import OperatorAccess, Ranges
from hortus.domains.clusters.pauses import GARDEN, PERMIT
from hortus.domains.clusters.shoot import (
    Context,
    ConversionError,
    LiveShoot,
    Offer,
    Patch,
    has_structured_authentication,
    kept_offer,
    leaves_secret_binding,
    patch_for,
    profile_name,
    remarks_of,
    shoot_for,
)
from hortus.domains.clusters.types import NOT_PERMITTED, ConditionType, Reason, Runtime
from hortus.engine import NEVER, WARNING, Actor, Cache, NotReadable, StepError
from hortus.kube.clock import Clock
from hortus.kube.objects import Object, ObjectKey

NOT_APPLIED = "NotApplied"
"""Reason of events about what of a Runtime is done otherwise than it asks."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Conversion:
    def __init__(
        self,
        *,
        configuration: Configuration,
        tenants: AuditTenants,
        workloads: Workloads,
        access: OperatorAccess,
        audit_log_mandatory: bool,
        structured_authentication: bool,
        ignore_removed_zones: bool,
        bindings: GardenBindings,
        clock: Clock,
        profiles: Cache | None = None,
    ) -> None:
        """`profiles` holds what `profile_outline` leaves of the garden's CloudProfiles; without it none is asked."""
        self.configuration = configuration
        self._tenants = tenants
        self._workloads = workloads
        self._access = access
        self._audit_log_mandatory = audit_log_mandatory
        self._switches = Context(structured_authentication=structured_authentication)
        self._ignore_removed_zones = ignore_removed_zones
        self._bindings = bindings
        self._clock = clock
        self._profiles = profiles

    async def shoot(self, runtime: Runtime) -> Object:
        """The Shoot to create for a Runtime. Raises StepError."""
        context = await self._context(runtime, ())
        with _reported():
            return shoot_for(runtime, self.configuration, context, profile=self.offer(runtime))

    async def patch(self, runtime: Runtime, live: Object) -> Patch:
        """The changes that bring the live Shoot up to its Runtime. Raises StepError."""
        shoot = LiveShoot(live)
        context = await self._context(runtime, await self._caches(runtime), await self._binding(runtime, shoot))
        with _reported():
            return patch_for(runtime, shoot, self.configuration, context, profile=self.offer(runtime))

    def report_remarks(self, context: RuntimeContext, runtime: Runtime, live: Object | None = None) -> None:
        """Events for what of `runtime` is done otherwise than it asks, such as a version that is not taken back."""
        with _reported():
            for remark in remarks_of(runtime, self.configuration, self._switches, live=_live(live)):
                context.event(WARNING, NOT_APPLIED, str(remark))

    def structured(self, runtime: Runtime, live: Object | None = None) -> bool:
        """True when the cluster gets its OIDC by a ConfigMap. `live` is its Shoot, if there is one."""
        with _reported():
            return has_structured_authentication(runtime, self.configuration, self._switches, _live(live))

    async def _binding(self, runtime: Runtime, shoot: LiveShoot) -> str:
        """The CredentialsBinding of a Shoot that leaves its SecretBinding; else empty. Raises StepError."""
        with _reported():
            if not leaves_secret_binding(runtime, self.configuration, shoot):
                return ""
            present, wanted = shoot.spec.secret_binding_name or "", runtime.wanted.shoot.secret_binding_name
            return await self._bindings.successor(shoot.name, present, wanted, shoot.spec.provider.type)

    async def _context(self, runtime: Runtime, caches: tuple[Object, ...], binding: str = "") -> Context:
        ranges = await self._ranges(runtime)
        return Context(
            tenant=self._tenant(runtime),
            windows=self._windows(),
            caches=caches,
            structured_authentication=self._switches.structured_authentication,
            acl=self._access.enabled,
            operator_cidrs=ranges.operator,
            nat_address=ranges.nat,
            credentials_binding=binding,
            now=self._clock.now(),
            ignore_removed_zones=self._ignore_removed_zones,
        )

    async def _ranges(self, runtime: Runtime) -> Ranges:
        """The ranges that an ACL has to admit; empty for a Runtime without an ACL. Raises StepError."""
        acl = runtime.wanted.shoot.api_server.acl
        if not self._access.enabled or acl is None or not acl.allowed_cidrs:
            return Ranges()
        return await self._access.ranges(runtime.metadata.namespace)

    def offer(self, runtime: Runtime) -> Offer | None:
        """The garden's offer, as far as it may be watched. The garden has the last word anyway."""
        return None if self._profiles is None else kept_offer(self._profiles.get(ObjectKey("", profile_name(runtime))))

    def _tenant(self, runtime: Runtime) -> AuditTenant | None:
        try:
            return self._tenants.lookup(service.provider(runtime), runtime.wanted.shoot.region)
        except TenantMissing as error:
            if self._audit_log_mandatory:
                _log.warning("no audit tenant", error=str(error))
                raise _stop(Reason.AUDIT_LOG_ERR, "Failed to configure audit logs") from error
            return None

    def _windows(self) -> dict[str, MaintenanceWindow]:
        """Read for every conversion, so that an edit of the file counts at once; without it there are none."""
        path = self.configuration.converter.maintenance_window.window_map_path
        if not path:
            return {}
        try:
            return dict(read_windows(path))
        except ConfigurationError as error:
            _log.warning("maintenance windows cannot be read", error=str(error))
            return {}

    async def _caches(self, runtime: Runtime) -> tuple[Object, ...]:
        if not service.switches_cache_on(runtime):
            return ()
        try:
            async with self._workloads.open(runtime) as cluster:
                return await registry_caches(cluster)
        except NotPermitted as error:
            raise _stop(NOT_PERMITTED, str(error), after=PERMIT) from error
        except InsideError as error:
            _log.warning("registry caches cannot be read", error=str(error))
            after = GARDEN if error.transient else NEVER
            raise _stop(Reason.REGISTRY_CACHE_ERR, "Failed to configure registry cache", after=after) from error


def _live(shoot: Object | None) -> LiveShoot | None:
    return None if shoot is None else LiveShoot(shoot)


@contextmanager
def _reported() -> Iterator[None]:
    """Report a Runtime that cannot be converted, or a Shoot that cannot be read."""
    try:
        yield
    except (ConversionError, NotReadable) as error:
        raise _stop(Reason.CONVERSION_ERR, f"Runtime conversion error {error}", actor=Actor.USER) from error


def _stop(reason: str, text: str, *, actor: Actor = Actor.OPERATOR, after: float = NEVER) -> StepError:
    return StepError(text, reason=reason, condition=ConditionType.PROVISIONED, actor=actor, after=after)
