"""The outline of a Shoot: the facts that decide the next step.

A cache keeps outlines: a few facts out of some kilobytes each. A progress report of a running operation changes none of
these facts, so it causes no reconcile. A patch reads the whole Shoot from the garden when it is due.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from hortus.domains.clusters.pools import Pool
from hortus.domains.clusters.shoots import LastOperation, Shoot, shoot_of
from hortus.domains.clusters.types import ShootAnnotation
from hortus.engine.typed import NotReadable
from hortus.kube.objects import Object

CREATE = "Create"
RECONCILE = "Reconcile"
SUCCEEDED = "Succeeded"
FAILED = "Failed"
RUNNING = frozenset({"Processing", "Pending", "Aborted", "Error"})
"""States of an operation that goes on, or is tried again by the garden itself."""

_FINAL_CODES = frozenset({"ERR_INFRA_UNAUTHENTICATED", "ERR_INFRA_UNAUTHORIZED"})
_FORCEABLE_CODES = frozenset(
    {
        "ERR_CLEANUP_CLUSTER_RESOURCES",
        "ERR_CONFIGURATION_PROBLEM",
        "ERR_INFRA_DEPENDENCIES",
        "ERR_INFRA_UNAUTHENTICATED",
        "ERR_INFRA_UNAUTHORIZED",
    }
)
_NO_SEED = re.compile(r'Failed to schedule Shoot: none out of the \d+ seeds has a matching provider for "[^"]*"')
_OIDC_EXTENSION = "shoot-oidc-service"


class PoolImageOutline(NamedTuple):
    """The machine image of a pool."""

    pool: str
    name: str
    version: str


class ShootOutline(NamedTuple):
    """The facts about a Shoot that decide the next step."""

    name: str
    uid: str
    generation: int
    current: bool
    """The garden has begun to work on this generation, so that the last operation is about it."""
    deleting: bool
    owner: str
    """Annotation runtime-id; empty when it is missing."""
    patched_for: str
    """Annotation runtime-generation; empty when it is missing."""
    confirmed: bool
    """Its deletion is confirmed."""
    forced: bool
    """Its deletion is forced."""
    domain: str
    operation: str
    """Type of the last operation; empty before the first."""
    state: str
    """State of the last operation."""
    unschedulable: bool
    """No seed has the provider."""
    errors: int
    codes: tuple[str, ...]
    """Codes of the last errors."""
    oidc: bool
    """The extension for OpenIDConnect objects is on."""
    authentication: str
    """Name of the ConfigMap with structured authentication."""
    version: str
    """The Kubernetes version that it asks for."""
    images: tuple[PoolImageOutline, ...]

    @classmethod
    def of(cls, shoot: Shoot) -> ShootOutline:
        """The outline of a whole Shoot. Raises NotReadable for an extension that cannot be read."""
        metadata, annotations = shoot.metadata, shoot.metadata.annotations
        spec, status = shoot.spec, shoot.status
        operation, observed = status.last_operation or LastOperation(), status.observed_generation
        authentication = spec.kubernetes.kube_api_server.structured_authentication
        return cls(
            name=metadata.name,
            uid=metadata.uid,
            generation=metadata.generation,
            # A scheduler that finds no seed says so in the last operation, before any observedGeneration is written.
            current=not observed or observed >= metadata.generation,
            deleting=metadata.deletion_timestamp is not None,
            owner=annotations.get(ShootAnnotation.RUNTIME_ID, ""),
            patched_for=annotations.get(ShootAnnotation.RUNTIME_GENERATION, ""),
            confirmed=annotations.get(ShootAnnotation.DELETION) == "true",
            forced=annotations.get(ShootAnnotation.FORCE_DELETION) == "true",
            domain=spec.dns.domain,
            operation=operation.type,
            state=operation.state,
            unschedulable=bool(_NO_SEED.search(operation.description)),
            errors=len(status.errors),
            codes=tuple(code for error in status.errors for code in error.codes),
            oidc=any(not one.disabled for one in spec.extensions_of(_OIDC_EXTENSION)),
            authentication=authentication.config_map_name if authentication is not None else "",
            version=spec.kubernetes.version,
            images=tuple(_images_of(spec.provider.pools)),
        )

    @property
    def retryable(self) -> bool:
        """A failed operation may yet succeed."""
        return self.errors > 0 and not _FINAL_CODES & set(self.codes)

    @property
    def forceable(self) -> bool:
        """The garden admits a forced deletion."""
        return self.deleting and not self.forced and bool(_FORCEABLE_CODES & set(self.codes))


def _images_of(pools: Iterable[Pool]) -> Iterator[PoolImageOutline]:
    """The images of the pools that can be read."""
    for pool in pools:
        with suppress(NotReadable):
            image = pool.fields.machine.image
            yield PoolImageOutline(pool.fields.name, image.name, image.version)


def outline(document: Object) -> Object:
    """The part of a Shoot that a cache keeps: enough of its metadata, and its `ShootOutline` as `live`."""
    metadata = document["metadata"]
    kept = {name: metadata.get(name, "") for name in ("name", "namespace", "uid", "resourceVersion")}
    return {"metadata": kept, "live": outline_of(document)}


def kept_outline(kept: Object) -> ShootOutline:
    """The `ShootOutline` in what a cache keeps of a Shoot."""
    found: ShootOutline = kept["live"]
    return found


def outline_of(document: Object) -> ShootOutline:
    """The outline of a whole Shoot. Raises NotReadable."""
    return ShootOutline.of(shoot_of(document))
