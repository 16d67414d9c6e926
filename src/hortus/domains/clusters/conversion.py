"""What a conversion needs beside the Runtime: audit tenant, maintenance windows, registry caches, operator's ranges.

Looked up here, so that `shoot` stays pure. A Setback says what is missing and is fit for the status.
"""

from __future__ import annotations

import structlog

from hortus.domains.clusters import service
from hortus.domains.clusters.configuration import (
    AuditTenant,
    AuditTenants,
    Configuration,
    ConfigurationError,
    MaintenanceWindow,
    TenantMissing,
    read_windows,
)
from hortus.domains.clusters.inside import InsideError, Workloads, registry_caches
from hortus.domains.clusters.operatoraccess import OperatorAccess
from hortus.domains.clusters.pauses import GARDEN
from hortus.domains.clusters.shoot import (
    Context,
    ConversionError,
    LiveShoot,
    Offer,
    Patch,
    has_structured_authentication,
    kept_offer,
    patch_for,
    profile_name,
    remarks_of,
    shoot_for,
)
from hortus.domains.clusters.types import Reason, Runtime
from hortus.domains.clusters.visit import Setback, Visit
from hortus.domains.credentials.types import HOME
from hortus.engine import WARNING, Cache
from hortus.engine.typed import read
from hortus.kube.objects import Object, ObjectKey

NOT_APPLIED = "NotApplied"
"""Reason of events that say what of a Runtime is not done as it says."""

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
        watched: str = HOME,
        profiles: Cache | None = None,
    ) -> None:
        """`watched` is the namespace of the Runtimes, empty for all.

        `profiles` holds what `profile_outline` leaves of the garden's CloudProfiles; without it none is asked.
        """
        self.configuration = configuration
        self._tenants = tenants
        self._workloads = workloads
        self._access = access
        self._audit_log_mandatory = audit_log_mandatory
        self._switches = Context(structured_authentication=structured_authentication)
        self._ignore_removed_zones = ignore_removed_zones
        self._watched = watched
        self._profiles = profiles

    async def shoot(self, runtime: Object) -> Object:
        """The Shoot to create. Raises Setback."""
        context = await self._context(runtime, ())
        try:
            wanted = read(Runtime, runtime)
            return shoot_for(wanted, self.configuration, context, profile=self._profile(wanted))
        except ConversionError as error:
            raise _refused(error) from error

    async def patch(self, runtime: Object, live: Object) -> Patch:
        """What brings the live Shoot up to its Runtime. Raises Setback."""
        context = await self._context(runtime, await self._caches(runtime))
        try:
            wanted = read(Runtime, runtime)
            profile = self._profile(wanted)
            return patch_for(wanted, LiveShoot(live), self.configuration, context, profile=profile)
        except ConversionError as error:
            raise _refused(error) from error

    def tell_remarks(self, visit: Visit, live: Object | None = None) -> None:
        """Events for what is done otherwise than the Runtime asks, such as a version that is not taken back."""
        runtime = read(Runtime, visit.runtime)
        for remark in remarks_of(runtime, self.configuration, self._switches, live=_live(live)):
            visit.tell(WARNING, NOT_APPLIED, str(remark))

    def structured(self, runtime: Object, live: Object | None = None) -> bool:
        """True when the cluster gets its OIDC by a ConfigMap. `live` is its Shoot, if there is one."""
        return has_structured_authentication(read(Runtime, runtime), self.configuration, self._switches, _live(live))

    async def _context(self, runtime: Object, caches: tuple[Object, ...]) -> Context:
        ranges = await self._access.ranges(runtime)
        return Context(
            tenant=self._tenant(runtime),
            windows=self._windows(),
            caches=caches,
            structured_authentication=self._switches.structured_authentication,
            acl=self._access.enabled,
            operator_cidrs=ranges.operator,
            nat_address=ranges.nat,
            ignore_removed_zones=self._ignore_removed_zones,
            allowed_namespace=self._allowed_namespace(runtime),
        )

    def _allowed_namespace(self, runtime: Object) -> str:
        """A GardenerCluster outside the home namespace needs a grant, and the Shoot is this Runtime's to give one."""
        namespace = str(runtime["metadata"]["namespace"])
        return "" if self._watched or namespace == HOME else namespace

    def _profile(self, runtime: Runtime) -> Offer | None:
        """The garden's offer, as far as it may be watched. The garden has the last word anyway."""
        return None if self._profiles is None else kept_offer(self._profiles.get(ObjectKey("", profile_name(runtime))))

    def _tenant(self, runtime: Object) -> AuditTenant | None:
        try:
            return self._tenants.lookup(service.provider(runtime), runtime["spec"]["shoot"]["region"])
        except TenantMissing as error:
            if self._audit_log_mandatory:
                _log.warning("no audit tenant", error=str(error))
                raise Setback(Reason.AUDIT_LOG_ERR, "Failed to configure audit logs") from error
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

    async def _caches(self, runtime: Object) -> tuple[Object, ...]:
        if not service.switches_cache_on(runtime):
            return ()
        try:
            async with self._workloads.open(runtime) as cluster:
                return await registry_caches(cluster)
        except InsideError as error:
            _log.warning("registry caches cannot be read", error=str(error))
            raise Setback(
                Reason.REGISTRY_CACHE_ERR,
                "Failed to configure registry cache",
                after=GARDEN if error.transient else None,
            ) from error


def _live(shoot: Object | None) -> LiveShoot | None:
    return None if shoot is None else LiveShoot(shoot)


def _refused(error: ConversionError) -> Setback:
    return Setback(Reason.CONVERSION_ERR, f"Runtime conversion error {error}")
